//! Geo files: `sealway geo`, what `sealway run -test` says of them, and SIGHUP.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use sealway_route::testing::{names, networks};

use crate::common::program::Program;
use crate::common::proxy::{Running, echo, free_port};
use crate::common::{PATIENCE, Ran, private_folder, ran, sealway, until, words};

/// A folder with both files.
fn assets() -> tempfile::TempDir {
    let folder = private_folder();
    let of_cn = [
        "example.cn",
        "full:one.example @ads @x",
        "keyword:taobao",
        "regexp:^\\d+z$",
    ];
    let sites = [names("CN", &of_cn), names("ADS", &["one.example", "two.example"])];
    let ips = [
        networks("CN", &["192.0.2.0/24", "2001:db8::/32"]),
        networks("PRIVATE", &["10.0.0.0/8"]),
    ];
    fs::write(folder.path().join("geosite.dat"), sites.concat()).unwrap();
    fs::write(folder.path().join("geoip.dat"), ips.concat()).unwrap();
    folder
}

fn within(folder: &Path, arguments: &[&str]) -> Ran {
    ran(sealway(arguments).env("XRAY_LOCATION_ASSET", folder))
}

#[test]
fn files_can_be_looked_into() {
    let folder = assets();
    let file = folder.path().join("geosite.dat");
    let own = folder.path().join("own.dat");
    fs::copy(&file, &own).unwrap();
    let own = own.to_str().unwrap();
    let geo = |line: &str| within(folder.path(), &words(&format!("geo {line}")));
    for (line, wanted) in [
        ("list", "geosite:cn  4\ngeosite:ads  2\ngeoip:cn  2\ngeoip:private  1\n"),
        ("list geoip.dat", "geoip:cn  2\ngeoip:private  1\n"),
        (&format!("list {own}"), "ext:own.dat:cn  4\next:own.dat:ads  2\n"),
        ("show geosite:ads", "domain:one.example\ndomain:two.example\n"),
        ("show geosite:cn@ads", "full:one.example @ads @x\n"),
        ("show cn --attr X --attr ads", "full:one.example @ads @x\n"),
        ("show geosite:cn --attr y", ""),
        ("show geoip:CN", "192.0.2.0/24\n2001:db8::/32\n"),
        (&format!("show ext:{own}:cn --attr x"), "full:one.example @ads @x\n"),
        (
            "lookup One.Example.",
            "geosite:cn  full:one.example @ads @x\ngeosite:ads  domain:one.example\n",
        ),
        ("lookup 7z", "geosite:cn  regexp:^\\d+z$\n"),
        ("lookup 192.0.2.7", "geoip:cn  192.0.2.0/24\n"),
        ("lookup ::ffff:10.1.1.1", "geoip:private  10.0.0.0/8\n"),
        ("lookup example.org", ""),
    ] {
        let ran = geo(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, wanted), "{line}: {ran:?}");
    }
    for (line, said) in [
        ("show geosite:adds", "has no list \"adds\"; did you mean \"ads\"?"),
        ("show nothing:x", "names no list"),
        ("list gone.dat", "there is no geo file \"gone.dat\" in "),
        (
            "lookup example.cn --file geoip.dat",
            "lists networks, and example.cn is no IP address",
        ),
        (
            "lookup 1.1.1.1 --file geosite.dat",
            "lists names, and 1.1.1.1 is an address",
        ),
    ] {
        geo(line).says(2, &[said]);
    }
}

/// A file that somebody else has made does nothing to the terminal.
#[test]
fn what_a_file_says_is_written_out() {
    let folder = private_folder();
    let file = names("A\u{1b}[2J", &["keyword:x\u{1b}]0;y\u{7} @z\u{1b}"]);
    fs::write(folder.path().join("geosite.dat"), file).unwrap();
    for arguments in [
        &["list", "geosite.dat"][..],
        &["show", "geosite:a\u{1b}[2j"],
        &["lookup", "x\u{1b}]0;y\u{7}"],
    ] {
        let ran = within(folder.path(), &[&["geo"], arguments].concat());
        ran.says(0, &[]);
        assert!(ran.stdout.contains("\\u{1b}"), "{arguments:?}: {ran:?}");
        assert!(!ran.stdout.contains('\u{1b}'), "{arguments:?}: {ran:?}");
    }
}

