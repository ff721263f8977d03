use super::*;

fn ended(output: &str, wall_s: f64, cpu_s: f64) -> Ended {
    Ended {
        output: output.as_bytes().to_vec(),
        wall: Duration::from_secs_f64(wall_s),
        cpu: Some(Duration::from_secs_f64(cpu_s)),
    }
}

/// What a run of so many messages of 1,000 bytes in so many seconds says.
fn said(messages: f64, seconds: f64) -> String {
    format!("+R:{messages}:X:{seconds}\n+F:1:X:{}\n", messages * 1000.0 / seconds)
}

#[test]
fn output_of_a_real_run() {
    let text = "+DT:AES-128-GCM:1:1420\n+R:1500577:AES-128-GCM:1.000000\n+H:1420\n+F:25:AES-128-GCM:2130819340.00\n";
    assert_eq!(parse(text, 1420), Ok((1_500_577, 1.0)));
    // It sealed messages of another length than it was asked for.
    assert!(parse(text, 1400).unwrap_err().contains("and 2.1008078e9 by its count"));
}

#[test]
fn other_output_is_no_figure() {
    for (text, named) in [
        ("", "no lines with a count and a throughput"),
        ("hello\n", "\"hello\""),
        ("+R:1:X:2", "no lines with a count and a throughput"),
        ("+F:1:X:2", "no lines with a count and a throughput"),
        ("+R:1:X:1\n+F:", "\"\" as its bytes per second"),
        ("+R:\n+F:25:X:1000", "\"\" as its messages"),
        ("+R:1:X:0\n+F:25:X:1000", "\"0\" as its seconds"),
        ("+R:1:X:nan\n+F:25:X:1000", "\"nan\" as its seconds"),
        ("+R:1:X:1\n+F:25:X:-1", "\"-1\" as its bytes per second"),
        ("+R:1:X:1\n+F:25:X:1e999", "\"1e999\" as its bytes per second"),
        (
            "+R:1:X:1\n+F:25:X:9e9",
            "claims 9e9 bytes per second, and 1e3 by its count",
        ),
    ] {
        let error = parse(text, 1000).unwrap_err();
        assert!(error.contains(named), "{text:?}: {error}");
    }
    let long = format!("+R:1:X:1\n+F:1:X:{}", "9".repeat(5000));
    assert!(parse(&long, 1000).unwrap_err().len() < 200);
}

#[test]
fn a_window_has_the_cpu_time_of_what_was_counted() {
    // Two seconds counted in a life of 2.5 s, of which three quarters were on a CPU.
    let found = counted(&ended(&said(2000.0, 2.0), 2.5, 1.875), 2, 1000, MAX_RATE).unwrap();
    let want = Counted {
        ops: 2000,
        bytes: 2_000_000,
        wall_s: 2.0,
        cpu_s: 1.5,
        ..Counted::default()
    };
    assert_eq!(found, want);
    // Its clock has few ticks: it may say a little more than the life that it had.
    let found = counted(&ended(&said(1000.0, 1.01), 1.008, 1.008), 1, 1000, MAX_RATE).unwrap();
    assert_eq!((found.wall_s, found.cpu_s), (1.008, 1.008));
}

