//! Jobs that go one at a time through the library underneath: AES-GCM, with keys already expanded, and ChaCha20-Poly1305
//! where the library is faster than the backend.

use aws_lc_rs::aead::{CHACHA20_POLY1305, LessSafeKey, Nonce};
use zeroize::Zeroizing;

use crate::Suite;
use crate::key::{associated, expand};
use crate::low::{KeyWords, Memory, Task};

use super::{Job, Status};

/// Runs one AES-GCM job that has been checked.
pub(super) fn gcm(key: Option<&LessSafeKey>, job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Status {
    let nonce = job.nonce.first_chunk::<12>();
    run(key, nonce, job, memory, aad)
}

/// Runs one ChaCha20-Poly1305 job that has been checked, with its key as words and its nonce as the task has it.
pub(super) fn chacha(key: &KeyWords, task: &Task, job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Status {
    let mut bytes = Zeroizing::new([0u8; 32]);
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&key.0) {
        *bytes = word.to_le_bytes();
    }
    let mut nonce = [0u8; 12];
    for (bytes, word) in nonce.as_chunks_mut::<4>().0.iter_mut().zip(&task.nonce[1..]) {
        *bytes = word.to_le_bytes();
    }
    let key = expand(&CHACHA20_POLY1305, bytes.as_slice()).ok();
    run(key.as_ref(), Some(&nonce), job, memory, aad)
}

fn run(key: Option<&LessSafeKey>, nonce: Option<&[u8; 12]>, job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Status {
    let done = key
        .zip(nonce)
        .and_then(|(key, nonce)| attempt(key, Nonce::assume_unique_for_key(*nonce), job, memory, aad));
    done.unwrap_or_else(|| {
        memory.dst()[job.dst as usize..][..job.output_len()].fill(0);
        if job.opens { Status::Unauthentic } else { Status::Failed }
    })
}

/// `None` if the library says no; the output may then hold anything.
fn attempt(key: &LessSafeKey, nonce: Nonce, job: &Job, memory: &mut Memory<'_>, aad: &[u8]) -> Option<Status> {
    let (src, dst, len) = (job.src as usize, job.dst as usize, job.len as usize);
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
