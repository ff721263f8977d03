//! `sealway` in Xray's place, beside Xray where it is here: what panels start it with and what they read from it.

mod lines;
mod systemd;
mod tls;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use regex::Regex;
use rustix::process::Signal;
use sealway_v2ray::UserId;
use serde_json::Value;

use crate::common::program::Program;
use crate::common::proxy::free_port;
use crate::common::{self, PROGRAM, Ran, private_folder, run, sealway, xray_is_there};

const KEY: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";
const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
const SEED: &str = "80-lKVnh91zfn4Kz9sAzwWPI6KcoYC-29X5Tly-FAAE1pLes2lXmFazsha4BzHADQPFK7OtpYbakod8zlptBmQ";

/// `sealway` under the name xray.
fn ours(words: &[&str]) -> Command {
    let mut command = sealway(words);
    command.arg0("xray");
    command
}

/// Xray itself, if it is here.
fn xray(words: &[&str]) -> Option<Command> {
    let mut command = Command::new("xray");
    command.args(words).stdin(Stdio::null());
    xray_is_there().then_some(command)
}

fn ran(mut command: Command, folder: &Path) -> Ran {
    common::ran(command.current_dir(folder))
}

fn answer(words: &[&str]) -> String {
    ran(ours(words), Path::new("/")).answer()
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).unwrap().is_match(text)
}

/// The expressions that panels of Xray read its answers with.
mod panels {
    pub(crate) const MARZBAN_VERSION: &str = r"^Xray (\d+\.\d+\.\d+)";
    pub(crate) const MARZBAN_KEYS: &str = r"Private key: (.+)\nPublic key: (.+)";
    pub(crate) const THREE_X_UI_LOG: &str = r"^(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6}) \[([^\]]+)\] (.+)$";
    pub(crate) const PASARGUARD_ACCESS: &str = r"from .+:\d+ accepted (tcp|udp):.+:\d+ \[.+\] email: .+";
    pub(crate) const PASARGUARD_FAILURE: &str = r"(?i)failed to start|failed to listen|failed to load|panic|fatal";
    pub(crate) const THREE_X_UI_CRASH: &str = r"(?i)panic|exception|stack trace|fatal error";

    /// 3x-ui takes of lines 1 and 2 what is behind the last colon.
    pub(crate) fn three_x_ui_pair(text: &str) -> (String, String) {
        let mut lines = text.lines().map(|line| line.rsplit(": ").next().unwrap().to_owned());
        (lines.next().unwrap(), lines.next().unwrap())
    }
}

#[test]
fn the_version_is_read() {
    for words in [&["version"][..], &["-version"], &["--version"]] {
        let text = answer(words);
        assert!(matches(panels::MARZBAN_VERSION, &text), "{text}");
        // 3x-ui: the second word of the first line.
        assert!(matches(r"^\d+\.\d+\.\d+$", text.split(' ').nth(1).unwrap()), "{text}");
        assert!(text.contains("Sealway"), "{text}");
    }
    // Without the name it is itself.
    assert!(run(&["version"]).answer().starts_with("sealway "));
    let asked = run(&["--compat", "xray", "version"]);
    assert_eq!(asked.stdout, answer(&["version"]));
    // A link, and a copy of a name with more to it.
    let folder = private_folder();
    for name in ["xray-linux-amd64", "rw-core"] {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
        let linked = common::ran(Command::new(&link).arg("version"));
        assert_eq!(linked.stdout, asked.stdout);
    }
}

