//! What the reports make of streams through proxies.
use sealway_lab::result::{ResultRow, RunResult};
use serde_json::{Value, json};

/// A row with nine equal rounds; `ratio` is to xray.
fn row(subject: &str, (stack, suite): (&str, &str), metric: &str, value: f64, ratio: Option<(f64, &str)>) -> Value {
    let (unit, better) = match metric {
        "throughput" => ("B/s", "higher"),
        "memory" => ("B", "lower"),
        _ => ("s/GB", "lower"),
    };
    let mut row = json!({
        "workload": "transports", "workload_def": "0", "subject": subject,
        "case": { "stack": stack, "streams": 1, "direction": "down", "suite": suite },
        "metric": metric, "unit": unit, "better": better, "method": "P",
        "median": value, "mad": 0.0, "low": value * 0.99, "high": value * 1.01, "how": "order-statistics",
        "rounds": 9, "values": vec![value; 9],
        "verified": if suite == "none" { "full, unauthenticated" } else { "full" },
    });
    if let Some((estimate, verdict)) = ratio {
        row["ratio"] = json!({
            "to": "xray", "estimate": estimate, "low": estimate * 0.98, "high": estimate * 1.02, "level": 0.961,
            "how": "signed-rank", "mde": 0.02, "verdict": verdict,
        });
    }
    row
}

pub(crate) fn sample() -> RunResult {
    let mut run = crate::common::empty();
    let mut rows = vec![row("direct", ("direct", "none"), "throughput", 4e9, None)];
    for (stack, suite, factor) in [("vless-tcp", "none", 0.6), ("vless-tcp-tls", "aes-128-gcm", 0.45)] {
        for (subject, factor) in [("sealway", factor), ("xray", 1.0)] {
            let ours = subject == "sealway";
            let mut add = |metric: &str, value: f64, ratio: Option<(f64, &str)>| {
                rows.push(row(subject, (stack, suite), metric, value, ratio.filter(|_| ours)));
            };
            add("throughput", 8e8 / factor, Some((1.0 / factor, "faster")));
            add("cpu_per_gb", 2.0 * factor, Some((factor, "faster")));
            add("cpu_per_gb_client", 0.9 * factor, Some((factor, "faster")));
            add("cpu_per_gb_server", 1.1 * factor, Some((factor, "faster")));
            add("memory", 3e7 * factor, None);
        }
    }
    run.results = serde_json::from_value(Value::Array(rows)).unwrap();
    run.plan.rounds = 9;
    run.recommendation = serde_json::from_value(json!([{
        "scenario": "bulk", "choice": "vless-tcp-tls", "reason": "It costs least.", "because": [6], "confidence": "clear"
    }]))
    .unwrap();
    run
}

