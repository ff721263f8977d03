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
    assert_eq!(counted.bytes, 2_500_000_000);
    assert_eq!(counted.wall_s, 1.25);
    assert_eq!(counted.cpu_s, 1.25);
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

/// The variables in which the server that is started again finds its port, and the file that ends it.
const PORT: &str = "SEALWAY_TEST_FAKE_PORT";
const DONE: &str = "SEALWAY_TEST_FAKE_DONE";

/// The server behind the script; in a run of the tests there is nothing to do.
#[test]
fn a_fake_server_listens() {
    let [Some(port), Some(done)] = [PORT, DONE].map(std::env::var_os) else {
        return;
    };
    let port: u16 = port.into_string().unwrap().parse().unwrap();
    let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    while !std::path::Path::new(&done).exists() {
        std::thread::sleep(STEP);
    }
}

/// A program that does this.
fn liar(folder: &std::path::Path, body: &str) -> Stream {
    let path = peer::tests::script(folder, NAME, body);
    let version = String::new();
    Stream {
        program: Program { path, version },
    }
}

/// What a window finds in a program whose server listens and whose client does this.
fn found_in(client: &str) -> CellError {
    let folder = tempfile::tempdir().unwrap();
    let (me, done) = (std::env::current_exe().unwrap(), folder.path().join("done"));
    let server = format!(
        "{PORT}=$6 {DONE}='{}' exec '{}' --exact calibrate::iperf3::tests::a_fake_server_listens",
        done.display(),
        me.display()
    );
    let body = format!(
        "case $1 in -s) {server} ;; *) touch '{}'; {client} ;; esac",
        done.display()
    );
    liar(folder.path(), &body)
        .window(Duration::ZERO, Duration::ZERO)
        .unwrap_err()
}

#[test]
fn a_program_that_moves_nothing_is_found_out() {
    // More than any computer moves in the time that a shell takes.
    let report = output("2500000000000", "1.0").replace("3000000000", "3000000000000");
    for (client, words) in [
        ("exit 3".to_owned(), "ended with exit status: 3"),
        (
            format!("cat <<'END'\n{report}\nEND\n"),
            "it was asked for 1 s, and ended after",
        ),
        (format!("sleep 1.1; cat <<'END'\n{report}\nEND\n"), "no measurement"),
        (
            format!("cat <<'END'\n{}\nEND\n", &report[..100]),
            "is not the JSON of a test",
        ),
    ] {
        let found = found_in(&client);
        assert!(
            matches!(&found, CellError::Failed { what } if what.contains(words)),
            "{client}: {found:?}"
        );
    }
}

#[test]
fn a_server_that_ends_at_once_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let found = liar(folder.path(), "exit 0")
        .window(Duration::ZERO, Duration::ZERO)
        .unwrap_err();
    assert!(found.to_string().contains("ended before it listened"), "{found}");
}
