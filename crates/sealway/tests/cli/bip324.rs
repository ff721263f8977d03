//! `sealway bip324`: its words, and a bridge and a probe against a node that speaks v1.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::thread::JoinHandle;

use rustix::process::Signal;
use sealway_bip324::Magic;
use sealway_bip324::message::{Message, v1};
use serde_json::Value;

use crate::common::program::Program;
use crate::common::{PATIENCE, run, sealway, words};

fn framed(name: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let message = Message {
        command: name.parse().unwrap(),
        payload,
    };
    v1::encode(Magic::REGTEST, &message, &mut out).unwrap();
    out
}

/// What a node says of itself; it claims to speak v2.
fn version() -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend_from_slice(&70_016i32.to_le_bytes());
    payload.extend_from_slice(&0x0809_u64.to_le_bytes());
    payload.extend_from_slice(&1_700_000_000_i64.to_le_bytes());
    payload.extend_from_slice(&[0; 26 + 26 + 8]);
    payload.push(11);
    payload.extend_from_slice(b"/node\x1b:1.0/");
    payload.extend_from_slice(&840_000i32.to_le_bytes());
    framed("version", &payload)
}

/// Closes the first connection after a v1 header's length, then answers a version message by its own.
fn v1_node() -> (SocketAddr, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let node = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        first.read_exact(&mut [0; 24]).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        second.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut header = [0; 24];
        second.read_exact(&mut header).unwrap();
        let len = u32::from_le_bytes(header[16..20].try_into().unwrap());
        let mut payload = vec![0; len as usize];
        second.read_exact(&mut payload).unwrap();
        second.write_all(&version()).unwrap();
        let _ = second.read_to_end(&mut Vec::new());
        [header.to_vec(), payload].concat()
    });
    (address, node)
}

#[test]
fn a_probe_says_what_a_node_is() {
    for json in [false, true] {
        let (address, node) = v1_node();
        let target = address.to_string();
        let mut words = vec!["bip324", "probe", &target, "--network", "regtest"];
        words.extend(json.then_some("--json"));
        let said = run(&words).answer();
        let ours = node.join().unwrap();
        assert!(ours.windows(9).any(|window| window == b"/sealway:"));
        if json {
            let value: Value = serde_json::from_str(&said).unwrap();
            assert_eq!((&value["schema"], &value["v2"]), (&Value::from(1), &Value::from(false)));
            assert_eq!(value["version_over"], "v1");
            assert_eq!(value["version"]["user_agent"], "/node?:1.0/");
            assert_eq!(value["version"]["service_names"][2], "P2P_V2");
            assert_eq!((&value["session_id"], &value["error"]), (&Value::Null, &Value::Null));
            assert_eq!(value.as_object().unwrap().len(), 14, "{said}");
        } else {
            let lines = ["v2           no: ", "v1           yes"];
            for word in lines.into_iter().chain(["840000", "P2P_V2", "and did not"]) {
                assert!(said.contains(word), "lacks {word:?}: {said}");
            }
        }
    }
}

#[test]
fn a_probe_of_nobody_fails_with_its_code() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Silent.
    let ran = run(&["bip324", "probe", &address, "--timeout", "1s"]);
    ran.says(7, &["hint: "]);
    assert!(ran.stdout.contains("v2           no: "), "{ran:?}");
    // Closed.
    drop(listener);
    run(&["bip324", "probe", &address]).refuses(7, &["cannot connect"]);
    // A program that reads JSON gets some, with the same members as of a node that answers.
    for (target, error) in [
        (address.as_str(), "cannot connect"),
        ("nobody.invalid:1", "nobody.invalid"),
    ] {
        let ran = run(&["bip324", "probe", target, "--json"]);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, &value["v2"]), (7, &Value::from(false)), "{ran:?}");
        assert!(value["error"].as_str().unwrap().contains(error), "{ran:?}");
        assert_eq!(
            (&value["target"], &value["version"]),
            (&Value::from(target), &Value::Null)
        );
        assert_eq!(value.as_object().unwrap().len(), 14, "{ran:?}");
    }
}

#[test]
fn wrong_words_are_refused() {
    for (line, said) in [
        ("probe host:port", "HOST:PORT"),
        ("probe host --network 00000000", "HOST:PORT"),
        ("probe host --network mainnnet", "testnet3"),
        ("probe host --timeout 5", "unit"),
        ("bridge --listen 127.0.0.1:0", "--connect"),
        ("bridge --listen localhost --connect host", "--listen"),
        ("bridge --listen 127.0.0.1:0 --connect :1", "hint: "),
        ("bridge --listen 127.0.0.1:0 --connect host --outgoing v3", "auto"),
        ("bridgs", "'bridge'"),
        ("bridge --listen 127.0.0.1:0 --connect host --decoys 101", "100"),
        (
            "bridge --listen 127.0.0.1:0 --connect host --decoys 5 --decoy-size 9-8",
            "such as 0-512",
        ),
        (
            "bridge --listen 127.0.0.1:0 --connect host --decoys 5 --decoy-size 0-65537",
            "65536",
        ),
        (
            "bridge --listen 127.0.0.1:0 --connect host --decoy-size 0-9",
            "--decoys",
        ),
        ("bridge --listen 127.0.0.1:0 --connect host --cover 0s", "1s"),
    ] {
        run(&words(&format!("bip324 {line}"))).refuses(2, &[said]);
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = run(&["bip324", "bridge", "--listen", &address, "--connect", "127.0.0.1:1"]);
    ran.says(1, &["cannot listen", "hint: "]);
}

#[test]
fn a_bridge_serves_until_it_is_told_to_stop() {
    let (node_at, node) = v1_node();
    let line = format!(
        "bip324 bridge --listen 127.0.0.1:0 --connect {node_at} --network regtest --decoys 100 --decoy-size 0-100 --cover 1s \
         --log info"
    );
    let mut command = sealway(&words(&line));
    let mut bridge = Program::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let mut stderr = BufReader::new(bridge.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address: SocketAddr = line
        .split_once("listens on ")
        .and_then(|(_, rest)| rest.split(' ').next())
        .unwrap()
        .parse()
        .unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(&framed("version", b"/sealway: a test/")).unwrap();
    let mut answer = vec![0; version().len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, version());
    drop(client);
    assert_eq!(node.join().unwrap(), framed("version", b"/sealway: a test/"));
    bridge.signal(Signal::TERM);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(bridge.ended().code(), Some(0), "{rest}");
    for word in [
        "answers nothing to v2",
        "trying v1",
        "1 after a fallback",
        "1 messages out, 1 in, 0 dropped, 0 decoys",
    ] {
        assert!(rest.contains(word), "lacks {word:?}: {rest}");
    }
}
