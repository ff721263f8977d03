//! `sealway run -test`, and what `sealway run` says before it serves: everything at once, and nothing in silence.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::proxy::{Certificate, Pair, Running, answer, free_port, guide, target};
use crate::common::{self, Ran, private_folder, run, sealway, workspace};

fn write(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("config.json");
    fs::write(&file, text).unwrap();
    file
}

fn run_file(file: &Path, more: &[&str]) -> Ran {
    run(&[&["run", "-c", file.to_str().unwrap()], more].concat())
}

const FREEDOM: &str = r#""outbounds": [{ "tag": "direct", "protocol": "freedom" }]"#;

#[test]
fn one_configuration_does_not_run_twice() {
    let folder = private_folder();
    for listen in [r#""listen": "127.0.0.1","#, r#""listen": "0.0.0.0","#, ""] {
        let port = free_port();
        let text = format!(
            r#"{{"inbounds": [{{ {listen} "port": {port}, "protocol": "vless", "settings": {{"decryption": "none"}} }}], {FREEDOM}}}"#
        );
        let file = write(folder.path(), &text);
        let first = Running::start(&file);
        let second = run_file(&file, &[]);
        let said = [
            "another program listens there",
            "  hint: ",
            "nothing was started",
            ": error: inbounds[0]: ",
        ];
        second.refuses(1, &said);
        // A look at the configuration does not need the port.
        assert_eq!(run_file(&file, &["-test"]).code, 0);
        assert_eq!(first.stop(rustix::process::Signal::TERM).code(), Some(0));
    }
}

#[test]
fn two_inbounds_do_not_share_a_port() {
    let folder = private_folder();
    let text = format!(
        r#"{{"inbounds": [
{{ "listen": "127.0.0.1", "port": 1080, "protocol": "socks" }},
{{ "listen": "::", "port": "1079-1081", "protocol": "vless", "settings": {{"decryption": "none"}} }}], {FREEDOM}}}"#
    );
    let line = "config.json:3:27: error: inbounds[1].port: inbounds[0] listens on port 1080 already";
    run_file(&write(folder.path(), &text), &["-test"]).says(23, &[line]);
}

#[test]
fn one_fault_is_told_once() {
    let folder = private_folder();
    let user = r#"{ "id": "b831381d-6324-4d53-ad4f-8cda48b30811" }"#;
    let text = format!(
        r#"{{"inbounds": [{{ "port": 1080, "protocol": "vless", "settings": {{ "decryption": "none", "clients": [{user}, {user}] }},
"streamSettings": {{ "security": "tls", "tlsSettings": {{}} }} }}], {FREEDOM}}}"#
    );
    let ran = run_file(&write(folder.path(), &text), &["-test"]);
    assert_eq!(ran.code, 23, "{ran:?}");
    assert_eq!(ran.stderr.matches(": error: ").count(), 2, "{ran:?}");
    assert!(ran.stderr.contains("the configuration has 2 errors"), "{ran:?}");
}