#[test]
fn the_first_screen_names_an_emulated_link() {
    let mut run = sample();
    assert!(!crate::text_of(&run).contains("Link     "));
    run.link = serde_json::from_value(json!({
        "asked": "rate=100mbit,rtt=40ms,loss=0.1%", "rate": 12.5e6, "rtt_s": 0.04, "loss": 0.001,
        "measured_rate": 12.34e6, "measured_rtt_s": 0.0406, "measured_stream": 1.4e6, "kept": true
    }))
    .unwrap();
    crate::json::check(&crate::json::validator(), &run);
    let text = crate::text_of(&run);
    let (head, rest) = text.split_once("\n\nA transport is").unwrap();
    let [words, rest] = [head, rest].map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(
        words.contains(
            "Link emulated: asked 100 Mbit/s, 40 ms there and back, 0.1 % of packets lost; measured 98.7 Mbit/s, 40.6 ms; one \
             stream with the losses 11.2 Mbit/s"
        ),
        "{head}"
    );
    assert!(
        !rest.contains("Loopback is not a network") && rest.contains("A link is emulated"),
        "{rest}"
    );
    let page = crate::page_of(&run);
    for words in [
        "Over an emulated link: asked 100 Mbit/s",
        "rate=100mbit,rtt=40ms,loss=0.1%",
        "Of the emulated link:",
        "The link is a model",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // One that is another than asked for says so.
    run.link.iter_mut().for_each(|link| link.kept = false);
    assert!(crate::text_of(&run).contains("(NOT KEPT)"));
}

#[test]
fn a_program_that_no_workload_knows_stands_between_the_peers_and_the_control() {
    let mut run = sample();
    for subject in ["direct", "fork"] {
        let row = row(subject, ("vless-tcp", "none"), "throughput", 5e8, None);
        run.results.push(serde_json::from_value(row).unwrap());
    }
    let text = crate::text_of(&run);
    let table = &text[text.find("VLESS over TCP (vless-tcp), 1 download").unwrap()..];
    let places = ["\n  sealway", "\n  xray", "\n  fork", "\n  direct"].map(|name| table.find(name).unwrap());
    assert!(places.is_sorted(), "{table}");
}

#[test]
fn the_terminal_shows_rate_cost_and_ratio_of_each_case() {
    let text = crate::text_of(&sample());
    for words in [
        "Loopback is not a network",
        "VLESS over TLS (vless-tcp-tls), 1 download",
        "sealway moves 2.22x the bytes of xray with the same CPU time (2.18 to 2.27)",
        "sealway moves 1.92x the bytes of the best peer with the same CPU time",
        "Cheaper in 2, dearer in 0",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "lacks {words:?}:\n{text}");
    }
    let head = text.lines().find(|line| line.trim() == "Gbit/s").unwrap();
    let columns: Vec<&str> = head.split_whitespace().collect();
    // The control comes first and has nothing but its rate.
    assert_eq!(columns, ["Gbit/s"], "{text}");
    let heads: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.contains("s/GB"))
        .map(|line| line.split_whitespace().collect())
        .filter(|columns: &Vec<&str>| columns.first() == Some(&"Gbit/s"))
        .collect();
    assert_eq!(heads.len(), 2, "{text}");
    assert_eq!(heads[0], ["Gbit/s", "s/GB", "ratio", "client", "server", "MiB"]);
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= 80 || line.starts_with("Repeat ")),
        "{text}"
    );
}

#[test]
fn the_page_stacks_the_cost_of_the_programs() {
    let page = crate::page_of(&sample());
    for part in [
        "id=\"transports-section\"",
        "Streams through proxies",
        "class=\"bar part client\"",
        "class=\"bar part server\"",
        "Loopback is not a network",
        "Transports on this machine",
        "Bulk data through a proxy",
        "Through VLESS over TLS, sealway keeps one CPU 11.2 % busy for each Gbit/s, client and server together; the server alone ",
        "0.900 s of CPU time for a gigabyte",
    ] {
        assert!(page.contains(part), "lacks {part:?}");
    }
    assert!(!page.contains("class=\"bar part front\""), "no front took part");
    // A bar for each subject of each case with programs; the control has none.
    assert_eq!(page.matches("class=\"bar part client\"").count(), 4 + 1, "and the key");
    assert!(page.contains(">server</text>"), "the key names the shades");
    // The table has them all.
    let table = page.split("<caption>Streams through proxies</caption>").nth(1).unwrap();
    let table = table.split("</table>").next().unwrap();
    // A head, the rate of the control, and five figures of each subject of each case.
    assert_eq!(table.matches("<tr>").count(), 1 + 1 + 4 * 5, "{table}");
    assert!(table.contains("2.22x xray"), "{table}");
    // Sections about single messages have no place here.
    assert!(!page.contains("Which cipher at which size"));
}

