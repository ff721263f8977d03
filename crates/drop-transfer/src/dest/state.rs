//! What is known of a transfer while it runs: every name so far, and what is to come.

use std::collections::{HashMap, HashSet};

use super::Error;
use super::decision::{Admission, Answer, Placed, Skip};
use super::journal::Partial;
use crate::entry::{Entry, Time};
use crate::stat::Identity;
use sealway_drop::names::{Folding, RelPath, Rules};

#[derive(Debug)]
pub(super) struct State {
    folding: Folding,
    /// Every path so far, by a hash of what makes it one name on this file system.
    seen: HashMap<[u8; 16], Seen>,
    /// Only where names fold: how they were spelt.
    spelt: HashMap<[u8; 16], RelPath>,
    /// The directory of the last entry, which mostly is that of the next.
    last_parent: Option<(Box<[u8]>, Seen)>,
    pub(super) partials: HashMap<Box<[u8]>, (u32, Partial)>,
    pub(super) old_directories: HashSet<RelPath>,
    /// Files that are to come.
    pub(super) pending: HashSet<u32>,
    /// Entries that the user is to be asked about.
    pub(super) asked: HashSet<u32>,
    pub(super) answers: HashMap<u32, Answer>,
    pub(super) links: Vec<(u32, Entry)>,
    /// What became of the first of them.
    pub(super) linked: Vec<(u32, RelPath, Placed)>,
    /// Directories that this transfer made, parents first.
    pub(super) made: Vec<(RelPath, u32, Time)>,
    /// What an entry may replace: what had its name when that was decided.
    pub(super) decided: HashMap<u32, Identity>,
    /// What this transfer has put or joined where something else may be: never overwritten by what comes later. Names that are
    /// one to the file system, and two here, are noticed by it.
    pub(super) placed: HashSet<Identity>,
    /// Directories that are homes under another name than the system's list has.
    pub(super) homes: HashSet<Box<[u8]>>,
    /// Directories whose content changed, for their way to the disk.
    pub(super) touched: HashSet<Box<[u8]>>,
    concluded: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Seen {
    File,
    Symlink,
    Refused,
    /// There before; something may be in it.
    Directory,
    /// Made a moment ago: nothing is in it but what came since.
    Fresh,
}

impl State {
    pub(super) fn new(folding: Folding, partials: HashMap<u32, Partial>, directories: HashSet<RelPath>) -> State {
        let partials = partials
            .into_iter()
            .map(|(slot, partial)| (partial.path.key().into(), (slot, partial)))
            .collect();
        State {
            folding,
            seen: HashMap::new(),
            spelt: HashMap::new(),
            last_parent: None,
            partials,
            old_directories: directories,
            pending: HashSet::new(),
            asked: HashSet::new(),
            answers: HashMap::new(),
            links: Vec::new(),
            linked: Vec::new(),
            made: Vec::new(),
            decided: HashMap::new(),
            placed: HashSet::new(),
            homes: HashSet::new(),
            touched: HashSet::new(),
            concluded: false,
        }
    }

    /// Whether a later run would find nothing of use.
    pub(super) fn untouched(&self) -> bool {
        self.concluded || (self.partials.is_empty() && self.made.is_empty() && self.old_directories.is_empty())
    }

    pub(super) fn conclude(&mut self) {
        self.concluded = true;
    }

    pub(super) fn take_partial(&mut self, path: &RelPath) -> Option<(u32, Partial)> {
        self.partials.remove(path.key())
    }

    /// Keeps for a later run what a dropped file had.
    pub(super) fn keep_partial(&mut self, slot: u32, partial: Partial) {
        self.partials.insert(partial.path.key().into(), (slot, partial));
    }

    /// Whether what these components name belongs to this transfer: its top does, and nothing on the way was left out.
    pub(super) fn is_sent(&self, way: &[&[u8]]) -> bool {
        (1..=way.len()).all(|len| {
            let Ok(path) = RelPath::new(way.iter().take(len), Rules::POSIX) else {
                return len > 1;
            };
            match self.seen.get(&self.hash(&path)) {
                Some(seen) => *seen != Seen::Refused,
                None => len > 1,
            }
        })
    }

    /// Whether the directory of a path was made a moment ago, so that all that is in it came with this transfer.
    pub(super) fn is_in_fresh(&self, path: &RelPath) -> bool {
        match &self.last_parent {
            Some((key, seen)) if **key == *path.parent_key() => *seen == Seen::Fresh,
            _ => path
                .parent()
                .is_some_and(|parent| self.seen.get(&self.hash(&parent)) == Some(&Seen::Fresh)),
        }
    }

    /// Takes down what an entry may replace: nothing that came with this transfer.
    pub(super) fn decide(&mut self, id: u32, existing: Identity) {
        if !self.placed.contains(&existing) {
            self.decided.insert(id, existing);
        }
    }

    /// Leaves out what was taken down already.
    pub(super) fn refuse(&mut self, path: &RelPath, skip: Skip) -> Admission {
        self.change(path, Seen::Refused);
        Admission::Skipped(skip)
    }

