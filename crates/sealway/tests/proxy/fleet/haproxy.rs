//! The example of three nodes behind HAProxy, and a restart of each under streams.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::{drain, free_ports, get, pid, start};
use crate::common::program::Program;
use crate::common::proxy::{ALLOWED, Certificate, DIRECT, Running, change, echo};
use crate::common::{PATIENCE, peer_is_missing, private_folder, until, workspace};

/// Streams at a time.
const STREAMS: usize = 200;
/// Questions and answers of a stream, and the pause between them. All of it takes less than the grace time.
const TURNS: usize = 8;
const PAUSE: Duration = Duration::from_millis(40);

fn example(name: &str) -> String {
    fs::read_to_string(workspace().join("examples/haproxy").join(name)).unwrap()
}

/// A node as the example has it, on this machine.
fn node(certificate: &Certificate, port: u16, numbers: u16) -> String {
    change(
        &certificate.put_in(&example("node.json")),
        &[
            (
                "\"port\": 443,",
                format!("\"listen\": \"127.0.0.1\", \"port\": {port},"),
            ),
            ("0.0.0.0:9500", format!("127.0.0.1:{numbers}")),
            (DIRECT, ALLOWED.to_owned()),
        ],
    )
}

/// A client of the nodes' front.
fn client(certificate: &Certificate, socks: u16, front: u16) -> String {
    format!(
        r#"{{
            "inbounds": [{{ "listen": "127.0.0.1", "port": {socks}, "protocol": "socks" }}],
            "outbounds": [{{
                "protocol": "vless",
                "settings": {{ "vnext": [{{ "address": "127.0.0.1", "port": {front},
                    "users": [{{ "id": "b831381d-6324-4d53-ad4f-8cda48b30811", "encryption": "none" }}] }}] }},
                "streamSettings": {{ "network": "raw", "security": "tls",
                    "tlsSettings": {{ "serverName": "proxy.example.org", "pinnedPeerCertSha256": "{}" }} }}
            }}]
        }}"#,
        certificate.pin
    )
}

/// HAProxy in front of these nodes.
fn haproxy(folder: &Path, front: u16, nodes: &[(u16, u16)]) -> Program {
    let mut changes = vec![
        ("bind :443", format!("bind 127.0.0.1:{front}")),
        (" port 9500 inter 1s", " inter 100ms".to_owned()),
    ];
    for (at, (port, numbers)) in nodes.iter().enumerate() {
        let address = ["192.0.2.11:443", "192.0.2.12:443", "192.0.2.13:443"][at];
        changes.push((address, format!("127.0.0.1:{port} port {numbers}")));
    }
    let path = folder.join("haproxy.cfg");
    fs::write(&path, change(&example("haproxy.cfg"), &changes)).unwrap();
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(&path);
    let mut program = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    until("HAProxy listens", || {
        assert!(program.runs(), "HAProxy has ended");
        TcpStream::connect(("127.0.0.1", front)).is_ok()
    });
    program
}

/// One stream from its begin to an end in good order.
fn stream(socks: u16, target: u16) -> io::Result<()> {
    let mut tcp = TcpStream::connect(("127.0.0.1", socks))?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    tcp.write_all(&[5, 1, 0])?;
    tcp.read_exact(&mut [0; 2])?;
    let [high, low] = target.to_be_bytes();
    tcp.write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low])?;
    tcp.read_exact(&mut [0; 10])?;
    for turn in 0..TURNS {
        let said = [turn as u8; 1024];
        tcp.write_all(&said)?;
        let mut heard = [0xff; 1024];
        tcp.read_exact(&mut heard)?;
        assert_eq!(heard, said);
        std::thread::sleep(PAUSE);
    }
    tcp.shutdown(Shutdown::Write)?;
    match tcp.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::other("more than was sent")),
    }
}

#[test]
fn three_nodes_are_restarted_one_after_another_and_no_stream_notices() {
    if Command::new("haproxy").arg("-v").output().is_err() {
        return peer_is_missing("haproxy is not installed (scripts/install-peers)");
    }
    let folder = private_folder();
    let certificate = Certificate::make(folder.path());
    let [front, socks, a, b, c, d, e, f] = free_ports();
    let ports = [(a, d), (b, e), (c, f)];
    let configs = ports.map(|(port, numbers)| node(&certificate, port, numbers));
    let begin = |at: usize| {
        let more = ["--delay", "0.5s", "--grace", "30s"];
        start(folder.path(), &format!("node{at}.json"), &configs[at], &more)
    };
    let mut nodes: Vec<Running> = (0..3).map(begin).collect();
    let _front = haproxy(folder.path(), front, &ports);
    let _client = start(folder.path(), "client.json", &client(&certificate, socks, front), &[]);
    let target = echo().port();
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let failed = std::thread::scope(|scope| {
        let streams: Vec<_> = (0..STREAMS)
            .map(|_| {
                scope.spawn(|| -> Result<(), io::Error> {
                    while !stop.load(Ordering::Relaxed) {
                        stream(socks, target)?;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        for (at, node) in nodes.iter_mut().enumerate() {
            // Every node carries some before its turn comes.
            let accepted = |text: &str| {
                let line = text
                    .lines()
                    .find_map(|line| line.strip_prefix(r#"sealway_handshake_seconds_count{inbound="vless"} "#));
                line.is_some_and(|count| count.parse::<u64>().unwrap() > 3)
            };
            until("the node has work", || {
                get(ports[at].1, "/metrics").is_some_and(|(_, text)| accepted(&text))
            });
            let ran = drain(&["--pid", &pid(node)]);
            assert_eq!((ran.code, node.program.ended().code()), (0, Some(0)), "{ran:?}");
            let said: Vec<String> = node.later.try_iter().collect();
            assert!(said.iter().all(|line| !line.contains("cut off")), "{said:?}");
            *node = begin(at);
            until("the node is ready", || {
                get(ports[at].1, "/readyz").is_some_and(|(status, _)| status == 200)
            });
        }
        stop.store(true, Ordering::Relaxed);
        let ended = streams.into_iter().map(|stream| stream.join().unwrap());
        ended.filter_map(Result::err).collect::<Vec<_>>()
    });
    assert!(failed.is_empty(), "{failed:?}");
    assert!(done.load(Ordering::Relaxed) > STREAMS, "{done:?} streams");
}
