//! Names that are known not to be there, so that nobody need be asked for them before they are made.
//!
//! The kernel looks for every name before it makes it, and says nothing of what it is about to do. Where this end makes several files, the
//! whole directory is asked for once; a name that is in it neither as it stands nor in another spelling is not there. That holds as long as
//! names are kept anyway, until news tell of the directory, and until this end gets a lock or makes a file that is one. What this end makes
//! meanwhile is added. Elsewhere the owner is asked for each name: a program that has been told of a new file finds it, though the news of
//! it may still be on their way.
//!
//! Whether a name is new is decided by the owner alone: who was told that it is not there makes it by a call that says so if it is.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::tree::{MAX_PAGE, Page};
use sealway_drop::lock;

/// Names that are made before the directory is asked for; twice as many after each time that this did not pay.
const MADE: u32 = 3;

/// So many names cost as much to be told as one to ask for.
const PRICE: usize = 16;

/// Directories that are known at a time.
const DIRECTORIES: usize = 32;

/// Names of a directory that are kept at most.
const NAMES: usize = 2 * MAX_PAGE;

/// Ends of names by which SQLite finds what a program has left behind that died: whoever misses one loses data, so the owner is asked.
const JOURNALS: [&[u8]; 2] = [b"-journal", b"-wal"];

/// What stands in names of its journals of several databases, before digits.
const SUPER_JOURNAL: &[u8] = b"-mj";

/// The end of names that programs make to keep others out: whoever has made one must find what the last one left.
const LOCK: &[u8] = b"lock";

/// See the module.
pub(super) struct Absent {
    directories: Mutex<HashMap<u64, Directory>>,
    /// How long names are kept.
    ttl: Duration,
}

type Names = HashSet<Box<[u8]>>;

struct Directory {
    /// Names that were made lately, and since when.
    made: u32,
    since: Instant,
    /// So many of them make it worth to ask for the directory.
    worth: u32,
    /// It is being asked for, since when; names that have come up meanwhile.
    asking: Option<(Instant, Names)>,
    known: Option<Known>,
    /// Looks that were saved since it was last asked for, and how many would have paid for that.
    saved: (u32, u32),
}

struct Known {
    until: Instant,
    names: Names,
}

impl Directory {
    fn new(now: Instant) -> Self {
        Self {
            made: 0,
            since: now,
            worth: MADE,
            asking: None,
            known: None,
            saved: (0, 0),
        }
    }

    /// Nothing is known of its names, nor will be by what is being asked.
    fn doubt(&mut self) {
        (self.known, self.asking) = (None, None);
    }

    /// Counts what is made, of late.
    fn count(&mut self, now: Instant, ttl: Duration) {
        if now.saturating_duration_since(self.since) > ttl {
            (self.made, self.since) = (0, now);
        }
        self.made = self.made.saturating_add(1);
    }
}

impl Absent {
    pub(super) fn new(ttl: Duration) -> Self {
        Self {
            directories: Mutex::default(),
            ttl,
        }
    }

    /// Whether a name of a directory is known not to be there.
    pub(super) fn is_known(&self, directory: u64, name: &[u8], now: Instant) -> bool {
        let Some(name) = folded(name).filter(|_| is_plain(name)) else {
            return false;
        };
        let mut directories = lock(&self.directories);
        let Some(of) = directories.get_mut(&directory) else {
            return false;
        };
        let holds = |known: &Known| now < known.until && !known.names.contains(&name);
        let absent = of.known.as_ref().is_some_and(holds);
        of.saved.0 = of.saved.0.saturating_add(absent.into());
        absent
    }

    /// A name is not there. Whether the directory is to be asked for now, and [`Absent::listed`] to be told.
    pub(super) fn missed(&self, directory: u64, name: &[u8], now: Instant) -> bool {
        let mut directories = lock(&self.directories);
        let Some(of) = directories.get_mut(&directory) else {
            return false;
        };
        if of.saved.0 >= of.saved.1 {
            of.worth = MADE;
        }
        let lately = now.saturating_duration_since(of.since) <= self.ttl;
        if !is_plain(name) || !lately || of.made < of.worth || of.asking.is_some() {
            return false;
        }
        of.worth = of.worth.saturating_mul(2);
        (of.made, of.saved) = (0, (0, u32::MAX));
        (of.asking, of.known) = (Some((now, Names::new())), None);
        true
    }

