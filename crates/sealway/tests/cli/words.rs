//! `sealway uuid`, `sealway x25519`, `sealway mldsa65` and `sealway link`.

use std::fs;

use serde_json::Value;

use crate::common::{given, private_folder, run, sealway, words, workspace};

const LINK: &str = "vless://b831381d-6324-4d53-ad4f-8cda48b30811@proxy.example.org:443\
    ?type=ws&security=tls&encryption=none&alpn=http%2F1.1&host=proxy.example.org&path=%2Fchat&sni=proxy.example.org#a%20name";

fn answer(arguments: &[&str]) -> String {
    run(arguments).answer()
}

/// What a link on standard input becomes.
fn to_config(link: &str, more: &[&str]) -> String {
    let mut command = sealway(&[&["link", "to-config", "-"], more].concat());
    given(&mut command, &format!("{link}\n")).answer()
}

fn refused(arguments: &[&str], words: &[&str]) {
    run(arguments).refuses(2, words);
}

#[test]
fn ids_are_random_or_follow_from_a_text() {
    let (one, two) = (answer(&["uuid"]), answer(&["uuid"]));
    assert_ne!(one, two);
    for id in [&one, &two] {
        assert_eq!(id.len(), 37, "{id}");
        assert_eq!((&id[14..15], &id[8..9]), ("4", "-"), "{id}");
        assert!("89ab".contains(&id[19..20]), "{id}");
    }
    // The one that other programs of the family make of this text.
    assert_eq!(answer(&["uuid", "example"]), "feb54431-301b-52bb-a6dd-e1e93e81bb9e\n");
    assert_eq!(answer(&["uuid", "-i", "example"]), answer(&["uuid", "example"]));
    assert_eq!(answer(&["uuid", "-i", "-example"]), answer(&["uuid", "--", "-example"]));
    assert_eq!(answer(&["uuid", one.trim_end()]), one);
    refused(&["uuid", &"x".repeat(31)], &["no id can be made", "hint: "]);
    refused(&["uuid", ""], &["no id can be made"]);
}

