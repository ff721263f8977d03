//! `sealway gateway`: rules for the firewall, which are only printed.

use std::fs;
use std::process::Command;

use crate::common::namespace::unshared;
use crate::common::{PROGRAM, Ran, given, golden, ran, run, workspace};

fn gateway(config: &str, options: &[&str]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.json");
    fs::write(&path, config).unwrap();
    let mut line = vec!["gateway", "-c", path.to_str().unwrap()];
    line.extend(options);
    run(&line)
}

/// A transparent inbound and a freedom outbound, and what else the file has.
fn config(listen: &str, settings: &str, sockopt: &str, outbound: &str, more: &str) -> String {
    format!(
        r#"{{"inbounds": [{{"tag": "gate", {listen}, "protocol": "dokodemo-door",
            "settings": {{"followRedirect": true, {settings}}}, "streamSettings": {{"sockopt": {{{sockopt}}}}}}}],
            "outbounds": [{outbound}]{more}}}"#
    )
}

const MARKED: &str = r#"{"tag": "out", "protocol": "freedom", "streamSettings": {"sockopt": {"mark": 255}}}"#;
const BOTH: &str = r#""network": "tcp,udp""#;
const TCP: &str = r#""network": "tcp""#;
const TPROXY: &str = r#""tproxy": "tproxy""#;
const ANYWHERE: &str = r#""port": 12345"#;

/// Whether a firewall would take the rules. Looked at in a network namespace of its own, where nothing is applied.
fn is_taken(script: &str) {
    let rules = script.split("<<'END'\n").nth(1).unwrap().split("END\n").next().unwrap();
    if let Some(mut command) = unshared(&["nft", "--version"]) {
        given(command.args(["nft", "--check", "-f", "-"]), rules).says(0, &[]);
    }
}

