use super::*;
use crate::config::scalar::Part;
use crate::config::transport::StreamSettings;
use crate::json;
use crate::problem::{Problem, Severity};

/// Of the vectors: the private key 01..20 and its public key.
const PRIVATE: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";
const PUBLIC: &str = "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw";

fn read(text: &str, listens: bool) -> (Option<Reality>, Vec<Problem>) {
    let files = ["c.json"];
    let mut cx = Cx::new(StreamSettings::TABLE, &files, false, &|_| None);
    cx.listens = listens;
    let value = json::read(text.as_bytes(), 0).expect("JSON").value;
    let Part(read) = Part::<Reality>::decode(value, &mut cx).expect("a part");
    (read, cx.finish())
}

/// What an inbound needs, with other keys in place of these or beside them.
fn server(change: &[(&str, &str)]) -> String {
    let mut keys = vec![
        ("target".to_owned(), "\"a.test:443\"".to_owned()),
        ("serverNames".to_owned(), "[\"a.test\"]".to_owned()),
        ("privateKey".to_owned(), format!("\"{PRIVATE}\"")),
        ("shortIds".to_owned(), "[\"0123456789abcdef\", \"\", \"aa\"]".to_owned()),
    ];
    with(&mut keys, change)
}

fn client(change: &[(&str, &str)]) -> String {
    with(&mut vec![("publicKey".to_owned(), format!("\"{PUBLIC}\""))], change)
}

fn with(keys: &mut Vec<(String, String)>, change: &[(&str, &str)]) -> String {
    for (key, value) in change {
        keys.retain(|(known, _)| known != key);
        if !value.is_empty() {
            keys.push(((*key).to_owned(), (*value).to_owned()));
        }
    }
    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    format!("{{\n{}\n}}", keys.join(",\n"))
}

#[track_caller]
fn good_server(change: &[(&str, &str)]) -> ServerReality {
    match read(&server(change), true) {
        (Some(Reality::Server(server)), problems) if problems.is_empty() => *server,
        other => panic!("{change:?}: {other:?}"),
    }
}

#[track_caller]
fn good_client(change: &[(&str, &str)]) -> ClientReality {
    match read(&client(change), false) {
        (Some(Reality::Client(client)), problems) if problems.is_empty() => *client,
        other => panic!("{change:?}: {other:?}"),
    }
}

#[test]
fn a_server() {
    let plain = good_server(&[]);
    assert_eq!(plain.private_key.0[..2], [1, 2]);
    assert_eq!(
        plain.short_ids,
        [
            [1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef],
            [0; 8],
            [0xaa, 0, 0, 0, 0, 0, 0, 0]
        ]
    );
    assert_eq!(plain.max_time_diff, Some(std::time::Duration::from_secs(120)));
    assert_eq!((plain.min_client_version, plain.max_client_version), (None, None));
    assert_eq!((plain.limit_upload, plain.limit_download), (None, None));
    assert!(!format!("{plain:?}").contains("1, 2, 3"), "a private key is shown");

    let limit = "{\"afterBytes\": 10, \"bytesPerSec\": 20, \"burstBytesPerSec\": 5}";
    let seed = format!("\"{PUBLIC}\"");
    let set = good_server(&[
        ("target", "8443"),
        ("xver", "2"),
        ("serverNames", "[\"A.test\", \"\"]"),
        ("minClientVer", "\"1.8\""),
        ("maxClientVer", "\"26.3.255\""),
        ("maxTimeDiff", "0"),
        ("mldsa65Seed", &seed),
        ("limitFallbackUpload", limit),
        ("limitFallbackDownload", "{\"afterBytes\": 10}"),
        ("show", "true"),
    ]);
    assert_eq!(set.target, crate::config::FallbackDial::Local(8443));
    assert_eq!(set.xver, 2);
    assert_eq!(set.server_names, ["A.test", ""]);
    assert_eq!(set.min_client_version, Some([1, 8, 0]));
    assert_eq!(set.max_client_version, Some([26, 3, 255]));
    assert_eq!(set.max_time_diff, None);
    assert!(set.mldsa65_seed.is_some());
    let burst = ThrottledAfter {
        after: 10,
        rate: 20,
        burst: 20,
    };
    assert_eq!((set.limit_upload, set.limit_download), (Some(burst), None));
    let diff = good_server(&[("maxTimeDiff", "60000")]).max_time_diff;
    assert_eq!(diff, Some(std::time::Duration::from_secs(60)));
    assert!(matches!(
        good_server(&[("target", ""), ("dest", "\"@name\"")]).target,
        crate::config::FallbackDial::Unix(_)
    ));
}