#[test]
fn a_page_leads_with_the_workload_that_has_an_answer() {
    let mut run = sample();
    let ciphers = crate::common::sample();
    let opened = ciphers
        .results
        .into_iter()
        .filter(|row| row.case.text("op") == Some("open"));
    run.results.extend(opened);
    let page = crate::page_of(&run);
    assert!(page.contains("Transports on this machine"));
    let nothing = "No sealing throughput was measured";
    assert!(!page.contains(nothing));
    // Alone, the reason is the answer.
    run.results.retain(|row| row.workload == "primitives");
    let page = crate::page_of(&run);
    assert!(page.contains(nothing) && page.contains("Ciphers on this machine"));
}

/// A report on the terminal in one line.
fn flat(run: &RunResult) -> String {
    crate::text_of(run).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pair_says_who_is_its_client_whichever_end_is_ours() {
    let mut run = sample();
    let pairs = ["xray+sealway", "sealway+xray"];
    for pair in pairs {
        let row = row(pair, ("vless-tcp", "none"), "cpu_per_gb", 1.6, Some((0.8, "faster")));
        run.results.push(serde_json::from_value(row).unwrap());
    }
    let text = flat(&run);
    assert!(
        text.contains("other proxy programs (xray; as client+server: xray+sealway, sealway+xray)"),
        "{text}"
    );
    for pair in pairs {
        assert!(
            text.contains(&format!("{pair} moves 1.25x the bytes of the best peer")),
            "{text}"
        );
    }
}

#[test]
fn the_first_screen_says_what_to_set_and_what_seals() {
    let mut run = sample();
    let first = run.results.len() - 1;
    let vmess = row(
        "sealway",
        ("vmess-aes-128-gcm-ws", "aes-128-gcm"),
        "cpu_per_gb",
        0.9,
        None,
    );
    run.results.push(serde_json::from_value(vmess).unwrap());
    let tls = |row: &ResultRow| {
        row.subject == "sealway" && row.metric == "cpu_per_gb" && row.case.text("stack") == Some("vless-tcp-tls")
    };
    let tls = run.results.iter().position(tls).unwrap();
    run.recommendation[0].because = vec![tls, first + 1];
    let text = flat(&run);
    for words in [
        "Use vless-tcp-tls or vmess-aes-128-gcm-ws: VLESS over TLS; sealed by TLS. Measured: 2 transports that encrypt, 1 download each, \
         sealway at both ends",
        r#"Set vless-tcp-tls: "protocol": "vless", "network": "tcp", "security": "tls""#,
        "Gain tie: vless-tcp-tls and vmess-aes-128-gcm-ws (sealed by VMess, no TLS) (1.00x)",
        "How sure tie: 1.00x to 1.00x",
        "VMess (aes-128-gcm) over WebSocket (vmess-aes-128-gcm-ws), 1 download; sealed by VMess, no TLS",
    ] {
        assert!(text.contains(words), "lacks {words}:\n{text}");
    }
    let page = crate::page_of(&run);
    assert!(
        page.contains("Set: vless-tcp-tls: &quot;protocol&quot;") || page.contains("Set: vless-tcp-tls: \"protocol\"")
    );
    // The other costs twice as much.
    let last = &mut run.results[first + 1];
    last.values.iter_mut().for_each(|value| value.0 *= 2.0);
    last.median.0 *= 2.0;
    let text = flat(&run);
    assert!(
        text.contains(
            "Gain 2.00x the bytes of vmess-aes-128-gcm-ws (sealed by VMess, no TLS), the next, for the same CPU time"
        ),
        "{text}"
    );
    assert!(
        text.contains("Programs sealway moves 2.22x the bytes of xray, the best other program here"),
        "{text}"
    );
    // What another program costs is too noisy to say how far ours is ahead.
    let noisy = run.results.iter_mut().filter(|row| row.subject == "xray");
    noisy.for_each(|row| row.flags.push("unusable".to_owned()));
    let text = flat(&run);
    assert!(
        text.contains("Programs sealway moves more than 2.18x the bytes of xray, the best other program here, for the same CPU time (likely)."),
        "{text}"
    );
}
