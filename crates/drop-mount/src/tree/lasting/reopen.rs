//! Files that are opened again by another way.

use std::sync::Arc;

use super::{Shared, Using};
use crate::tree::{Call, Change, Changed, OpenHow, TreeError};

impl Shared {
    /// Whether a file is open by the way there is.
    pub(super) fn is_open_there(&self, handle: u64) -> bool {
        let state = self.lock();
        let at = state.files.get(&handle).and_then(|file| file.at);
        state.way.is_some() && at.is_some_and(|(generation, _)| generation == state.generation)
    }

    /// The handle of a file by the way there is, or by the next one.
    pub(super) fn reach(self: &Arc<Self>, handle: u64, call: &Call) -> Result<(Using, u64), TreeError> {
        loop {
            // A way there is to be, before the file is open by it.
            let (generation, _) = self.current(call)?;
            match self.opened(handle, call) {
                Err(TreeError::Lost) => self.note_lost(generation),
                reached => return reached,
            }
        }
    }

    /// The handle of a file by the way there is. The file is opened there if it is not.
    pub(super) fn opened(&self, handle: u64, call: &Call) -> Result<(Using, u64), TreeError> {
        let state = self.lock();
        let (Some(way), Some(file)) = (&state.way, state.files.get(&handle)) else {
            let known = state.files.contains_key(&handle);
            return Err(if known { TreeError::Lost } else { TreeError::Stale });
        };
        let using = (state.generation, way.tree.clone());
        match file.at {
            Some((generation, handle)) if generation == using.0 => return Ok((using, handle)),
            _ if file.stale => {
                drop(state);
                return Err(TreeError::Stale);
            }
            _ => {}
        }
        let (path, node, version) = (file.path.clone(), file.node, file.version);
        let writing = file
            .writing
            .as_ref()
            .map(|writing| (writing.access, writing.can_go_on()));
        drop(state);
        let opened = match writing {
            None => using.1.open(&path, call).map(|opened| (opened, 0)),
            Some((_, false)) => Err(TreeError::NotFound),
            Some((access, true)) => {
                let how = OpenHow {
                    access,
                    ..OpenHow::default()
                };
                let opened = using.1.change(&Change::Open(path, how), call);
                opened.and_then(Changed::opened)
            }
        };
        let (mut stays, error) = match &opened {
            Ok((opened, _)) => (
                (opened.attr.node, opened.attr.version) == (node, version),
                TreeError::Stale,
            ),
            Err(TreeError::NotFound | TreeError::NotFile | TreeError::NotDirectory | TreeError::Denied) => {
                (false, TreeError::Stale)
            }
            Err(TreeError::Lost) => {
                self.note_lost(using.0);
                return Err(TreeError::Lost);
            }
            Err(error) => return Err(*error),
        };
        let mut state = self.lock();
        if let (Ok((opened, run)), Some(file)) = (&opened, state.files.get(&handle))
            && let Some(writing) = &file.writing
        {
            let same = stays || state.stamps.fit(node, &opened.attr);
            stays = same && opened.attr.node == node && writing.can_go_on() && writing.has_not_lost(*run);
        }
        let there = match (state.files.get_mut(&handle), &opened) {
            (Some(file), Ok((opened, run))) if stays => {
                file.at = Some((using.0, opened.handle));
                if let Some(writing) = &mut file.writing {
                    writing.run = *run;
                }
                Some(opened.handle)
            }
            (Some(file), _) => {
                file.stale = true;
                None
            }
            (None, _) => None,
        };
        drop(state);
        match (there, opened) {
            (Some(there), _) => Ok((using, there)),
            (None, Ok((opened, _))) => {
                using.1.close(opened.handle);
                Err(error)
            }
            (None, Err(_)) => Err(error),
        }
    }
}