fn config(folder: &Path, rules: &str) -> PathBuf {
    let file = folder.join("config.json");
    let text = format!(
        "{{\"inbounds\": [{{\"listen\": \"127.0.0.1\", \"port\": 1080, \"protocol\": \"socks\"}}],\n\
         \"outbounds\": [{{\"tag\": \"direct\", \"protocol\": \"freedom\"}}],\n\"routing\": {{\"rules\": [\n{rules}]}}}}"
    );
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_look_at_a_configuration_tells_what_lists_take_and_which_are_missing() {
    let folder = assets();
    let test = |rules: &str| {
        let file = config(folder.path(), rules);
        within(folder.path(), &["run", "-test", "-c", file.to_str().unwrap()])
    };
    let good = r#"{"domain": ["geosite:cn", "geosite:cn@ads"], "outboundTag": "direct"},
        {"ip": ["geoip:!cn", "geoip:private"], "domain": "geosite:CN", "outboundTag": "direct"}"#;
    let ran = test(good);
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{ran:?}");
    for (line, start) in lines.iter().zip([
        "geosite:cn: 4 entries, ",
        "geosite:cn@ads: 1 entries, ",
        "geoip:cn: 2 entries, ",
    ]) {
        assert!(line.starts_with(start) && line.ends_with(" KiB"), "{line}");
    }
    assert_eq!(lines[3], "Configuration OK.");
    // All that is missing, each where it is written, by whichever name of its key.
    let bad = "{\"domains\": [\"x\", \"geosite:cm\"], \"outboundTag\": \"direct\"},\n\
               {\"ip\": \"geoip:us\", \"sourceIP\": [\"ext:gone.dat:x\"], \"outboundTag\": \"direct\"}";
    test(bad).refuses(
        23,
        &[
            "config.json:4:19: error: routing.rules[0].domains[1]: ",
            "geosite.dat has no list \"cm\"; did you mean \"cn\"?",
            "config.json:5:8: error: routing.rules[1].ip[0]: ",
            "config.json:5:33: error: routing.rules[1].sourceIP[0]: there is no geo file \"gone.dat\" in ",
            "the configuration has 3 errors",
        ],
    );
}

#[test]
fn all_missing_lists_are_told_beside_other_faults() {
    let folder = assets();
    let file = folder.path().join("config.json");
    let text = r#"{"dns": {"servers": [{"address": "9.9.9.9", "domains": ["geosite:m1"], "expectedIPs": ["geoip:m2"]}]},
        "inbounds": [{"port": 1080, "protocol": "socks",
            "sniffing": {"enabled": true, "domainsExcluded": ["geosite:m3"], "ipsExcluded": ["geoip:m4"]}}],
        "outbounds": [{"tag": "d", "protocol": "freedom", "settings": {"finalRules": [
                {"action": "block", "ip": ["geoip:m5"]}, {"action": "block", "ip": ["geoip:m6"]}]}},
            {"protocol": "dns", "settings": {"rules": [{"action": "drop", "domain": ["geosite:m7"]}]}}],
        "routing": {"rules": [{"domain": "geosite:m8", "outboundTag": "d"}]}}"#;
    for (more, other) in [
        ("", "has no list \"m1\""),
        (
            r#""streamSettings": {"security": "tls", "tlsSettings": {"certificates": [
                {"certificateFile": "/gone.pem", "keyFile": "/gone.key"}]}}, "#,
            "/gone.pem",
        ),
    ] {
        let text = text.replace(r#""sniffing""#, &format!(r#"{more}"sniffing""#));
        fs::write(&file, text).unwrap();
        let ran = within(folder.path(), &["run", "-test", "-c", file.to_str().unwrap()]);
        ran.says(23, &[other]);
        for list in 1..=8 {
            let said = format!("has no list \"m{list}\"");
            assert_eq!(ran.stderr.matches(&said).count(), 1, "{said}: {}", ran.stderr);
        }
    }
}

