//! `sealway drain`, and what a server does when it is told to end.

use std::net::TcpStream;
use std::process::Command;

use super::{drain, free_ports, get, pid, start};
use crate::common::program::Program;
use crate::common::{PROGRAM, Ran, private_folder, until};

/// A server of SOCKS at this port.
fn config(port: u16, metrics: &str) -> String {
    format!(
        r#"{{"metrics":{{"listen":"{metrics}"}},"outbounds":[{{"protocol":"freedom"}}],
            "inbounds":[{{"tag":"in","listen":"127.0.0.1","port":{port},"protocol":"socks"}}]}}"#
    )
}

#[test]
fn whoever_listens_at_a_socket_is_drained_and_nobody_else() {
    let folder = private_folder();
    let [one, other] = free_ports();
    let socket = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let at = |name: &str, port, more: &[&str]| {
        let config = config(port, &socket(&format!("{name}.sock")));
        start(folder.path(), &format!("{name}.json"), &config, more)
    };
    let mut meant = at("one", one, &["--grace", "60s"]);
    let mut spared = at("other", other, &[]);
    // Somebody is connected, so that it takes its time.
    let open = TcpStream::connect(("127.0.0.1", one)).unwrap();
    drain(&["--socket", &socket("one.sock"), "--wait", "0.2s"]).says(7, &["goes on"]);
    let said = meant.next();
    assert!(
        said.contains("open connections may go on for 60s; a second signal ends them at once"),
        "{said}"
    );
    until("it listens no more", || TcpStream::connect(("127.0.0.1", one)).is_err());
    drop(open);
    assert_eq!(meant.program.ended().code(), Some(0));
    assert!(spared.program.runs());
    drain(&["--socket", &socket("one.sock")]).says(2, &["nobody answers at "]);
    // With nobody connected it ends at once, and the end is waited for.
    drain(&["--pid", &pid(&spared)]).says(0, &["was told to end"]);
    assert_eq!(spared.program.ended().code(), Some(0));
}

#[test]
fn a_process_that_is_no_proxy_is_left_alone() {
    let folder = private_folder();
    let mut sleeper = Program::start(Command::new("sleep").arg("60"));
    let pid = sleeper.id().to_string();
    let said = ["is no `sealway run` of this program"];
    drain(&["--pid", &pid]).says(2, &said);
    assert!(sleeper.runs());
    // Nor is whoever listens at a socket.
    let path = folder.path().join("a.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    drain(&["--socket", path.to_str().unwrap()]).says(2, &said);
    drop(sleeper);
    drain(&["--pid", &pid]).says(2, &["there is no process"]);
    drain(&["--pid", "0"]).says(2, &["0 is not in 1.."]);
}

#[test]
fn a_server_that_leaves_is_not_ready_and_accepts_for_a_while() {
    let folder = private_folder();
    let [port, numbers] = free_ports();
    let text = config(port, &format!("127.0.0.1:{numbers}"));
    let mut node = start(folder.path(), "c.json", &text, &["--delay", "60s", "--grace", "60s"]);
    assert_eq!(get(numbers, "/readyz"), Some((200, "ready\n".to_owned())));
    drain(&["--pid", &pid(&node), "--wait", "0s"]).says(0, &[]);
    assert!(node.next().contains("new connections are accepted for 60s more"));
    assert_eq!(get(numbers, "/readyz"), Some((503, "draining\n".to_owned())));
    assert_eq!(get(numbers, "/healthz"), Some((200, "alive\n".to_owned())));
    drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
    assert!(node.program.runs());
    // A second signal ends it at once.
    drain(&["--pid", &pid(&node)]).says(0, &[]);
    assert_eq!(node.program.ended().code(), Some(0));
}

#[test]
fn what_remains_after_the_grace_time_is_cut_off() {
    let folder = private_folder();
    let [port] = free_ports();
    let text = config(port, &folder.path().join("n.sock").display().to_string());
    let mut node = start(folder.path(), "c.json", &text, &["--grace", "0.1s"]);
    let _open = TcpStream::connect(("127.0.0.1", port)).unwrap();
    drain(&["--pid", &pid(&node)]).says(0, &[]);
    assert!(node.next().contains("open connections may go on for 100ms"));
    assert!(node.next().contains("connections that remained were cut off"));
    assert_eq!(node.program.ended().code(), Some(0));
}

/// Where the only processes are our own, and those of a container inside.
#[test]
fn the_only_proxy_need_not_be_named() {
    let folder = private_folder();
    let [one, other, outside] = free_ports();
    let socket = folder.path().join("outside.sock").display().to_string();
    let _outside = start(folder.path(), "outside.json", &config(outside, &socket), &[]);
    let write = |name: &str, port| {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, config(port, &format!("{path}.sock"))).unwrap();
        path
    };
    let (one, other) = (write("one.json", one), write("other.json", other));
    let script = format!(
        r#"
        begin() {{ $2 "$P" run -c "$1" 2>"$1.said" & until grep -q ' listens: ' "$1.said"; do sleep 0.02; done; }}
        "$P" drain && exit 90
        begin {one}
        begin {other}
        "$P" drain && exit 91
        kill -KILL $!; wait $!
        begin {other} "unshare --pid --fork --kill-child"
        "$P" drain || exit 92
        "$P" drain --socket {socket}
        "#
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
    command.args(["sh", "-c", &script]);
    let ran: Ran = match command.env("P", PROGRAM).output() {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("unshare") => output.into(),
        _ => return println!("skipped: no namespace of processes can be made here"),
    };
    ran.says(
        2,
        &[
            "outside.sock has no number here",
            "no `sealway run` of this program is to be seen",
            "there are several: processes ",
            "was told to end",
        ],
    );
}
