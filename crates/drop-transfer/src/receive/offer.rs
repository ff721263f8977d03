//! What is offered, and what of it binds.
//!
//! Somebody says yes to what they are shown: so many files, folders and links, so many bytes, and names at the top. [`Offered`] is
//! that, checked; [`Bounds`] holds every entry that comes against it, so that a yes is a yes to nothing else.

use std::collections::HashMap;
use std::fmt;

use unicode_width::UnicodeWidthChar;

use crate::entry::{Entry, Kind, MAX_LISTED_BYTES};
use sealway_drop::Error;
use sealway_drop::names::{Escaped, Rules};
use sealway_drop::wire::control::{self, LISTED_NAMES, Offer};

/// Narrower than that a name is not cut: it would say nothing any more.
const NARROWEST: usize = 8;

/// What is offered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Offered {
    /// Number of files.
    pub files: u64,
    /// Number of folders and links.
    pub others: u64,
    /// How many of `others` are symbolic links, where the sender says that.
    pub links: Option<u64>,
    /// Bytes of all files.
    pub bytes: u64,
    /// The names at the top, all of them or the first hundred.
    pub top: Vec<Name>,
    /// Number of names at the top.
    pub top_count: u64,
    /// Bytes that are free where it is received, where the system says that.
    pub free: Option<u64>,
}

/// A name at the top, which is one that may be received.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Name {
    bytes: Box<[u8]>,
    folder: bool,
}

/// Escaped for print, with a `/` behind a folder.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.folder { "/" } else { "" };
        write!(f, "{}{slash}", Escaped(&self.bytes))
    }
}

impl Offered {
    /// Reads an offer; `free` are the bytes that are free where it is received.
    ///
    /// # Errors
    /// [`Error::Protocol`] if it contradicts itself, has names that nothing may have, or leaves some out that it could list.
    pub(super) fn read(offer: &Offer, rules: Rules, free: Option<u64>) -> Result<Offered, Error> {
        let wrong = |what| Err(Error::Protocol(what));
        let listed = offer.top.len() as u64;
        if offer.top_count.min(LISTED_NAMES as u64) != listed {
            return wrong("an offer that does not list its names");
        }
        if offer.top_count > offer.files.saturating_add(offer.others) || offer.links.unwrap_or(0) > offer.others {
            return wrong("an offer whose numbers contradict each other");
        }
        let mut names = HashMap::new();
        for control::Top { name, folder } in &offer.top {
            if rules.check(name).is_err() {
                return wrong("an offer with a name that nothing may have");
            }
            if names.insert(name.as_slice(), *folder).is_some() {
                return wrong("an offer with one name twice");
            }
        }
        let top = offer.top.iter().map(|top| Name {
            bytes: top.name.as_slice().into(),
            folder: top.folder,
        });
        Ok(Offered {
            files: offer.files,
            others: offer.others,
            links: offer.links,
            bytes: offer.bytes,
            top: top.collect(),
            top_count: offer.top_count,
            free,
        })
    }

    /// Files at the top and nothing else, of names and sizes.
    ///
    /// # Errors
    /// As [`Offered::read`].
    pub(crate) fn of_files<'a>(files: impl Iterator<Item = (&'a [u8], u64)>, rules: Rules) -> Result<Offered, Error> {
        let mut offer = Offer::default();
        for (name, size) in files {
            offer.files += 1;
            offer.bytes = offer.bytes.saturating_add(size);
            offer.top.push(control::Top {
                name: name.to_vec(),
                folder: false,
            });
        }
        offer.top_count = offer.files;
        offer.links = Some(0);
        Offered::read(&offer, rules, None)
    }

    /// What entries come to that were listed beforehand; `free` are the bytes that are free where they are received.
    pub fn of_entries(entries: &[Entry], free: Option<u64>) -> Offered {
        let is_folder = |entry: &&Entry| matches!(entry.kind, Kind::Directory);
        let is_file = |entry: &&Entry| matches!(entry.kind, Kind::File { .. });
        let top = |entry: &&Entry| entry.path.depth() == 1;
        let (files, all) = (entries.iter().filter(is_file).count() as u64, entries.len() as u64);
        Offered {
            files,
            others: all - files,
            links: Some(
                entries
                    .iter()
                    .filter(|entry| !is_file(entry) && !is_folder(entry))
                    .count() as u64,
            ),
            bytes: entries.iter().map(Entry::size).fold(0, u64::saturating_add),
            top: entries
                .iter()
                .filter(top)
                .take(LISTED_NAMES)
                .map(|entry| Name {
                    bytes: entry.path.name().into(),
                    folder: is_folder(&entry),
                })
                .collect(),
            top_count: entries.iter().filter(top).count() as u64,
            free,
        }
    }

    /// Numbers of files, folders and links, as in `3 files, 1 folder and 2 links`.
    pub fn counts(&self) -> String {
        let count = |number: u64, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
        let mut parts = vec![count(self.files, "file")];
        match self.links {
            Some(links) => {
                let folders = self.others - links.min(self.others);
                parts.extend((folders > 0).then(|| count(folders, "folder")));
                parts.extend((links > 0).then(|| count(links, "link")));
            }
            None if self.others > 0 => parts.push(format!("{} folders or links", self.others)),
            None => {}
        }
        let last = parts.pop().unwrap_or_default();
        match parts.is_empty() {
            true => last,
            false => format!("{} and {last}", parts.join(", ")),
        }
    }

    /// Whether all of it fits into the free space, were none of it there yet; `None` where the system does not say.
    pub fn fits(&self) -> Option<bool> {
        self.free.map(|free| self.bytes <= free)
    }

    /// So many of the names, no wider than `columns` on a terminal each. Names that begin with a dot come first: they are those that
    /// should not hide behind the others.
    pub fn shown(&self, names: usize, columns: usize) -> Vec<String> {
        let dotted = |name: &&Name| name.bytes.first() == Some(&b'.');
        let (first, then) = (
            self.top.iter().filter(dotted),
            self.top.iter().filter(|name| !dotted(name)),
        );
        let cut = |name: &Name| cut(&name.to_string(), columns);
        first.chain(then).take(names).map(cut).collect()
    }
}

