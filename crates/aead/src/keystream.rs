//! The bare ChaCha20 keystream, for protocols that are built of more than AEADs.
//!
//! BIP324 masks lengths with it and derives its next keys from it. A keystream by itself protects nothing: whoever masks
//! something with it must authenticate that by other means and must never use one stretch twice.

use crate::batch::Backend;
use crate::low::{KeyWords, Keyring, Memory, Task, Use, scrub_stack, wipe};
use crate::{Error, Suite};

/// Bytes of a block of ChaCha20.
pub const BLOCK_LEN: usize = 64;

/// Bytes made at a time.
const STRETCH: usize = 16 * BLOCK_LEN;

/// What the keystream is XORed into; kernels also want room for a tag behind a text.
const ZEROS: [u8; STRETCH + Suite::TAG_LEN] = [0; STRETCH + Suite::TAG_LEN];

/// Words of stack that the kernels may have used, as in `batch`.
const SCRUB_WORDS: usize = 896;

/// Fills `out` with the keystream of ChaCha20 (RFC 8439 section 2.4) from the block with number `counter` on, with the
/// widest kernels of this machine. The caller wipes the bytes passed in and what it was given.
///
/// ```
/// let mut mask = [0; 3];
/// sealway_aead::keystream::fill(&[7; 32], &[0; 12], 0, &mut mask)?;
/// # Ok::<(), sealway_aead::Error>(())
/// ```
///
/// # Errors
/// [`Error::KeystreamEnd`] if the block counter would pass 2^32 - 1; `out` is then untouched.
pub fn fill(key: &[u8; 32], nonce: &[u8; 12], counter: u32, out: &mut [u8]) -> Result<(), Error> {
    fill_with(Backend::best(), key, nonce, counter, out)
}

/// The same with given kernels.
///
/// # Errors
/// As [`fill`].
pub fn fill_with(
    backend: Backend,
    key: &[u8; 32],
    nonce: &[u8; 12],
    counter: u32,
    out: &mut [u8],
) -> Result<(), Error> {
    let blocks = out.len().div_ceil(BLOCK_LEN) as u64;
    if u64::from(counter) + blocks > 1 << 32 {
        return Err(Error::KeystreamEnd {
            counter,
            len: out.len() as u64,
        });
    }
    let [n0, n1, n2] = *nonce.as_chunks::<4>().0 else {
        return Err(Error::Backend);
    };
    let mut words = [KeyWords::default()];
    words[0].set(key);
    let [n0, n1, n2] = [n0, n1, n2].map(u32::from_le_bytes);
    // Kernels count one up before each block: block 0 of an AEAD is its one-time key.
    let mut before = counter.wrapping_sub(1);
    for stretch in out.chunks_mut(STRETCH) {
        let task = Task {
            nonce: [before, n0, n1, n2],
            src: 0,
            dst: 0,
            len: stretch.len() as u32,
            key: 0,
            job: 0,
            way: Use::Open,
        };
        let mut memory = Memory::Separate {
            src: &ZEROS,
            dst: stretch,
        };
        let keys = Keyring {
            resident: &words,
            derived: &[],
        };
        backend.xor(&mut memory, keys, &[task]);
        before = before.wrapping_add((STRETCH / BLOCK_LEN) as u32);
    }
    wipe(&mut words);
    scrub_stack::<SCRUB_WORDS>();
    Ok(())
}
