//! The management API, called by the real `xray api` and by our own client, at a real Xray and at ours.

mod panels;

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::program::Program;
use crate::common::proxy::{Running, free_ports};
use crate::common::{Ran, private_folder, ran, run, sealway, until, xray_is_there};

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
const SERVICES: &str = r#"["HandlerService","StatsService","RoutingService","LoggerService","ReflectionService"]"#;

/// The same configuration for both programs.
fn config(api: &str, [vless, vmess]: [u16; 2]) -> String {
    let counted = r#""statsUserUplink":true,"statsUserDownlink":true,"statsUserOnline":true"#;
    let system = ["Inbound", "Outbound"]
        .map(|kind| format!(r#""stats{kind}Uplink":true,"stats{kind}Downlink":true"#))
        .join(",");
    format!(
        r#"{{
  "log": {{"loglevel": "none"}}, "stats": {{}},
  "api": {{"tag": "api", "listen": "{api}", "services": {SERVICES}}},
  "policy": {{"levels": {{"0": {{{counted}}}}}, "system": {{{system}}}}},
  "inbounds": [
    {{"tag": "in-1", "listen": "127.0.0.1", "port": {vless}, "protocol": "vless", "settings": {{"clients": [], "decryption": "none"}}}},
    {{"tag": "in-2", "listen": "127.0.0.1", "port": {vmess}, "protocol": "vmess",
      "settings": {{"clients": [{{"id": "{ID}", "email": "a@b"}}]}}}}
  ],
  "outbounds": [
    {{"tag": "direct", "protocol": "freedom"}},
    {{"tag": "block", "protocol": "blackhole"}}
  ],
  "routing": {{
    "rules": [
      {{"ruleTag": "r1", "domain": ["full:x.example"], "outboundTag": "block"}},
      {{"ruleTag": "r2", "ip": ["127.0.0.0/8"], "outboundTag": "direct"}}
    ],
    "balancers": [{{"tag": "b1", "selector": ["direct"]}}]
  }}
}}"#
    )
}

/// Starts Xray, and waits until somebody answers there.
fn xray(file: &Path, api: SocketAddr) -> Program {
    let mut command = Command::new("xray");
    command.args(["run", "-c", file.to_str().unwrap()]).stdin(Stdio::null());
    let running = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    until("xray does not listen", || TcpStream::connect(api).is_ok());
    running
}

/// A client of the API: the real one, or ours.
#[derive(Clone, Copy, Debug)]
enum Client {
    Real,
    Ours,
}

impl Client {
    fn call(self, server: &str, words: &[&str]) -> Ran {
        let (word, rest) = words.split_first().unwrap();
        let server = format!("--server={server}");
        let mut command = match self {
            Client::Real => {
                let mut command = Command::new("xray");
                command.arg("api").stdin(Stdio::null());
                command
            }
            Client::Ours => sealway(&["proxy-api"]),
        };
        ran(command.arg(word).arg(server).args(rest))
    }
}

/// What a program said, without what differs by design: the path of the code in front of an error's words.
fn words_of(text: &str) -> String {
    let line = |line: &str| match line.split_once("desc = ") {
        Some((head, said)) => {
            // Xray puts the place in its code before what it says.
            let said = said.rsplit_once(" > ").map_or(said, |(_, said)| said);
            let path = |word: &str| word.contains('/') || word == "common";
            let said = said
                .split_once(": ")
                .filter(|(head, _)| path(head))
                .map_or(said, |(_, said)| said);
            format!("{head}desc = {said}")
        }
        None => line.to_owned(),
    };
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("[Warning]"))
        .map(line)
        .collect();
    lines.join("\n")
}

/// Counters in the order of their names, which Xray gives in none.
fn sorted(text: &str) -> String {
    let mut value: serde_json::Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => return words_of(text),
    };
    for key in ["stat", "users", "inbounds", "outbounds"] {
        if let Some(list) = value[key].as_array_mut() {
            list.sort_by_key(ToString::to_string);
        }
    }
    value.to_string()
}

