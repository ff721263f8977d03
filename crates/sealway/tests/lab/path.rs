//! Paths of the lab as real processes: every stack carries bytes both ways, with our program and with the peers that are
//! installed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use sealway_lab::route::engine::PEERS;
use sealway_lab::route::{Engine, Route, RouteError, Stack};

use crate::common::program::write_program;
use crate::common::proxy::echo;
use crate::common::{self, PATIENCE, PROGRAM, words};

/// Carries some bytes there and back.
fn carries(path: &Route) -> std::io::Result<()> {
    let stream = TcpStream::connect(path.entry()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let bytes = sent.clone();
    let mut up = stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let _ = up.write_all(&bytes);
    });
    let mut got = vec![0; sent.len()];
    (&stream).read_exact(&mut got)?;
    sender.join().unwrap();
    assert!(got == sent);
    Ok(())
}

fn with(engine: &Engine) {
    let sink = echo();
    for stack in Stack::ALL {
        let mut path = match Route::open(&stack, engine, sink) {
            Ok(path) => path,
            Err(RouteError::Unavailable { what }) => {
                if what.contains(" has no ") {
                    println!("{stack}: {what}");
                    continue;
                }
                assert!(stack.needs_nginx(), "{stack}: {what}");
                common::peer_is_missing(&format!("{stack}: {what}"));
                continue;
            }
            // The older ones do not know it.
            Err(error) if engine.name() == "v2ray" && stack == Stack::VLESS_GRPC_TLS => {
                println!("v2ray {stack}: {error}");
                continue;
            }
            Err(error) => panic!("{} {stack}: {error}", engine.name()),
        };
        path.reset_memory();
        let mut before = path.cpu().unwrap();
        if let Err(error) = carries(&path) {
            // On a busy machine xray closes VMess connections now and then; of ours that is a failure.
            let what = format!("{} {stack}: {error}", engine.name());
            assert!(engine.name() != "sealway", "{what}");
            println!("{what}; once more");
            path = Route::open(&stack, engine, sink).unwrap();
            before = path.cpu().unwrap();
            if let Err(error) = carries(&path) {
                // And Trojan connections whose first payload is long.
                let known = ["vmess-", "trojan-"].iter().any(|name| stack.name().contains(name));
                assert!(known, "{what}, and again: {error}");
                println!("{what}, and again: {error}");
                continue;
            }
        }
        let after = path.cpu().unwrap();
        let names: Vec<_> = path.roles().iter().map(|role| role.name()).collect();
        let wanted: &[&str] = match (stack.has_programs(), stack.has_wire(), stack.needs_nginx()) {
            (false, ..) => &[],
            (_, false, _) => &["client"],
            (.., false) => &["client", "server"],
            (.., true) => &["client", "front", "server"],
        };
        assert_eq!(names, wanted, "{stack}");
        for ((role, before), (_, after)) in before.iter().zip(&after) {
            assert!(after > before, "{stack}: the {role} has computed nothing");
        }
        for (role, memory) in path.memory().unwrap() {
            assert!(
                memory.peak > 0 && memory.pss.is_none_or(|pss| pss > 0),
                "{stack} {role}: {memory:?}"
            );
        }
        path.check().unwrap();
        let pids: Vec<u32> = path.roles().iter().map(|role| role.id()).collect();
        drop(path);
        for pid in pids {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{stack} leaves a process");
        }
    }
}

#[test]
fn every_stack_carries_bytes() {
    with(&Engine::sealway(Path::new(PROGRAM)));
}

#[test]
fn peers_carry_bytes_with_the_same_configurations() {
    for name in PEERS {
        match Engine::peer(name) {
            Ok(engine) => with(&engine),
            // It is not among the peers of tests (scripts/install-peers --tests): nobody has to have it.
            Err(why) if ["sing-box", "shoes"].contains(&name) => println!("skipped: {name}: {why}"),
            Err(why) => common::peer_is_missing(&format!("{name}: {why}")),
        }
    }
}

#[test]
fn a_held_path_goes_on_where_it_was() {
    let path = Route::open(&Stack::RELAY, &Engine::sealway(Path::new(PROGRAM)), echo()).unwrap();
    path.pause();
    // Each thread stops on its own.
    let tasks = format!("/proc/{}/task", path.roles()[0].id());
    let stopped = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("stat")).is_ok_and(|stat| stat.contains(") T "))
    };
    while !std::fs::read_dir(&tasks).unwrap().all(stopped) {
        std::thread::yield_now();
    }
    let held = path.cpu().unwrap();
    // The kernel accepts for it.
    let stream = TcpStream::connect(path.entry()).unwrap();
    assert_eq!(path.cpu().unwrap(), held);
    drop(stream);
    path.resume();
    carries(&path).unwrap();
}

