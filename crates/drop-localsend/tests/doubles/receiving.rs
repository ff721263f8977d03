//! Doubles send, we receive.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sealway_drop_localsend::fingerprint::Fingerprint;
use sealway_drop_transfer::dest::Conflict;
use serde_json::json;

use crate::support::http::Wire;
use crate::support::sender::{CANCEL, PREPARE, Sender};
use crate::support::{End, Said, Wishes, YES, content, receiver};

fn modified(path: &Path) -> Duration {
    fs::metadata(path)
        .unwrap()
        .modified()
        .unwrap()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_send_a_thousand_files_in_folders() {
    for version in Sender::BOTH {
        sends_a_thousand(version).await;
    }
}

async fn sends_a_thousand(version: fn(&End) -> Sender) {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = version(&end);
    let names: Vec<_> = (0..1000)
        .map(|at| format!("假期 👩‍👩‍👧/folder {}/图片 {at}.jpg", at % 30))
        .collect();
    let contents: Vec<_> = (0..1000).map(|at| content(at * 7, at as u8)).collect();
    let files: Vec<_> = names
        .iter()
        .map(String::as_str)
        .zip(contents.iter().map(Vec::as_slice))
        .collect();
    let wanted = sender.accepted(&sender.offer(&files));
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (sender, wanted, contents) = (&sender, &wanted, &contents);
            scope.spawn(move || {
                let mut wire = sender.connect();
                for at in (half..1000).step_by(2) {
                    assert_eq!(sender.send(&mut wire, wanted, &at.to_string(), &contents[at]), 200);
                }
            });
        }
    });
    let Said::Asked(peer, offer) = end.next() else { panic!() };
    assert_eq!((offer.files, offer.others), (1000, 31));
    assert_eq!(
        (peer.alias.as_str(), peer.fingerprint),
        ("Nice Orange", sender.shows.then(|| sender.card.fingerprint()))
    );
    let summary = end.end().unwrap();
    assert_eq!((summary.placed, summary.failed), (1000, 0));
    for (name, content) in &files {
        let path = out.path().join(name);
        assert_eq!(fs::read(&path).unwrap(), *content, "{name}");
        assert_eq!(modified(&path), Duration::from_millis(1_785_579_630_456), "{name}");
    }
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1, "nothing else is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_of_117_looks_first_and_shows_no_certificate() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = Sender::v117(&end);
    let own = end.running.node.fingerprint().to_string();
    for version in ["v1", "v2"] {
        let info = format!("/api/localsend/{version}/info");
        let answer = sender
            .connect()
            .ask("GET", &format!("{info}?fingerprint={}", sender.card.fingerprint()), b"");
        assert_eq!(
            (answer.status(), answer.json()["fingerprint"].as_str()),
            (200, Some(own.as_str()))
        );
        assert!(answer.json().get("port").is_none());
        assert_eq!(
            sender
                .connect()
                .ask("GET", &format!("{info}?fingerprint={own}"), b"")
                .status(),
            412
        );
    }
    let big = content(3 << 20, 9);
    let wanted = sender.accepted(&sender.offer(&[("big", &big), ("empty", b"")]));
    let mut wire = sender.connect();
    assert_eq!(sender.send(&mut wire, &wanted, "0", &big), 200);
    assert_eq!(sender.send(&mut wire, &wanted, "1", b""), 200);
    let Said::Asked(peer, _) = end.next() else { panic!() };
    assert_eq!(peer.fingerprint, None, "nothing shows who it is");
    assert_eq!(end.end().unwrap().placed, 2);
    assert_eq!(fs::read(out.path().join("big")).unwrap(), big);
    assert_eq!(sender.connect().ask("GET", "/", b"").status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_slot_and_whom_it_belongs_to() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let (ann, bob) = (Sender::to(&end), Sender::to(&end));
    let offer = ann.offer(&[("a", b"aaaa"), ("b", b"bb")]);
    let wanted = ann.accepted(&offer);
    assert_eq!(bob.prepare(&bob.offer(&[("c", b"")])).status(), 409);
    let mut wire = ann.connect();
    assert_eq!(
        bob.send(&mut bob.connect(), &wanted, "0", b"aaaa"),
        403,
        "another certificate"
    );
    assert_eq!(
        wire.ask("POST", "/api/localsend/v2/upload?sessionId=x", b"").status(),
        400
    );
    let target = |token: &str| {
        format!(
            "/api/localsend/v2/upload?sessionId={}&fileId=0&token={token}",
            wanted.session
        )
    };
    assert_eq!(ann.connect().ask_in_chunks(&target("0000"), b"aaaa").status(), 403);
    assert_eq!(
        ann.send(&mut ann.connect(), &wanted, "0", b"aaaaa"),
        500,
        "more than announced"
    );
    assert_eq!(ann.send(&mut wire, &wanted, "0", b"aaa"), 500, "less than announced");
    assert!(!out.path().join("a").exists());
    assert_eq!(ann.send(&mut wire, &wanted, "0", b"aaaa"), 200, "it may be sent again");
    assert_eq!(ann.send(&mut ann.connect(), &wanted, "0", b"aaaa"), 403, "it is there");
    bob.cancel(Some(&wanted));
    assert_eq!(
        bob.prepare(&bob.offer(&[("c", b"")])).status(),
        409,
        "that was not his to cancel"
    );
    assert_eq!(ann.cancel(Some(&wanted)), 200);
    assert!(end.end().unwrap_err().contains("cancelled"));
    assert_eq!(ann.send(&mut wire, &wanted, "1", b"bb"), 403);
    assert_eq!(fs::read(out.path().join("a")).unwrap(), b"aaaa");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1, "nothing unfinished stays");
    let next = bob.accepted(&bob.offer(&[("c", b"c")]));
    assert_eq!(bob.send(&mut bob.connect(), &next, "0", b"c"), 200);
    assert_eq!(end.end().unwrap().placed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_not_sent_again() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = Sender::to(&end);
    let both: [(&str, &[u8]); 2] = [("d/a", b"aaaa"), ("d/b", b"bb")];
    let wanted = sender.accepted(&sender.offer(&both[..1]));
    assert_eq!(sender.send(&mut sender.connect(), &wanted, "0", b"aaaa"), 200);
    end.end().unwrap();
    let wanted = sender.accepted(&sender.offer(&both));
    assert_eq!(wanted.tokens.as_object().unwrap().keys().collect::<Vec<_>>(), ["1"]);
    assert_eq!(sender.send(&mut sender.connect(), &wanted, "1", b"bb"), 200);
    assert_eq!(end.end().unwrap().placed, 2);
    assert_eq!(sender.prepare(&sender.offer(&both)).status(), 204, "all of it is there");
    assert_eq!(end.end().unwrap().placed, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_names_follow_the_policy() {
    for (conflict, expected, copy) in [
        (Conflict::Rename, "old", true),
        (Conflict::Overwrite, "new", false),
        (Conflict::Skip, "old", false),
    ] {
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join("a.txt"), "old").unwrap();
        let wishes = Wishes { conflict, ..YES };
        let end = receiver(out.path(), wishes).await;
        let sender = Sender::to(&end);
        let offer = sender.offer(&[("a.txt", b"new")]);
        if conflict == Conflict::Skip {
            assert_eq!(sender.prepare(&offer).status(), 204);
        } else {
            let wanted = sender.accepted(&offer);
            assert_eq!(sender.send(&mut sender.connect(), &wanted, "0", b"new"), 200);
        }
        end.end().unwrap();
        assert_eq!(
            fs::read_to_string(out.path().join("a.txt")).unwrap(),
            expected,
            "{conflict:?}"
        );
        assert_eq!(out.path().join("a (1).txt").exists(), copy, "{conflict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_hash_is_told_and_forgiven_twice() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = Sender::to(&end);
    let right = content(300_000, 1);
    let mut offer = sender.offer(&[("a", &right), ("b", b"b")]);
    offer["files"]["0"]["sha256"] = json!(Fingerprint::of(&right).to_string().to_lowercase());
    offer["files"]["1"]["sha256"] = json!(Fingerprint::of(b"other").to_string());
    let wanted = sender.accepted(&offer);
    let mut wire = sender.connect();
    assert_eq!(sender.send(&mut wire, &wanted, "0", &content(300_000, 2)), 422);
    assert_eq!(sender.send(&mut wire, &wanted, "0", &right), 200);
    for expected in [422, 422, 422, 403] {
        assert_eq!(sender.send(&mut sender.connect(), &wanted, "1", b"b"), expected);
    }
    let summary = end.end().unwrap();
    assert_eq!((summary.placed, summary.failed), (1, 1));
    assert_eq!(fs::read(out.path().join("a")).unwrap(), right);
    assert!(!out.path().join("b").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_cancel_in_the_middle_of_a_file() {
    for version in Sender::BOTH {
        let out = tempfile::tempdir().unwrap();
        let end = receiver(out.path(), YES).await;
        let sender = version(&end);
        let big = content(1 << 20, 1);
        let wanted = sender.accepted(&sender.offer(&[("a", b"a"), ("big", &big)]));
        assert_eq!(sender.send(&mut sender.connect(), &wanted, "0", b"a"), 200);
        let (mut wire, target) = (sender.connect(), wanted.target("1"));
        let head = "Host: x\r\nContent-Length: 1048576\r\nExpect: 100-continue";
        wire.write(format!("POST {target} HTTP/1.1\r\n{head}\r\n\r\n").as_bytes())
            .unwrap();
        assert_eq!(wire.read().unwrap().status(), 100, "it has begun");
        wire.write(&big[..300_000]).unwrap();
        assert_eq!(sender.cancel(Some(&wanted)), 200);
        assert!(end.end().unwrap_err().contains("cancelled"));
        let there: Vec<_> = fs::read_dir(out.path())
            .unwrap()
            .map(|one| one.unwrap().file_name())
            .collect();
        assert_eq!(there, ["a"], "nothing unfinished stays");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_with_whoever_asked() {
    for version in Sender::BOTH {
        ends_a_question(version).await;
    }
}

async fn ends_a_question(version: fn(&End) -> Sender) {
    let out = tempfile::tempdir().unwrap();
    let wishes = Wishes { answers: false, ..YES };
    let end = receiver(out.path(), wishes).await;
    let sender = version(&end);
    let offer = sender.offer(&[("a", b"x")]).to_string();
    let ask = || {
        let mut wire = sender.connect();
        let head = format!(
            "POST {PREPARE} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{offer}",
            offer.len()
        );
        wire.write(head.as_bytes()).unwrap();
        assert!(matches!(end.next(), Said::Asked(..)));
        wire
    };
    // By a cancel without a session, which nobody knows yet.
    let mut wire = ask();
    assert_eq!(Sender::to(&end).cancel(None), 200, "not theirs");
    assert_eq!(sender.cancel(None), 200);
    assert!(matches!(end.next(), Said::LetGo));
    assert_eq!(wire.read().unwrap().status(), 403);
    // And by going away.
    let wire = ask();
    wire.tcp.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(matches!(end.next(), Said::LetGo));
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_sends_one_file_after_another_and_listens_nowhere() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = Sender::v117(&end);
    let mut offer = sender.offer(&[("a", b"a"), ("b", b"b")]);
    offer["info"] = json!({"alias": "Firefox", "version": "2.1", "deviceType": "web",
        "fingerprint": "web-00112233445566778899aabbccddeeff", "port": 0, "protocol": "https"});
    let wanted = sender.accepted(&offer);
    let mut wire = sender.connect();
    assert_eq!(sender.send(&mut wire, &wanted, "0", b"a"), 200);
    assert_eq!(sender.send(&mut wire, &wanted, "1", b"b"), 200);
    assert_eq!(end.end().unwrap().placed, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_shown_and_writes_nothing() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = Sender::to(&end);
    let mut offer = sender.offer(&[("x.txt", b"hi")]);
    offer["files"]["0"]["fileType"] = json!("text/plain");
    offer["files"]["0"]["preview"] = json!("hi there");
    assert_eq!(sender.prepare(&offer).status(), 204);
    let Said::Message(peer, text) = end.next() else {
        panic!()
    };
    assert_eq!((peer.alias.as_str(), text.as_str()), ("Nice Orange", "hi there"));
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_stops_tells_the_sender() {
    for version in Sender::BOTH {
        is_told(version).await;
    }
}

async fn is_told(version: fn(&End) -> Sender) {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = version(&end);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut offer = sender.offer(&[("a", b"aaaa")]);
    offer["info"]["port"] = json!(listener.local_addr().unwrap().port());
    let config = sender.card.server(sender.shows);
    let heard = std::thread::spawn(move || {
        let mut wire = Wire::accept(listener.accept().unwrap().0, Some(config)).unwrap();
        let request = wire.read().unwrap();
        wire.answer(200, "");
        request.line
    });
    let wanted = sender.accepted(&offer);
    let End { running, said, .. } = end;
    running.shut_down().await;
    assert_eq!(
        heard.join().unwrap(),
        format!("POST {CANCEL}?sessionId={} HTTP/1.1", wanted.session)
    );
    assert!(said.try_iter().any(|said| matches!(said, Said::Ended(Err(_)))));
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}
