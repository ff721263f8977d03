//! What is made of a plan, before and after it is taken up.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sealway_route::testing;
use sealway_v2ray::trojan::Key;

use super::*;
use crate::settings::{NewAccount, NewUser};

#[test]
fn limits_change_when_a_plan_is_taken_up() {
    let limited = |inbound: &str, policy: &str| {
        Settings::of_text(&format!(
            r#"{{"inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "trojan", {inbound}
            "settings": {{"clients": [{{"email": "a", "password": "a"}}, {{"email": "b", "password": "b"}}]}}}}],
            "outbounds": [{{"protocol": "freedom"}}], "policy": {{"levels": {{"1": {{"maxConnections": 1}}{policy}}}}}}}"#
        ))
    };
    let all = r#", "0": {"maxConnections": 1}"#;
    let stats = Arc::default();
    let engine = Engine::new(&limited("", ""), &stats).unwrap();
    let is_limited = |email| {
        let person = Stats::people(&stats).find(email).unwrap();
        person.budget().is_some()
    };
    let add = |email: &str, password: &str, level| {
        let user = NewUser {
            email: email.into(),
            level,
            account: NewAccount::Trojan(Key::of_password(password)),
        };
        engine.inbound("in").unwrap().users().unwrap().add(&user)
    };
    // Who is not added is not whom the limits are for.
    assert!(add("A", "new", 1).is_err() && add("c", "b", 1).is_err());
    assert!(!is_limited("a"));
    drop(engine.prepare(Plan::of(limited("", all)), How::Strict).unwrap());
    assert!(!is_limited("a"));
    let next = engine.prepare(Plan::of(limited("", all)), How::Strict).unwrap();
    add("c", "c", 0).unwrap();
    assert!(!is_limited("a") && !is_limited("c"));
    engine.commit(next, false);
    assert!(is_limited("a") && is_limited("b") && is_limited("c"));
}

/// The rules of an API that somebody has left behind.
#[tokio::test]
async fn a_rule_waits_for_its_inbound_and_then_leads_nowhere() {
    let rule = r#"{"inboundTag": ["api"], "outboundTag": "gone"}"#;
    let text = format!(r#"{{"outbounds": [{{"protocol": "freedom"}}], "routing": {{"rules": [{rule}]}}}}"#);
    let idle = Settings::of_text(&text);
    let engine = Engine::new(&idle, &Arc::default()).unwrap();
    let to = Destination::tcp(Address::Ipv4(Ipv4Addr::LOCALHOST), 1);
    let refused = engine.roads().routed(&"api".into(), &to).await.err().unwrap();
    assert!(refused.to_string().contains("is not there"), "{refused}");
    let inbound = r#"{"tag": "api", "listen": "127.0.0.1", "port": 0, "protocol": "socks"}"#;
    let text = format!(r#"{{"inbounds": [{inbound}], "outbounds": [{{"protocol": "freedom"}}]}}"#);
    let settings = Settings {
        rules: idle.rules,
        ..Settings::of_text(&text)
    };
    let error = engine
        .prepare(Plan::of(settings), How::Strict)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("routing.rules[0].outboundTag: there is no outbound"),
        "{error}"
    );
}

/// Settings whose rules name these lists, of files in the folder.
fn naming(folder: &Path, lists: &[&str]) -> Settings {
    let lists: Vec<_> = lists.iter().map(|list| format!(r#""ext:{list}""#)).collect();
    let text = format!(
        r#"{{"outbounds": [{{"tag": "o", "protocol": "freedom"}}],
            "routing": {{"rules": [{{"domain": ["x.test", {}], "outboundTag": "o"}}]}}}}"#,
        lists.join(", ")
    );
    Settings {
        geo_folders: vec![folder.to_owned()],
        ..Settings::of_text(&text)
    }
}

#[test]
fn only_lists_that_a_plan_names_are_read_again_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.dat", "b.dat"] {
        fs::write(folder.path().join(name), testing::names("X", &["x.example"])).unwrap();
    }
    let settings = |lists: &[&str]| naming(folder.path(), lists);
    let engine = Engine::new(&settings(&["a.dat:x"]), &Arc::default()).unwrap();
    let known = || engine.list_sizes().into_iter().map(|one| one.name).collect::<Vec<_>>();
    let prepare = |lists: &[&str]| engine.prepare(Plan::of(settings(lists)), How::Strict);
    // What was read for a plan that fails is let go of.
    assert!(prepare(&["a.dat:x", "b.dat:x", "none.dat:x"]).is_err());
    assert_eq!(known(), ["ext:a.dat:x"]);
    fs::remove_file(folder.path().join("a.dat")).unwrap();
    assert!(prepare(&["a.dat:x"]).is_err());
    engine.commit(prepare(&["b.dat:x"]).unwrap(), false);
    assert_eq!(known(), ["ext:b.dat:x"]);
}

#[test]
fn others_look_while_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let engine = Engine::empty(&Arc::default(), Arc::default()).unwrap();
    let plan = Plan::of(Settings::of_text(&format!(
        r#"{{"outbounds": [{{"protocol": "freedom"}}], "inbounds": [{{"listen": "127.0.0.1", "port": 0, "protocol": "trojan",
            "streamSettings": {{"security": "tls", "tlsSettings": {{"certificates": [{{"certificateFile": {pipe:?}, "keyFile": {pipe:?}}}]}}}},
            "settings": {{"clients": [{{"password": "p"}}]}}}}]}}"#
    )));
    let (told, looked) = mpsc::channel();
    std::thread::scope(|threads| {
        let made = threads.spawn(|| engine.prepare(plan, How::Strict).is_err());
        // Opens when the file is read, which waits for its end.
        let writer = fs::File::create(&pipe).unwrap();
        threads.spawn(|| told.send(engine.listens()));
        let looked = looked.recv_timeout(Duration::from_secs(5));
        fs::remove_file(&pipe).unwrap();
        drop(writer);
        assert!(made.join().unwrap());
        assert_eq!(looked, Ok(false));
    });
}
