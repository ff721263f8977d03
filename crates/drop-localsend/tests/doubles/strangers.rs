//! Who does us harm, or tries many times.

use std::fs;
use std::time::Duration;

use sealway_drop_localsend::favourites::{Favourite, Favourites};
use sealway_drop_localsend::message::Protocol;
use serde_json::{Value, json};

use crate::support::http::Card;
use crate::support::sender::{CANCEL, PREPARE, Sender};
use crate::support::{End, Said, Wishes, YES, receiver};

#[tokio::test(flavor = "multi_thread")]
async fn the_pin_is_asked_for_and_guessed_three_times() {
    for version in Sender::BOTH {
        guesses(version).await;
    }
}

async fn guesses(version: fn(&End) -> Sender) {
    let out = tempfile::tempdir().unwrap();
    let wishes = Wishes {
        pin: Some("123456"),
        ..YES
    };
    let end = receiver(out.path(), wishes).await;
    let sender = version(&end);
    let offer = sender.offer(&[("a", b"x")]).to_string();
    let ask = |query: &str| {
        sender
            .connect()
            .ask("POST", &format!("{PREPARE}{query}"), offer.as_bytes())
    };
    let answer = ask("");
    assert_eq!(
        (answer.status(), answer.json()["message"].as_str()),
        (401, Some("PIN required"))
    );
    let accepted = ask("?pin=123456");
    assert_eq!(accepted.status(), 200);
    assert_eq!(
        sender
            .connect()
            .ask(
                "POST",
                &format!("{CANCEL}?sessionId={}", accepted.json()["sessionId"].as_str().unwrap()),
                b""
            )
            .status(),
        200
    );
    for _ in 0..3 {
        let answer = ask("?pin=000000");
        assert_eq!(
            (answer.status(), answer.json()["message"].as_str()),
            (401, Some("Invalid PIN"))
        );
    }
    assert_eq!(ask("?pin=123456").status(), 429);
    // Another certificate from the same address is no other person.
    let other = Sender::to(&end);
    assert_eq!(
        other
            .connect()
            .ask("POST", &format!("{PREPARE}?pin=123456"), offer.as_bytes())
            .status(),
        429
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_27142_hostile_names_stay_inside() {
    let above = tempfile::tempdir().unwrap();
    let out = above.path().join("out");
    fs::create_dir(&out).unwrap();
    let end = receiver(&out, YES).await;
    let sender = Sender::to(&end);
    let absolute = above.path().join("absolute").to_str().unwrap().to_owned();
    let hostile = [
        "../up",
        "a/../../up",
        &absolute,
        "..\\up",
        "C:\\up",
        ".sealway-partial-0000000000000000/f0",
        "\u{1b}]0;x\u{7}.txt",
    ];
    let mut files: Vec<(&str, &[u8])> = hostile.iter().map(|name| (*name, &b"x"[..])).collect();
    files.push(("good", b"x"));
    let wanted = sender.accepted(&sender.offer(&files));
    assert_eq!(wanted.tokens.as_object().unwrap().len(), 2);
    for id in ["6", "7"] {
        assert_eq!(sender.send(&mut sender.connect(), &wanted, id, b"x"), 200);
    }
    let summary = end.end().unwrap();
    assert_eq!((summary.placed, summary.failed), (2, 6));
    // CVE-2026-25154: nothing of a name is obeyed where it is printed.
    assert!(!format!("{:?}", summary.notes).contains('\u{1b}'));
    let mut there: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    there.sort();
    assert_eq!(there, ["_]0;x_.txt", "good"]);
    assert_eq!(fs::read_dir(above.path()).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_25154_a_script_in_a_name_is_a_name() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = Sender::to(&end);
    let name = "<img src=x onerror=alert(1)>\u{1b}[31m.txt";
    let wanted = sender.accepted(&sender.offer(&[(name, b"x")]));
    let Said::Asked(_, offer) = end.next() else { panic!() };
    assert!(offer.shown(10, 80).iter().all(|name| !name.contains('\u{1b}')));
    assert_eq!(sender.send(&mut sender.connect(), &wanted, "0", b"x"), 200);
    end.end().unwrap();
    assert!(out.path().join("<img src=x onerror=alert(1)>_[31m.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_54792_a_device_is_who_its_certificate_is() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let (ann, eve) = (Sender::to(&end), Sender::to(&end));
    let register = |sender: &Sender, info: &Value| {
        sender
            .connect()
            .ask("POST", "/api/localsend/v2/register", info.to_string().as_bytes())
            .status()
    };
    // Whoever says another fingerprint than it has is answered, as in the app, and not taken down.
    assert_eq!(register(&eve, &ann.info()), 200);
    assert_eq!(end.running.node.devices().len(), 0);
    assert_eq!(register(&ann, &ann.info()), 200);
    assert_eq!(register(&Sender::v117(&end), &ann.info()), 200);
    let devices = end.running.node.devices();
    assert_eq!(
        (devices.len(), devices[0].fingerprint, devices[0].proved),
        (1, Some(ann.card.fingerprint()), true)
    );
    assert_eq!(register(&ann, &json!({"alias": 1})), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_the_name_of_a_remembered_device() {
    let (out, config) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let favourites = Favourites::at(&config.path().join("own"));
    let ann = Card::new();
    favourites
        .remember(Favourite {
            name: "nice orange".into(),
            fingerprint: ann.fingerprint(),
            host: "127.0.0.1".into(),
            port: 1,
            protocol: Protocol::Https,
            since: "2026-11-23".into(),
        })
        .unwrap();
    let wishes = Wishes {
        favourites: Some(favourites),
        ..YES
    };
    let end = receiver(out.path(), wishes).await;
    for eve in [Sender::to(&end), Sender::v117(&end)] {
        assert_eq!(eve.prepare(&eve.offer(&[("a", b"x")])).status(), 403);
        let Said::TurnedAway(why) = end.next() else { panic!() };
        assert!(why.contains("nice orange should have the certificate"), "{why}");
    }
    let ann = Sender {
        card: ann,
        ..Sender::to(&end)
    };
    let wanted = ann.accepted(&ann.offer(&[("a", b"x")]));
    let Said::Asked(peer, _) = end.next() else { panic!() };
    assert_eq!(peer.remembered.as_deref(), Some("nice orange"));
    assert_eq!(ann.send(&mut ann.connect(), &wanted, "0", b"x"), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_are_bounded() {
    let out = tempfile::tempdir().unwrap();
    let end = receiver(out.path(), YES).await;
    let sender = Sender::to(&end);
    // A body that says it is longer than any offer is not read.
    let mut wire = sender.connect();
    wire.write(
        format!(
            "POST {PREPARE} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            33 << 20
        )
        .as_bytes(),
    )
    .unwrap();
    assert_eq!(wire.read().unwrap().status(), 413);
    for odd in [
        "",
        "[",
        "{}",
        "null",
        "{\"info\":{\"alias\":\"a\"},\"files\":{}}",
        "{\"info\":{\"alias\":\"a\"},\"files\":[]}",
    ] {
        assert_eq!(
            sender.connect().ask("POST", PREPARE, odd.as_bytes()).status(),
            400,
            "{odd}"
        );
    }
    // One network has so many connections and no more; when they end, others come in.
    let mut many: Vec<_> = (0..64)
        .map(|_| std::net::TcpStream::connect(end.address).unwrap())
        .collect();
    let until = std::time::Instant::now() + crate::support::http::LIMIT;
    while many.len() > 32 {
        assert!(std::time::Instant::now() < until, "{} are held", many.len());
        many.retain_mut(|one| {
            one.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            !matches!(std::io::Read::read(one, &mut [0]), Ok(0))
        });
    }
    drop(many);
    let until = std::time::Instant::now() + crate::support::http::LIMIT;
    loop {
        let tcp = std::net::TcpStream::connect(end.address).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let still = std::io::Read::read(&mut &tcp, &mut [0]).is_err();
        assert!(std::time::Instant::now() < until, "nobody is let in any more");
        if still {
            break;
        }
    }
    let wanted = sender.accepted(&sender.offer(&[("a", b"x")]));
    assert_eq!(sender.send(&mut sender.connect(), &wanted, "0", b"x"), 200);
    end.end().unwrap();
}