#[test]
fn a_client() {
    let plain = good_client(&[]);
    assert_eq!(plain.public_key[..2], [7, 0xa3]);
    assert_eq!((plain.fingerprint.as_str(), plain.spider_x.as_str()), ("chrome", "/"));
    assert_eq!((plain.short_id, plain.server_name), ([0; 8], String::new()));
    let verify = format!("\"{}\"", URL_SAFE_NO_PAD.encode([7; 1952]));
    let password = format!("\"{PUBLIC}\"");
    let set = good_client(&[
        ("publicKey", ""),
        ("password", &password),
        ("serverName", "\"a.test\""),
        ("shortId", "\"0aff00\""),
        ("fingerprint", "\"Chrome\""),
        ("mldsa65Verify", &verify),
        ("spiderX", "\"/a?p=1-2\""),
    ]);
    assert_eq!(set.short_id, [10, 255, 0, 0, 0, 0, 0, 0]);
    assert_eq!(set.short_id_text(), "0aff00");
    assert_eq!(set.mldsa65_verify.as_deref(), Some(&[7; 1952]));
    assert_eq!(set.fingerprint, "chrome");
}

/// What is wrong about one key: severity, line, key, part of the text.
#[track_caller]
fn told(text: &str, listens: bool, severity: Severity, path: &str, said: &str) {
    let (read, problems) = read(text, listens);
    assert_eq!(read.is_none(), severity == Severity::Error, "{text}");
    let found = problems.iter().find(|problem| problem.path == path);
    let found = found.unwrap_or_else(|| panic!("{path}: {problems:?}"));
    assert_eq!(found.severity, severity, "{found:?}");
    assert!(found.text.contains(said), "{found:?}");
    // The object begins on the first line, its keys stand on those below.
    assert_eq!(found.line > 1, !path.is_empty(), "{found:?}");
    assert!(found.column > 0, "{found:?}");
    assert!(
        !found.text.contains(PRIVATE) && !found.hint.contains(PRIVATE),
        "a key is shown"
    );
}

#[test]
fn what_is_wrong_with_a_server_is_told_with_its_place() {
    let own = format!("\"{PRIVATE}\"");
    let long = format!("\"{}\"", URL_SAFE_NO_PAD.encode([1; 33]));
    for (change, path, said) in [
        (("target", ""), "", "`target` is missing"),
        (("target", "\"a.test\""), "target", "ends in no port"),
        (("target", "\"a.test:0\""), "target", "ends in no port"),
        (("type", "\"quic\""), "target", "no type of target"),
        (("xver", "3"), "xver", "no version 3"),
        (("serverNames", "[]"), "", "`serverNames` is missing"),
        (("serverNames", "[\"a\", \"*.a.test\"]"), "serverNames[1]", "has a *"),
        (("serverNames", "[\"a b\"]"), "serverNames[0]", "is no name"),
        (("privateKey", ""), "", "`privateKey` is missing"),
        (
            ("privateKey", "\"a+/=\""),
            "privateKey",
            "not base64 of the kind for URLs",
        ),
        (("privateKey", &long), "privateKey", "has 33 bytes, and 32 are needed"),
        (("shortIds", "[]"), "", "`shortIds` is missing"),
        (
            ("shortIds", "[\"\", \"abc\"]"),
            "shortIds[1]",
            "an odd number of digits",
        ),
        (("shortIds", "[\"0123456789abcdef00\"]"), "shortIds[0]", "more than 16"),
        (("shortIds", "[\"zz\"]"), "shortIds[0]", "not hexadecimal"),
        (("shortIds", "[\"é\"]"), "shortIds[0]", "not hexadecimal"),
        (("minClientVer", "\"1.2.3.4\""), "minClientVer", "no version"),
        (("minClientVer", "\"1.256.0\""), "minClientVer", "no version"),
        (("maxClientVer", "\"1..0\""), "maxClientVer", "no version"),
        (("maxClientVer", "\"+1\""), "maxClientVer", "no version"),
        (("maxTimeDiff", "-1"), "maxTimeDiff", "not a whole number"),
        (("mldsa65Seed", "\"AAAA\""), "mldsa65Seed", "has 3 bytes"),
        (("mldsa65Seed", &own), "mldsa65Seed", "the same as `privateKey`"),
        (
            ("limitFallbackUpload", "{\"bytesPerSec\": -1}"),
            "limitFallbackUpload.bytesPerSec",
            "not a whole number",
        ),
    ] {
        told(&server(&[change]), true, Severity::Error, path, said);
    }
    let versions = [("minClientVer", "\"2.0.0\""), ("maxClientVer", "\"1.9.9\"")];
    told(
        &server(&versions),
        true,
        Severity::Error,
        "maxClientVer",
        "no client can have",
    );
}

