#![allow(clippy::unwrap_used)]

use super::*;
use crate::peer::tests::script;

/// What wrk 4.1 prints.
const OUTPUT: &str = "\
Running 1s test @ http://127.0.0.1:55322/f
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.12ms    2.78ms  20.78ms   86.30%
    Req/Sec     1.47k   349.78     1.88k    70.00%
  Latency Distribution
     50%    750.00us
     75%    4.25ms
     90%    6.61ms
     99%   13.29ms
  2000 requests in 1.00s, 1.71MB read
Requests/sec:   2000.00
Transfer/sec:      1.71MB
";

fn ended(output: &str, wall_s: f64) -> Ended {
    Ended {
        output: output.as_bytes().to_vec(),
        wall: Duration::from_secs_f64(wall_s),
        cpu: Some(Duration::from_millis(500)),
    }
}

#[test]
fn output_of_a_real_run() {
    let found = report(OUTPUT).unwrap();
    assert_eq!((found.requests, found.rate), (2000, 2000.0));
    assert!((found.p50 - 750e-6).abs() < 1e-12 && (found.p99 - 13.29e-3).abs() < 1e-12);
    let counted = counted(&ended(OUTPUT, 1.1), 1, 2010).unwrap();
    assert_eq!((counted.ops, counted.wall_s, counted.cpu_s), (2000, 1.0, 0.5));
    assert_eq!(counted.figures[0], ("rate", 2000.0));
    assert_eq!(counted.figures[3], ("cpu_per_op", 0.000_25));
}

#[test]
fn units_are_read() {
    for (word, seconds) in [
        ("750.00us", 750e-6),
        ("13.29ms", 13.29e-3),
        ("1.50s", 1.5),
        ("2.00m", 120.0),
        ("1.00h", 3600.0),
    ] {
        let found = scaled(word, &TIMES).unwrap();
        assert!((found / seconds - 1.0).abs() < 1e-9, "{word}: {found}");
    }
    assert_eq!(scaled("1.47k", &COUNTS), Some(1470.0));
    assert_eq!(scaled("2M", &COUNTS), Some(2e6));
    assert_eq!(scaled("349.78", &COUNTS), Some(349.78));
    let huge = "9".repeat(5000) + "s";
    for word in [
        "",
        "s",
        "1",
        "1e3s",
        "-1s",
        "+1s",
        "infs",
        "nans",
        "1.2.3s",
        "1 s",
        "1kk",
        huge.as_str(),
    ] {
        assert_eq!(scaled(word, &TIMES), None, "{word}");
    }
}

#[test]
fn other_output_is_no_figure() {
    for lines in 0..OUTPUT.lines().count() - 1 {
        let cut: Vec<&str> = OUTPUT.lines().take(lines).collect();
        assert!(report(&cut.join("\n")).is_err(), "cut after {lines} lines");
    }
    for (from, to) in [
        ("2000 requests", "0 requests"),
        ("2000 requests", "-1 requests"),
        ("2000 requests", "99999999999999999999999 requests"),
        ("Requests/sec:   2000.00", "Requests/sec:   nan"),
        ("Requests/sec:   2000.00", "Requests/sec:   0.00"),
        ("750.00us", "20.00ms"),
        ("13.29ms", "inf"),
        ("Transfer/sec", "Socket errors: connect 0, read 3\nTransfer/sec"),
        ("Transfer/sec", "Non-2xx or 3xx responses: 12\nTransfer/sec"),
    ] {
        assert!(OUTPUT.contains(from));
        assert!(report(&OUTPUT.replace(from, to)).is_err(), "{to}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let fails = |output: &str, wall, served| counted(&ended(output, wall), 1, served).unwrap_err();
    assert!(fails(OUTPUT, 1.1, 1000).contains("the server answered 1000"));
    assert!(fails(OUTPUT, 1.1, 3000).contains("the server answered 3000"));
    assert!(fails(OUTPUT, 0.9, 2000).contains("ended after 0.900 s"));
    assert!(fails(&OUTPUT.replace("/sec:   2000.00", "/sec:   9000.00"), 1.1, 2000).contains("counted for 0.222 s"));
    assert!(fails(&OUTPUT.replace("13.29ms", "5.00s"), 1.1, 2000).contains("longer than it ran"));
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
    let body = format!("sleep 1\ncat <<'END'\n{OUTPUT}END");
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