#[test]
fn keys_and_ids_are_read_and_those_of_xray() {
    let pair = answer(&["x25519"]);
    assert!(matches(panels::MARZBAN_KEYS, &pair), "{pair}");
    let private = panels::three_x_ui_pair(&pair).0;
    assert_eq!(answer(&["x25519", "-i", &private]), pair);
    assert_ne!(answer(&["x25519"]), pair);
    for words in [&["mldsa65"][..], &["mlkem768"], &["wg"]] {
        let (secret, public) = panels::three_x_ui_pair(&answer(words));
        assert_ne!(secret, public);
        let again = answer(&[words, &["-i", &secret]].concat());
        assert_eq!(panels::three_x_ui_pair(&again).1, public);
    }
    let form = |text: &str| text.split(".native.").map(|part| part.len()).collect::<Vec<_>>();
    let encryption = answer(&["vlessenc"]);
    let pairs = Regex::new("\"(?:de|en)cryption\": \"(.+)\"").unwrap();
    assert_eq!(pairs.find_iter(&encryption).count(), 4, "{encryption}");
    let id = answer(&["uuid"]);
    assert!(matches(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n$", &id), "{id}");

    let folder = private_folder();
    let file = format!("--file={}/c", folder.path().display());
    let made = answer(&["tls", "cert", "--domain=a.example", &file]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["certificate"][0], "-----BEGIN CERTIFICATE-----");
    let (cert, key) = (folder.path().join("c.crt"), folder.path().join("c.key"));
    let mode = || fs::metadata(&key).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    // Also where a file lay that others could read.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    answer(&["tls", "cert", "--json=false", &file]);
    assert_eq!(mode(), 0o600);
    let cert = cert.to_str().unwrap();
    let ech = answer(&["tls", "ech", "--serverName", "ex.org"]);
    let ech_key = ech.lines().nth(3).unwrap();

    // The same words give the same answer.
    for words in [
        &["uuid", "-i", "example"][..],
        &["mldsa65", "-i", KEY],
        &["mlkem768", "-i", SEED],
        &["tls", "hash", "--cert", cert],
        &["tls", "ech", "-i", ech_key],
        &["tls", "ech", "-i", ech_key, "--pem"],
    ] {
        let Some(xray) = xray(words) else { return };
        assert_eq!(answer(words), ran(xray, Path::new("/")).stdout, "{words:?}");
    }
    // The same keys in lines that are called otherwise, and whose number differs.
    let padded = format!("{KEY}=");
    for words in [
        &["x25519", "-i", KEY][..],
        &["x25519", "-i", &padded, "--std-encoding"],
        &["wg", "-i", &padded],
    ] {
        let theirs = ran(xray(words).unwrap(), Path::new("/")).stdout;
        let pairs = [answer(words), theirs].map(|said| panels::three_x_ui_pair(&said));
        assert_eq!(pairs[0], pairs[1], "{words:?}");
    }
    let theirs = ran(xray(&["vlessenc"]).unwrap(), Path::new("/")).stdout;
    let lines = |text: &str| text.lines().skip(1).map(form).collect::<Vec<_>>();
    assert_eq!(lines(&encryption), lines(&theirs));
    let theirs = ran(xray(&["tls", "ech", "--serverName", "ex.org"]).unwrap(), Path::new("/")).stdout;
    let lens = |text: &str| text.lines().map(str::len).collect::<Vec<_>>();
    assert_eq!(lens(&ech), lens(&theirs));
}

/// The configuration of a node with one user at a port of loopback.
fn node(port: u16, log: &str) -> String {
    format!(
        r#"{{"log": {log}, "inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": {port}, "protocol": "vless",
            "settings": {{"clients": [{{"id": "{ID}", "email": "1.anna"}}], "decryption": "none"}}}}],
            "outbounds": [{{"tag": "direct", "protocol": "freedom",
                "settings": {{"finalRules": [{{"action": "allow", "ip": ["127.0.0.0/8"]}}]}}}}]}}"#
    )
}

fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Another outbound.
const MORE: &str = r#"{"outbounds": [{"tag": "block", "protocol": "blackhole"}]}"#;

