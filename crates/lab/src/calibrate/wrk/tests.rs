#![allow(clippy::unwrap_used)]

use super::*;
use crate::peer::tests::script;

/// What wrk 4.1 prints, before the script does.
const HEAD: &str = "\
Running 1s test @ http://127.0.0.1:55322/f
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.12ms    2.78ms  20.78ms   86.30%
    Req/Sec     1.47k   349.78     1.88k    70.00%
  2000 requests in 1.00s, 1.71MB read
Requests/sec:   2000.00
Transfer/sec:      1.71MB
";

/// All of it: a rank for each 10 us.
fn output() -> String {
    let ranks: String = (1..=RANKS).map(|rank| format!("rank {rank}0 us\n")).collect();
    format!("{HEAD}{ranks}")
}

fn ended(output: &str, wall_s: f64) -> Ended {
    Ended {
        output: output.as_bytes().to_vec(),
        wall: Duration::from_secs_f64(wall_s),
        cpu: Some(Duration::from_millis(500)),
    }
}

#[test]
fn output_of_a_real_run() {
    let found = report(&output()).unwrap();
    assert_eq!((found.requests, found.rate), (2000, 2000.0));
    let counted = counted(&ended(&output(), 1.1), 1, 2010).unwrap();
    assert_eq!((counted.ops, counted.wall_s, counted.cpu_s), (2000, 1.0, 0.5));
    assert_eq!(counted.figures, [("rate", 2000.0), ("cpu_per_op", 0.000_25)]);
    let (name, tail) = &counted.tails[0];
    assert_eq!((*name, tail.count()), (LATENCY, 2000));
    assert_eq!((tail.quantile(0.5), tail.quantile(0.99)), (Some(5e-3), Some(9.9e-3)));
}

/// Requests that are no multiple of the ranks are shared out, and none is lost.
#[test]
fn every_request_has_a_rank() {
    for requests in [1, 999, 1001, 123_456, u64::MAX] {
        let report = Report {
            requests,
            rate: 1.0,
            ranks: (1..=RANKS as u64).collect(),
        };
        assert_eq!(report.tail().count(), requests);
    }
}

#[test]
fn units_are_read() {
    assert_eq!(scaled("1.47k"), Some(1470.0));
    assert_eq!(scaled("2M"), Some(2e6));
    assert_eq!(scaled("349.78"), Some(349.78));
    let huge = "9".repeat(5000);
    for word in [
        "",
        "k",
        "1e3",
        "-1",
        "+1",
        "inf",
        "nan",
        "1.2.3",
        "1 k",
        "1kk",
        huge.as_str(),
    ] {
        assert_eq!(scaled(word), None, "{word}");
    }
}

#[test]
fn other_output_is_no_figure() {
    let (output, head) = (output(), HEAD.lines().count());
    for lines in (0..=head).chain([head + 1, head + RANKS / 2, head + RANKS - 1]) {
        let cut: Vec<&str> = output.lines().take(lines).collect();
        assert!(report(&cut.join("\n")).is_err(), "cut after {lines} lines");
    }
    for (from, to) in [
        ("2000 requests", "0 requests"),
        ("2000 requests", "-1 requests"),
        ("2000 requests", "99999999999999999999999 requests"),
        ("Requests/sec:   2000.00", "Requests/sec:   nan"),
        ("Requests/sec:   2000.00", "Requests/sec:   0.00"),
        ("rank 5000 us", "rank 20 us"),
        ("rank 5000 us", "rank 5000 ms"),
        ("rank 5000 us", "rank -1 us"),
        ("rank 5000 us", "rank 5000 us\nrank 5000 us"),
        ("Transfer/sec", "Socket errors: connect 0, read 3\nTransfer/sec"),
        ("Transfer/sec", "Non-2xx or 3xx responses: 12\nTransfer/sec"),
    ] {
        assert!(output.contains(from));
        assert!(report(&output.replace(from, to)).is_err(), "{to}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let fails = |output: &str, wall, served| counted(&ended(output, wall), 1, served).unwrap_err();
    let output = output();
    assert!(fails(&output, 1.1, 1000).contains("the server answered 1000"));
    assert!(fails(&output, 1.1, 3000).contains("the server answered 3000"));
    assert!(fails(&output, 0.9, 2000).contains("ended after 0.900 s"));
    assert!(fails(&output.replace("/sec:   2000.00", "/sec:   9000.00"), 1.1, 2000).contains("counted for 0.222 s"));
    assert!(fails(&output.replace("rank 10000 us", "rank 5000000 us"), 1.1, 2000).contains("longer than it ran"));
}

/// A program that does this.
fn liar(folder: &std::path::Path, body: &str) -> Load {
    let (path, version) = (script(folder, NAME, body), String::new());
    Load {
        program: Program { path, version },
        work: Duration::ZERO,
    }
}

#[test]
fn a_program_that_asks_nothing_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let body = format!("sleep 1\ncat <<'END'\n{}END", output());
    let mut liar = liar(folder.path(), &body);
    let error = liar.window(Duration::ZERO, Duration::ZERO).unwrap_err().to_string();
    assert!(
        error.contains("2000 requests were answered, and the server answered 0"),
        "{error}"
    );
}

#[test]
fn a_program_that_ends_early_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    for (body, words) in [
        ("exit 3", "ended with exit status: 3"),
        ("echo Running", "no number of requests"),
    ] {
        let mut liar = liar(folder.path(), body);
        let found = liar.window(Duration::ZERO, Duration::ZERO).unwrap_err();
        assert!(
            matches!(&found, CellError::Failed { what } if what.contains(words)),
            "{found:?}"
        );
    }
}
