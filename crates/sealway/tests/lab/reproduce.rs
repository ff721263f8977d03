//! `sealway lab reproduce`: published claims beside a result.

use std::fs;

use serde_json::{Value, json};

use crate::common::{run, words};

/// A result with these rates of VLESS and VMess over TLS.
fn result(vless: f64, vmess: f64) -> Value {
    let case = |stack: &str| json!({ "stack": stack, "streams": 1, "direction": "down", "suite": "aes-128-gcm" });
    let row = |stack: &str, rate: f64| {
        let values: Vec<f64> = (0..9)
            .map(|round| rate * (1.0 + 0.001 * f64::from((round + i32::from(stack.starts_with("vless"))) % 3)))
            .collect();
        json!({
            "workload": "transports", "subject": "sealway", "metric": "throughput", "unit": "B/s", "better": "higher",
            "case": case(stack), "median": rate, "low": rate, "high": rate, "rounds": 9, "values": values,
        })
    };
    let stacks = ["vless-tcp-tls", "vmess-none-tcp-tls"];
    let windows: Vec<Value> = (0..18)
        .map(|order| {
            json!({
                "workload": "transports", "subject": "sealway", "case": case(stacks[order % 2]), "round": order / 2,
                "order": order, "t": 0.0, "wall_s": 1.0,
            })
        })
        .collect();
    json!({
        "schema": 1, "run": "r", "started": "2026-01-01T00:00:00Z", "sealway": "0.1.0", "complete": true, "machine": {},
        "profile": "standard", "subjects": [{ "name": "sealway" }],
        "results": [row("vless-tcp-tls", vless), row("vmess-none-tcp-tls", vmess)],
        "windows": windows,
    })
}

#[test]
fn a_result_that_is_there_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (from, to) = (path("result.json"), path("judged.json"));
    for (vmess, verdict) in [(0.85e9, "confirmed"), (1.3e9, "contradicted")] {
        fs::write(&from, result(1e9, vmess).to_string()).unwrap();
        let ran = run(&["lab", "reproduce", "vless-vmess", "--from", &from, "--json", &to]);
        ran.says(0, &[]);
        for said in [
            "Published and measured: vless-vmess",
            "v2ray: scripts/install-peers gets it",
        ] {
            assert!(ran.stdout.contains(said), "{ran:?}");
        }
        let judged: Value = serde_json::from_str(&fs::read_to_string(&to).unwrap()).unwrap();
        let claims = judged["reproduction"]["claims"].as_array().unwrap();
        assert_eq!(claims[0]["readings"][0]["verdict"], verdict);
        assert_eq!(claims[1]["readings"][0]["verdict"], "not measured");
    }
}

#[test]
fn a_preset_is_for_streams_through_proxies() {
    for what in ["primitives", "all", "reproduce bip324", "reproduce drop-ciphers"] {
        let said = [
            "--preset is for the workload transports and for the recipes",
            "vless-vmess",
        ];
        run(&words(&format!("lab {what} --preset iperf3"))).says(2, &said);
    }
    for option in ["--quick", "--full", "--budget=5m"] {
        run(&["lab", "transports", "--preset", "iperf3", option]).says(2, &["cannot be used with"]);
    }
}

#[test]
fn a_recipe_runs_and_says_what_it_could_not_measure() {
    // No stack of the recipe: what is left is the set-up of keys.
    let line = "lab reproduce v2ray-aead --quick --budget 30s --peers none --stack relay --suite aes-128-gcm --json -";
    let ran = run(&words(line));
    ran.says(0, &["Not measured: 6 claims."]);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["complete"], true);
    assert!(!result["results"].as_array().unwrap().is_empty());
    for claim in result["reproduction"]["claims"].as_array().unwrap() {
        assert_eq!(claim["readings"][0]["verdict"], "not measured");
    }
}

#[test]
fn what_cannot_be_reproduced_is_refused() {
    for (line, said) in [
        ("lab reproduce nothing", "vless-vmess"),
        ("lab reproduce bip324 --from a.json --quick", "--quick"),
        ("lab reproduce bip324 --from /none/a.json", "/none/a.json"),
        ("lab reproduce vless-vmess --stack relay", "nothing to measure"),
    ] {
        run(&words(line)).says(2, &[said]);
    }
}
