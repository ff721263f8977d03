use super::*;

fn ended(output: &str, wall_s: f64, cpu_s: f64) -> Ended {
    Ended {
        output: output.as_bytes().to_vec(),
        wall: Duration::from_secs_f64(wall_s),
        cpu: Some(Duration::from_secs_f64(cpu_s)),
    }
}

#[test]
fn output_of_a_real_run() {
    let text = "+DT:AES-128-GCM:1:1420\n+R:1500577:AES-128-GCM:1.000000\n+H:1420\n+F:25:AES-128-GCM:2130819340.00\n";
    assert_eq!(parse_throughput(text), Ok(2_130_819_340.0));
    assert_eq!(parse_throughput("+F:1:X:9.6e10"), Ok(9.6e10));
}

#[test]
fn other_output_is_no_figure() {
    for (text, named) in [
        ("", "no line with a throughput"),
        ("hello\n", "\"hello\""),
        ("+R:1:X:2", "no line with a throughput"),
        ("+F:", "\"\""),
        ("+F:25:X:", "\"\""),
        ("+F:25:X:nan", "\"nan\""),
        ("+F:25:X:-1", "\"-1\""),
        ("+F:25:X:0", "\"0\""),
        ("+F:1:X:9.7e10", "claims \"9.7e10\""),
        ("+F:1:X:1e300", "claims \"1e300\""),
        ("+F:25:X:1e999", "claims \"1e999\""),
    ] {
        let error = parse_throughput(text).unwrap_err();
        assert!(error.contains(named), "{text:?}: {error}");
    }
    let long = format!("+F:1:X:{}", "9".repeat(5000));
    assert!(parse_throughput(&long).unwrap_err().len() < 200);
}

#[test]
fn a_window_has_the_cpu_time_of_what_was_counted() {
    // Two seconds counted in a life of 2.5 s, of which three quarters were on a CPU.
    let found = counted(&ended("+F:1:X:1000000", 2.5, 1.875), 2, 1000).unwrap();
    let want = Counted {
        ops: 2000,
        bytes: 2_000_000,
        wall_s: 2.0,
        cpu_s: 1.5,
        ..Counted::default()
    };
    assert_eq!(found, want);
}

#[test]
fn times_that_cannot_be_are_no_figure() {
    let fails = |output: &str, wall: f64, cpu: f64| counted(&ended(output, wall, cpu), 1, 1000).unwrap_err();
    assert!(fails("+F:1:X:1e6", 0.5, 0.5).contains("ended after 0.500 s"));
    assert!(fails("+F:1:X:1e6", 2.0, 0.001).contains("0.001 s of CPU time"));
    // Believable by the wall, not by the CPU time it had for it.
    assert!(fails("+F:1:X:6e10", 1.0, 0.5).contains("9.6e10"));
    // A program that sleeps for the second and then claims what it likes.
    assert!(fails("+F:1:X:9e9", 1.02, 0.023).contains("0.023 s of CPU time in 1.020 s"));
    let mut unknown = ended("+F:1:X:1e6", 2.0, 2.0);
    unknown.cpu = None;
    assert!(
        counted(&unknown, 1, 1000).is_err(),
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

#[test]
fn a_peer_that_cannot_be_believed_is_a_failure_of_its_cell() {
    use crate::peer::tests::script;
    let folder = tempfile::tempdir().unwrap();
    for (body, words) in [
        ("echo +F:1:X:1e300", "1e300"),
        ("echo +F:1:X:1000000", "ended after"),
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
