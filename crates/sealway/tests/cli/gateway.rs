//! `sealway gateway`: rules for the firewall, which are only printed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{PROGRAM, Ran, peer_is_missing, run, workspace};

/// Compares with a kept text. `SEALWAY_UPDATE_GOLDEN=1` writes it anew, for a person to review in the diff.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert!(
        kept == text,
        "{name} differs; set SEALWAY_UPDATE_GOLDEN=1 if that is meant. It is now:\n{text}"
    );
}

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
const TPROXY: &str = r#""tproxy": "tproxy""#;
const ANYWHERE: &str = r#""port": 12345"#;

/// Whether a firewall would take the rules. Looked at in a network namespace of its own, where nothing is applied.
fn is_taken(script: &str) {
    let rules = script.split("<<'END'\n").nth(1).unwrap().split("END\n").next().unwrap();
    let mut command = Command::new("unshare");
    command.arg("--net");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let mut there = command.get_args().map(Into::into).collect::<Vec<std::ffi::OsString>>();
    there.extend(["nft".into(), "--version".into()]);
    if !Command::new("unshare")
        .args(there)
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return peer_is_missing("there is no nft, or no namespace for it (scripts/install-peers)");
    }
    let spawned = command
        .args(["nft", "--check", "-f", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.unwrap();
    child.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{rules}",
        String::from_utf8_lossy(&output.stderr)
    );
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
        (
            "own-redirect",
            config(ANYWHERE, r#""network": "tcp""#, "", MARKED, ""),
            &["--own"],
        ),
        (
            "one-address",
            config(r#""listen": "127.0.0.1", "port": 1234"#, BOTH, TPROXY, MARKED, ""),
            &["--no-ipv6"],
        ),
    ] {
        let ran = gateway(&config, options);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        is_taken(&ran.stdout);
        let undo = gateway(&config, &[options, &["--undo"]].concat());
        assert_eq!((undo.code, undo.stderr.as_str()), (0, ""));
        golden(
            &format!("gateway-{name}.txt"),
            &format!("{}---\n{}---\n{}", ran.stdout, undo.stdout, ran.stderr),
        );
    }
}

#[test]
fn what_would_lead_in_a_circle_is_said() {
    let server = r#"{"tag": "far", "protocol": "socks", "settings": {"address": "proxy.example", "port": 1}}"#;
    let both = format!("{MARKED}, {server}, {{\"protocol\": \"blackhole\"}}");
    let ran = gateway(&config(ANYWHERE, BOTH, TPROXY, &both, ""), &["--lan", "lan0", "--own"]);
    assert_eq!(ran.code, 0);
    for said in [
        "the outbound [far] has no mark, so its connections would come back",
        "the system's question for proxy.example has no mark",
        "no rule leads port 53",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    // So do questions to DNS servers that no outbound marks.
    let dns = r#", "dns": {"servers": ["localhost", "tcp+local://192.0.2.53", "192.0.2.54"]}"#;
    let asks = gateway(&config(ANYWHERE, BOTH, TPROXY, &both, dns), &["--lan", "lan0", "--own"]);
    assert!(
        asks.stderr.contains("dns.servers[0] is the system's resolver"),
        "{}",
        asks.stderr
    );
    assert!(
        asks.stderr
            .contains("dns.servers[1], 192.0.2.53, is asked straight from here"),
        "{}",
        asks.stderr
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
    let ran = gateway(
        &config(
            r#""listen": "0.0.0.0", "port": 1"#,
            r#""network": "tcp""#,
            TPROXY,
            MARKED,
            "",
        ),
        &[],
    );
    for said in [
        "no transparent inbound takes TCP over IPv6",
        "no transparent inbound takes UDP, which QUIC and most of DNS are, over IPv4",
        "packets that come in by any interface",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    let ran = gateway(
        &config(
            r#""listen": "127.0.0.1", "port": 1"#,
            r#""network": "tcp""#,
            "",
            MARKED,
            "",
        ),
        &["--no-ipv6"],
    );
    assert!(
        ran.stderr.contains("nothing of other machines can be redirected"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("IPv6"), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_is_refused() {
    let socks = r#"{"inbounds": [{"port": 1, "protocol": "socks"}], "outbounds": [{"protocol": "freedom"}]}"#;
    let ran = gateway(socks, &[]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("none is transparent"), "{}", ran.stderr);
    let ran = gateway(&config(ANYWHERE, BOTH, TPROXY, MARKED, ""), &["--mark", "255"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("outbounds[0].streamSettings.sockopt.mark"),
        "{}",
        ran.stderr
    );
    let ran = gateway(
        &config(ANYWHERE, BOTH, r#""tproxy": "tproxy", "mark": 1"#, MARKED, ""),
        &[],
    );
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("inbounds[0].streamSettings.sockopt.mark"),
        "{}",
        ran.stderr
    );
    for (number, code) in [
        ("0", 2),
        ("252", 0),
        ("253", 2),
        ("254", 2),
        ("255", 2),
        ("256", 0),
        ("x", 2),
    ] {
        let ran = gateway(&config(ANYWHERE, BOTH, TPROXY, MARKED, ""), &["--table", number]);
        assert_eq!(ran.code, code, "{number}: {}", ran.stderr);
    }
    for wrong in ["a b", "'", "\"x\"", "$(id)", "a;b", "", "a-name-that-is-too-long", "-n"] {
        let ran = gateway(
            &config(ANYWHERE, BOTH, TPROXY, MARKED, ""),
            &[&format!("--lan={wrong}")],
        );
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{wrong}");
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
        let output = command.args(["run", "-test", "-c"]).arg(&path).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, said) = check(&config(ANYWHERE, BOTH, TPROXY, MARKED, ""));
    assert_eq!(code, Some(23), "{said}");
    for words in [
        "inbounds[0].streamSettings.sockopt.tproxy: transparent proxying needs root, or the capability CAP_NET_ADMIN",
        "inbounds[0].streamSettings.sockopt.tproxy: datagrams for others need root, or the capabilities CAP_NET_ADMIN",
        "outbounds[0].streamSettings.sockopt.mark: a mark needs root, or the capability CAP_NET_ADMIN",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // What is redirected takes no rights.
    let unmarked = r#"{"protocol": "freedom"}"#;
    let (code, said) = check(&config(
        ANYWHERE,
        r#""network": "tcp""#,
        r#""tproxy": "redirect""#,
        unmarked,
        "",
    ));
    assert_eq!(code, Some(0), "{said}");
}

/// The configuration of the guide is one, and its rules need no warning but the one that the guide is about.
#[test]
fn the_guide_works() {
    let guide = fs::read_to_string(workspace().join("docs/guide/gateway.md")).unwrap();
    let config = guide
        .split("```jsonc gateway.json\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let ran = gateway(config, &["--lan", "br-lan"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("no rule leads port 53"), "{}", ran.stderr);
    let ran = gateway(config, &["--lan", "br-lan", "--own"]);
    assert!(!ran.stderr.contains("no mark"), "{}", ran.stderr);
    is_taken(&ran.stdout);
}
