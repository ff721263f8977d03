//! `sealway cpu`.

use std::fmt::Write;

use sealway_aead::Suite;
use sealway_aead::choose::{preference, vmess_auto};
use sealway_aead::cpu::{Cpu, DISABLE_VARIABLE, Feature};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output;
use crate::problem::{Problem, note};

pub(crate) fn run(as_json: bool) -> Result<Exit, Problem> {
    let cpu = Cpu::get();
    for word in cpu.unknown_words() {
        note(format_args!(
            "warning: {DISABLE_VARIABLE} names `{word}`, which is no feature; it is ignored"
        ));
    }
    if as_json {
        output::print_json(&object(cpu))?;
    } else {
        output::print(&table(cpu))?;
    }
    Ok(Exit::Done)
}

fn object(cpu: &Cpu) -> Value {
    let features = Feature::ALL.iter().map(|&feature| {
        json!({
            "name": feature.name(),
            "present": cpu.present().has(feature),
            "disabled": cpu.disabled().has(feature),
        })
    });
    json!({
        "schema": 1,
        "arch": std::env::consts::ARCH,
        "features": features.collect::<Vec<_>>(),
        "aes_gcm_in_hardware": cpu.has_aes_gcm(),
        "preference": preference(cpu).map(Suite::name),
        "vmess_auto": vmess_auto(cpu).name(),
    })
}

fn table(cpu: &Cpu) -> String {
    let mut text = format!("CPU features for ciphers ({})\n", std::env::consts::ARCH);
    for &feature in Feature::ALL {
        let state = match (cpu.present().has(feature), cpu.disabled().has(feature)) {
            (true, false) => "yes",
            (true, true) => "switched off",
            (false, _) => "no",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<12} {state}", feature.name());
    }
    let hardware = if cpu.has_aes_gcm() {
        "in hardware"
    } else {
        "not in hardware"
    };
    let order = preference(cpu).map(Suite::name).join(", ");
    let _ = writeln!(text, "\nAES with carry-less multiply: {hardware}");
    let _ = writeln!(text, "Order of preference: {order}");
    let _ = writeln!(text, "VMess `auto` takes: {}", vmess_auto(cpu).name());
    text
}

#[cfg(test)]
mod tests {
    use sealway_aead::cpu::FeatureSet;

    use super::*;

    #[test]
    fn a_disabled_feature_is_present_and_off() {
        let present = FeatureSet::EMPTY.with(Feature::Aes).with(Feature::Pclmulqdq);
        let on = Cpu::new(present, "");
        let off = Cpu::new(present, "aes");
        assert!(table(&on).contains("aes          yes\n") && table(&on).contains("multiply: in hardware"));
        assert!(
            table(&off).contains("aes          switched off\n") && table(&off).contains("multiply: not in hardware")
        );
        assert_eq!(
            object(&off)["features"][0],
            json!({"name": "aes", "present": true, "disabled": true})
        );
        assert_eq!(object(&on)["preference"][0], "aes-256-gcm");
        assert_eq!(object(&off)["preference"][0], "chacha20-poly1305");
    }
}
