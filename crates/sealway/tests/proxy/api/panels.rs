//! Clients that panels use, at a real Xray and at ours: each adds a user to a running inbound, reads what he used and
//! whether he is online while his stream runs, and removes him.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Lines, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{Client, ID, words_of, xray};
use crate::common::program::Program;
use crate::common::proxy::{Running, echo, free_ports};
use crate::common::{PATIENCE, installed, peer_is_missing, private_folder, until, workspace, xray_is_there};

/// Each protocol with the tag of its inbound.
const INBOUNDS: [(&str, &str); 2] = [("vless", "in-1"), ("vmess", "in-2")];
/// Bytes that a user sends, and gets back.
const SENT: usize = 100_000;

/// Two inbounds without users.
fn server(api: u16, [vless, vmess]: [u16; 2]) -> String {
    format!(
        r#"{{
  "log": {{"loglevel": "none"}}, "stats": {{}},
  "api": {{"tag": "api", "listen": "127.0.0.1:{api}", "services": ["HandlerService", "StatsService"]}},
  "policy": {{"levels": {{"0": {{"statsUserUplink": true, "statsUserDownlink": true, "statsUserOnline": true}}}}}},
  "inbounds": [
    {{"tag": "in-1", "listen": "127.0.0.1", "port": {vless}, "protocol": "vless", "settings": {{"clients": [], "decryption": "none"}}}},
    {{"tag": "in-2", "listen": "127.0.0.1", "port": {vmess}, "protocol": "vmess", "settings": {{"clients": []}}}}
  ],
  "outbounds": [{{"protocol": "freedom", "settings": {{"finalRules": [{{"action": "allow"}}]}}}}]
}}"#
    )
}

/// A door to `target` through each inbound, from an address that Xray counts as online: 127.0.0.1 it does not.
fn client(target: u16, doors: [u16; 2], inbounds: [u16; 2]) -> String {
    let door = |(at, (protocol, tag)): (usize, (&str, &str))| {
        let user = match protocol {
            "vless" => format!(r#"{{"id": "{ID}", "encryption": "none"}}"#),
            _ => format!(r#"{{"id": "{ID}", "security": "aes-128-gcm"}}"#),
        };
        let [door, inbound] = [doors[at], inbounds[at]];
        [
            format!(
                r#"{{"tag": "{tag}", "listen": "127.0.0.1", "port": {door}, "protocol": "dokodemo-door",
                   "settings": {{"address": "127.0.0.1", "port": {target}}}}}"#
            ),
            format!(
                r#"{{"tag": "{tag}", "protocol": "{protocol}", "sendThrough": "127.0.0.2",
                   "settings": {{"vnext": [{{"address": "127.0.0.1", "port": {inbound}, "users": [{user}]}}]}}}}"#
            ),
            format!(r#"{{"inboundTag": ["{tag}"], "outboundTag": "{tag}"}}"#),
        ]
    };
    let parts: Vec<_> = INBOUNDS.into_iter().enumerate().map(door).collect();
    let [inbounds, outbounds, rules] =
        [0, 1, 2].map(|part| parts.iter().map(|of| &*of[part]).collect::<Vec<_>>().join(", "));
    format!(
        r#"{{"log": {{"loglevel": "none"}}, "inbounds": [{inbounds}], "outbounds": [{outbounds}], "routing": {{"rules": [{rules}]}}}}"#
    )
}

/// A program that takes a command a line, and answers each with a line of JSON.
struct Script {
    _program: Program,
    say: ChildStdin,
    heard: Lines<BufReader<ChildStdout>>,
}

impl Script {
    fn start(command: &mut Command) -> Script {
        let mut program = Program::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        Script {
            say: program.stdin.take().unwrap(),
            heard: BufReader::new(program.stdout.take().unwrap()).lines(),
            _program: program,
        }
    }
}

/// Who calls.
enum Caller {
    Script(Script),
    /// `xray api` or our own words, with a file of users, at this server.
    Words(Client, PathBuf, String),
}

impl Caller {
    fn call(&mut self, words: &[&str]) -> Value {
        match self {
            Caller::Script(script) => {
                writeln!(script.say, "{}", words.join(" ")).unwrap();
                let line = script.heard.next().expect("it has ended").unwrap();
                serde_json::from_str(&line).unwrap()
            }
            Caller::Words(client, file, server) => {
                let ask = |words: &[&str]| client.call(server, words);
                let value = |words: &[&str]| {
                    let answer: Value = serde_json::from_str(&ask(words).stdout).unwrap();
                    answer["stat"]["value"].clone()
                };
                let said = |words: &[&str]| {
                    let ran = ask(words);
                    json!([ran.code, words_of(&ran.stdout)])
                };
                match words {
                    ["add", protocol, tag, email, id] => {
                        let users = json!({"inbounds": [{
                            "tag": tag, "port": 1, "protocol": protocol,
                            "settings": {"clients": [{"id": id, "email": email}], "decryption": "none"},
                        }]});
                        fs::write(&*file, users.to_string()).unwrap();
                        said(&["adu", file.to_str().unwrap()])
                    }
                    ["read", email] => {
                        let [up, down] = ["up", "down"]
                            .map(|way| value(&["stats", "-name", &format!("user>>>{email}>>>traffic>>>{way}link")]));
                        json!({"up": up, "down": down, "online": value(&["statsonline", "-email", email])})
                    }
                    ["remove", tag, email] => said(&["rmu", &format!("-tag={tag}"), email]),
                    ["users", tag] => said(&["inboundusercount", &format!("-tag={tag}")]),
                    words => panic!("{words:?}"),
                }
            }
        }
    }
}

