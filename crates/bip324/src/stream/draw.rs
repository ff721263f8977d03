//! What a handshake takes of a random generator.

use std::io;

use zeroize::Zeroizing;

use crate::{GARBAGE_MAX, LocalKey};

/// Draws a key from a cryptographic generator.
///
/// # Errors
/// What `random` says.
pub fn draw_key(random: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<LocalKey> {
    let mut drawn = Zeroizing::new([0; 64]);
    // One in 2^128 draws is no key: a generator that gives such twice is broken.
    for _ in 0..2 {
        random(&mut drawn[..])?;
        let [secret, auxiliary] = drawn.as_chunks::<32>().0 else {
            break;
        };
        if let Ok(key) = LocalKey::new(secret, auxiliary) {
            return Ok(key);
        }
    }
    Err(io::Error::other("the generator gives no random bytes"))
}

/// Draws garbage as Bitcoin Core does: 0 to 4095 random bytes, every length equally likely.
///
/// # Errors
/// What `random` says.
pub fn draw_garbage(random: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<Vec<u8>> {
    const { assert!(GARBAGE_MAX + 1 == 1 << 12, "a length is twelve bits") };
    let mut len = [0; 2];
    random(&mut len)?;
    let mut garbage = vec![0; usize::from(u16::from_le_bytes(len)) & GARBAGE_MAX];
    random(&mut garbage)?;
    Ok(garbage)
}
