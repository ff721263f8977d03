//! What strangers may bring to the lab, for the fuzz targets and for the test that replays their corpora. Not part of the public
//! interface.
//!
//! It checks more than that nothing panics: that what is read is written as the same again, and that what is shown keeps its form.

use std::path::Path;

use serde::Serialize;

use crate::compare::{Options, compare};
use crate::link::Link;
use crate::report::terminal::Style;
use crate::report::{self, json};
use crate::result::RunResult;
use crate::store::{self, Imported, Parcel, Store};
use crate::{catalogue, remote, transports};

#[cfg(test)]
mod corpora;

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[
    ("lab_import", import),
    ("lab_link", link),
    ("lab_messages", messages),
    ("lab_result", result),
];

/// Runs the entry of this name.
///
/// # Panics
/// If there is none, or if the entry finds a fault.
pub fn run(name: &str, data: &[u8]) {
    match ENTRIES.iter().find(|(entry, _)| *entry == name) {
        Some((_, entry)) => entry(data),
        None => panic!("there is no fuzz entry {name}"),
    }
}

/// A file of runs, or of one: what was taken of it goes out again and comes in elsewhere.
fn import(data: &[u8]) {
    let open = || Store::in_memory().expect("memory for a store");
    let take = |store: &mut Store, bytes: &[u8]| store::import(store, Parcel::of(Path::new("stranger"), bytes));
    let mut from = open();
    let taken = take(&mut from, data);
    let kept = from.list().expect("the list of a store");
    match taken {
        Ok(taken) => assert_eq!(taken.new, kept.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let mut text = Vec::new();
    store::export(&mut from, &kept, &mut text).expect("room for the runs");
    let mut to = open();
    let again = take(&mut to, &text).expect("what was exported");
    let all = Imported {
        new: kept.len(),
        already: 0,
        ..again
    };
    assert_eq!(again, all);
    for run in to.list().expect("the list of a store") {
        let was = kept.iter().find(|kept| kept.run == run.run).expect("the same runs");
        let text = |store: &mut Store, id| written(&store.result(id).expect("a result"));
        assert_eq!(text(&mut to, run.id), text(&mut from, was.id));
    }
}

/// The text of a link.
fn link(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Link>() {
        Ok(link) => {
            assert_eq!(link.to_string().parse(), Ok(link));
            // Times for any number of bytes.
            let _ = (
                link.settling(),
                link.opening(),
                link.patience(u64::MAX),
                link.transfer(u64::MAX),
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What the two hosts of a run say: after the first byte, which says who, a greeting, an answer, or questions, one a line.
fn messages(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 3 {
        0 => remote::reads_greeting(rest),
        1 => transports::reads_answer(rest),
        _ => transports::answers(rest),
    }
}

/// Two results, one a line, of which the first may be missing: compared both ways, and the second one shown.
fn result(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n');
    let (old, new) = at.map_or((data, data), |at| (&data[..at], &data[at + 1..]));
    let read = |text| json::parse(Path::new("stranger"), text).ok();
    let Some(new) = read(new) else { return };
    let old = read(old).unwrap_or_else(|| new.clone());
    compared(&old, &new);
    compared(&new, &old);
    let text = report::terminal::render(&new, &catalogue::ALL, &Style::default(), &[]);
    assert!(!text.contains('\u{1b}'), "a terminal is told nothing by a stranger");
    assert!(report::html::render(&new, &catalogue::ALL).contains("</html>"));
}

fn compared(old: &RunResult, new: &RunResult) {
    match compare(old, new, &Options::default()) {
        Ok(mut found) => {
            found.confirm(&[found.clone()]);
            let _ = (found.ending(true), written(&found));
            let text = found.render(&catalogue::ALL);
            assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
            assert!(found.page(&catalogue::ALL).contains("</html>"));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("JSON of what was read")
}