#[test]
fn an_outbound_that_encrypts_nothing_is_told_once() {
    let folder = private_folder();
    let server = r#""address": "a.example", "port": 443"#;
    let user = r#""id": "b831381d-6324-4d53-ad4f-8cda48b30811", "encryption": "none""#;
    for (protocol, settings) in [
        (
            "vless",
            format!(r#""vnext": [{{ {server}, "users": [{{ {user} }}] }}]"#),
        ),
        ("trojan", format!(r#""servers": [{{ {server}, "password": "p" }}]"#)),
    ] {
        let text = format!(
            r#"{{"inbounds": [{{ "listen": "127.0.0.1", "port": 1080, "protocol": "socks" }}],
"outbounds": [{{ "protocol": "{protocol}", "settings": {{ {settings} }} }}]}}"#
        );
        let ran = run_file(&write(folder.path(), &text), &["-test"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let told = ran.stderr.lines().filter(|line| !line.starts_with("  hint: "));
        let told: Vec<&str> = told.collect();
        assert!(
            told.len() == 1 && told[0].contains("does not encrypt, and there is no TLS"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_proxy_that_anyone_can_use_is_told() {
    let folder = private_folder();
    let text = format!(
        "{{\"inbounds\": [\n  {{ \"port\": {}, \"protocol\": \"socks\" }}], {FREEDOM}}}",
        free_port()
    );
    let file = write(folder.path(), &text);
    let place = "config.json:2:3: ";
    let ran = run_file(&file, &["-test"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Configuration OK.\n"), "{ran:?}");
    let said = "inbounds[0].settings.auth: whoever reaches the port may use this proxy";
    assert!(ran.stderr.contains(&format!("{place}warning: {said}")), "{ran:?}");
    run_file(&file, &["-strict"]).says(23, &[&format!("{place}error: {said}")]);
}

#[test]
fn everything_that_would_not_run_is_told_at_once() {
    let folder = private_folder();
    let text = |rule: &str| {
        format!(
            r#"{{
"log": {{ "access": "/no/such/access.log", "error": "/no/such/error.log" }},
"inbounds": [
  {{ "listen": "192.0.2.77", "port": 1080, "protocol": "vless", "settings": {{"decryption": "none"}},
    "streamSettings": {{ "sockopt": {{ "tcpMaxSeg": 1 }}, "security": "tls", "tlsSettings": {{ "certificates": [
      {{ "certificateFile": "/no/such/a.crt", "keyFile": "/no/such/a.key" }},
      {{ "certificateFile": "/no/such/b.crt", "keyFile": "/no/such/b.key" }} ] }} }} }} ],
"outbounds": [ {{ "tag": "direct", "protocol": "freedom",
    "streamSettings": {{ "sockopt": {{
      "tcpCongestion": "no-such-thing" }} }} }} ],
"routing": {{ "rules": [{{ {rule} "outboundTag": "direct" }}] }}
}}"#
        )
    };
    let all = [
        "config.json:2:52: error: log.error: ",
        "config.json:2:20: error: log.access: ",
        "config.json:4:3: error: inbounds[0]: cannot listen on 192.0.2.77:1080: ",
        "config.json:5:51: error: inbounds[0].streamSettings.sockopt.tcpMaxSeg: ",
        "config.json:6:28: error: inbounds[0].streamSettings.tlsSettings.certificates[0].certificateFile: ",
        "certificates[0].keyFile: ",
        "certificates[1].certificateFile: ",
        "certificates[1].keyFile: ",
        "config.json:10:24: error: outbounds[0].streamSettings.sockopt.tcpCongestion: this kernel has no congestion control",
        "tcp_available_congestion_control",
    ];
    for rule in [
        r#""port": 53,"#,
        r#""port": 53, "webhook": {"url": "https://hook.example/"},"#,
    ] {
        let file = write(folder.path(), &text(rule));
        for more in [&["-test"][..], &[]] {
            let ran = run_file(&file, more);
            ran.refuses(23, &all);
            assert_eq!(ran.stderr.contains("webhook"), rule.contains("webhook"), "{ran:?}");
            assert!(!ran.stderr.contains("is another program there"), "{ran:?}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a test makes no file");
}

#[test]
fn a_configuration_that_others_can_read_is_told() {
    let folder = private_folder();
    let certificate = Certificate::make(folder.path());
    let file = write(folder.path(), &certificate.put_in(&guide()[0].1));
    let set = |file: &Path, mode| fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
    let key = folder.path().join("server.key");
    for (outer, mode, who) in [
        (0o700, 0o644, None),
        (0o755, 0o600, None),
        (0o755, 0o644, Some("everybody on this machine")),
        (0o755, 0o640, Some("its group")),
    ] {
        set(folder.path(), outer);
        set(&file, mode);
        set(&key, mode);
        let ran = run_file(&file, &["-test"]);
        let strict = run_file(&file, &["-test", "-strict"]);
        let Some(who) = who else {
            assert_eq!((ran.code, ran.stderr.as_str(), strict.code), (0, "", 0), "{mode:o}");
            continue;
        };
        let line = format!("{}:1:1: warning: {who} can read this file", file.display());
        let hint = format!("  hint: chmod 600 {}\n", file.display());
        let key = "warning: inbounds[0].streamSettings.tlsSettings.certificates[0].keyFile: ";
        ran.says(0, &[&line, &hint, key]);
        strict.says(23, &["the configuration has 2 errors"]);
        // What the service manager hands to a service is the service's own.
        let mut command = sealway(&["run", "-test", "-c", file.to_str().unwrap()]);
        common::ran(command.env("CREDENTIALS_DIRECTORY", folder.path())).answer();
    }
    // Without a secret there is nothing to hide.
    set(folder.path(), 0o755);
    let text = r#"{"inbounds": [{ "listen": "127.0.0.1", "port": 1080, "protocol": "socks" }], "#;
    let plain = write(folder.path(), &format!("{text}{FREEDOM}}}"));
    set(&plain, 0o644);
    assert_eq!(run_file(&plain, &["-test", "-strict"]).stderr, "");
}

#[test]
fn run_may_be_left_out_before_its_options() {
    let folder = private_folder();
    let text = r#"{"inbounds": [{ "listen": "127.0.0.1", "port": 1080, "protocol": "socks" }], "#;
    let file = write(folder.path(), &format!("{text}{FREEDOM}}}"));
    let file = file.to_str().unwrap();
    for words in [
        &["-test", "-c", file][..],
        &["-c", file, "-test"],
        &["-config", file, "-test"],
        &["--config", file, "--test"],
        &["-test", "-confdir", folder.path().to_str().unwrap()],
    ] {
        assert_eq!(run(words).answer(), "Configuration OK.\n", "{words:?}");
    }
    run(&["-config=x", "-test", "-config", file]).says(23, &[]);
    assert_eq!(run(&["-version"]).answer(), run(&["version"]).answer());
}

/// The block of the guide with this name.
fn block(name: &str) -> String {
    let text = fs::read_to_string(workspace().join("docs/guide/proxy.md")).unwrap();
    let start = format!("\n```json {name}\n");
    let (_, rest) = text.split_once(&start).unwrap_or_else(|| panic!("no {name}"));
    rest.split_once("\n```\n").unwrap().0.to_owned()
}

#[test]
fn the_way_out_of_the_guard_is_as_the_guide_has_it() {
    let folder = private_folder();
    let certificate = Certificate::make(folder.path());
    let target = target();
    let inside = block("inside.json");
    let (port, address) = (target.port().to_string(), "192.168.1.5");
    assert!(inside.contains(address) && inside.contains(": 80,"), "{inside}");
    let inside = inside
        .replace(address, "127.0.0.1")
        .replace(": 80,", &format!(": {port},"));
    let rules = inside.trim().strip_prefix('{').unwrap().strip_suffix('}').unwrap();
    let blocks = guide();
    let server = blocks[0].1.replacen('{', &format!("{{ {rules},"), 1);
    let pair = Pair::start(folder.path(), &certificate, &server, &blocks[1].1);
    let request = b"GET / and nothing more\n\n";
    assert!(pair.ask(target, request) == answer(request));
}

#[test]
fn the_unit_of_the_guide_keeps_secrets() {
    let text = fs::read_to_string(workspace().join("docs/guide/proxy.md")).unwrap();
    for words in [
        "chmod 600 /etc/sealway/server.json",
        "LoadCredential=server.json:/etc/sealway/server.json",
        "ExecStart=/usr/local/bin/sealway run -c ${CREDENTIALS_DIRECTORY}/server.json",
    ] {
        assert!(text.contains(words), "{words}");
    }
}