/// The questions that both servers are asked, one after another.
const CALLS: &[&[&str]] = &[
    &["restartlogger"],
    &["statsquery"],
    &["statsquery", "-pattern", "in-1"],
    &["statsquery", "-pattern", "nothing"],
    &["stats", "-name", "inbound>>>in-1>>>traffic>>>uplink"],
    &["stats", "-name", "nobody"],
    &["statsonline", "-email", "a@b"],
    &["statsonlineiplist", "-email", "a@b"],
    &["statsgetallonlineusers"],
    &["lsrules"],
    &["lso"],
    &["inboundusercount", "-tag=in-2"],
    &["inboundusercount", "-tag=nobody"],
    &["adu", "users.json"],
    &["adu", "users.json"],
    &["inboundusercount", "-tag=in-1"],
    &["rmu", "-tag=in-1", "C@d", "nobody"],
    &["inboundusercount", "-tag=in-1"],
    &["rmi", "nobody"],
    &["rmrules", "nobody"],
    &["adi", "inbound.json"],
    &["adi", "inbound.json"],
    &["rmi", "new"],
    &["rmi", "new"],
    &["ado", "outbound.json"],
    &["rmo", "next"],
    &["rmo", "next"],
    &["adrules", "-append", "rules.json"],
    &["adrules", "-append", "rules.json"],
    &["sib", "-outbound=block", "-inbound=in-1", "192.0.2.7"],
    &["lsrules"],
    &["rmrules", "n1"],
    &["lsrules"],
    &["bi", "b1"],
    &["bi", "nobody"],
    &["bo", "-b", "b1", "block"],
    &["bi", "b1"],
    &["bo", "-b", "b1", "-r"],
];

/// What files hold that are added. Every inbound has a transport and a security of its own.
const FILES: &[(&str, &str)] = &[
    (
        "users.json",
        r#"{"inbounds": [
            {"tag": "in-1", "port": 1, "protocol": "vless",
             "settings": {"clients": [{"id": "b831381d-6324-4d53-ad4f-8cda48b30812", "email": "c@d"}], "decryption": "none"}},
            {"tag": "in-2", "port": 1, "protocol": "vmess", "settings": {"clients": [{"id": "b831381d-6324-4d53-ad4f-8cda48b30813", "email": "c@d"}]}}]}"#,
    ),
    (
        "inbound.json",
        r#"{"inbounds": [{"tag": "new", "listen": "127.0.0.1", "port": "PORT", "protocol": "trojan",
            "settings": {"clients": [{"password": "p", "email": "t@t", "level": 1}], "fallbacks": [{"dest": 80}]},
            "streamSettings": {"network": "ws", "wsSettings": {"path": "/x?ed=10"}},
            "sniffing": {"enabled": true, "destOverride": ["http", "tls"]}}]}"#,
    ),
    (
        "outbound.json",
        r#"{"outbounds": [{"tag": "next", "protocol": "vless",
            "settings": {"vnext": [{"address": "192.0.2.1", "port": 443, "users": [{"id": "b831381d-6324-4d53-ad4f-8cda48b30811", "encryption": "none"}]}]},
            "streamSettings": {"network": "grpc", "grpcSettings": {"serviceName": "s"}, "security": "tls", "tlsSettings": {"serverName": "x.example"}}}]}"#,
    ),
    (
        "rules.json",
        r#"{"routing": {"rules": [
            {"ruleTag": "n1", "outboundTag": "block", "ip": ["192.0.2.0/24", "2001:db8::/32"], "domain": ["regexp:x", "domain:y.example", "z"], "port": "1-5,7", "network": "udp"},
            {"ruleTag": "n2", "balancerTag": "b1", "user": ["x"], "source": ["198.51.100.7"]}]}}"#,
    ),
];

