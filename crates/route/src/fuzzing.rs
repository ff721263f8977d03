//! The fuzz entry of the crate, for its target and for the test that replays its corpus. Not part of the public interface.

#[cfg(test)]
mod corpora;

use crate::geo::{Error, Item, Kind, Scanner, Step, WINDOW};
use crate::ips::IpSet;
use crate::names::NameSet;

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[("geo_file", geo_file)];

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

/// Everything that a file holds, in words, and how reading it ended.
type Read = (Vec<String>, Result<(), Error>);

/// Reads a file through windows that begin with `window` bytes and grow as they are asked to.
fn read(file: &[u8], kind: Kind, window: usize, skip: bool) -> Read {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(kind);
    let mut at = 0;
    let mut size = window;
    loop {
        let rest = &file[at.min(file.len())..];
        let shown = &rest[..size.min(rest.len())];
        if rest.is_empty() {
            return (found, scanner.finish(file.len() as u64));
        }
        match scanner.next(shown) {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return (found, Err(error));
            }
            Ok(Step::More) if shown.len() == rest.len() => return (found, Err(Error::Truncated)),
            Ok(Step::More) => {
                assert!(size < WINDOW, "the window of {size} bytes does not suffice");
                size += 1;
                continue;
            }
            Ok(Step::Skip(len)) => {
                assert!(len > 0, "a step without progress");
                at = at.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
            }
            Ok(Step::Item { item, used }) => {
                assert!(used <= shown.len());
                at += used;
                found.push(match item {
                    Item::Name(name) => format!("{name:?} {:?}", name.attributes().collect::<Vec<_>>()),
                    other => format!("{other:?}"),
                });
                if skip && matches!(item, Item::Entry(_)) {
                    let rest = scanner.skip_entry();
                    at = at.saturating_add(usize::try_from(rest).unwrap_or(usize::MAX));
                }
            }
        }
        assert_eq!(scanner.position(), at as u64);
        size = window;
    }
}

/// The first byte says what the file lists.
fn geo_file(data: &[u8]) {
    let Some((first, file)) = data.split_first() else {
        return;
    };
    let kind = if first & 1 == 0 { Kind::Names } else { Kind::Networks };
    let (whole, end) = read(file, kind, usize::MAX, false);
    assert_eq!(
        read(file, kind, 1, false),
        (whole.clone(), end),
        "the window made a difference"
    );
    let (codes, codes_end) = read(file, kind, 16, true);
    let entries: Vec<_> = whole.iter().filter(|item| item.starts_with("Entry(")).collect();
    assert!(
        codes.iter().zip(&entries).all(|(a, b)| a == *b),
        "{codes:?} {entries:?}"
    );
    if end.is_ok() {
        assert_eq!((codes.len(), codes_end), (entries.len(), Ok(())));
    }
    let (mut names, mut networks) = (NameSet::builder(), IpSet::builder());
    let mut scanner = Scanner::new(kind);
    let mut at = 0;
    while let Some(window) = file.get(at..).filter(|window| !window.is_empty()) {
        match scanner.next(window) {
            Ok(Step::Item { item, used }) => {
                match item {
                    Item::Name(name) => {
                        names.add(name.form, name.text);
                    }
                    Item::Network(net) => {
                        networks.net(net);
                    }
                    Item::Entry(_) | Item::Inverse => {}
                }
                at += used;
            }
            Ok(Step::Skip(len)) => at = at.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)),
            Ok(Step::More) | Err(_) => break,
        }
    }
    if let Ok(set) = names.build() {
        set.matches("www.example.org");
    }
    networks.build().matches(std::net::Ipv4Addr::LOCALHOST.into());
}
