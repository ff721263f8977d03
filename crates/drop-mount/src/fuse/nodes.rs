//! Inode numbers of the mount and the paths they stand for.

use std::collections::HashMap;
use std::time::Instant;

use crate::tree::{Attr, TreeError, TreePath};

/// The root's inode number, fixed by FUSE.
pub(super) const ROOT: u64 = 1;

/// What the kernel knows of the tree. A number is never used twice, so none needs a generation.
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: HashMap<u64, Node>,
    names: HashMap<(u64, Box<[u8]>), u64>,
    next: u64,
}

#[derive(Debug, Default)]
struct Node {
    /// Directory and name; `None` for the root and for what has lost its name.
    place: Option<(u64, Box<[u8]>)>,
    /// The last attributes seen; unknown only for the root before the first look.
    attr: Option<Attr>,
    /// Until when they may be given to the kernel, which has not got them yet.
    fresh: Option<Instant>,
    /// Version of what the kernel may have in its page cache.
    cached: Option<u64>,
    /// The version that the kernel reads by itself from a local copy: the number stands for that one alone.
    pinned: Option<u64>,
    /// How often the kernel has been told of it and has not forgotten.
    lookups: u64,
}

impl Node {
    /// Whether it is of the object that `attr` describes, and of the version to which it is tied.
    fn is(&self, attr: &Attr) -> bool {
        let known = self
            .attr
            .is_some_and(|known| known.node == attr.node && known.kind == attr.kind);
        known && self.pinned.is_none_or(|version| version == attr.version)
    }
}

impl Default for Nodes {
    fn default() -> Self {
        let root = Node {
            lookups: 1,
            ..Node::default()
        };
        Self {
            nodes: HashMap::from([(ROOT, root)]),
            names: HashMap::new(),
            next: ROOT + 1,
        }
    }
}