#[test]
fn rules_are_as_they_were_and_a_firewall_takes_them() {
    let dns = r#", "routing": {"rules": [{"port": 53, "outboundTag": "dns"}]}"#;
    let answering =
        format!(r#"{MARKED}, {{"tag": "dns", "protocol": "dns", "streamSettings": {{"sockopt": {{"mark": 255}}}}}}"#);
    for (name, config, options) in [
        (
            "tproxy",
            config(ANYWHERE, BOTH, TPROXY, &answering, dns),
            &["--lan", "br-lan,wg0"][..],
        ),
        (
            "redirect",
            config(ANYWHERE, BOTH, r#""tproxy": "redirect""#, MARKED, ""),
            &["--lan", "br-lan"],
        ),
        (
            "own",
            config(ANYWHERE, BOTH, TPROXY, &answering, dns),
            &["--lan", "lan0", "--own", "--mark", "9", "--table", "77"],
        ),
        ("own-redirect", config(ANYWHERE, TCP, "", MARKED, ""), &["--own"]),
        (
            "one-address",
            config(r#""listen": "127.0.0.1", "port": 1234"#, BOTH, TPROXY, MARKED, ""),
            &["--no-ipv6"],
        ),
    ] {
        let ran = gateway(&config, options);
        ran.says(0, &[]);
        is_taken(&ran.stdout);
        let undo = gateway(&config, &[options, &["--undo"]].concat()).answer();
        golden(
            &format!("gateway-{name}.txt"),
            &format!("{}---\n{undo}---\n{}", ran.stdout, ran.stderr),
        );
    }
}

#[test]
fn what_would_lead_in_a_circle_is_said() {
    let server = r#"{"tag": "far", "protocol": "socks", "settings": {"address": "proxy.example", "port": 1}}"#;
    let both = format!("{MARKED}, {server}, {{\"protocol\": \"blackhole\"}}");
    let ran = gateway(&config(ANYWHERE, BOTH, TPROXY, &both, ""), &["--lan", "lan0", "--own"]);
    ran.says(
        0,
        &[
            "the outbound [far] has no mark, so its connections would come back",
            "the system's question for proxy.example has no mark",
            "no rule leads port 53",
        ],
    );
    // So do questions to DNS servers that no outbound marks.
    let dns = r#", "dns": {"servers": ["localhost", "tcp+local://192.0.2.53", "192.0.2.54"]}"#;
    let asks = gateway(&config(ANYWHERE, BOTH, TPROXY, &both, dns), &["--lan", "lan0", "--own"]);
    asks.says(
        0,
        &[
            "dns.servers[0] is the system's resolver",
            "dns.servers[1], 192.0.2.53, is asked straight from here",
        ],
    );
    assert!(!asks.stderr.contains("dns.servers[2]"), "{}", asks.stderr);
    for not_said in ["[out]", "outbounds[2]", "--lan"] {
        assert!(!ran.stderr.contains(not_said), "{not_said}: {}", ran.stderr);
    }
    // Nothing of this machine itself is led anywhere, so no mark is needed.
    let ran = gateway(&config(ANYWHERE, BOTH, TPROXY, &both, ""), &["--lan", "lan0"]);
    assert!(!ran.stderr.contains("no mark"), "{}", ran.stderr);
    // A name that the file answers itself is not asked for.
    let hosts = r#", "dns": {"hosts": {"proxy.example": "192.0.2.1"}}"#;
    let ran = gateway(
        &config(ANYWHERE, BOTH, TPROXY, &both, hosts),
        &["--lan", "lan0", "--own"],
    );
    assert!(!ran.stderr.contains("by name"), "{}", ran.stderr);
}

#[test]
fn what_passes_the_proxy_by_is_said() {
    let everywhere = config(r#""listen": "0.0.0.0", "port": 1"#, TCP, TPROXY, MARKED, "");
    gateway(&everywhere, &[]).says(
        0,
        &[
            "no transparent inbound takes TCP over IPv6",
            "no transparent inbound takes UDP, which QUIC and most of DNS are, over IPv4",
            "packets that come in by any interface",
        ],
    );
    let here = config(r#""listen": "127.0.0.1", "port": 1"#, TCP, "", MARKED, "");
    let ran = gateway(&here, &["--no-ipv6"]);
    ran.says(0, &["nothing of other machines can be redirected"]);
    assert!(!ran.stderr.contains("IPv6"), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_is_refused() {
    let socks = r#"{"inbounds": [{"port": 1, "protocol": "socks"}], "outbounds": [{"protocol": "freedom"}]}"#;
    let usual = config(ANYWHERE, BOTH, TPROXY, MARKED, "");
    gateway(socks, &[]).says(2, &["none is transparent"]);
    gateway(&usual, &["--mark", "255"]).says(2, &["outbounds[0].streamSettings.sockopt.mark"]);
    let marked = config(ANYWHERE, BOTH, r#""tproxy": "tproxy", "mark": 1"#, MARKED, "");
    gateway(&marked, &[]).says(2, &["inbounds[0].streamSettings.sockopt.mark"]);
    for (number, code) in [
        ("0", 2),
        ("252", 0),
        ("253", 2),
        ("254", 2),
        ("255", 2),
        ("256", 0),
        ("x", 2),
    ] {
        gateway(&usual, &["--table", number]).says(code, &[]);
    }
    for wrong in ["a b", "'", "\"x\"", "$(id)", "a;b", "", "a-name-that-is-too-long", "-n"] {
        gateway(&usual, &[&format!("--lan={wrong}")]).refuses(2, &[]);
    }
}

/// Rights that are missing are found by the check of a configuration, with what to do.
#[test]
fn missing_rights_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.json");
    let check = |text: &str| {
        fs::write(&path, text).unwrap();
        let mut command = match rustix::process::geteuid().is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--bounding-set=-net_admin,-net_raw,-net_bind_service", PROGRAM]);
                command
            }
            false => Command::new(PROGRAM),
        };
        ran(command.args(["run", "-test", "-c"]).arg(&path))
    };
    check(&config(ANYWHERE, BOTH, TPROXY, MARKED, "")).says(
        23,
        &[
            "inbounds[0].streamSettings.sockopt.tproxy: transparent proxying needs root, or the capability CAP_NET_ADMIN",
            "inbounds[0].streamSettings.sockopt.tproxy: datagrams for others need root, or the capabilities CAP_NET_ADMIN",
            "outbounds[0].streamSettings.sockopt.mark: a mark needs root, or the capability CAP_NET_ADMIN",
        ],
    );
    // What is redirected takes no rights.
    let unmarked = r#"{"protocol": "freedom"}"#;
    check(&config(ANYWHERE, TCP, r#""tproxy": "redirect""#, unmarked, "")).says(0, &[]);
}

/// The configuration of the guide is one, and its rules need no warning but the one that the guide is about.
#[test]
fn the_guide_works() {
    let guide = fs::read_to_string(workspace().join("docs/guide/gateway.md")).unwrap();
    let (_, rest) = guide.split_once("```jsonc gateway.json\n").unwrap();
    let (config, _) = rest.split_once("```").unwrap();
    let ran = gateway(config, &["--lan", "br-lan"]);
    ran.says(0, &["no rule leads port 53"]);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    let ran = gateway(config, &["--lan", "br-lan", "--own"]);
    assert!(!ran.stderr.contains("no mark"), "{}", ran.stderr);
    is_taken(&ran.stdout);
}