/// Every kind of caller at the API of this port; none of those that are not installed.
fn callers(folder: &Path, port: u16) -> Vec<(&'static str, Caller)> {
    let server = format!("127.0.0.1:{port}");
    let port = port.to_string();
    let script = |name: &str| workspace().join("crates/sealway/tests/panels").join(name);
    let users = |name: &str| folder.join(format!("{name}-{port}.json"));
    let mut callers = vec![
        ("xray api", Caller::Words(Client::Real, users("real"), server.clone())),
        ("sealway proxy-api", Caller::Words(Client::Ours, users("ours"), server)),
    ];
    let python = installed("xtlsapi/bin/python");
    if python.exists() {
        let script = Script::start(Command::new(python).arg(script("xtls.py")).arg(&port));
        callers.push(("xtlsapi", Caller::Script(script)));
    } else {
        peer_is_missing("there is no xtlsapi");
    }
    let modules = installed("xtls-sdk/node_modules");
    if modules.exists() {
        let mut node = Command::new("node");
        node.env("NODE_PATH", modules).arg(script("xtls-sdk.cjs")).arg(&port);
        callers.push(("xtls-sdk", Caller::Script(Script::start(&mut node))));
    } else {
        peer_is_missing("there is no @remnawave/xtls-sdk");
    }
    callers
}

/// Sends and gets back through a door. None if it ended first.
fn pass(door: u16) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", door)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent = [7; SENT];
    let mut got = [0; SENT];
    stream.write_all(&sent).ok()?;
    stream.read_exact(&mut got).ok()?;
    assert!(got == sent);
    Some(stream)
}

/// What a user has used once all of it is counted, which may be after it has arrived.
fn used(caller: &mut Caller, email: &str) -> Value {
    let mut used = Value::Null;
    until("not all is counted", || {
        used = caller.call(&["read", email]);
        ["up", "down"].iter().all(|way| used[way].as_u64() >= Some(SENT as u64))
    });
    used
}

/// What every caller is told at one server. `streams_end`: those of a user who is removed.
fn told(folder: &Path, api: u16, doors: [u16; 2], streams_end: bool) -> Vec<String> {
    let mut told = Vec::new();
    for (name, mut caller) in callers(folder, api) {
        for ((protocol, tag), door) in INBOUNDS.into_iter().zip(doors) {
            let email = "User@panel";
            assert!(pass(door).is_none(), "{name}, {protocol}: a stranger passes");
            let mut note = |words: &[&str], answer: &Value| told.push(format!("{name}: {words:?}: {answer}"));
            let mut say = |words: &[&str]| note(words, &caller.call(words));
            let add = ["add", protocol, tag, email, ID];
            say(&add);
            say(&add);
            say(&["users", tag]);
            let mut stream = pass(door).unwrap_or_else(|| panic!("{name}, {protocol}: the user does not pass"));
            let used = used(&mut caller, email);
            note(&["read", email], &used);
            let mut say = |words: &[&str]| note(words, &caller.call(words));
            say(&["remove", tag, email]);
            if streams_end {
                let end = stream.read(&mut [0]);
                let waits = |error: &std::io::Error| error.kind() == ErrorKind::WouldBlock;
                assert!(
                    !end.as_ref().is_err_and(waits),
                    "{name}, {protocol}: his stream goes on"
                );
            }
            drop(stream);
            assert!(pass(door).is_none(), "{name}, {protocol}: he is removed and passes");
            say(&["remove", tag, email]);
            say(&["users", tag]);
        }
    }
    told
}

#[test]
fn clients_of_panels_manage_users_who_pass_traffic() {
    if !xray_is_there() {
        return;
    }
    let folder = private_folder();
    let target = echo().port();
    let write = |name: String, text: String| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let [theirs, ours] = std::thread::scope(|scope| {
        let at = ["xray", "sealway"].map(|program| {
            let [api, vless, vmess, first, second] = free_ports();
            let server = write(format!("{program}.json"), server(api, [vless, vmess]));
            let client = client(target, [first, second], [vless, vmess]);
            let client = write(format!("{program}-client.json"), client);
            let folder = folder.path();
            scope.spawn(move || {
                let real = program == "xray";
                let _xray = real.then(|| xray(&server, ([127, 0, 0, 1], api).into()));
                let _ours = (!real).then(|| Running::start(&server));
                let _client = Running::start(&client);
                told(folder, api, [first, second], !real)
            })
        });
        at.map(|told| told.join().unwrap())
    });
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}
