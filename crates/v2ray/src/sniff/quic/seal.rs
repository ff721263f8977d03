//! Initial packets as a client seals them, for tests and fuzzing.

use aes::Block;
use aes::cipher::BlockCipherEncrypt;
use hkdf::Hkdf;
use sealway_aead::{Nonce, SealingKey, Suite};
use sha2::Sha256;

use super::{Keys, SAMPLE, VERSIONS, expand};

/// Seals frames as one packet of this version (0 to 2: version 1, draft 29, version 2), padded to `least` bytes of frames.
pub(crate) fn seal(version: usize, id: &[u8], number: u32, frames: &[u8], least: usize) -> Vec<u8> {
    let version = &VERSIONS[version % VERSIONS.len()];
    let Some(keys) = Keys::new(version, id) else {
        return Vec::new();
    };
    let initial = Hkdf::<Sha256>::new(Some(&version.salt), id);
    let client: [u8; 32] = expand(&initial, b"client in");
    let Ok(client) = Hkdf::<Sha256>::from_prk(&client) else {
        return Vec::new();
    };
    let key: [u8; 16] = expand(&client, version.key);
    let mut frames = frames.to_vec();
    // Without any the sample would lie beyond the end.
    frames.resize(frames.len().max(least), 0);
    let mut head = vec![0xc3 | version.initial << 4];
    head.extend_from_slice(&version.number.to_be_bytes());
    head.push(id.len() as u8);
    head.extend_from_slice(id);
    head.extend_from_slice(&[0, 0]);
    let len = (4 + frames.len() + Suite::TAG_LEN) as u32;
    head.extend_from_slice(&(len | 0x8000_0000).to_be_bytes());
    let number_at = head.len();
    head.extend_from_slice(&number.to_be_bytes());
    let mut nonce = keys.iv;
    for (byte, number) in nonce[8..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= number;
    }
    let mut sealed = vec![0; frames.len() + Suite::TAG_LEN];
    let sealing = SealingKey::new(Suite::Aes128Gcm, &key).and_then(|key| {
        let nonce = Nonce::assume_unique(Suite::Aes128Gcm, &nonce)?;
        key.seal_to(nonce, &head, &frames, &mut sealed)
    });
    if sealing.is_err() {
        return Vec::new();
    }
    let mut mask = Block::default();
    mask.copy_from_slice(&sealed[..SAMPLE]);
    keys.header.encrypt_block(&mut mask);
    head[0] ^= mask[0] & 0x0f;
    for at in 0..4 {
        head[number_at + at] ^= mask[1 + at];
    }
    [head, sealed].concat()
}

/// A CRYPTO frame.
pub(crate) fn crypto(at: usize, piece: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x06];
    frame.extend_from_slice(&(at as u32 | 0x8000_0000).to_be_bytes());
    frame.extend_from_slice(&(piece.len() as u16 | 0x4000).to_be_bytes());
    frame.extend_from_slice(piece);
    frame
}
