#![allow(clippy::unwrap_used)]

use super::*;

fn output(bytes: &str, seconds: &str) -> String {
    format!(
        r#"{{"start": {{}}, "end": {{"streams": [], "sum_sent": {{"bytes": 3000000000, "seconds": 1.0}},
        "sum_received": {{"bytes": {bytes}, "seconds": {seconds}, "sender": true}}}}, "server_output_text": "x"}}"#
    )
}

fn ended(output: &str, wall_s: f64, cpu_s: f64) -> Ended {
    Ended {
        output: output.as_bytes().to_vec(),
        wall: Duration::from_secs_f64(wall_s),
        cpu: Some(Duration::from_secs_f64(cpu_s)),
    }
}

#[test]
fn the_receiver_counts() {
    let found = received(output("2500000000", "1.25").as_bytes()).unwrap();
    assert_eq!((found.bytes, found.seconds), (2.5e9, 1.25));
    let counted = counted(
        &ended(&output("2500000000", "1.25"), 1.5, 0.5),
        &ended("", 2.0, 0.75),
        1,
    );
    let counted = counted.unwrap();
    assert_eq!(
        (counted.bytes, counted.wall_s, counted.cpu_s),
        (2_500_000_000, 1.25, 1.25)
    );
    assert_eq!(counted.figures, [("throughput", 2e9), ("cpu_per_gb", 0.5)]);
}

#[test]
fn other_output_is_no_figure() {
    let whole = output("2500000000", "1.25");
    for end in 0..whole.len() {
        assert!(received(&whole.as_bytes()[..end]).is_err(), "cut after {end}");
    }
    let deep = format!("{{\"start\":{}", "[".repeat(100_000));
    for text in [
        deep.as_str(),
        "\u{0}\u{7}",
        "null",
        r#"{"error": "unable to connect"}"#,
        &output("NaN", "1"),
        &output("1e999", "1"),
        &output("-5", "1"),
        &output("0", "1"),
        &output("5", "0"),
        &output("5", "\"1\""),
        &output("3000000001", "1"),
    ] {
        let error = received(text.as_bytes()).unwrap_err();
        assert!(!error.is_empty() && error.len() < 1000, "{error}");
    }
    assert!(received(&[0xff; 1000]).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    let fails = |text: &str, wall: f64, cpu: f64| {
        counted(&ended(text, wall, cpu / 2.0), &ended("", wall, cpu / 2.0), 1).unwrap_err()
    };
    // 2.5 GB with 10 ms of CPU time, longer than it lived, and shorter than it was asked for.
    assert!(fails(&output("2500000000", "1.0"), 1.1, 0.01).contains("no measurement"));
    assert!(fails(&output("2500000000", "1.2"), 1.1, 1.0).contains("ended after 1.100 s"));
    assert!(fails(&output("2500000000", "0.5"), 1.1, 1.0).contains("asked for 1 s"));
    assert!(fails(&output("2500000000", "1.0"), 1.1, 0.0).contains("no CPU time"));
    let silent = Ended {
        cpu: None,
        ..ended(&output("2500000000", "1.0"), 1.1, 1.0)
    };
    assert!(counted(&silent, &silent, 1).is_err());
}