    /// What came of asking for a directory, at that time.
    pub(super) fn listed(&self, directory: u64, page: Option<&Page>, asked: Instant) {
        let mut directories = lock(&self.directories);
        let Some(of) = directories.get_mut(&directory) else {
            return;
        };
        // There may have been news, and others who ask by now.
        let Some((_, mut names)) = of.asking.take_if(|(since, _)| *since == asked) else {
            return;
        };
        let (Some(page), Some(until)) = (page, asked.checked_add(self.ttl)) else {
            return;
        };
        let all: Option<Names> = page.entries.iter().map(|entry| folded(&entry.name)).collect();
        // More is there than came, or names that may stand for others.
        let Some(all) = all.filter(|_| page.next.is_none()) else {
            return;
        };
        of.saved.1 = u32::try_from(1 + all.len() / PRICE).unwrap_or(u32::MAX);
        names.extend(all);
        of.known = Some(Known { until, names });
    }

    /// This end has made a name.
    pub(super) fn made(&self, directory: u64, name: &[u8], now: Instant) {
        if self.ttl.is_zero() {
            return;
        }
        let mut directories = lock(&self.directories);
        if name.ends_with(LOCK) {
            directories.values_mut().for_each(Directory::doubt);
        }
        if directories.len() >= DIRECTORIES && !directories.contains_key(&directory) {
            directories.clear();
        }
        let of = directories.entry(directory).or_insert_with(|| Directory::new(now));
        of.count(now, self.ttl);
        match folded(name) {
            Some(name) => {
                let known = of.known.as_mut().map(|known| &mut known.names);
                let asking = of.asking.as_mut().map(|(_, names)| names);
                for names in [known, asking].into_iter().flatten() {
                    names.insert(name.clone());
                }
                of.known.take_if(|known| known.names.len() > NAMES);
                of.asking.take_if(|(_, names)| names.len() > NAMES);
            }
            None => of.doubt(),
        }
    }

    /// Something may have happened to the names of a directory.
    pub(super) fn doubt(&self, directory: u64) {
        if let Some(of) = lock(&self.directories).get_mut(&directory) {
            of.doubt();
        }
    }

    /// The same of all.
    pub(super) fn doubt_all(&self) {
        lock(&self.directories).values_mut().for_each(Directory::doubt);
    }
}

/// A name in the one spelling that stands for all that some file system takes for the same; `None` of letters beyond ASCII, which such
/// file systems fold in ways of their own.
fn folded(name: &[u8]) -> Option<Box<[u8]>> {
    name.is_ascii().then(|| name.to_ascii_lowercase().into())
}