/// What Xray answers to the same words, if it is here.
fn xray(arguments: &[&str]) -> Option<String> {
    let output = std::process::Command::new("xray").args(arguments).output().ok()?;
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn keys_are_those_of_xray() {
    const PRIVATE: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";
    let given = ["x25519", "-i", PRIVATE];
    let told = answer(&given);
    assert_eq!(
        told,
        "PrivateKey: AAIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eH2A\n\
         Password (PublicKey): B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw\n\
         Hash32: IKbwxvNlF31mvkor2f21noInAbW8wIXUOrkbv0JIoSI\n"
    );
    let standard = answer(&["x25519", "--std-encoding", "-i", &format!("{PRIVATE}=")]);
    let public = "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw=\n";
    assert!(standard.contains(public), "{standard}");
    let verify = answer(&["mldsa65", "-i", PRIVATE]);
    let lines: Vec<&str> = verify.lines().collect();
    assert_eq!(lines[0], format!("Seed: {PRIVATE}"));
    assert!(
        lines[1].starts_with("Verify: sOrXgK8nt_l0UyzYW_P4YBC1cYJsn6uogYOuJ7l0YwkmnTWTxwAa"),
        "{verify}"
    );
    assert_eq!((lines.len(), lines[1].len()), (2, 8 + 2603));

    // A key may begin with a dash in the base64 of URLs.
    for (word, label) in [("x25519", "PrivateKey"), ("mldsa65", "Seed")] {
        let dashed = "-O2S0rLDbRG-M9GJmYi1suinFLFo6KfoTUscSBY8fmo";
        let told = answer(&[word, "-i", dashed]);
        assert!(told.starts_with(&format!("{label}: {dashed}\n")), "{told}");
        assert_eq!(answer(&[word, &format!("-i={dashed}")]), told);
    }
    for words in [&["x25519"][..], &["mldsa65"]] {
        let (one, two) = (answer(words), answer(words));
        assert_ne!(one, two);
        // The public part follows from the private one.
        let private = one.lines().next().and_then(|line| line.split_once(": ")).unwrap().1;
        assert_eq!(answer(&[words, &["-i", private]].concat()), one);
    }
    for (line, said) in [
        ("x25519 -i AAAA", "the private key has 3 bytes, and 32 are needed"),
        ("mldsa65 -i AAAA", "the seed has 3 bytes"),
        ("mldsa65 -i *", "the seed is not base64"),
    ] {
        refused(&words(line), &[said]);
    }
    match (xray(&given), xray(&["mldsa65", "-i", PRIVATE])) {
        (Some(keys), Some(seeds)) => assert_eq!((keys, seeds), (told, verify)),
        _ => println!("skipped: no xray here to compare with"),
    }
}

#[test]
fn a_link_becomes_a_configuration_and_a_link_again() {
    let folder = private_folder();
    let text = to_config(LINK, &[]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["inbounds"][0]["port"], 1080);
    assert_eq!(value["outbounds"][0]["tag"], "a name");
    let file = folder.path().join("client.json");
    fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(answer(&["run", "-test", "-strict", "-c", file]), "Configuration OK.\n");
    assert_eq!(answer(&["link", "from-config", file]).trim_end(), LINK);
    let from = |tag| ["link", "from-config", file, "--tag", tag];
    assert_eq!(answer(&from("a name")).trim_end(), LINK);
    refused(&from("another"), &["another", "a name"]);
    let port: Value = serde_json::from_str(&to_config(LINK, &["--port", "2080"])).unwrap();
    assert_eq!(port["inbounds"][0]["port"], 2080);
    let outbound: Value = serde_json::from_str(&to_config(LINK, &["--outbound"])).unwrap();
    assert_eq!(outbound["outbounds"], value["outbounds"]);
    assert_eq!(outbound.get("inbounds"), None);
}

#[test]
fn a_link_on_the_command_line_is_warned_about() {
    let ran = run(&["link", "to-config", LINK]);
    assert_eq!((ran.code, &ran.stdout), (0, &to_config(LINK, &[])), "{ran:?}");
    assert!(
        ran.stderr.starts_with("warning: ") && ran.stderr.contains("\n  hint: sealway link to-config - "),
        "{ran:?}"
    );
}

#[test]
fn warnings_about_links_have_no_empty_place() {
    let open = "vless://b831381d-6324-4d53-ad4f-8cda48b30811@a.example:443?type=tcp";
    let ran = given(&mut sealway(&["link", "to-config", "-"]), open);
    ran.says(0, &[]);
    assert!(ran.stderr.starts_with("warning: VLESS does not encrypt"), "{ran:?}");
}

#[test]
fn every_client_under_examples_goes_to_a_link_and_back() {
    for entry in fs::read_dir(workspace().join("examples")).unwrap() {
        let file = entry.unwrap().path().join("client.json");
        if !file.exists() {
            continue;
        }
        let file = file.to_str().unwrap();
        for form in [&[][..], &["--v2rayn"]] {
            let link = answer(&[&["link", "from-config", file], form].concat());
            let folder = private_folder();
            let back = folder.path().join("back.json");
            fs::write(&back, to_config(link.trim_end(), &[])).unwrap();
            let back = back.to_str().unwrap();
            assert_eq!(answer(&[&["link", "from-config", back], form].concat()), link, "{file}");
            let is_json = form.len() == 1 && link.starts_with("vmess://");
            assert_eq!(!link.contains('@'), is_json, "{link}");
        }
    }
}

#[test]
fn what_no_link_can_say_is_named() {
    let folder = private_folder();
    let file = folder.path().join("c.json");
    let text = r#"{"inbounds": [{"listen": "::1", "port": 1, "protocol": "socks"}], "outbounds": [
        {"tag": "up", "protocol": "vless", "sendThrough": "127.0.0.1", "settings": {"address": "a.example", "port": 1,
            "id": "b831381d-6324-4d53-ad4f-8cda48b30811", "encryption": "none"}},
        {"tag": "direct", "protocol": "freedom"}]}"#;
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let ran = run(&["link", "from-config", file]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 1), "{ran:?}");
    ran.says(0, &["\"up\"", "sendThrough"]);
    refused(&["link", "from-config", file, "--tag", "direct"], &["freedom"]);
}

#[test]
fn bad_links_and_files_are_refused() {
    given(&mut sealway(&["link", "to-config", "-"]), "vmess://\n").says(2, &["it is empty"]);
    let unknown = LINK.replace("type=ws", "type=kcp");
    for (link, said) in [
        ("https://example.org", &["vless:// or vmess://"][..]),
        ("tuic://x@a:1", &["not supported yet", "tuic"]),
        ("vless://b831381d-6324-4d53-ad4f-8cda48b30811@a:99999", &["the port"]),
        (&unknown, &["not supported yet"]),
    ] {
        refused(&["link", "to-config", link], said);
    }
    refused(&["link", "to-config", LINK, "--port", "0"], &["--port"]);
    refused(&["link", "from-config", "/no/such.json"], &["/no/such.json"]);
    refused(&["link"], &["to-config", "from-config"]);
    let server = workspace().join("examples/vless-tcp/server.json");
    let said = ["no outbound speaks", "hint: "];
    refused(&["link", "from-config", server.to_str().unwrap()], &said);
}