#[test]
fn times_that_cannot_be_are_no_figure() {
    let fails = |messages: f64, seconds: f64, wall: f64, cpu: f64| {
        counted(&ended(&said(messages, seconds), wall, cpu), 1, 1000, 3e10).unwrap_err()
    };
    assert!(fails(1e3, 1.0, 0.5, 0.5).contains("ended after 0.500 s"));
    assert!(fails(1e3, 1.5, 1.02, 1.0).contains("counted for 1.5 s of 1"));
    assert!(fails(1e3, 0.2, 1.02, 1.0).contains("counted for 0.2 s of 1"));
    assert!(fails(1e3, 1.0, 2.0, 0.001).contains("0.001 s of CPU time"));
    // Believable by the wall, not by the CPU time it had for it.
    assert!(fails(2e7, 1.0, 1.0, 0.5).contains("3.00e10"));
    // A program that sleeps for the second and then claims what it likes, and one that computes something else meanwhile.
    assert!(fails(9e6, 1.0, 1.02, 0.023).contains("0.023 s of CPU time in 1.020 s"));
    assert!(fails(9e7, 1.0, 1.02, 1.02).contains("which no program does here"));
    let mut unknown = ended(&said(1e3, 1.0), 2.0, 2.0);
    unknown.cpu = None;
    assert!(
        counted(&unknown, 1, 1000, MAX_RATE).is_err(),
        "wall time is not passed off as CPU time"
    );
}

#[test]
fn what_is_done_with_the_key_follows_from_the_version() {
    let program = |version: &str| Program {
        path: "/no/such/program".into(),
        version: version.to_owned(),
    };
    let differs = |version| program(version).subject().differs;
    let only_nonce = |version| differs(version).iter().any(|text| text.contains("not a new key"));
    let perhaps_key = |version| {
        differs(version)
            .iter()
            .any(|text| text.contains("key set-up and sealing"))
    };
    assert!(only_nonce(
        "OpenSSL 3.0.19 27 Jan 2026 (Library: OpenSSL 3.0.19 27 Jan 2026)"
    ));
    for version in [
        "OpenSSL 3.5.0 8 Apr 2025",
        "OpenSSL 1.1.1w  11 Sep 2023",
        "OpenSSL 3.00",
        "OpenSSL",
    ] {
        assert!(perhaps_key(version) && !only_nonce(version), "{version}");
    }
    assert!(!perhaps_key("OpenSSL 3.0.2 15 Mar 2022"));
}

/// Other work in place of sealing, for long enough, and a rate that every other check lets pass.
#[test]
fn a_peer_that_is_many_times_as_fast_as_a_library_of_this_process_is_not_believed() {
    use crate::peer::tests::script;
    let folder = tempfile::tempdir().unwrap();
    let spins = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; sleep 1; \
                 echo +R:90000000:X:1.0 >&2; echo +F:1:X:9e10";
    let program = Program {
        path: script(folder.path(), "openssl", spins),
        version: String::new(),
    };
    let mut cell = cell(Case::new(), program, Suite::Aes128Gcm, 1000, None);
    cell.prepare().unwrap();
    let found = cell.window(Duration::ZERO, Duration::ZERO);
    assert!(
        matches!(&found, Err(CellError::Failed { what }) if what.contains("which no program does here")),
        "{found:?}"
    );
}

#[test]
fn a_peer_that_cannot_be_believed_is_a_failure_of_its_cell() {
    use crate::peer::tests::script;
    let folder = tempfile::tempdir().unwrap();
    for (body, words) in [
        ("echo +R:1e300:X:1; echo +F:1:X:1.42e303", "ended after"),
        ("echo +R:1000:X:1 >&2; echo +F:1:X:1420000", "ended after"),
        ("echo +F:1:X:1e300", "no lines with a count"),
        (
            "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done",
            "more than 65536 bytes",
        ),
        ("sleep 200 & echo nothing", "\"nothing\""),
        ("exit 1", "ended with"),
    ] {
        let program = Program {
            path: script(folder.path(), "openssl", body),
            version: String::new(),
        };
        let mut cell = cell(Case::new(), program, Suite::Aes128Gcm, 1420, None);
        match cell.window(Duration::ZERO, Duration::ZERO) {
            Err(CellError::Failed { what }) => assert!(what.contains(words), "{body}: {what}"),
            other => panic!("{body}: {other:?}"),
        }
    }
    assert!(
        run(
            &script(folder.path(), "hang", "sleep 200"),
            &[] as &[&str],
            None,
            Duration::from_millis(5)
        )
        .unwrap_err()
        .contains("was stopped")
    );
}