/// Whether a name that is not told of a directory is certainly not there: file systems read some signs in their own way, and show some
/// names to nobody.
fn is_plain(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+,@=#".contains(byte);
    let ends = name.first() != Some(&b'.') && name.last() != Some(&b'.');
    let journal = JOURNALS.iter().any(|end| name.ends_with(end))
        || name.windows(SUPER_JOURNAL.len()).any(|part| part == SUPER_JOURNAL);
    ends && !journal && name.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Attr, Entry, Kind, Time};

    const TTL: Duration = Duration::from_secs(2);

    fn page(names: &[&str]) -> Page {
        let attr = Attr {
            node: 1,
            kind: Kind::File,
            size: 1,
            mode: 0o644,
            mtime: Time::default(),
            ctime: Time::default(),
            nlink: 1,
            version: 1,
            allocated: 0,
        };
        let entry = |name: &&str| Entry {
            name: name.as_bytes().to_vec(),
            attr,
        };
        Page {
            entries: names.iter().map(entry).collect(),
            next: None,
        }
    }

    /// Names that are made until the directory is asked for.
    fn made(absent: &Absent, now: Instant) -> u32 {
        (0..1000)
            .find(|number| {
                let asked = absent.missed(7, b"new", now);
                if !asked {
                    absent.made(7, format!("made{number}").as_bytes(), now);
                }
                asked
            })
            .unwrap_or(1000)
    }

    /// A directory with these names, asked for at that time.
    fn known(names: &[&str], now: Instant) -> Absent {
        let absent = Absent::new(TTL);
        assert_eq!(made(&absent, now), MADE);
        absent.listed(7, Some(&page(names)), now);
        absent
    }

    #[test]
    fn a_name_in_any_spelling_may_be_there_and_others_are_not() {
        let now = Instant::now();
        let absent = known(&["Cargo.toml", ".git", "a b"], now);
        assert!(absent.is_known(7, b"main.rs", now + TTL / 2));
        let asked = [
            "Cargo.toml",
            "cargo.TOML",
            ".gitignore",
            "LONGNA~1",
            "main.rs.",
            "stream:name",
            "main.db-journal",
            "main.db-wal",
            "main.db-mj0A1B2C9D3",
            "\u{212a}",
        ];
        for name in asked {
            assert!(!absent.is_known(7, name.as_bytes(), now), "{name}");
        }
        assert!(!absent.is_known(8, b"main.rs", now));
        assert!(!absent.is_known(7, b"main.rs", now + TTL));
        // A letter that some file systems take for `k`.
        assert!(!known(&["\u{212a}"], now).is_known(7, b"k", now));
    }

    #[test]
    fn what_is_made_is_there_also_while_the_directory_is_asked_for() {
        let now = Instant::now();
        let absent = Absent::new(TTL);
        made(&absent, now);
        absent.made(7, b"One", now);
        absent.listed(7, Some(&page(&["two"])), now);
        absent.made(7, b"three", now);
        for name in [&b"one"[..], b"two", b"three"] {
            assert!(!absent.is_known(7, name, now));
        }
        assert!(absent.is_known(7, b"four", now));
        absent.made(7, "\u{212a}".as_bytes(), now);
        assert!(!absent.is_known(7, b"four", now));
    }

    #[test]
    fn news_end_what_is_known_and_what_is_being_asked() {
        let now = Instant::now();
        let ends: [fn(&Absent); 3] = [
            |absent| absent.doubt(7),
            Absent::doubt_all,
            // Whoever has a lock finds what was done under it, though the news of that come later.
            |absent| absent.made(8, b"index.lock", Instant::now()),
        ];
        for end in ends {
            let absent = known(&[], now);
            assert!(absent.is_known(7, b"a", now));
            end(&absent);
            assert!(!absent.is_known(7, b"a", now));
            made(&absent, now);
            end(&absent);
            absent.listed(7, Some(&page(&[])), now);
            assert!(!absent.is_known(7, b"a", now));
            // Another one asks by the time that the first one is told.
            let later = now + Duration::from_millis(1);
            made(&absent, later);
            absent.listed(7, Some(&page(&[])), now);
            assert!(!absent.is_known(7, b"a", later));
            absent.listed(7, Some(&page(&["a"])), later);
            assert!(!absent.is_known(7, b"a", later) && absent.is_known(7, b"b", later));
        }
    }

    #[test]
    fn a_directory_is_asked_for_where_it_pays() {
        let now = Instant::now();
        let absent = known(&[], now);
        // Nothing was saved.
        assert_eq!(made(&absent, now), 2 * MADE);
        absent.listed(7, None, now);
        assert_eq!(made(&absent, now), 4 * MADE);
        let more = Page {
            next: Some(1),
            ..page(&[])
        };
        absent.listed(7, Some(&more), now);
        assert!(!absent.is_known(7, b"a", now));
        assert_eq!(made(&absent, now), 8 * MADE);
        absent.listed(7, Some(&page(&[])), now);
        assert!(absent.is_known(7, b"a", now));
        assert_eq!(made(&absent, now), MADE);
        // While it is being asked for, nobody asks too.
        assert_eq!(made(&absent, now), 1000);
        // Nor where nothing is made, or was long ago, or names are not kept.
        let absent = Absent::new(TTL);
        assert!((0..10).all(|_| !absent.missed(7, b"new", now)));
        for step in 0..10 {
            let then = now + step * (TTL + TTL);
            absent.made(7, b"new", then);
            assert!(!absent.missed(7, b"newer", then));
        }
        assert_eq!(made(&Absent::new(Duration::ZERO), now), 1000);
    }

    #[test]
    fn no_more_is_kept_than_is_of_use() {
        let now = Instant::now();
        let absent = known(&[], now);
        for number in 0..=NAMES {
            assert!(absent.is_known(7, b"a", now));
            absent.made(7, format!("f{number}").as_bytes(), now);
        }
        assert!(!absent.is_known(7, b"a", now));
        for directory in 0..1000 {
            absent.made(directory, b"new", now);
            assert!(lock(&absent.directories).len() <= DIRECTORIES);
        }
    }
}