#[test]
fn hangup_right_after_the_start_ends_nobody() {
    let folder = assets();
    let text = fs::read(config(folder.path(), "")).unwrap();
    let pipe = folder.path().join("pipe.json");
    ran(std::process::Command::new("mkfifo").arg(&pipe)).says(0, &[]);
    let mut command = sealway(&["run", "-test", "-c", pipe.to_str().unwrap()]);
    let mut program = Program::start(command.stdout(std::process::Stdio::null()));
    // Opens when the program reads its configuration.
    let mut writer = fs::File::create(&pipe).unwrap();
    program.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(50));
    let written = writer.write_all(&text);
    drop(writer);
    assert_eq!(program.ended().code(), Some(0));
    written.unwrap();
}

/// Whether the proxy lets a client through to a name.
fn passes(port: u16, name: &str, to: SocketAddr) -> Option<TcpStream> {
    let mut socks = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socks.set_read_timeout(Some(PATIENCE)).unwrap();
    socks.write_all(&[5, 1, 0]).unwrap();
    let mut answer = [0; 10];
    socks.read_exact(&mut answer[..2]).unwrap();
    let head = [5, 1, 0, 3, name.len() as u8];
    let request = [&head, name.as_bytes(), &to.port().to_be_bytes()].concat();
    socks.write_all(&request).unwrap();
    socks.read_exact(&mut answer).ok()?;
    serves(&mut socks).then_some(socks)
}

fn serves(socks: &mut TcpStream) -> bool {
    let mut answer = [0; 4];
    socks.write_all(b"ping").is_ok() && socks.read_exact(&mut answer).is_ok() && answer == *b"ping"
}

#[test]
fn hangup_reads_geo_files_again_and_cuts_nobody_off() {
    let folder = private_folder();
    let file = folder.path().join("own.dat");
    let put = |bytes: &[u8]| {
        // As those who replace such files do: a new file in the place of the old one.
        fs::write(folder.path().join("new"), bytes).unwrap();
        fs::rename(folder.path().join("new"), &file).unwrap();
    };
    put(&names("BLOCK", &["one.test"]));
    let (port, to) = (free_port(), echo());
    let log = folder.path().join("error.log");
    let config = folder.path().join("config.json");
    let text = format!(
        r#"{{"log": {{"loglevel": "info", "error": "{}"}},
        "dns": {{"hosts": {{"one.test": "127.0.0.1", "two.test": "127.0.0.1"}}}},
        "inbounds": [{{"listen": "127.0.0.1", "port": {port}, "protocol": "socks"}}],
        "outbounds": [{{"tag": "direct", "protocol": "freedom"}}, {{"tag": "block", "protocol": "blackhole"}}],
        "routing": {{"rules": [{{"domain": ["ext:{}:block"], "outboundTag": "block"}}]}}}}"#,
        log.display(),
        file.display()
    );
    fs::write(&config, text).unwrap();
    let running = Running::start(&config);
    let hang_up = |wanted: &str| {
        let before = fs::read_to_string(&log).unwrap_or_default().len();
        running.signal(Signal::HUP);
        until(wanted, || {
            fs::read_to_string(&log).unwrap_or_default()[before..].contains(wanted)
        });
    };
    let let_through = || ["one.test", "two.test"].map(|name| passes(port, name, to).is_some());
    assert_eq!(let_through(), [false, true]);
    let mut open = passes(port, "two.test", to).unwrap();
    put(&names("BLOCK", &["two.test"]));
    hang_up("[Warning] SIGHUP: the configuration was taken up: 0 listeners opened, 1 kept, 0 closed");
    assert_eq!(let_through(), [true, false]);
    // Whoever was let through stays.
    assert!(serves(&mut open));
    for (bad, said) in [
        (&b"<html>"[..], "byte 0 does not belong there"),
        (&names("BLOC", &["one.test"]), "has no list \"block\""),
    ] {
        put(bad);
        hang_up(said);
        assert_eq!(let_through(), [true, false]);
    }
    // Many at once are one or two.
    put(&names("BLOCK", &["one.test"]));
    let told = || fs::read_to_string(&log).unwrap().matches("was taken up").count();
    let before = told();
    (0..200).for_each(|_| running.signal(Signal::HUP));
    hang_up("the configuration was taken up");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(let_through(), [false, true]);
    assert!(told() - before < 100, "{}", told() - before);
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("[Error] SIGHUP: nothing was changed: "), "{said}");
    // With the place of what names the list.
    assert!(said.contains(&format!("{}:5:", config.display())), "{said}");
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}
