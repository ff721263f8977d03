//! A double offers files by its web page's calls, we fetch them.

use std::fs;
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use sealway_drop::cancel::Cancel;
use sealway_drop_localsend::Error;
use sealway_drop_localsend::find::find;
use sealway_drop_localsend::pull::pull;
use sealway_drop_localsend::receive::Telling;
use sealway_drop_transfer::dest::{self, Destination};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::send::Summary;
use serde_json::json;
use zeroize::Zeroizing;

use crate::support::http::{Card, Wire};
use crate::support::{Person, content, node};

/// What "Share via link" serves, over HTTPS; `offers` files, which may have other sizes than they say. The head of
/// one called `cut` promises that size and its connection ends with less, that of one called `more` does and more comes.
fn page(offers: bool, files: Vec<(&'static str, Vec<u8>, u64)>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, card) = (listener.local_addr().unwrap(), Arc::new(Card::new()));
    let files = Arc::new(files);
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let (card, files) = (card.clone(), files.clone());
            std::thread::spawn(move || {
                let Some(mut wire) = Wire::accept(tcp.unwrap(), Some(card.server(false))) else {
                    return;
                };
                let info = json!({"alias": "Page", "version": "2.1", "fingerprint": card.fingerprint().to_string(), "download": true});
                while let Some(request) = wire.read() {
                    let target = request.line.split(' ').nth(1).unwrap().to_owned();
                    if target.ends_with("/register") {
                        wire.answer(200, &info.to_string());
                    } else if !offers {
                        wire.answer(404, "");
                    } else if target.contains("/prepare-download") && !target.contains("pin=1234") {
                        wire.answer(401, r#"{"message":"PIN required"}"#);
                    } else if target.contains("/prepare-download") {
                        let list: serde_json::Map<_, _> = files
                            .iter()
                            .enumerate()
                            .map(|(at, (name, _, size))| {
                                (
                                    at.to_string(),
                                    json!({"id": at.to_string(), "fileName": name, "size": size, "fileType": "x"}),
                                )
                            })
                            .collect();
                        wire.answer(
                            200,
                            &json!({"info": info, "sessionId": "127.0.0.1", "files": list}).to_string(),
                        );
                    } else {
                        assert!(target.contains("sessionId=127.0.0.1&fileId="), "{target}");
                        let id: usize = target.rsplit('=').next().unwrap().parse().unwrap();
                        let (name, content, size) = &files[id];
                        let length = match *name {
                            "cut" | "more" => *size,
                            _ => content.len() as u64,
                        };
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                        let _ = wire.write(&[head.as_bytes(), content].concat());
                        if *name == "cut" {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

async fn pulled(from: std::net::SocketAddr, output: &std::path::Path) -> Result<Summary, sealway_drop::Error> {
    let running = node(None, false).await;
    let found = find(&running.node, &from.to_string(), &[]).await.unwrap();
    let destination = Destination::open(output, dest::Options::default()).unwrap();
    let (tell, _said) = channel();
    let person: Arc<dyn Telling> = Arc::new(Person {
        answers: true,
        tell: Mutex::new(tell),
    });
    let mut pins = vec!["1234"].into_iter();
    let pin = Box::new(move |_| Some(Zeroizing::new(pins.next()?.to_owned())));
    pull(
        &running.node,
        &found,
        &destination,
        &person,
        pin,
        &Arc::new(Progress::new()),
        &Cancel::new(),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_offers_is_fetched() {
    let out = tempfile::tempdir().unwrap();
    let big = content(2 << 20, 5);
    let files = vec![
        ("album/a", big.clone(), big.len() as u64),
        ("b 🎉", b"b".to_vec(), 1),
        ("../c", b"c".to_vec(), 1),
    ];
    let summary = pulled(page(true, files), out.path()).await.unwrap();
    assert_eq!((summary.placed, summary.failed), (2, 1), "{:?}", summary.notes);
    assert_eq!(fs::read(out.path().join("album/a")).unwrap(), big);
    assert_eq!(fs::read(out.path().join("b 🎉")).unwrap(), b"b");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_sends_another_size_gives_nothing() {
    let out = tempfile::tempdir().unwrap();
    let files = vec![
        ("long", content(300_000, 1), 200_000),
        ("short", content(300_000, 1), 400_000),
    ];
    let summary = pulled(page(true, files), out.path()).await.unwrap();
    assert_eq!((summary.placed, summary.failed), (0, 2), "{:?}", summary.notes);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_size_costs_no_other_file() {
    let out = tempfile::tempdir().unwrap();
    let files = vec![
        ("a", b"a".to_vec(), 1),
        ("cut", content(300_000, 1), 400_000),
        ("d", b"d".to_vec(), 1),
        ("long", content(3_000_000, 1), 200_000),
        ("m", b"m".to_vec(), 1),
        ("more", content(300_000, 1), 200_000),
        ("n", b"n".to_vec(), 1),
        ("short", content(300_000, 1), 400_000),
        ("z", b"z".to_vec(), 1),
    ];
    let summary = pulled(page(true, files), out.path()).await.unwrap();
    for name in ["a", "d", "m", "n", "z"] {
        assert_eq!(fs::read(out.path().join(name)).unwrap(), name.as_bytes());
    }
    // Of what comes after the end of a file nothing is taken.
    assert_eq!(
        fs::read(out.path().join("more")).unwrap(),
        content(300_000, 1)[..200_000]
    );
    assert_eq!((summary.placed, summary.failed), (6, 3), "{:?}", summary.notes);
    for name in ["cut", "long", "short"] {
        let named = |note: &String| note.starts_with(&format!("{name}: "));
        assert!(summary.notes.iter().any(named), "{:?}", summary.notes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_offers_nothing_is_told_apart() {
    let out = tempfile::tempdir().unwrap();
    let error = pulled(page(false, vec![]), out.path()).await.unwrap_err();
    assert!(
        matches!(error.part(), Some(Error::Usage(text)) if text.contains("Share via link")),
        "{error}"
    );
}