#[test]
fn what_is_wrong_with_a_client_is_told_with_its_place() {
    for (change, path, said) in [
        (("publicKey", ""), "", "`publicKey` is missing"),
        (("publicKey", "\"AAAA\""), "publicKey", "has 3 bytes"),
        (("shortId", "\"0\""), "shortId", "an odd number"),
        (("shortId", "\"0123456789abcdef00\""), "shortId", "more than 16"),
        (("mldsa65Verify", "\"AAAA\""), "mldsa65Verify", "1952 are needed"),
        (("fingerprint", "\"unsafe\""), "fingerprint", "gives REALITY away"),
        (("fingerprint", "\"HelloGolang\""), "fingerprint", "gives REALITY away"),
        (
            ("fingerprint", "\"netscape\""),
            "fingerprint",
            "no browser of this name",
        ),
        (("spiderX", "\"a\""), "spiderX", "is no path"),
        (("spiderX", "\"/ HTTP/1.1\""), "spiderX", "is no path"),
    ] {
        told(&client(&[change]), false, Severity::Error, path, said);
    }
}

#[test]
fn what_is_odd_is_warned_about() {
    let warned = |text: &str, listens, path, said| told(text, listens, Severity::Warning, path, said);
    for name in [
        "www.Apple.com",
        "icloud.com",
        "a.microsoft.com",
        "a.cn",
        "a.IR",
        "a.ru.",
    ] {
        let quoted = format!("\"{name}\"");
        warned(
            &server(&[("serverNames", &format!("[{quoted}]"))]),
            true,
            "serverNames",
            "known not to work",
        );
        warned(
            &client(&[("serverName", &quoted)]),
            false,
            "serverName",
            "known not to work",
        );
        let target = format!("\"{name}:443\"");
        warned(&server(&[("target", &target)]), true, "target", "known not to work");
    }
    warned(
        &server(&[("masterKeyLog", "\"/k\"")]),
        true,
        "masterKeyLog",
        "session secrets",
    );
    warned(
        &client(&[("masterKeyLog", "\"/k\"")]),
        false,
        "masterKeyLog",
        "session secrets",
    );
    warned(
        &client(&[("fingerprint", "\"firefox\"")]),
        false,
        "fingerprint",
        "not imitated",
    );
    warned(
        &client(&[("fingerprint", "\"hellochrome_133\"")]),
        false,
        "fingerprint",
        "not imitated",
    );
    for key in [
        "serverName",
        "fingerprint",
        "publicKey",
        "shortId",
        "mldsa65Verify",
        "spiderX",
    ] {
        warned(&server(&[(key, "\"x\"")]), true, key, "no effect on an inbound");
    }
    for (key, value) in [
        ("target", "1"),
        ("type", "\"tcp\""),
        ("xver", "1"),
        ("serverNames", "\"a\""),
        ("privateKey", "\"k\""),
        ("shortIds", "\"a\""),
        ("minClientVer", "\"a\""),
        ("maxClientVer", "\"a\""),
        ("maxTimeDiff", "1"),
        ("mldsa65Seed", "\"a\""),
        ("limitFallbackUpload", "{}"),
        ("limitFallbackDownload", "{}"),
    ] {
        warned(&client(&[(key, value)]), false, key, "no effect on an outbound");
    }
}
