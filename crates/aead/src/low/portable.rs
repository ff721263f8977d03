//! Plain Rust, no vectors, no unsafe: the oracle.

mod chacha;
mod poly1305;

#[cfg(any(
    test,
    all(feature = "aes", not(all(target_arch = "x86_64", target_feature = "sse2")))
))]
use crate::low::{KeyWords, Text};
use crate::low::{Keyring, Lanes, MacRecord, Memory, Task, Use, wipe};

#[cfg(any(
    all(target_arch = "x86_64", target_feature = "sse2"),
    all(target_arch = "aarch64", target_feature = "neon")
))]
pub(crate) use chacha::CONSTANTS;
pub(crate) use chacha::{block, hchacha20, hchacha20_words};
pub(crate) use poly1305::{CLAMP, Poly1305};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) use poly1305::{Limbs, Limbs26, multiply, tag_of_limbs26};

/// Fills in r and s of each task's record from block 0 of its keystream (RFC 8439 section 2.6).
pub(crate) fn one_time_keys(keys: Keyring<'_>, tasks: &[Task], records: &mut [MacRecord]) -> Lanes {
    let mut stream = [0u32; 16];
    for (task, record) in tasks.iter().zip(records) {
        block(&keys.get(task.key).0, &task.nonce, &mut stream);
        let pair = |at: usize| u64::from(stream[at]) | u64::from(stream[at + 1]) << 32;
        record.r = [pair(0) & CLAMP[0], pair(2) & CLAMP[1]];
        record.s = [pair(4), pair(6)];
    }
    wipe(&mut stream);
    all_used(tasks.len())
}

/// XORs the keystream into each message, from block 1 on. Tasks marked [`Use::Skip`] are left alone.
pub(crate) fn xor(memory: &mut Memory<'_>, keys: Keyring<'_>, tasks: &[Task]) -> Lanes {
    let mut stream = [0u32; 16];
    let mut text = [0u8; 64];
    let mut blocks = 0;
    for task in tasks.iter().filter(|task| task.way != Use::Skip) {
        let mut nonce = task.nonce;
        for at in (0..task.len()).step_by(64) {
            let n = (task.len() - at).min(64);
            nonce[0] = nonce[0].wrapping_add(1);
            block(&keys.get(task.key).0, &nonce, &mut stream);
            text[..n].copy_from_slice(&memory.src()[task.src() + at..][..n]);
            for (bytes, word) in text.as_chunks_mut::<4>().0.iter_mut().zip(&stream) {
                *bytes = (u32::from_le_bytes(*bytes) ^ word).to_le_bytes();
            }
            memory.dst()[task.dst() + at..][..n].copy_from_slice(&text[..n]);
            blocks += 1;
        }
    }
    wipe(&mut stream);
    wipe(&mut text);
    all_used(blocks)
}

/// Computes the tag of each task named in `order`, into the same place of `tags`.
pub(crate) fn macs(
    memory: &Memory<'_>,
    tasks: &[Task],
    order: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    let mut blocks = 0;
    for &index in order {
        let (task, record) = (&tasks[index as usize], &records[index as usize]);
        let mut mac = Poly1305::resume(record);
        mac.absorb(memory.ciphertext(task));
        tags[index as usize] = mac.finish(u64::from(record.aad_len), task.len() as u64);
        blocks += task.mac_blocks() + 1;
    }
    all_used(blocks)
}

/// Seals or opens one message; gives the tag that the ciphertext should have.
#[cfg(any(
    test,
    all(feature = "aes", not(all(target_arch = "x86_64", target_feature = "sse2")))
))]
pub(crate) fn one(key: &KeyWords, nonce: &[u32; 4], aad: &[u8], text: &mut Text<'_>, way: Use) -> [u8; 16] {
    let mut stream = [0u32; 16];
    let mut bytes = [0u8; 64];
    block(&key.0, nonce, &mut stream);
    let pair = |at: usize| u64::from(stream[at]) | u64::from(stream[at + 1]) << 32;
    let mut mac = Poly1305::resume(&MacRecord {
        r: [pair(0) & CLAMP[0], pair(2) & CLAMP[1]],
        s: [pair(4), pair(6)],
        ..MacRecord::default()
    });
    mac.absorb(aad);
    let mut nonce = *nonce;
    for at in (0..text.len()).step_by(64) {
        let n = (text.len() - at).min(64);
        nonce[0] = nonce[0].wrapping_add(1);
        block(&key.0, &nonce, &mut stream);
        text.read(at, &mut bytes[..n]);
        if way == Use::Open {
            mac.absorb(&bytes[..n]);
        }
        for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&stream) {
            *bytes = (u32::from_le_bytes(*bytes) ^ word).to_le_bytes();
        }
        if way == Use::Seal {
            mac.absorb(&bytes[..n]);
        }
        text.write(at, &bytes[..n]);
    }
    wipe(&mut stream);
    wipe(&mut bytes);
    mac.finish(aad.len() as u64, text.len() as u64)
}

/// One lane, always busy.
fn all_used(steps: usize) -> Lanes {
    Lanes {
        used: steps as u64,
        offered: steps as u64,
    }
}
