//! AES-GCM jobs: one at a time through the library underneath, with keys already expanded.

use aws_lc_rs::aead::{LessSafeKey, Nonce};

use crate::Suite;
use crate::key::associated;
use crate::low::Memory;

use super::{Job, Status};

/// Runs one job that has been checked.
pub(super) fn run(key: Option<&LessSafeKey>, job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Status {
    key.and_then(|key| attempt(key, job, memory, aad)).unwrap_or_else(|| {
        memory.dst()[job.dst as usize..][..job.output_len()].fill(0);
        if job.opens { Status::Unauthentic } else { Status::Failed }
    })
}

/// `None` if the library says no; the output may then hold anything.
fn attempt(key: &LessSafeKey, job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Option<Status> {
    let (src, dst, len) = (job.src as usize, job.dst as usize, job.len as usize);
    let nonce = Nonce::assume_unique_for_key(*job.nonce.first_chunk::<12>()?);
    let aad = associated(aad);
    match (memory, job.opens) {
        (Memory::Separate { src: from, dst: to }, false) => {
            let (text, tag) = to[dst..][..len + Suite::TAG_LEN].split_at_mut(len);
            key.seal_out_of_place_scatter(nonce, aad, &from[src..][..len], text, &[], tag)
                .ok()?;
        }
        (Memory::Separate { src: from, dst: to }, true) => {
            let (text, tag) = from[src..][..len + Suite::TAG_LEN].split_at(len);
            key.open_separate_gather(nonce, aad, text, tag, &mut to[dst..][..len])
                .ok()?;
        }
        (Memory::InPlace(arena), false) => {
            let (text, tag) = arena[dst..][..len + Suite::TAG_LEN].split_at_mut(len);
            tag.copy_from_slice(key.seal_in_place_separate_tag(nonce, aad, text).ok()?.as_ref());
        }
        (Memory::InPlace(arena), true) => {
            let (text, tag) = arena[dst..][..len + Suite::TAG_LEN].split_at_mut(len);
            key.open_in_place_separate_tag(nonce, aad, tag, text).ok()?;
        }
    }
    Some(Status::Done)
}
