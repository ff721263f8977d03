//! Open directories: the kernel asks by position, the tree answers by page.

use crate::tree::{Call, Entry, MAX_PAGE, RemoteTree, TreeError, TreePath};

/// One open directory, of which one page is held.
#[derive(Debug, Default)]
pub(super) struct Dir {
    /// Position of the first entry held.
    first: u64,
    entries: Vec<Entry>,
    /// Where the tree goes on; `None` at its end. Only meaningful once begun.
    next: Option<u64>,
    begun: bool,
}

impl Dir {
    /// The entries held from `position` on, after fetching what is missing; empty at the end of the directory.
    pub(super) fn entries_from(
        &mut self,
        tree: &dyn RemoteTree,
        path: &TreePath,
        position: u64,
        call: &Call,
    ) -> Result<&[Entry], TreeError> {
        if !self.begun || position < self.first {
            *self = Self::default();
            self.fetch(tree, path, 0, call)?;
        }
        while position >= self.end()
            && let Some(next) = self.next
        {
            self.first = self.end();
            self.fetch(tree, path, next, call)?;
        }
        let skip = usize::try_from(position - self.first).unwrap_or(usize::MAX);
        Ok(self.entries.get(skip..).unwrap_or(&[]))
    }

    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn fetch(&mut self, tree: &dyn RemoteTree, path: &TreePath, cursor: u64, call: &Call) -> Result<(), TreeError> {
        self.entries.clear();
        call.left()?;
        let page = tree.list(path, cursor, MAX_PAGE, call)?;
        if page.entries.len() > MAX_PAGE || (page.entries.is_empty() && page.next == Some(cursor)) {
            return Err(TreeError::Protocol("a page of a directory that cannot be"));
        }
        page.entries
            .iter()
            .try_for_each(|entry| crate::tree::check_name(&entry.name))
            .map_err(|_| TreeError::Protocol("a name that is not one path component"))?;
        (self.entries, self.next, self.begun) = (page.entries, page.next, true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::MemoryTree;
    use std::time::Duration;

    #[test]
    fn any_position_gives_the_entries_from_there() {
        let tree = MemoryTree::new();
        for i in 0..2500 {
            tree.put_file(&TreePath::parse(format!("{i:04}").as_bytes()).unwrap(), "");
        }
        let call = Call::within(Duration::from_secs(600));
        let mut dir = Dir::default();
        for position in [0, 1, 1023, 1024, 2047, 2499, 5, 2500, 0, 9999] {
            let entries = dir.entries_from(&tree, &TreePath::root(), position, &call).unwrap();
            let want = (position < 2500).then(|| format!("{position:04}").into_bytes());
            assert_eq!(entries.first().map(|entry| entry.name.clone()), want);
        }
    }
}
