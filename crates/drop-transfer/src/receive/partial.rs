//! What an earlier run left of a file: it is hashed and named to the sender, who says what of it is right.

use std::sync::Arc;

use super::Receiver;
use super::incoming::Incoming;
use crate::groups::{GROUP, GroupHash, GroupHasher, group_count, group_len};
use sealway_drop::Error;

use sealway_drop::wire::control::{Body, Have};

/// Groups that one message names.
const BATCH: usize = 1024;

/// Hashes the whole groups on disk that hold something and names them.
pub(super) fn name(receiver: &Receiver<'_>, file: &Arc<Incoming>) -> Result<(), Error> {
    let staged = receiver.staged(file)?;
    let size = file.entry.size();
    let mut bytes = vec![0; GROUP as usize];
    let mut named: Vec<(u64, GroupHash)> = Vec::new();
    for range in file.partial() {
        let mut next = range.start.div_ceil(GROUP);
        // Holes are not named: the sender says again where it has some, which costs neither end a look.
        for data in staged.data(range.clone()) {
            let mut group = next.max(data.start / GROUP);
            while group < group_count(size) && group * GROUP < data.end {
                if receiver.cancel.is_set() {
                    return Err(Error::Cancelled);
                }
                let len = group_len(size, group);
                if len == 0 || group * GROUP + len > range.end {
                    break;
                }
                let bytes = &mut bytes[..len as usize];
                // What cannot be read is not named, so it is sent again.
                if staged.read_at(bytes, group * GROUP).is_ok() {
                    let mut hasher = GroupHasher::new(size, group);
                    hasher.update(bytes);
                    named.push((group, hasher.finish()));
                }
                group += 1;
                if named.len() == BATCH {
                    say(receiver, file, &mut named, false)?;
                }
            }
            next = group;
        }
    }
    say(receiver, file, &mut named, true)
}

fn say(receiver: &Receiver<'_>, file: &Incoming, named: &mut Vec<(u64, GroupHash)>, last: bool) -> Result<(), Error> {
    let named = std::mem::take(named);
    // Noted first: the answer may be here before this thread goes on.
    file.found(&named);
    let groups = named.iter().map(|(group, _)| *group).collect();
    let hashes = named.iter().flat_map(|(_, hash)| *hash).collect();
    sealway_drop::wire::talk::say(
        &mut sealway_drop::lock(receiver.control),
        Body::Have(Have {
            file: file.id,
            groups,
            hashes,
            last,
        }),
    )
}
