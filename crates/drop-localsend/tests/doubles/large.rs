//! A large file, from both versions and to both.

use std::fs;

use crate::sending::{came, files, no_pin, sent};
use crate::support::app::{App, Rules};
use crate::support::sender::Sender;
use crate::support::{YES, receiver};

const NAME: &str = "电影 🎞.bin";

async fn goes_both_ways(len: usize) {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join(NAME), dir.path().join("out"));
    let mut bytes = vec![0; len];
    getrandom::fill(&mut bytes).unwrap();
    fs::write(&file, &bytes).unwrap();
    fs::create_dir(&out).unwrap();
    for rules in Rules::both() {
        let app = App::start(rules);
        let summary = sent(&app, &files(&file), no_pin()).await.unwrap();
        assert_eq!((summary.placed, summary.failed), (1, 0), "{:?}", summary.notes);
        let (came, _) = came(&app);
        let [(name, came)] = &came[..] else { panic!() };
        assert!(name == NAME && *came == bytes);
    }
    for version in Sender::BOTH {
        let end = receiver(&out, YES).await;
        let sender = version(&end);
        let wanted = sender.accepted(&sender.offer(&[(NAME, &bytes)]));
        assert_eq!(sender.send(&mut sender.connect(), &wanted, "0", &bytes), 200);
        assert_eq!(end.end().unwrap().placed, 1);
        assert!(fs::read(out.join(NAME)).unwrap() == bytes);
        fs::remove_file(out.join(NAME)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_many_pieces_is_the_same_at_the_other_end() {
    goes_both_ways((5 << 20) + 1).await;
}

/// `cargo test -p sealway-drop-localsend --test doubles -- --ignored`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 2 GiB of memory and 2 GiB of disk"]
async fn a_gibibyte_is_the_same_at_the_other_end() {
    goes_both_ways(1 << 30).await;
}