impl Nodes {
    /// The path of a number; [`TreeError::Stale`] if it has none any more.
    pub(super) fn path(&self, ino: u64) -> Result<TreePath, TreeError> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = ino;
        while at != ROOT {
            let (parent, name) = self.place_of(at).ok_or(TreeError::Stale)?;
            names.push(name);
            at = *parent;
        }
        names.reverse();
        TreePath::parse(&names.join(&b'/'))
    }

    /// The directory a number stands in.
    pub(super) fn parent(&self, ino: u64) -> u64 {
        self.place_of(ino).map_or(ROOT, |(parent, _)| *parent)
    }

    fn place_of(&self, ino: u64) -> Option<&(u64, Box<[u8]>)> {
        self.nodes.get(&ino)?.place.as_ref()
    }

    /// The number of a path that the kernel knows.
    pub(super) fn find(&self, path: &TreePath) -> Option<u64> {
        path.components().try_fold(ROOT, |at, name| self.child(at, name))
    }

    /// What a number was like when it was last looked at.
    pub(super) fn attr(&self, ino: u64) -> Option<Attr> {
        self.nodes.get(&ino).and_then(|node| node.attr)
    }

    /// The number of a name that the kernel knows.
    pub(super) fn child(&self, parent: u64, name: &[u8]) -> Option<u64> {
        self.names.get(&(parent, name.into())).copied()
    }

    /// A name is gone.
    pub(super) fn unname(&mut self, parent: u64, name: &[u8]) {
        if let Some(ino) = self.names.remove(&(parent, Box::from(name)))
            && let Some(node) = self.nodes.get_mut(&ino)
        {
            (node.place, node.fresh) = (None, None);
        }
    }

    /// What has one name has another now, whose number it loses, or gets in exchange.
    pub(super) fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), exchange: bool) {
        let (from, to) = ((from.0, Box::from(from.1)), (to.0, Box::from(to.1)));
        let (moved, replaced) = (self.names.remove(&from), self.names.remove(&to));
        if moved == replaced {
            // The same name, or nothing that is known.
            return self.place(moved, Some(from));
        }
        self.place(replaced, exchange.then_some(from));
        self.place(moved, Some(to));
    }

    fn place(&mut self, ino: Option<u64>, place: Option<(u64, Box<[u8]>)>) {
        if let Some(ino) = ino
            && let Some(node) = self.nodes.get_mut(&ino)
        {
            node.place.clone_from(&place);
            // Its names, and when they last changed, are others now.
            node.fresh = None;
            if let Some(place) = place {
                self.names.insert(place, ino);
            }
        }
    }

    /// Counts one more lookup of `name` and gives its number: a new one if the name means another object than before.
    pub(super) fn remember(&mut self, parent: u64, name: &[u8], attr: &Attr) -> u64 {
        let key = (parent, Box::from(name));
        if let Some(&ino) = self.names.get(&key)
            && let Some(node) = self.nodes.get_mut(&ino)
        {
            if node.is(attr) {
                node.lookups += 1;
                return ino;
            }
            node.place = None;
        }
        let ino = self.next;
        self.next += 1;
        self.names.insert(key.clone(), ino);
        let node = Node {
            place: Some(key),
            attr: Some(*attr),
            lookups: 1,
            ..Node::default()
        };
        self.nodes.insert(ino, node);
        ino
    }

    /// Takes in what a number is like now. Whether its content is another than the one last seen.
    pub(super) fn update(&mut self, ino: u64, attr: &Attr) -> bool {
        let changed = self.differs(ino, attr);
        if let Some(node) = self.nodes.get_mut(&ino) {
            (node.attr, node.fresh) = (Some(*attr), None);
        }
        changed
    }

    /// The last attributes seen were not for the kernel, which may get them until then.
    pub(super) fn refresh(&mut self, ino: u64, until: Instant) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.fresh = Some(until);
        }
    }

    /// Such attributes, once: whoever asks a second time wants to know what has happened since. With until when they may be kept.
    pub(super) fn take_fresh(&mut self, ino: u64, now: Instant) -> Option<(Attr, Instant)> {
        let node = self.nodes.get_mut(&ino)?;
        let until = node.fresh.take().filter(|until| now < *until)?;
        Some((node.attr?, until))
    }

    /// Whether the kernel may have pages of a file.
    pub(super) fn may_have_pages(&self, ino: u64) -> bool {
        self.nodes.get(&ino).is_some_and(|node| node.cached.is_some())
    }

    /// Whether the content, as far as it is known, is of another version than this.
    pub(super) fn differs(&self, ino: u64, attr: &Attr) -> bool {
        self.attr(ino).is_some_and(|known| known.version != attr.version)
    }

    /// Whether the name still means what this number means.
    pub(super) fn is_same(&self, ino: u64, attr: &Attr) -> bool {
        ino == ROOT || self.nodes.get(&ino).is_some_and(|node| node.is(attr))
    }

    /// Ties a number to a version, or to none again.
    pub(super) fn pin(&mut self, ino: u64, version: Option<u64>) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.pinned = version;
        }
    }

    /// Whether a number is tied to a version.
    pub(super) fn is_pinned(&self, ino: u64) -> bool {
        self.nodes.get(&ino).is_some_and(|node| node.pinned.is_some())
    }

    /// The next lookup of a name whose number is tied to a version gives another one.
    pub(super) fn retire_pinned(&mut self, ino: u64) {
        if let Some(node) = self.nodes.get_mut(&ino)
            && node.pinned.is_some()
            && let Some(key) = node.place.take()
            && self.names.get(&key) == Some(&ino)
        {
            self.names.remove(&key);
        }
    }

    /// An open of content `version`: whether the kernel's pages are of the same, and may be kept.
    pub(super) fn keep_cache(&mut self, ino: u64, version: u64) -> bool {
        match self.nodes.get_mut(&ino) {
            Some(node) => node.cached.replace(version) == Some(version),
            None => false,
        }
    }

    /// The kernel's pages are not to be kept at the next open, and attributes are to be asked for.
    pub(super) fn doubt(&mut self, ino: u64) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            (node.cached, node.fresh) = (None, None);
        }
    }

    /// The kernel forgets `count` lookups.
    pub(super) fn forget(&mut self, ino: u64, count: u64) {
        if ino == ROOT {
            return;
        }
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        node.lookups = node.lookups.saturating_sub(count);
        if node.lookups == 0
            && let Some(node) = self.nodes.remove(&ino)
            && let Some(key) = node.place
            && self.names.get(&key) == Some(&ino)
        {
            self.names.remove(&key);
        }
    }

    /// Every number but the root's, with its directory and name.
    pub(super) fn all(&self) -> Vec<(u64, Option<(u64, Vec<u8>)>)> {
        let place = |node: &Node| node.place.as_ref().map(|(parent, name)| (*parent, name.to_vec()));
        self.nodes
            .iter()
            .filter(|(ino, _)| **ino != ROOT)
            .map(|(ino, node)| (*ino, place(node)))
            .collect()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert!(self.names.len() < self.nodes.len());
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn attr(node: u64, version: u64) -> Attr {
        Attr {
            node,
            version,
            ..Attr::default()
        }
    }

    #[test]
    fn numbers_stand_for_paths_until_forgotten() {
        let mut nodes = Nodes::default();
        let dir = nodes.remember(ROOT, b"dir", &attr(10, 1));
        let file = nodes.remember(dir, b"\xff", &attr(11, 1));
        assert_eq!(nodes.remember(dir, b"\xff", &attr(11, 2)), file);
        let path = TreePath::parse(b"dir/\xff").unwrap();
        assert_eq!(nodes.path(file), Ok(path.clone()));
        assert_eq!(nodes.find(&path), Some(file));
        nodes.forget(file, 1);
        assert_eq!(nodes.find(&path), Some(file));
        nodes.forget(file, 1);
        assert_eq!(nodes.find(&path), None);
        nodes.forget(dir, 1);
        assert_eq!(nodes.path(file), Err(TreeError::Stale));
        assert_eq!(nodes.len(), 1);
    }

    #[test]
    fn a_replaced_file_is_another_number_and_the_old_one_is_stale() {
        let mut nodes = Nodes::default();
        let old = nodes.remember(ROOT, b"a", &attr(10, 1));
        let new = nodes.remember(ROOT, b"a", &attr(12, 1));
        assert_ne!(old, new);
        assert_eq!(nodes.path(old), Err(TreeError::Stale));
        nodes.forget(old, 1);
        assert_eq!(nodes.find(&TreePath::parse(b"a").unwrap()), Some(new));
    }

    #[test]
    fn numbers_follow_renames() {
        let mut nodes = Nodes::default();
        let path = |text: &str| TreePath::parse(text.as_bytes()).unwrap();
        let dir = nodes.remember(ROOT, b"dir", &attr(10, 1));
        let (a, b) = (
            nodes.remember(dir, b"a", &attr(11, 1)),
            nodes.remember(ROOT, b"b", &attr(12, 1)),
        );
        nodes.rename((ROOT, b"b"), (dir, b"a"), true);
        assert_eq!((nodes.path(b), nodes.path(a)), (Ok(path("dir/a")), Ok(path("b"))));
        nodes.rename((dir, b"a"), (ROOT, b"b"), false);
        assert_eq!((nodes.path(b), nodes.path(a)), (Ok(path("b")), Err(TreeError::Stale)));
        nodes.rename((ROOT, b"dir"), (ROOT, b"d"), false);
        nodes.rename((ROOT, b"b"), (dir, b"b"), false);
        assert_eq!(nodes.path(b), Ok(path("d/b")));
        nodes.rename((dir, b"b"), (dir, b"b"), false);
        assert_eq!(nodes.find(&path("d/b")), Some(b));
        nodes.rename((ROOT, b"none"), (dir, b"b"), false);
        assert_eq!((nodes.find(&path("d/b")), nodes.path(b)), (None, Err(TreeError::Stale)));
        nodes.forget(b, 1);
        nodes.unname(ROOT, b"d");
        assert_eq!(nodes.path(dir), Err(TreeError::Stale));
    }

    #[test]
    fn a_number_that_is_tied_to_a_version_stands_for_no_other() {
        let mut nodes = Nodes::default();
        let old = nodes.remember(ROOT, b"a", &attr(10, 1));
        nodes.pin(old, Some(1));
        assert_eq!(nodes.remember(ROOT, b"a", &attr(10, 1)), old);
        assert!(!nodes.is_same(old, &attr(10, 2)));
        let new = nodes.remember(ROOT, b"a", &attr(10, 2));
        assert_ne!(old, new);
        assert_eq!(nodes.path(old), Err(TreeError::Stale));
        nodes.pin(old, None);
        assert_eq!(nodes.remember(ROOT, b"a", &attr(10, 3)), new);
        nodes.retire_pinned(new);
        assert_eq!(nodes.find(&TreePath::parse(b"a").unwrap()), Some(new));
        nodes.pin(new, Some(3));
        nodes.retire_pinned(new);
        assert_eq!(nodes.find(&TreePath::parse(b"a").unwrap()), None);
        assert_ne!(nodes.remember(ROOT, b"a", &attr(10, 3)), new);
    }

    #[test]
    fn attributes_that_the_kernel_lacks_are_given_once_and_while_they_may_be() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut nodes = Nodes::default();
        let ino = nodes.remember(ROOT, b"a", &attr(10, 1));
        let fresh = |nodes: &mut Nodes| nodes.refresh(ino, now + second);
        assert_eq!(nodes.take_fresh(ino, now), None);
        fresh(&mut nodes);
        assert_eq!(nodes.take_fresh(ino, now), Some((attr(10, 1), now + second)));
        assert_eq!(nodes.take_fresh(ino, now), None);
        fresh(&mut nodes);
        assert_eq!(nodes.take_fresh(ino, now + second), None);
        // Another look, doubt, and another name or none.
        let changes: [fn(&mut Nodes, u64); 4] = [
            |nodes, ino| {
                nodes.update(ino, &attr(10, 2));
            },
            |nodes, ino| nodes.doubt(ino),
            |nodes, _| nodes.rename((ROOT, b"a"), (ROOT, b"b"), false),
            |nodes, _| nodes.unname(ROOT, b"b"),
        ];
        for change in changes {
            fresh(&mut nodes);
            change(&mut nodes, ino);
            assert_eq!(nodes.take_fresh(ino, now), None);
        }
    }

    #[test]
    fn pages_are_kept_only_for_the_content_that_they_hold() {
        let mut nodes = Nodes::default();
        let ino = nodes.remember(ROOT, b"a", &attr(10, 1));
        assert!(!nodes.keep_cache(ino, 1));
        assert!(nodes.keep_cache(ino, 1));
        assert!(!nodes.keep_cache(ino, 2));
        assert!(nodes.may_have_pages(ino));
        nodes.doubt(ino);
        assert!(!nodes.may_have_pages(ino));
        assert!(!nodes.keep_cache(ino, 2));
        assert!(!nodes.update(ino, &attr(10, 1)));
        assert!(nodes.update(ino, &attr(10, 2)));
    }
}