/// Cuts a text in its middle, so that where it begins and how it ends can be seen.
pub fn cut(text: &str, columns: usize) -> String {
    let width = |c: char| c.width().unwrap_or(0);
    let columns = columns.max(NARROWEST);
    if text.chars().map(width).sum::<usize>() <= columns {
        return text.to_owned();
    }
    let room = columns - 1;
    let take = |chars: &mut dyn Iterator<Item = char>, room: usize| {
        let mut used = 0;
        let fits = |c: &char| {
            used += width(*c);
            used <= room
        };
        chars.take_while(fits).collect::<Vec<_>>()
    };
    let begin = take(&mut text.chars(), room - room / 2);
    let end = take(&mut text.chars().rev(), room / 2);
    begin.into_iter().chain(['…']).chain(end.into_iter().rev()).collect()
}

/// Reads an offer and shows it, for the fuzz targets.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(offer: &Offer) {
    let Ok(offered) = Offered::read(offer, Rules::POSIX, None) else {
        return;
    };
    assert!(offered.top.len() as u64 <= offered.top_count && !offered.counts().is_empty());
    for columns in [0, 20, 80] {
        let shown = offered.shown(LISTED_NAMES, columns);
        assert!(shown.len() == offered.top.len() && shown.iter().all(|name| !name.contains(char::is_control)));
    }
}

/// What may still come of what was offered and taken.
pub(super) struct Bounds {
    files: u64,
    others: u64,
    /// Where the sender said how many of the others they are.
    links: Option<u64>,
    bytes: u64,
    tops: u64,
    /// The names that were listed, and whether each is a folder.
    names: HashMap<Box<[u8]>, bool>,
    /// Names at the top that were not listed; none if all were.
    unlisted: u64,
    /// Bytes of the list itself, which is kept in memory.
    list: u64,
}

impl Bounds {
    pub(super) fn of(offered: &Offered) -> Bounds {
        Bounds {
            files: offered.files,
            others: offered.others,
            links: offered.links,
            bytes: offered.bytes,
            tops: offered.top_count,
            names: offered
                .top
                .iter()
                .map(|name| (name.bytes.clone(), name.folder))
                .collect(),
            unlisted: offered.top_count.saturating_sub(offered.top.len() as u64),
            list: MAX_LISTED_BYTES,
        }
    }