#[test]
fn the_same_calls_get_the_same_answers() {
    if !xray_is_there() {
        return;
    }
    let folder = private_folder();
    let all: [u16; 16] = free_ports();
    let apis = [0, 1, 2, 3].map(|at| format!("127.0.0.1:{}", all[at]));
    let inbounds = |at: usize| [all[4 + at], all[8 + at]];
    // Two of each: one that the real client changes, and one that ours does.
    let [theirs, ours, theirs_by_us, _] = &apis;
    let write = |name: &str, text: String| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let file = |at: usize| write(&format!("{at}.json"), config(&apis[at], inbounds(at)));
    let _xrays = [(theirs, file(0)), (theirs_by_us, file(2))].map(|(api, file)| xray(&file, api.parse().unwrap()));
    let servers = [file(1), file(3)].map(|file| Running::start(&file));
    let began = &servers[0].began;
    assert!(began.contains(&format!("api.listen on {ours}")), "{began}");
    for call in CALLS {
        let said_to = |client: Client, at: usize| {
            for (name, text) in FILES {
                write(name, text.replace("PORT", &all[12 + at].to_string()));
            }
            let word = |word: &&str| match FILES.iter().any(|(name, _)| name == word) {
                true => folder.path().join(word).to_str().unwrap().to_owned(),
                false => (*word).to_owned(),
            };
            let call: Vec<_> = call.iter().map(word).collect();
            let call: Vec<_> = call.iter().map(String::as_str).collect();
            client.call(&apis[at], &call)
        };
        let real = said_to(Client::Real, 0);
        for (client, at) in [(Client::Real, 1), (Client::Ours, 2), (Client::Ours, 3)] {
            let got = said_to(client, at);
            assert_eq!(got.code == 0, real.code == 0, "{client:?} {call:?}: {got:?} {real:?}");
            assert_eq!(
                sorted(&got.stdout),
                sorted(&real.stdout),
                "{client:?} at {at}: {call:?}"
            );
            let (said, wanted) = (words_of(&got.stderr), words_of(&real.stderr));
            // Ours says who speaks before what is said, and what failed in words of its own.
            let wanted = match client {
                Client::Real => &wanted[..],
                Client::Ours => wanted.find("rpc error: ").map_or(&wanted[..], |at| &wanted[at..]),
            };
            assert!(
                said.ends_with(wanted),
                "{client:?} at {at}: {call:?}: {said:?} {wanted:?}"
            );
        }
    }
    // What our client prints is what the real one prints, to the byte.
    for call in [
        &["stats", "-name", "inbound>>>in-1>>>traffic>>>uplink"][..],
        &["restartlogger"],
    ] {
        let printed = [Client::Real, Client::Ours].map(|client| client.call(ours, call).stdout);
        assert_eq!(printed[0], printed[1]);
    }
    let system = Client::Real.call(ours, &["statssys"]);
    let system: serde_json::Value = serde_json::from_str(&system.stdout).unwrap();
    assert!(system["Alloc"].as_u64() > Some(1 << 16), "{system}");
    assert!(system["Sys"].as_u64() >= system["Alloc"].as_u64(), "{system}");
    assert!(system["NumGoroutine"].as_u64() > Some(0), "{system}");
}

#[test]
fn it_listens_on_unix_sockets_and_behind_old_inbounds() {
    let folder = private_folder();
    let [a, b, tunnel] = free_ports();
    let path = folder.path().join("api.sock");
    let [path, name] = [path.to_str().unwrap().to_owned(), format!("@sealway-api-{a}")];
    for (at, listen) in [&path, &name].into_iter().enumerate() {
        let file = folder.path().join(format!("{at}.json"));
        fs::write(&file, config(listen, [a, b])).unwrap();
        let _server = Running::start(&file);
        if at == 0 {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let got = Client::Ours.call(listen, &["stats", "-name", "inbound>>>in-2>>>traffic>>>uplink"]);
        got.says(0, &[]);
    }
    // As panels write it: an inbound, a rule, and no `listen`. One of them names neither a port nor settings.
    let remnawave = format!("@xtls-api-{a}");
    let file = folder.path().join("old.json");
    let text = format!(
        r#"{{"api": {{"tag": "API", "services": ["StatsService"]}}, "stats": {{}}, "log": {{"loglevel": "none"}},
          "inbounds": [
            {{"tag": "api", "listen": "127.0.0.1", "port": {tunnel}, "protocol": "tunnel", "settings": {{"address": "127.0.0.1"}}}},
            {{"tag": "REMNAWAVE_API_INBOUND", "protocol": "tunnel", "listen": "{remnawave}"}}
          ],
          "outbounds": [{{"protocol": "freedom"}}],
          "routing": {{"rules": [
            {{"inboundTag": ["api", "REMNAWAVE_API_INBOUND"], "outboundTag": "API"}}
          ]}}}}"#
    );
    fs::write(&file, text).unwrap();
    let _server = Running::start(&file);
    for server in [format!("127.0.0.1:{tunnel}"), remnawave] {
        let got = Client::Ours.call(&server, &["statsquery"]);
        assert_eq!((got.code, got.stdout.as_str()), (0, "{}\n\n"), "{got:?}");
        // What it was not given it does not have.
        let wanted = "code = Unimplemented desc = unknown service xray.app.proxyman.command.HandlerService";
        Client::Ours.call(&server, &["lsi"]).says(7, &[wanted]);
    }
}

#[test]
fn a_listener_that_is_taken_is_told_where_it_is_written() {
    let folder = private_folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let [a, b] = free_ports();
    let file = folder.path().join("c.json");
    fs::write(&file, config(&taken.local_addr().unwrap().to_string(), [a, b])).unwrap();
    run(&["run", "-c", file.to_str().unwrap()]).says(1, &["c.json:3:", "api.listen: "]);
}
