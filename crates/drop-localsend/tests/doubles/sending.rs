//! We send, doubles receive.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use sealway_drop::cancel::Cancel;
use sealway_drop_localsend::Error;
use sealway_drop_localsend::find::{Found, find};
use sealway_drop_localsend::send::{AskPin, What, send};
use sealway_drop_localsend::server::Running;
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::send::Summary;
use sealway_drop_transfer::source::{ScanOptions, scan};
use zeroize::Zeroizing;

use crate::support::app::{App, Heard, Person, Rules};
use crate::support::http::{Card, LIMIT, Wire};
use crate::support::{content, node};

pub(crate) fn files(folder: &Path) -> What {
    What::Files(
        Arc::new(scan(&[folder.to_owned()], ScanOptions::default(), &mut |_| {}).unwrap()),
        true,
    )
}

pub(crate) fn no_pin() -> AskPin {
    Box::new(|_| None)
}

async fn found(running: &Running, app: &App) -> Found {
    find(&running.node, &app.address.to_string(), &[]).await.unwrap()
}

pub(crate) async fn sent(app: &App, what: &What, pin: AskPin) -> Result<Summary, sealway_drop::Error> {
    let running = node(None, false).await;
    let to = found(&running, app).await;
    assert_eq!(to.place.pin, Some(app.fingerprint));
    let result = sent_to(&running, &to, what, pin).await;
    running.shut_down().await;
    result
}

async fn sent_to(running: &Running, to: &Found, what: &What, pin: AskPin) -> Result<Summary, sealway_drop::Error> {
    send(&running.node, to, what, pin, &Arc::new(Progress::new()), &Cancel::new()).await
}

fn of(result: Result<Summary, sealway_drop::Error>) -> String {
    let error = result.unwrap_err();
    format!("{:?}", error.part::<Error>().unwrap_or_else(|| panic!("{error}")))
}

/// What came, and whether it was cancelled.
pub(crate) fn came(app: &App) -> (Vec<(String, Vec<u8>)>, Vec<Option<String>>) {
    let (mut files, mut cancels) = (vec![], vec![]);
    for heard in app.heard.try_iter() {
        match heard {
            Heard::File(name, bytes) => files.push((name, bytes)),
            Heard::Cancel(session) => cancels.push(session),
            Heard::Offer(_) => {}
        }
    }
    files.sort();
    (files, cancels)
}

/// How many files the tree has.
const FILES: usize = 1000;