    /// Counts an entry, which took `list` bytes to say. More than what was offered, or anything else, is not what somebody agreed to.
    pub(super) fn take(&mut self, entry: &Entry, list: usize) -> Result<(), Error> {
        let less = |left: &mut u64, by: u64| match left.checked_sub(by) {
            Some(rest) => {
                *left = rest;
                Ok(())
            }
            None => Err(Error::Protocol("more than was offered")),
        };
        match (&entry.kind, &mut self.links) {
            (Kind::File { .. }, _) => less(&mut self.files, 1)?,
            (Kind::Symlink { .. }, Some(links)) => {
                less(links, 1)?;
                less(&mut self.others, 1)?;
            }
            (Kind::Directory, Some(links)) if self.others <= *links => {
                return Err(Error::Protocol("more than was offered"));
            }
            (Kind::Symlink { .. } | Kind::Directory, _) => less(&mut self.others, 1)?,
        }
        less(&mut self.bytes, entry.size())?;
        if entry.path.depth() == 1 {
            less(&mut self.tops, 1)?;
            match self.names.get(entry.path.name()) {
                Some(folder) if *folder == matches!(entry.kind, Kind::Directory) => {}
                Some(_) => {
                    return Err(Error::Protocol(
                        "a folder at the top that was offered as something else, or the reverse",
                    ));
                }
                None if self.unlisted > 0 => self.unlisted -= 1,
                None => return Err(Error::Protocol("a name at the top that was not offered")),
            }
        }
        let rest = self.list.checked_sub(list as u64);
        self.list = rest.ok_or(Error::Protocol("a longer list than a transfer may have"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Time;
    use sealway_drop::names::RelPath;
    use sealway_drop::wire::control::Top;

    fn entry(path: &str, kind: Kind) -> Entry {
        Entry {
            path: RelPath::new(path.split('/'), Rules::POSIX).unwrap(),
            kind,
            mode: 0o644,
            mtime: Time::default(),
        }
    }

    fn file(path: &str) -> Entry {
        entry(path, Kind::File { size: 1, sparse: false })
    }

    fn link(path: &str) -> Entry {
        entry(
            path,
            Kind::Symlink {
                target: b"x"[..].into(),
            },
        )
    }

    fn offer(names: &[&str], files: u64, others: u64) -> Offer {
        let top = |name: &&str| Top {
            name: name.trim_end_matches('/').into(),
            folder: name.ends_with('/'),
        };
        Offer {
            transfer: vec![0; 32],
            files,
            others,
            bytes: files,
            top: names.iter().take(LISTED_NAMES).map(top).collect(),
            top_count: names.len() as u64,
            ..Offer::default()
        }
    }

    fn read(offer: &Offer) -> Result<Offered, Error> {
        Offered::read(offer, Rules::POSIX, None)
    }

    fn refused(bounds: &mut Bounds, entry: &Entry) -> &'static str {
        match bounds.take(entry, 10) {
            Err(Error::Protocol(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_yes_to_some_names_is_none_to_others() {
        let bounds = || Bounds::of(&read(&offer(&["notes.txt", "tree/"], 5, 2)).unwrap());
        let (mut some, mut other, mut kind) = (bounds(), bounds(), bounds());
        for fine in [entry("tree", Kind::Directory), file("tree/any"), file("notes.txt")] {
            some.take(&fine, 10).unwrap();
        }
        assert_eq!(refused(&mut some, &link("third")), "more than was offered");
        // The sum fits, the name does not.
        assert_eq!(
            refused(&mut other, &file(".bashrc")),
            "a name at the top that was not offered"
        );
        assert!(refused(&mut kind, &file("tree")).contains("something else"));
        assert!(refused(&mut bounds(), &entry("notes.txt", Kind::Directory)).contains("something else"));
    }

    #[test]
    fn names_beyond_those_that_are_listed_are_counted() {
        let names: Vec<String> = (0..102).map(|i| format!("{i:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let offered = read(&offer(&names, 200, 0)).unwrap();
        assert_eq!(offered.top.len(), LISTED_NAMES);
        let mut bounds = Bounds::of(&offered);
        for name in ["x", "y", "000", "099"] {
            bounds.take(&file(name), 10).unwrap();
        }
        assert_eq!(
            refused(&mut bounds, &file("z")),
            "a name at the top that was not offered"
        );
    }

    #[test]
    fn links_and_folders_do_not_stand_in_for_each_other() {
        let with_links = |links| Offer {
            links: Some(links),
            ..offer(&["tree/"], 0, 2)
        };
        let mut bounds = Bounds::of(&read(&with_links(1)).unwrap());
        bounds.take(&entry("tree", Kind::Directory), 10).unwrap();
        assert_eq!(
            refused(&mut bounds, &entry("tree/sub", Kind::Directory)),
            "more than was offered"
        );
        bounds.take(&link("tree/link"), 10).unwrap();
        let mut bounds = Bounds::of(&read(&with_links(0)).unwrap());
        assert_eq!(refused(&mut bounds, &link("tree")), "more than was offered");
        assert!(read(&with_links(3)).is_err());
    }

    #[test]
    fn an_offer_that_hides_or_contradicts_is_none() {
        for names in [&["a/b"][..], &[".."], &[""], &["same", "same"], &[".sealway-partial-x"]] {
            assert!(read(&offer(names, 9, 9)).is_err(), "{names:?}");
        }
        let mut hiding = offer(&["a", "b"], 2, 0);
        hiding.top.pop();
        assert!(read(&hiding).is_err(), "it could have listed the other name");
        assert!(read(&offer(&["a", "b"], 1, 0)).is_err(), "more names than entries");
    }

    #[test]
    fn counts_are_words_and_dots_come_first() {
        let mut offered = read(&offer(&["a", "\u{1b}[2Jb/", ".bashrc"], 1, 3)).unwrap();
        assert_eq!(offered.counts(), "1 file and 3 folders or links");
        offered.links = Some(1);
        assert_eq!(offered.counts(), "1 file, 2 folders and 1 link");
        offered.links = Some(3);
        assert_eq!(offered.counts(), "1 file and 3 links");
        assert_eq!(offered.shown(2, 80), [".bashrc", "a"]);
        assert_eq!(offered.shown(9, 80)[2], "\\x1b[2Jb/");
        assert_eq!(offered.fits(), None);
        (offered.bytes, offered.free) = (10, Some(9));
        assert_eq!(offered.fits(), Some(false));
    }

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(cut("short.txt", 20), "short.txt");
        assert_eq!(cut("exactly-ten", 11), "exactly-ten");
        assert_eq!(cut("a-rather-long-name.pdf.exe", 12), "a-rath…f.exe");
        // Two columns each.
        assert_eq!(cut("日本語日本語日本語", 10), "日本…本語");
        assert_eq!(cut("0123456789", 0), "0123…789");
    }
}