#[test]
fn a_link_lies_on_every_path() {
    let engine = Engine::sealway(Path::new(PROGRAM));
    let round_trip = Duration::from_millis(20);
    for stack in [Stack::DIRECT, Stack::RELAY, Stack::VLESS_TCP] {
        let link = "rtt=20ms".parse().unwrap();
        let path = Route::open_linked(&stack, Some(&engine), echo(), Some(link)).unwrap();
        carries(&path).unwrap();
        path.engage(1);
        let began = Instant::now();
        carries(&path).unwrap();
        // The handshake, and what comes back.
        assert!(began.elapsed() >= 2 * round_trip, "{stack}: {:?}", began.elapsed());
        path.check_link().unwrap();
    }
}

#[test]
fn transports_are_measured_over_an_emulated_link() {
    let link = "rate=20mbit,rtt=4ms";
    let line = format!("lab transports --quick --peers none --stack vless-tcp-tls --budget 30s --link {link} --json -");
    let ran = common::run(&words(&line));
    ran.says(0, &["emulated link: asked 20 Mbit/s", "Link     emulated:"]);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let facts = &result["link"];
    assert_eq!((&facts["asked"], &facts["rate"]), (&link.into(), &2.5e6.into()));
    assert!(facts["measured_rtt_s"].as_f64().unwrap() >= 0.004, "{facts}");
    let rows = result["results"].as_array().unwrap();
    for (stack, subject) in [("direct", "direct"), ("vless-tcp-tls", "sealway")] {
        let row = rows
            .iter()
            .find(|row| row["case"]["stack"] == stack && row["subject"] == subject && row["metric"] == "throughput")
            .unwrap_or_else(|| panic!("no throughput of {subject}: {}", ran.stderr));
        // What one window has more than the rate was queued before it.
        let rate = row["median"].as_f64().unwrap();
        assert!(rate > 0.0 && rate < 1.2 * 2.5e6, "{subject}: {rate}");
    }
}

#[test]
fn packets_of_bip324_are_measured_over_an_emulated_link() {
    let line =
        "bip324 bench sockets --connections 20 --quick --peers none --budget 7s --link rate=50mbit,rtt=4ms --json -";
    let ran = common::run(&words(line));
    ran.says(
        0,
        &["emulated link: asked 50 Mbit/s", "Connections over an emulated link"],
    );
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = result["results"].as_array().unwrap();
    for subject in ["sealway", "sealway:single"] {
        let figure = |metric: &str| {
            let row = rows
                .iter()
                .find(|row| row["subject"] == subject && row["metric"] == metric);
            let row = row.unwrap_or_else(|| panic!("no {metric} of {subject}: {}", ran.stderr));
            row["median"].as_f64().unwrap()
        };
        let rate = figure("throughput");
        assert!(rate > 0.0 && rate < 2.0 * 2.0 * 6.25e6, "{subject}: {rate}");
        assert!(figure("message_p50") > 0.002, "{subject}");
    }
}

#[test]
fn a_link_is_for_what_goes_through_sockets() {
    let said = "--link is for one of the workloads bip324, transports, requests, flows, files";
    for workload in ["primitives", "all", "calibrate"] {
        let ran = common::run(&["lab", workload, "--link", "rtt=1ms"]);
        ran.says(2, &[said]);
        assert_eq!(
            ran.stderr.contains("would compare no generators"),
            workload == "calibrate",
            "{ran:?}"
        );
    }
    let ran = common::run(&words("bip324 bench sockets --connections 100,10001 --link rtt=1ms"));
    ran.says(2, &["over a link there can be 10000 at most"]);
    let ran = common::run(&words("bip324 bench --gpu --link rtt=1ms"));
    ran.says(2, &["--gpu", "--link"]);
    let ran = common::run(&["lab", "transports", "--link", "rate=1mbit,jitter=1ms"]);
    ran.says(2, &["\"jitter\" is no part of a link"]);
}

