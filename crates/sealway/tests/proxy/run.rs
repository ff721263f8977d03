//! `sealway run`: what it says of configurations, and pairs that carry bytes.

use std::fs;
use std::io::Write;
use std::path::Path;

use rustix::process::Signal;

use crate::common::proxy::{Certificate, Pair, Running, answer, examples, guide, target};
use crate::common::{self, Ran, given, private_folder, ran, run, sealway};

/// A configuration with one thing to get wrong.
fn socks(more: &str) -> String {
    format!(
        r#"{{
  "inbounds": [{{ "tag": "in", "listen": "127.0.0.1", "port": 1080, "protocol": "socks" }}],
  "outbounds": [{{ "tag": "direct", "protocol": "freedom" }}]{more}
}}
"#
    )
}

fn test_text(folder: &Path, text: &str, more: &[&str]) -> Ran {
    let file = folder.join("config.json");
    fs::write(&file, text).unwrap();
    run(&[&["run", "-test", "-c", file.to_str().unwrap()], more].concat())
}

fn is_ok(ran: Ran) {
    assert_eq!(ran.answer(), "Configuration OK.\n");
}

#[test]
fn every_example_is_usable() {
    let folder = private_folder();
    let certificate = Certificate::make(folder.path());
    for example in examples() {
        let text = certificate.put_in(&fs::read_to_string(&example).unwrap());
        println!("{}", example.display());
        is_ok(test_text(folder.path(), &text, &["-strict"]));
    }
}

#[test]
fn every_configuration_of_the_guide_is_usable() {
    let folder = private_folder();
    let certificate = Certificate::make(folder.path());
    let blocks = guide();
    let names: Vec<_> = blocks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["server.json", "client.json"]);
    for (_, text) in &blocks {
        is_ok(test_text(folder.path(), &certificate.put_in(text), &["-strict"]));
    }
}

#[test]
fn a_certificate_that_is_not_there_is_found_by_the_test() {
    let folder = private_folder();
    let text = guide()[0].1.replace("/etc/sealway/", "/no/such/folder/");
    let place = "inbounds[0].streamSettings.tlsSettings.certificates[0].certificateFile: /no/such/folder/server.crt";
    test_text(folder.path(), &text, &[]).refuses(23, &["config.json:20:34: error: ", place]);
}

#[test]
fn relative_certificates_start_from_the_folder_that_the_environment_names() {
    let folder = private_folder();
    Certificate::make(folder.path());
    let file = folder.path().join("config.json");
    fs::write(&file, guide()[0].1.replace("/etc/sealway/", "")).unwrap();
    let test = |name: &str| {
        let mut command = sealway(&["run", "-test", "-c", file.to_str().unwrap()]);
        ran(command.env(name, folder.path()))
    };
    is_ok(test("XRAY_LOCATION_CERT"));
    is_ok(test("v2ray.location.cert"));
    assert_eq!(test("XRAY_LOCATION_ASSET").code, 23);
}