/// One table for both programs: words, exit code, and whether a line says what panels look for.
#[test]
fn arguments_and_exit_codes_are_those_of_xray() {
    let folder = private_folder();
    let there = folder.path();
    let port = free_port();
    let unknown = r#"{"inbounds": [{"port": 1, "protocol": "nope"}], "outbounds": [{"protocol": "freedom"}]}"#;
    let nowhere = node(port, "{}").replace("127.0.0.1\", \"port", "192.0.2.1\", \"port");
    for (name, text) in [
        ("ok.json", &*node(port, "{}")),
        ("more.json", MORE),
        ("broken.json", r#"{"inbounds": ["#),
        ("unknown.json", unknown),
        ("nowhere.json", &nowhere),
    ] {
        private(there, name, text);
    }
    fs::create_dir(there.join("folder")).unwrap();
    fs::copy(there.join("ok.json"), there.join("folder/1.json")).unwrap();
    fs::create_dir(there.join("empty")).unwrap();
    let peer = xray(&[]).is_some();
    let (ok, failed) = (Some("Configuration OK."), Some("Failed to start: "));
    for (line, code, says) in [
        ("run -test -c ok.json", 0, ok),
        ("-test -c ok.json", 0, ok),
        ("--test --config=ok.json -format=json", 0, ok),
        ("-test=true -config ok.json -config more.json", 0, ok),
        ("run -test -confdir folder", 0, ok),
        ("run -test -confdir empty -c ok.json", 0, ok),
        ("run -test -confdir absent -c ok.json", 0, ok),
        ("run -dump -c ok.json -c more.json", 0, Some("\"tag\": \"block\"")),
        ("run -c broken.json", 23, failed),
        ("run -test -c broken.json", 23, failed),
        ("-c unknown.json", 23, failed),
        ("-c absent.json", 23, failed),
        ("-c http://127.0.0.1:1/x.json", 23, failed),
        ("-c stdin:", 23, failed),
        ("", 23, failed),
        ("run", 23, failed),
        ("run behind -c ok.json", 23, failed),
        ("-c nowhere.json", 255, failed),
        ("run -nope", 2, None),
        ("-nope", 2, None),
        ("nope", 2, None),
        ("run -test=maybe", 2, None),
        ("run -c", 2, None),
        ("run -h", 2, None),
        ("version -x", 2, None),
        ("tls", 2, None),
        ("tls nope", 2, None),
        ("help nope", 2, None),
        ("-h", 0, Some("Usage:")),
        ("help", 0, Some("Usage:")),
        ("help run", 0, Some("usage: xray run")),
        ("help tls ech", 0, Some("usage: xray tls ech")),
        ("help tls ping", 0, Some("usage: xray tls ping")),
        ("tls ping -nope", 2, None),
        ("x25519 -i AAAA", 0, None),
        ("x25519 -j", 2, None),
        (
            "uuid -i 0123456789012345678901234567890",
            0,
            Some("Input must be within 30 bytes."),
        ),
        ("tls hash --cert absent.pem", 0, None),
        ("tls cert --expire=240h", 0, Some("BEGIN CERTIFICATE")),
        ("tls cert --expire=zz", 2, None),
        ("tls cert --file=absent/x", 1, None),
    ] {
        let words: Vec<&str> = line.split_terminator(' ').collect();
        let words = &words[..];
        let check = |who: &str, ran: &Ran| {
            assert_eq!(ran.code, code, "{who} {words:?}: {ran:?}");
            let said = says.is_none_or(|says| ran.stdout.contains(says));
            assert!(said, "{who} {words:?}: {ran:?}");
        };
        let ours = ran(ours(words), there);
        check("ours", &ours);
        assert!(!matches(panels::THREE_X_UI_CRASH, &ours.stdout), "{words:?}: {ours:?}");
        let failed = [23, 255].contains(&code);
        assert_eq!(
            matches(panels::PASARGUARD_FAILURE, &ours.stdout),
            failed,
            "{words:?}: {ours:?}"
        );
        if peer {
            check("xray", &ran(xray(words).unwrap(), there));
        }
    }
    // What is not done is said by name.
    for words in [&["convert", "pb"][..], &["buildMphCache"]] {
        ran(ours(words), there).refuses(1, &["not supported by Sealway"]);
    }
    let other = ran(ours(&["-c", "ok.json", "-format", "yaml"]), there);
    assert!(
        other.code == 23 && other.stdout.contains("Failed to start: "),
        "{other:?}"
    );
}

#[test]
fn a_dump_is_the_configuration_that_is_run() {
    let folder = private_folder();
    private(folder.path(), "1.json", &node(1, "{}"));
    private(folder.path(), "2.json", &format!("{MORE} // more"));
    let words = ["run", "-dump", "-c", "1.json", "-c", "2.json"];
    let read = |command| -> Value { serde_json::from_str(&ran(command, folder.path()).stdout).unwrap() };
    let dump = read(ours(&words));
    let tags = [0, 1].map(|at| &dump["outbounds"][at]["tag"]);
    assert_eq!(tags, ["block", "direct"]);
    assert!(dump["outbounds"][2].is_null());
    if let Some(xray) = xray(&words) {
        let theirs = read(xray);
        for key in ["outbounds", "inbounds"] {
            assert_eq!(dump[key], theirs[key]);
        }
    }
}

/// A node that runs, and what it says on standard output.
struct Node {
    program: Program,
    out: BufReader<ChildStdout>,
}

impl Node {
    fn start(mut command: Command, input: &str) -> Node {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(pipes.stderr(Stdio::null()));
        // Marzban writes the configuration and closes.
        program.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let out = BufReader::new(program.stdout.take().unwrap());
        Node { program, out }
    }

    /// Lines up to the one that has this.
    fn until(&mut self, mut wanted: impl FnMut(&str) -> bool) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "it ends: {lines:?}");
            lines.push(line.trim_end().to_owned());
            if wanted(&lines[lines.len() - 1]) {
                return lines;
            }
        }
    }

    /// Asks it to end, and gives its exit code and how long it took.
    fn stop(mut self) -> (Option<i32>, Duration) {
        let began = Instant::now();
        self.program.signal(Signal::TERM);
        let code = self.program.ended().code();
        (code, began.elapsed())
    }
}