#[test]
fn a_program_that_does_not_start_is_told_with_its_last_words() {
    let open = |program| Route::open(&Stack::VLESS_TCP, &Engine::sealway(Path::new(program)), echo());
    let path = open("/no/such/program");
    assert!(
        matches!(path, Err(RouteError::Start { role: "server", .. })),
        "{path:?}"
    );
    // A program that ends at once.
    match open("/bin/ls") {
        Err(error @ RouteError::Ended { role: "server", .. }) => {
            assert!(error.to_string().contains("run"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn transports_are_measured_with_the_cost_of_each_process() {
    let stacks = "vless-tcp,vmess-aes-128-gcm-tcp";
    // Our own program once more, as a user-supplied one.
    let again = format!("again={PROGRAM}");
    let mut line = words("lab transports --quick --peers none --budget 15s --json -");
    line.extend(["--peer", &again, "--pair", "again+sealway", "--stack", stacks]);
    let ran = common::run(&line);
    ran.says(0, &["VLESS over TCP (vless-tcp), 1 download", "s/GB", "client"]);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["complete"], true, "{}", ran.stderr);
    let rows = result["results"].as_array().unwrap();
    let find = |stack: &str, subject: &str, metric: &str| {
        rows.iter()
            .find(|row| row["case"]["stack"] == stack && row["subject"] == subject && row["metric"] == metric)
            .unwrap_or_else(|| panic!("no {metric} of {subject} in {stack}: {}", ran.stderr))
    };
    assert!(find("direct", "direct", "throughput")["median"].as_f64().unwrap() > 0.0);
    for stack in stacks.split(',') {
        for subject in ["sealway", "again", "again+sealway"] {
            assert!(find(stack, subject, "throughput")["median"].as_f64().unwrap() > 0.0);
        }
        for metric in ["cpu_per_gb", "cpu_per_gb_client", "cpu_per_gb_server"] {
            let row = find(stack, "sealway", metric);
            assert!(row["median"].as_f64().unwrap() > 0.0);
            assert_eq!((&row["method"], &row["unit"]), (&"P".into(), &"s/GB".into()));
        }
        assert!(find(stack, "sealway", "memory_server")["median"].as_f64().unwrap() > 1e5);
    }
    for (stack, verified) in [
        ("vless-tcp", "full, unauthenticated"),
        ("vmess-aes-128-gcm-tcp", "full"),
    ] {
        assert_eq!(find(stack, "sealway", "throughput")["verified"], verified);
    }
    let brought = &result["subjects"][1];
    assert_eq!(brought["name"], "again");
    let version = brought["version"].as_str().unwrap();
    assert!(version.starts_with("sealway "), "{brought}");
    let pair = &result["subjects"][2];
    assert_eq!(
        (&pair["name"], &pair["role_argv"]["server"][0]),
        (&"again+sealway".into(), &"sealway".into())
    );
    // Ours stands beside it, as beside every peer.
    assert_eq!(find("vless-tcp", "sealway", "throughput")["ratio"]["to"], "again");
    let ours = &result["subjects"][0];
    assert_eq!((&ours["name"], &ours["kind"]), (&"sealway".into(), &"program".into()));
    let inbound = &ours["config"]["vless-tcp client"]["inbounds"][0];
    assert_eq!(inbound["protocol"], "dokodemo-door");
}

/// Our own program as a fork that is told to seal and does not.
#[test]
fn load_on_a_peer_that_does_not_seal_is_shown_and_never_compared() {
    let folder = tempfile::tempdir().unwrap();
    let liar = folder.path().join("liar");
    let text = format!("#!/bin/sh\n[ \"$1\" = run ] && sed -i s/aes-128-gcm/none/ \"$3\"\nexec '{PROGRAM}' \"$@\"\n");
    write_program(folder.path(), "liar", &text);
    let ran = common::run(&[
        "lab",
        "requests",
        "--quick",
        "--peers",
        "none",
        "--peer",
        &format!("liar={}", liar.display()),
        "--stack",
        "vmess-aes-128-gcm-tcp",
        "--budget",
        "10s",
        "--json",
        "-",
    ]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("liar let one bit pass"), "{}", ran.stderr);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = result["results"].as_array().unwrap();
    let of = |subject: &'static str| rows.iter().filter(move |row| row["subject"] == subject);
    let is_marked = |row: &serde_json::Value| row["flags"].as_array().unwrap().contains(&"unauthenticated".into());
    assert!(of("liar").count() > 0 && of("liar").all(is_marked), "{}", ran.stdout);
    assert!(
        of("sealway").count() > 0 && !of("sealway").any(is_marked),
        "{}",
        ran.stdout
    );
    assert!(rows.iter().all(|row| row["ratio"]["to"] != "liar"), "{}", ran.stdout);
}

#[test]
fn a_user_supplied_program_that_cannot_take_part_is_told() {
    for (line, code, said) in [
        ("transports --peer fork", 2, "write NAME=PATH"),
        ("transports --peer V2Ray=/bin/sh", 2, "choose another, such as my-V2Ray"),
        ("transports --peer auto=/bin/sh", 2, "taken"),
        (
            "transports --peer a=/bin/sh --peer A=/bin/ls",
            2,
            "the name A is given twice",
        ),
        (
            "primitives --peer fork=/bin/sh",
            2,
            "for the workloads transports, requests, flows",
        ),
        ("reproduce bip324 --peer fork=/bin/sh", 2, "v2ray-aead, vless-vmess"),
        ("transports --peer fork=/no/such", 4, "peer fork: \"/no/such\""),
        ("all --peer fork=/no/such", 4, "peer fork: \"/no/such\""),
        ("requests --peer fork=/etc/passwd", 4, "chmod +x"),
        (
            "primitives --pair sealway+xray",
            2,
            "for the workloads transports, requests, flows",
        ),
        ("transports --pair sealway", 2, "write CLIENT+SERVER"),
        ("transports --pair sealway+nobody", 4, "nobody"),
        (
            "flows --peer fork=/bin/false",
            4,
            "exit status: 1; a program can take part",
        ),
        ("reproduce vless-vmess --peer fork=/bin", 4, "\"/bin\" is not a file"),
    ] {
        common::run(&words(&format!("lab {line}"))).says(code, &[said]);
    }
}