#[test]
fn a_misspelt_key_is_named_with_its_place() {
    let folder = private_folder();
    let text = socks(",\n  \"log\": { \"logLvel\": \"info\" }");
    let place = format!("{}/config.json:4:12: ", folder.path().display());
    let ran = test_text(folder.path(), &text, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Configuration OK.\n"), "{ran:?}");
    assert!(ran.stderr.starts_with(&format!("{place}warning: ")), "{ran:?}");
    ran.says(0, &["unknown key \"logLvel\"", "\n  hint: did you mean `loglevel`?\n"]);
    for strict in ["-strict", "--strict", "-strict=true"] {
        let ran = test_text(folder.path(), &text, &[strict]);
        ran.refuses(23, &["the configuration has 1 error;"]);
        assert!(ran.stderr.starts_with(&format!("{place}error: ")), "{ran:?}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_its_place() {
    let folder = private_folder();
    for (text, place, words) in [
        (
            socks(",\n  \"routing\": { \"rules\": [{ \"port\": 53, \"outboundTag\": \"dierct\" }] }"),
            "config.json:4:55: error: ",
            ["dierct", "did you mean \"direct\"?"],
        ),
        (
            socks(",\n  \"api\": { \"listen\": \"0.0.0.0:8080\" }"),
            "config.json:4:22: error: ",
            ["api.listen", "allowRemote"],
        ),
        (socks(",\n  \"log\": "), "config.json:5:1: error: ", ["", ""]),
        (socks("").replace("1080", "70000"), "config.json:2:", ["70000", "port"]),
    ] {
        test_text(folder.path(), &text, &[]).refuses(23, &[&[place][..], &words].concat());
    }
}

#[test]
fn the_version_is_printed() {
    let (word, option) = (run(&["version"]), run(&["--version"]));
    assert_eq!((word.code, &word.stdout), (0, &option.stdout));
    assert!(word.stdout.starts_with("sealway 0."), "{word:?}");
}

#[test]
fn a_warning_is_an_error_where_asked() {
    let folder = private_folder();
    let text = socks("").replace(r#""freedom""#, r#""freedom", "mux": { "enabled": true }"#);
    let place = "config.json:3:79: ";
    let said = format!("{place}warning: outbounds[0].mux.enabled: there is no server here");
    test_text(folder.path(), &text, &[]).says(0, &[&said]);
    let said = format!("{place}error: outbounds[0].mux.enabled: ");
    test_text(folder.path(), &text, &["-strict"]).says(23, &[&said]);
}

#[test]
fn what_has_no_effect_is_warned_about() {
    let folder = private_folder();
    let text = socks("").replace(
        r#""protocol": "socks""#,
        r#""protocol": "socks", "streamSettings": { "sockopt": { "penetrate": true } }"#,
    );
    let ran = test_text(folder.path(), &text, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Configuration OK.\n"), "{ran:?}");
    let said = "warning: inbounds[0].streamSettings.sockopt.penetrate: `penetrate` has no effect on an inbound";
    ran.says(0, &["config.json:2:", said]);
}

#[test]
fn files_that_are_not_there_are_named() {
    let empty = private_folder();
    let folder = empty.path().to_str().unwrap();
    for (words, said) in [
        (&["-c", "/no/such.json"][..], "/no/such.json"),
        (&["-confdir", "/no/such"], "/no/such"),
        (&["-confdir", folder], "no .json or .jsonc file"),
        (&["-c", "http://127.0.0.1:1/c.json"], "http://127.0.0.1:1/c.json"),
        (&[], "no config.json here"),
    ] {
        let mut command = sealway(&[&["run", "-test"], words].concat());
        ran(command.current_dir(folder)).refuses(23, &[said, "  hint: "]);
    }
    for words in [
        &["-tset"][..],
        &["-format", "yaml"],
        &["-test=perhaps"],
        &["config.json"],
    ] {
        run(&[&["run"], words].concat()).refuses(2, &[]);
    }
}

#[test]
fn a_configuration_is_found_in_every_way() {
    let folder = private_folder();
    let (inbounds, rest) = (folder.path().join("10.json"), folder.path().join("20.json"));
    let text = r#"{"inbounds": [{"listen": "::1", "port": 1080, "protocol": "socks"}]}"#;
    fs::write(&inbounds, text).unwrap();
    fs::write(&rest, r#"{"outbounds": [{"protocol": "freedom"}]}"#).unwrap();
    let (one, two, all) = (inbounds.to_str().unwrap(), rest.to_str().unwrap(), folder.path());
    is_ok(run(&["run", "-test", "-c", one, "-config", two, "-format", "json"]));
    is_ok(run(&["run", "--test", "--config", one, "-c", two, "--format=json"]));
    is_ok(run(&["run", "-test", "-confdir", all.to_str().unwrap()]));
    let with = |name: &str, value: &Path| {
        let mut command = sealway(&["run", "-test"]);
        ran(command.current_dir(std::env::temp_dir()).env(name, value))
    };
    is_ok(with("XRAY_LOCATION_CONFDIR", all));
    is_ok(with("v2ray.location.confdir", all));
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("config.json"), socks("")).unwrap();
    is_ok(with("XRAY_LOCATION_CONFIG", &home));
    is_ok(given(&mut sealway(&["run", "-test", "-c", "stdin:"]), &socks("")));
}

#[test]
fn pairs_carry_a_request() {
    let folder = private_folder();
    let certificate = Certificate::make(folder.path());
    let target = target();
    let mut pairs: Vec<_> = examples()
        .chunks(2)
        .map(|pair| {
            let read = |name| fs::read_to_string(pair[0].with_file_name(name)).unwrap();
            (read("server.json"), read("client.json"))
        })
        .collect();
    let blocks = guide();
    pairs.push((blocks[0].1.clone(), blocks[1].1.clone()));
    for (server, client) in pairs {
        let pair = Pair::start(folder.path(), &certificate, &server, &client);
        let port = format!(":{}", pair.server_port);
        assert!(pair.server.began.contains(&port), "{}", pair.server.began);
        for _ in 0..2 {
            let request = [&b"GET / and some more"[..], &[b'x'; 20_000], b"\n\n"].concat();
            let got = pair.ask(target, &request);
            assert!(got == answer(&request), "{} bytes came back", got.len());
        }
        assert_eq!(pair.client.stop(Signal::INT).code(), Some(0));
        assert_eq!(pair.server.stop(Signal::TERM).code(), Some(0));
    }
}

#[test]
fn what_the_log_object_asks_for_is_written() {
    let folder = private_folder();
    let certificate = Certificate::make(folder.path());
    let target = target();
    let log = folder.path().join("log");
    let files = format!(
        r#""log": {{ "access": "{0}.access", "error": "{0}.error", "loglevel": "info" }}"#,
        log.display()
    );
    let blocks = guide();
    let server = blocks[0].1.replace(r#""log": { "loglevel": "warning" }"#, &files);
    let pair = Pair::start(folder.path(), &certificate, &server, &blocks[1].1);
    pair.ask(target, b"hello\n\n");
    // A stranger: TLS never begins.
    let mut stranger = std::net::TcpStream::connect(("127.0.0.1", pair.server_port)).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = std::io::Read::read_to_end(&mut stranger, &mut Vec::new());
    assert_eq!(pair.server.stop(Signal::TERM).code(), Some(0));
    let access = fs::read_to_string(format!("{}.access", log.display())).unwrap();
    let (accepted, rejected) = access.split_once('\n').unwrap();
    let wanted = format!(" accepted tcp:{target} [front >> direct] email: ann@example.com");
    assert!(accepted.ends_with(&wanted), "{access}");
    assert!(rejected.contains(" rejected  ") && rejected.ends_with('\n'), "{access}");
    let error = fs::read_to_string(format!("{}.error", log.display())).unwrap();
    let line = error.lines().next().unwrap_or_default();
    assert!(line.contains(" [Info] [front] ") && line.contains("refused"), "{error}");
    let digits = line.chars().filter(|c| !c.is_ascii_digit()).take(8).collect::<String>();
    assert_eq!(digits, "// ::. [", "{line}");
}

#[test]
fn a_port_that_is_taken_is_no_fault_of_the_configuration() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let folder = private_folder();
    let file = folder.path().join("config.json");
    fs::write(&file, socks("").replace("1080", &port.to_string())).unwrap();
    let said = ["config.json:2:16: error: inbounds[0]: cannot listen", &port.to_string()];
    run(&["run", "-c", file.to_str().unwrap()]).refuses(1, &said);
}

#[test]
fn a_second_signal_does_not_wait_for_connections() {
    let folder = private_folder();
    let port = common::proxy::free_port();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap().port();
    let file = folder.path().join("config.json");
    let door = format!(
        r#"{{"inbounds": [{{"tag": "door", "listen": "127.0.0.1", "port": {port}, "protocol": "dokodemo-door",
            "settings": {{"address": "127.0.0.1", "port": {to}}}}}], "outbounds": [{{"protocol": "freedom"}}]}}"#
    );
    fs::write(&file, door).unwrap();
    let running = Running::start(&file);
    let open = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let carried = silent.accept().unwrap();
    assert_eq!(running.stop_twice(Signal::TERM).code(), Some(0));
    drop((open, carried));
}
