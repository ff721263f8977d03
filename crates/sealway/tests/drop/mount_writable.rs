//! `sealway share --writable`, `sealway mount --writable` and `sealway pair`, as programs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::drop::{Place, Running, can_mount};
use crate::common::{peer_is_missing, ran, words};

fn start(place: &Place) -> (Running, Running) {
    let line = "share @tree --writable --keep-free 1M --listen 127.0.0.1:0 --reconnect 0";
    let share = place.start(&words(line));
    let mount = mount(place, &share.address());
    (share, mount)
}

fn mount(place: &Place, address: &str) -> Running {
    let mount = place.start(&words(&format!(
        "mount @mount --writable --connect {address} --reconnect 0"
    )));
    assert_eq!(mount.until("ready")["writable"], "mount");
    mount
}

#[test]
fn both_ends_write_to_the_folder_of_each_other() {
    if !can_mount() {
        return;
    }
    let place = Place::with_tree();
    for name in ["tree2", "mount2"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    let both = "--writable=both --keep-free 1M";
    let share = format!("share @tree --mount @mount2 {both} --listen 127.0.0.1:0");
    let share = place.start(&words(&share));
    let mount = format!("mount @mount --share @tree2 {both} --connect {}", share.address());
    let mount = place.start(&words(&mount));
    assert_eq!(mount.until("ready")["writable"], "both");
    assert_eq!(share.until("ready")["writable"], "both");
    write_both(&place);
    mount.signal(Signal::TERM);
    assert_eq!((share.ended().0, mount.ended().0), (Some(0), Some(0)));
}

/// Writes in each mount of a pair what must be in the folder that it shows.
fn write_both(place: &Place) {
    for (mounted, owned) in [("mount", "tree"), ("mount2", "tree2")] {
        fs::write(place.path(mounted).join("new"), mounted).unwrap();
        assert_eq!(fs::read_to_string(place.path(owned).join("new")).unwrap(), mounted);
    }
}

#[test]
fn a_pair_works_in_the_folders_of_each_other() {
    if !can_mount() {
        return;
    }
    for by_code in [false, true] {
        let place = Place::with_tree();
        for name in ["tree2", "mount2"] {
            fs::create_dir(place.path(name)).unwrap();
        }
        let (_relay, relay) = place.relay();
        let first = |at: &str| format!("pair @tree @mount2 --keep-free 1M --json {at}");
        let second = |at: &str| format!("pair @tree2 @mount --join --keep-free 1M --json {at}");
        let begin = |line: &str| Running::of(&mut place.command(&words(line)));
        let (first, second) = if by_code {
            let at = format!("--relay {relay}");
            let first = begin(&first(&at));
            let code = first.until("code")["code"].as_str().unwrap().to_owned();
            let mut command = place.command(&words(&second(&at)));
            (first, Running::of(command.env("SEALWAY_CODE", code)))
        } else {
            let first = begin(&first("--listen 127.0.0.1:0"));
            let address = first.address();
            (first, begin(&second(&format!("--connect {address}"))))
        };
        assert_eq!(second.until("ready")["writable"], "both");
        assert_eq!(first.until("ready")["writable"], "both");
        write_both(&place);
        second.signal(Signal::TERM);
        assert_eq!((first.ended().0, second.ended().0), (Some(0), Some(0)), "{by_code}");
    }
}

#[test]
fn a_folder_is_not_mounted_in_the_one_that_is_shared() {
    let place = Place::with_tree();
    fs::create_dir(place.path("tree/theirs")).unwrap();
    std::os::unix::fs::symlink(place.path("tree/theirs"), place.path("elsewhere")).unwrap();
    for words in [
        &["pair", "@tree", "@tree/theirs"][..],
        &["pair", "@tree", "@elsewhere", "--join"],
        &["share", "@tree", "--mount", "@tree", "--nonempty"],
        &["mount", "@tree", "--share", "@tree/theirs", "--nonempty"],
    ] {
        place
            .run(&[words, &["--connect", "127.0.0.1:1"]].concat())
            .says(2, &["must be apart"]);
    }
}

#[test]
fn nothing_is_writable_unless_it_is_said_and_what_does_not_fit_is_refused() {
    let place = Place::with_tree();
    for (line, wrong) in [
        ("share @tree --writable=mount", "nothing is mounted here"),
        ("share @tree --writable=both", "nothing is mounted here"),
        ("mount @mount --writable=both", "no folder of this end is shared"),
        ("mount @mount --writable --cache @out", "keeps no copies"),
        ("share @tree --keep-free 1G", "--writable"),
        ("share @tree --hidden", "--writable"),
        ("share @tree --writable=all", "possible values"),
    ] {
        place
            .run(&words(&format!("{line} --connect 127.0.0.1:1")))
            .says(2, &[wrong]);
    }
    if !can_mount() {
        return;
    }
    // An owner that does not say it.
    let share = place.start(&["share", "@tree", "--listen", "127.0.0.1:0"]);
    let refused = place.run(&["mount", "@mount", "--writable", "--connect", &share.address()]);
    refused.says(2, &["read-only", "--writable"]);
    share.signal(Signal::TERM);
    share.ended();
}

#[test]
fn a_database_that_needs_shared_memory_is_refused_in_words() {
    if !can_mount() {
        return;
    }
    if Command::new("sqlite3").arg("--version").output().is_err() {
        return peer_is_missing("there is no sqlite3 (scripts/install-peers)");
    }
    let place = Place::with_tree();
    let (_share, mount) = start(&place);
    let sql = |database: &str, text: &str| {
        let mut command = Command::new("sqlite3");
        ran(command.arg(place.path(database)).arg(text))
    };
    let made = sql("tree/base", "PRAGMA journal_mode=WAL; CREATE TABLE t(n);");
    made.says(0, &[]);
    let refused = sql("mount/base", "INSERT INTO t VALUES (1);");
    assert_ne!(refused.code, 0, "{refused:?}");
    mount.signal(Signal::TERM);
    let (code, said) = mount.ended();
    assert!(code == Some(0) && said.contains("PRAGMA journal_mode=DELETE"), "{said}");
}

/// Bytes of one record of a journal.
const RECORD: usize = 700;

fn record(number: u64) -> Vec<u8> {
    number.to_be_bytes().repeat(RECORD / 8 + 1)[..RECORD].to_vec()
}

/// Writes records and brings each to the disk, until that fails; gives how many the owner has acknowledged.
fn journal(file: &File, acknowledged: &AtomicU64) {
    for number in 0.. {
        // In two parts, and one that comes to nothing if it is alone.
        let (at, data) = (number * RECORD as u64, record(number));
        let wrote = file
            .write_all_at(&data[..300], at)
            .and_then(|()| file.write_all_at(&data[300..], at + 300))
            .and_then(|()| file.sync_data());
        if wrote.is_err() {
            return;
        }
        acknowledged.store(number + 1, SeqCst);
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_either_end_is_killed_at_any_moment() {
    if !can_mount() {
        return;
    }
    let mut some = 0;
    for round in 0..20_u64 {
        let place = Place::with_tree();
        let (share, mount) = start(&place);
        let file = File::create_new(place.path("mount/journal")).unwrap();
        let acknowledged = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| journal(&file, &acknowledged));
            // Any moment will do.
            std::thread::sleep(Duration::from_micros(500 + round * round * 997 % 60_000));
            if round % 2 == 0 { &share } else { &mount }.signal(Signal::KILL);
            // Who writes gets to know it, however it ended.
            writing.join().unwrap();
        });
        let count = acknowledged.load(SeqCst);
        some += count;
        drop(file);
        // What was on its way is there once both have ended.
        drop((share, mount));
        let there = fs::read(place.path("tree/journal")).unwrap();
        for number in 0..count {
            let at = number as usize * RECORD;
            assert!(
                there[at..at + RECORD] == record(number),
                "record {number} of {count}, round {round}"
            );
        }
        // What a dead end leaves mounted is taken away by the next one.
        let (share, mount) = start(&place);
        assert_eq!(fs::read(place.path("mount/journal")).unwrap(), there);
        mount.signal(Signal::TERM);
        mount.ended();
        share.signal(Signal::TERM);
        share.ended();
    }
    assert!(some > 0, "nothing was ever acknowledged");
}
