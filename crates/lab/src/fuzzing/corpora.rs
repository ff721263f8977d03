//! Replays the kept fuzz corpora, and changed copies of them.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use serde_json::{Value, json};

use super::*;
use crate::stats::SplitMix64;
use crate::store::Label;
use crate::store::tests::{on, run as measured};

replay::tests!(ENTRIES, 100, 200, &["lab_"]);

fn exported() -> Vec<u8> {
    let mut store = Store::in_memory().unwrap();
    store.keep(&measured(1, 110.0, 100.0), &on("main")).unwrap();
    let named = Label {
        name: Some("first".to_owned()),
        ..on("work")
    };
    store.keep(&measured(2, 120.0, 100.0), &named).unwrap();
    let kept = store.list().unwrap();
    let mut text = Vec::new();
    store::export(&mut store, &kept, &mut text).unwrap();
    text
}

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.join("\n").into_bytes()
}

#[test]
fn the_corpora_are_what_is_made_now() {
    let one = serde_json::to_vec_pretty(&measured(1, 110.0, 100.0)).unwrap();
    replay::seeds("lab_import", &[("export", exported()), ("one", one)]);

    let text = |text: &str| text.as_bytes().to_vec();
    replay::seeds(
        "lab_link",
        &[
            ("all", text("rate=100mbit,rtt=40ms,loss=0.1%")),
            ("decimals", text("loss=0.0001%,rtt=12.345ms,rate=1.5gbit")),
            ("least", text("rtt=0us")),
            ("most", text("rate=100gbit,rtt=20ms")),
        ],
    );

    let greeting = r#"{"version":1,"responder":{"sealway":"0.1.0","machine":{},"rtt_s":"nan"}}"#;
    let seen = r#"{"seen":{"at_ns":7,"states":[{"accepted":true,"sent":1,"ended":false,"over":false,"received":1,"arrived":false}],"open":1,"trouble":{"count":{"sent":2,"received":1}},"server":{"cpu_ns":1,"memory":2}}}"#;
    let begin = r#"{"begin":{"streams":[{"key":7,"order":{"direction":"down","limit":null,"thorough":true,"must_end":false}}]}}"#;
    let look = r#"{"look":{"states":[{"accepted":true,"sent":18446744073709551615,"ended":true,"over":true,"received":1,"arrived":true}],"stop":true,"timed":true,"reset":true}}"#;
    let from = |kind: u8, text: &[u8]| [&[kind], text].concat();
    replay::seeds(
        "lab_messages",
        &[
            ("greeting", from(0, greeting.as_bytes())),
            ("answer-seen", from(1, seen.as_bytes())),
            ("answer-opened", from(1, br#"{"opened":{"sink":9,"server":null}}"#)),
            (
                "answer-refused",
                from(1, br#"{"refused":{"what":"no","unavailable":true}}"#),
            ),
            (
                "questions",
                from(2, &lines(&[r#"{"open":{"stack":"direct"}}"#, begin, look, "\"close\""])),
            ),
        ],
    );

    let result = |day, ours, ring| serde_json::to_string(&measured(day, ours, ring)).unwrap();
    let two = lines(&[&result(1, 110.0, 100.0), &result(2, 90.0, 100.0)]);
    replay::seeds("lab_result", &[("one", text(&result(1, 110.0, 100.0))), ("two", two)]);
}

/// Values that are other than what is expected, or on its edges.
fn odd(random: &mut SplitMix64) -> Value {
    let odd = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(u64::MAX),
        json!(1e308),
        json!(5e-324),
        json!("inf"),
        json!("nan"),
        json!(""),
        json!("sealway"),
        json!("\u{1b}[2J</script>\u{202e}\u{0}"),
        json!("x".repeat(3000)),
        json!([]),
        json!({}),
    ];
    odd[random.below(odd.len())].clone()
}

/// Changes one thing in a document: a value, or what a list or an object has.
fn change(value: &mut Value, random: &mut SplitMix64) {
    let deeper = random.below(10) > 0;
    match value {
        Value::Object(entries) if deeper && !entries.is_empty() => {
            let at = random.below(entries.len());
            if let Some(value) = entries.values_mut().nth(at) {
                change(value, random);
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(8) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => change(&mut items[at], random),
            }
        }
        Value::Object(entries) if random.below(2) == 0 => {
            let name = entries.keys().nth(random.below(entries.len().max(1))).cloned();
            if let Some(name) = name {
                entries.remove(&name);
            }
        }
        _ => *value = odd(random),
    }
}

/// Bytes that are changed at random are hardly ever JSON; values that are changed are.
#[test]
fn every_changed_value_is_handled() {
    let mut random = SplitMix64::new(1);
    let [one, other] = [measured(1, 110.0, 100.0), measured(2, 90.0, 100.0)].map(|run| json!(run));
    let head = json!({ "sealway_lab_runs": 1 });
    let label = json!({ "name": "a", "branch": "main", "commit": "c" });
    let files = [
        ("lab_result", vec![one.clone(), other.clone()]),
        ("lab_import", vec![one.clone()]),
        ("lab_import", vec![head, label.clone(), one, label, other]),
    ];
    for turn in 0..600 {
        let (name, mut documents) = files[turn % files.len()].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(documents.len());
            change(&mut documents[at], &mut random);
        }
        let lines: Vec<String> = documents.iter().map(Value::to_string).collect();
        let text = lines.join("\n");
        let outcome = std::panic::catch_unwind(|| run(name, text.as_bytes()));
        assert!(outcome.is_ok(), "{name}: {text}");
    }
}