    /// Whether a name begins with a dot right in a home that [`super::hidden::Homes`] does not know by its name.
    pub(super) fn hides(&self, path: &RelPath) -> bool {
        !self.homes.is_empty() && self.homes.contains(path.parent_key()) && super::hidden::is_dotted(path.name())
    }

    fn hash(&self, path: &RelPath) -> [u8; 16] {
        let hash = match self.folding {
            Folding::NONE => blake3::hash(path.key()),
            folding => blake3::hash(&folding.key(path)),
        };
        let mut short = [0; 16];
        short.copy_from_slice(&hash.as_bytes()[..16]);
        short
    }

    /// Takes a path down, unless it or its twin is there.
    pub(super) fn register(&mut self, path: &RelPath, seen: Seen) -> Result<(), Error> {
        let hash = self.hash(path);
        if self.seen.contains_key(&hash) {
            return Err(match self.spelt.get(&hash) {
                Some(other) if other != path => Error::Twins {
                    path: path.clone(),
                    other: other.clone(),
                },
                _ => Error::Twice { path: path.clone() },
            });
        }
        self.seen.insert(hash, seen);
        if self.folding != Folding::NONE {
            self.spelt.insert(hash, path.clone());
        }
        Ok(())
    }

    pub(super) fn change(&mut self, path: &RelPath, seen: Seen) {
        let hash = self.hash(path);
        self.seen.insert(hash, seen);
    }

    /// What the directory of a path is; `Fresh` or `Directory` for the destination itself.
    pub(super) fn parent(&mut self, path: &RelPath) -> Result<Seen, Error> {
        let Some(parent) = path.parent() else {
            return Ok(Seen::Directory);
        };
        if let Some((key, seen)) = &self.last_parent
            && **key == *parent.key()
        {
            return Ok(*seen);
        }
        let hash = self.hash(&parent);
        let found = match self.seen.get(&hash) {
            Some(Seen::File) => Err("a file"),
            Some(Seen::Symlink) => Err("a symbolic link"),
            Some(seen) => Ok(*seen),
            None => Err("nothing that it sent before"),
        };
        let seen = found.map_err(|found| Error::Parent {
            path: path.clone(),
            found,
        })?;
        if let Some(other) = self.spelt.get(&hash)
            && *other != parent
        {
            return Err(Error::Twins {
                path: parent,
                other: other.clone(),
            });
        }
        self.last_parent = Some((parent.key().into(), seen));
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::{Seen, State};
    use crate::dest::Error;
    use sealway_drop::names::{Folding, RelPath, Rules};

    fn path(text: &str) -> RelPath {
        RelPath::new(text.split('/'), Rules::POSIX).unwrap()
    }

    fn state(case: bool, normal: bool) -> State {
        State::new(Folding { case, normal }, HashMap::new(), HashSet::new())
    }

    #[test]
    fn twins_of_a_file_system_that_folds_are_named_both() {
        let pairs = [
            ("Readme", "README"),
            ("stra\u{df}e", "STRASSE"),
            ("a/\u{c4}b", "a/a\u{308}B"),
            ("x", "x\u{200d}"),
        ];
        for (first, second) in pairs {
            let mut folding = state(true, true);
            folding.register(&path(first), Seen::File).unwrap();
            match folding.register(&path(second), Seen::File) {
                Err(Error::Twins { path: p, other }) => assert_eq!((p, other), (path(second), path(first))),
                other => panic!("{first} and {second}: {other:?}"),
            }
            let mut exact = state(false, false);
            exact.register(&path(first), Seen::File).unwrap();
            exact.register(&path(second), Seen::File).unwrap();
        }
        let mut normalising = state(false, true);
        normalising.register(&path("\u{e9}"), Seen::File).unwrap();
        normalising.register(&path("\u{c9}"), Seen::File).unwrap();
        assert!(matches!(
            normalising.register(&path("e\u{301}"), Seen::File),
            Err(Error::Twins { .. })
        ));
    }

    #[test]
    fn a_directory_spelt_otherwise_is_no_parent_where_names_fold() {
        let mut state = state(true, true);
        state.register(&path("Dir"), Seen::Directory).unwrap();
        assert!(matches!(state.parent(&path("dir/x")), Err(Error::Twins { .. })));
        assert_eq!(state.parent(&path("Dir/x")).unwrap(), Seen::Directory);
    }

    #[test]
    fn names_that_are_no_utf8_fold_to_themselves() {
        let mut state = state(true, true);
        let bytes = |name: &[u8]| RelPath::new([name], Rules::POSIX).unwrap();
        state.register(&bytes(b"A\xff"), Seen::File).unwrap();
        state.register(&bytes(b"a\xff"), Seen::File).unwrap();
        assert!(matches!(
            state.register(&bytes(b"a\xff"), Seen::File),
            Err(Error::Twice { .. })
        ));
    }
}