fn has_started(line: &str) -> bool {
    // As Marzban looks for it.
    line.contains("core") && line.ends_with("started")
}

/// A connection through the node, as its user.
fn through(port: u16, to: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut request = vec![0];
    request.extend(UserId::parse(ID).unwrap().as_bytes());
    request.extend([0, 1]);
    request.extend(to.to_be_bytes());
    request.extend([1, 127, 0, 0, 1]);
    stream.write_all(&request).unwrap();
    stream
}

#[test]
fn a_node_says_what_panels_wait_for() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = target.local_addr().unwrap().port();
    let port = free_port();
    let config = node(port, r#"{"access": "", "loglevel": "warning"}"#);
    // An unknown key is warned about, in a line as all others.
    let config = config.replacen('{', r#"{"fancy": 1, "#, 1);
    let mut node = Node::start(ours(&["run", "-config", "stdin:"]), &config);
    let lines = node.until(has_started);
    assert!(matches(panels::MARZBAN_VERSION, &lines[0]), "{lines:?}");
    for line in &lines[2..] {
        assert!(matches(panels::THREE_X_UI_LOG, line), "{lines:?}");
    }
    let warned = lines
        .iter()
        .any(|line| line.contains("[Warning] infra/conf: ") && line.contains("fancy"));
    assert!(warned, "{lines:?}");
    let started = r"\[Warning\] core: Xray \d+\.\d+\.\d+ started$";
    assert!(matches(started, lines.last().unwrap()), "{lines:?}");

    let stream = through(port, to);
    let access = node.until(|line| line.contains("accepted"));
    let line = access.last().unwrap();
    assert!(matches(panels::PASARGUARD_ACCESS, line), "{line}");
    let end = format!("accepted tcp:127.0.0.1:{to} [in >> direct] email: 1.anna");
    assert!(line.ends_with(&end), "{line}");
    // 3x-ui kills after five seconds, and nobody waits for open connections.
    let (code, took) = node.stop();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(4), "{took:?}");
    drop(stream);
}

/// What was a file once is not read from elsewhere later.
#[test]
fn a_file_that_is_gone_changes_nothing() {
    let folder = private_folder();
    let config = private(folder.path(), "config.json", &node(free_port(), "{}"));
    let mut command = ours(&["run"]);
    command.current_dir(folder.path());
    let mut node = Node::start(command, "");
    node.until(has_started);
    fs::remove_file(config).unwrap();
    node.program.signal(Signal::HUP);
    let said = node.until(|line| line.contains("nothing was changed"));
    let last = said.last().unwrap();
    assert!(last.contains("there is no config.json here"), "{said:?}");
    assert_eq!(node.stop().0, Some(0));
}
