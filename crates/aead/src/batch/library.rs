//! Jobs that go one at a time through the library underneath: AES-GCM, with keys already expanded, and ChaCha20-Poly1305
//! where the library is faster than the backend.

use crate::Suite;
use crate::library::LibraryKey;
use crate::low::Memory;
#[cfg(feature = "aes")]
use crate::{
    key::LIBRARY_SCRUB,
    low::{KeyWords, Task, scrub_stack},
};

use super::{Job, Keys, Status};

/// Runs AES-GCM jobs that have been checked, in their order: there is nothing to gain by another. Gives how many were refused.
#[inline(never)]
pub(super) fn gcm_each(
    keys: &Keys,
    jobs: &[Job],
    memory: &mut Memory<'_>,
    aad: &[u8],
    statuses: &mut [Status],
) -> usize {
    let mut refused = 0;
    for (job, status) in jobs.iter().zip(statuses) {
        *status = gcm(keys.expanded(job.slot), job, memory, job.associated(aad));
        refused += usize::from(*status != Status::Done);
    }
    refused
}

/// Runs one AES-GCM job that has been checked.
#[inline(always)]
pub(super) fn gcm(key: Option<&LibraryKey>, job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Status {
    let nonce = job.nonce.first_chunk::<12>();
    run(key, nonce, job, memory, aad)
}

/// Runs one ChaCha20-Poly1305 job that has been checked, with its nonce as the task has it; its key as words, and as the
/// library has it if that is at hand.
#[cfg(feature = "aes")]
pub(super) fn chacha(
    ready: Option<&LibraryKey>,
    key: &KeyWords,
    task: &Task,
    job: &Job,
    memory: &mut Memory<'_>,
    aad: &[u8],
) -> Status {
    let mut nonce = [0u8; 12];
    for (bytes, word) in nonce.as_chunks_mut::<4>().0.iter_mut().zip(&task.nonce[1..]) {
        *bytes = word.to_le_bytes();
    }
    let made = if ready.is_some() {
        None
    } else {
        super::keys::key_of(key)
    };
    let status = run(ready.or(made.as_ref()), Some(&nonce), job, memory, aad);
    scrub_stack::<LIBRARY_SCRUB>();
    status
}

#[inline(always)]
fn run(key: Option<&LibraryKey>, nonce: Option<&[u8; 12]>, job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Status {
    let done = key
        .zip(nonce)
        .and_then(|(key, nonce)| attempt(key, *nonce, job, memory, aad));
    done.unwrap_or_else(|| {
        memory.dst()[job.dst as usize..][..job.output_len()].fill(0);
        if job.opens { Status::Unauthentic } else { Status::Failed }
    })
}

/// `None` if the library says no; the output may then hold anything.
#[inline(always)]
fn attempt(key: &LibraryKey, nonce: [u8; 12], job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Option<Status> {
    let (src, dst, len) = (job.src as usize, job.dst as usize, job.len as usize);
    match (memory, job.opens) {
        (Memory::Separate { src: from, dst: to }, false) => {
            let (text, tag) = to[dst..][..len + Suite::TAG_LEN].split_at_mut(len);
            key.seal_to(nonce, aad, &from[src..][..len], text, tag).ok()?;
        }
        (Memory::Separate { src: from, dst: to }, true) => {
            let (text, tag) = from[src..][..len + Suite::TAG_LEN].split_at(len);
            key.open_to(nonce, aad, text, tag, &mut to[dst..][..len]).ok()?;
        }
        (Memory::InPlace(arena), false) => {
            let (text, tag) = arena[dst..][..len + Suite::TAG_LEN].split_at_mut(len);
            key.seal_in_place_to(nonce, aad, text, tag).ok()?;
        }
        (Memory::InPlace(arena), true) => {
            let (text, tag) = arena[dst..][..len + Suite::TAG_LEN].split_at_mut(len);
            let tag = tag.first_chunk::<{ Suite::TAG_LEN }>()?;
            key.open_in_place(nonce, aad, text, tag).ok()?;
        }
    }
    Some(Status::Done)
}
