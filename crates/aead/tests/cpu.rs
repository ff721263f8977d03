//! The probe against what the kernel says, and the variable that hides features. A program of its own: it starts itself again.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use sealway_aead::cpu::{Cpu, DISABLE_VARIABLE, Feature, FeatureSet};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
const X86: [Feature; 10] = [
    Feature::Aes,
    Feature::Pclmulqdq,
    Feature::Vaes,
    Feature::Vpclmulqdq,
    Feature::Avx2,
    Feature::Avx512F,
    Feature::Avx512Bw,
    Feature::Avx512Vl,
    Feature::Avx512Ifma,
    Feature::Avx512Vbmi,
];

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARM: [Feature; 5] = [Feature::Aes, Feature::Neon, Feature::Pmull, Feature::Sha3, Feature::Sve];

/// The kernel lists what it lets programs use, under names of its own for one of the features.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn the_probe_agrees_with_the_kernel() {
    let (title, here): (&str, &[Feature]) = if cfg!(target_arch = "x86_64") {
        ("flags", &X86)
    } else {
        ("Features", &ARM)
    };
    assert_eq!(
        X86.len() + ARM.len(),
        Feature::ALL.len() + 1,
        "every feature is checked; AES is in both lists"
    );
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let listed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == title)
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let expected: FeatureSet = here
        .iter()
        .copied()
        .filter(|&feature| {
            let name = if feature == Feature::Neon {
                "asimd"
            } else {
                feature.name()
            };
            listed.contains(&name)
        })
        .collect();
    let names = |set: FeatureSet| set.iter().map(Feature::name).collect::<Vec<_>>();
    assert_eq!(names(Cpu::get().present()), names(expected));
}

/// Set in the child that [`the_variable_hides_features_from_the_process`] starts.
const CHILD: &str = "SEALWAY_TEST_CPU_CHILD";

/// The variable is read once, at the first probe; so each case is a process of its own: this test, run again.
#[test]
fn the_variable_hides_features_from_the_process() {
    let names = |set: FeatureSet| set.iter().map(Feature::name).collect::<Vec<_>>().join(",");
    let report = |cpu: &Cpu| {
        format!(
            "present={} disabled={} usable={} unknown={:?} aes-gcm={}",
            names(cpu.present()),
            names(cpu.disabled()),
            names(cpu.usable()),
            cpu.unknown_words(),
            cpu.has_aes_gcm()
        )
    };
    if std::env::var_os(CHILD).is_some() {
        println!("\nreport: {}", report(Cpu::get()));
        return;
    }
    let present = Cpu::get().present();
    let all = Feature::ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(",");
    for disable in [
        None,
        Some(""),
        Some(" AES ,avx512"),
        Some("nonsense,avx2"),
        Some(all.as_str()),
    ] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "the_variable_hides_features_from_the_process", "--nocapture"])
            .env(CHILD, "1")
            .env_remove(DISABLE_VARIABLE);
        if let Some(disable) = disable {
            child.env(DISABLE_VARIABLE, disable);
        }
        let output = child.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let said = stdout.lines().find_map(|line| line.strip_prefix("report: ")).unwrap();
        assert_eq!(
            said,
            report(&Cpu::new(present, disable.unwrap_or_default())),
            "{disable:?}"
        );
    }
    let none = Cpu::new(present, &all);
    assert!(none.usable() == FeatureSet::EMPTY && !none.has_aes_gcm());
}