/// Files in folders, of which one is large and one empty.
fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..FILES {
        let folder = dir.path().join(format!("照片 🎉/第{}天 👩‍👩‍👧", at % 30));
        fs::create_dir_all(&folder).unwrap();
        let len = if at == 1 { 700_000 } else { at * 7 };
        fs::write(folder.join(format!("图片 {at}.jpg")), content(len, at as u8)).unwrap();
    }
    dir
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_receive_a_folder() {
    let dir = tree();
    for rules in Rules::both() {
        let app = App::start(rules.clone());
        let summary = sent(&app, &files(&dir.path().join("照片 🎉")), no_pin()).await.unwrap();
        assert_eq!(
            (summary.placed, summary.failed),
            (FILES as u64, 0),
            "{:?}",
            summary.notes
        );
        let (files, cancels) = came(&app);
        let files: BTreeMap<_, _> = files.into_iter().collect();
        assert_eq!((files.len(), cancels), (FILES, vec![]));
        for (name, bytes) in files {
            assert!(fs::read(dir.path().join(&name)).unwrap() == bytes, "{name}");
        }
        assert_eq!(app.is_free(), rules.is_118);
        // 1.17 is busy until somebody taps Done.
        if !rules.is_118 {
            assert_eq!(of(sent(&app, &What::Text("x".into()), no_pin()).await), "Busy");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_words_of_their_own() {
    let dir = tree();
    let what = files(dir.path());
    for (person, expected) in [(Person::Declines, "Rejected(\"\")")] {
        let app = App::start(Rules {
            person,
            ..Rules::v118()
        });
        assert_eq!(of(sent(&app, &what, no_pin()).await), expected);
        assert_eq!(came(&app), (vec![], vec![]), "there is nothing to cancel");
    }
    let app = App::start(Rules {
        person: Person::HasAll,
        ..Rules::v118()
    });
    assert_eq!(sent(&app, &what, no_pin()).await.unwrap().placed, FILES as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pin_is_asked_for() {
    let pins = |pins: Vec<&'static str>| -> AskPin {
        let mut pins = pins.into_iter();
        let mut first = true;
        Box::new(move |was_wrong| {
            assert_eq!(was_wrong, !std::mem::replace(&mut first, false));
            Some(Zeroizing::new(pins.next()?.to_owned()))
        })
    };
    for rules in Rules::both() {
        let start = || {
            App::start(Rules {
                pin: Some("123456"),
                ..rules.clone()
            })
        };
        let text = What::Text("hello".into());
        assert_eq!(of(sent(&start(), &text, pins(vec![])).await), "PinWanted");
        assert_eq!(of(sent(&start(), &text, pins(vec!["1"])).await), "PinWrong");
        assert_eq!(
            of(sent(&start(), &text, pins(vec!["1", "2", "3", "4"])).await),
            "PinLocked"
        );
        let app = start();
        sent(&app, &text, pins(vec!["1", "123456"])).await.unwrap();
        // A device that wants the bytes as well gets them.
        assert_eq!(came(&app).0, [("message.txt".to_owned(), b"hello".to_vec())]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_wanted_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "aa").unwrap();
    fs::write(dir.path().join("b"), "bb").unwrap();
    let name = dir.path().file_name().unwrap().to_str().unwrap().to_owned();
    let only: &'static str = Box::leak(format!("{name}/b").into_boxed_str());
    let app = App::start(Rules {
        person: Person::AcceptsOnly(vec![only]),
        ..Rules::v118()
    });
    assert_eq!(sent(&app, &files(dir.path()), no_pin()).await.unwrap().placed, 2);
    assert_eq!(came(&app).0, [(only.to_owned(), b"bb".to_vec())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_a_wrong_hash_is_sent_three_times() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a");
    fs::write(&file, content(100_000, 3)).unwrap();
    for (wrong_hashes, placed) in [(2, 1), (3, 0)] {
        let app = App::start(Rules {
            wrong_hashes,
            ..Rules::v118()
        });
        let summary = sent(&app, &files(&file), no_pin()).await.unwrap();
        assert_eq!(
            (summary.placed, summary.failed),
            (placed, 1 - placed),
            "{:?}",
            summary.notes
        );
        let (files, cancels) = came(&app);
        assert_eq!(files.len() as u64, placed);
        assert_eq!(
            cancels.len() as u64,
            1 - placed,
            "a slot that waits for the file is given back"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_certificate_is_refused() {
    let running = node(None, false).await;
    for rules in Rules::both() {
        let app = App::start(rules);
        let to = found(&running, &app).await;
        app.change_certificate();
        let what = What::Text("secret".into());
        let said = of(sent_to(&running, &to, &what, no_pin()).await);
        assert!(said.starts_with("OtherCertificate"), "{said}");
        assert!(app.heard.try_iter().next().is_none(), "nothing was said to it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_without_encryption_is_not_spoken_to() {
    let app = App::start(Rules {
        clear: true,
        ..Rules::v117()
    });
    let running = node(None, false).await;
    let refused = find(&running.node, &app.address.to_string(), &[]).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(app.heard.try_iter().next().is_none());
    // Unless it was said that this is wanted.
    let running = node(None, true).await;
    let to = find(&running.node, &app.address.to_string(), &[]).await.unwrap();
    let what = What::Text("in clear".into());
    sent_to(&running, &to, &what, no_pin()).await.unwrap();
    assert_eq!(came(&app).0.len(), 1);
}

async fn wait_for(app: &App, wanted: impl Fn(&Heard) -> bool) -> Heard {
    let until = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < until, "it is heard");
        match app.heard.try_recv() {
            Ok(heard) if wanted(&heard) => return heard,
            Ok(_) => {}
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_stops_gives_the_slot_back() {
    let dir = tree();
    let running = node(None, false).await;
    let cases = [
        (Person::NeverAnswers, false, None),
        (Person::Accepts, true, Some("session".to_owned())),
    ];
    for (rules, (person, stalls, session)) in Rules::both()
        .into_iter()
        .flat_map(|rules| cases.clone().map(|case| (rules.clone(), case)))
    {
        let app = App::start(Rules {
            person,
            stalls,
            ..rules
        });
        let to = found(&running, &app).await;
        let (cancel, what, progress) = (Cancel::new(), files(dir.path()), Arc::new(Progress::new()));
        let stop = cancel.clone();
        let stopping = async {
            wait_for(&app, |heard| matches!(heard, Heard::Offer(_))).await;
            let until = Instant::now() + LIMIT;
            while stalls && progress.snapshot().bytes == 0 {
                assert!(Instant::now() < until);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stop.cancel();
        };
        let sending = send(&running.node, &to, &what, no_pin(), &progress, &cancel);
        let (result, ()) = tokio::join!(sending, stopping);
        assert!(matches!(result, Err(sealway_drop::Error::Cancelled)), "{result:?}");
        assert_eq!(
            wait_for(&app, |heard| matches!(heard, Heard::Cancel(_))).await,
            Heard::Cancel(session)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_cancels_is_heard() {
    let dir = tree();
    for rules in Rules::both() {
        cancelled_by(rules, &files(dir.path())).await;
    }
}

async fn cancelled_by(rules: Rules, what: &What) {
    let app = App::start(Rules { stalls: true, ..rules });
    let running = node(None, false).await;
    let to = found(&running, &app).await;
    let (progress, cancel) = (Arc::new(Progress::new()), Cancel::new());
    let own: SocketAddr = ([127, 0, 0, 1], running.node.port()).into();
    let cancelling = async {
        let Heard::Offer(offer) = wait_for(&app, |heard| matches!(heard, Heard::Offer(_))).await else {
            panic!()
        };
        assert_eq!(offer["info"]["port"], own.port());
        let (told, done) = channel();
        let (its, others) = (app.client(), Card::new().client(true));
        std::thread::spawn(move || {
            let until = Instant::now() + LIMIT;
            // It may not have heard its answer yet: then this fits nothing, and is said again.
            while Instant::now() < until && told.send(()).is_ok() {
                // With another certificate it is somebody else.
                let cancel = |session: &str, client: &Arc<ClientConfig>| {
                    let mut wire = Wire::connect(own, Some(client.clone()));
                    let target = format!("/api/localsend/v2/cancel?sessionId={session}");
                    wire.ask("POST", &target, b"");
                };
                cancel("session", &others);
                cancel("other", &its);
                cancel("session", &its);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        done
    };
    let sending = send(&running.node, &to, what, no_pin(), &progress, &cancel);
    let (result, _done) = tokio::join!(sending, cancelling);
    assert_eq!(of(result), "CancelledThere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_gone_was_cancelled() {
    let dir = tree();
    let app = App::start(Rules {
        forgets: true,
        ..Rules::v117()
    });
    assert_eq!(of(sent(&app, &files(dir.path()), no_pin()).await), "CancelledThere");
}
