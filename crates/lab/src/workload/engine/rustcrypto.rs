//! RustCrypto's pure-Rust ciphers: a subject, and the oracle that all subjects are checked against.

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::{ChaCha20Poly1305, XChaCha20Poly1305};
use sealway_aead::Suite;

use super::{Engine, TagBytes};

/// RustCrypto's `aes-gcm` and `chacha20poly1305`.
pub(crate) struct RustCrypto;

/// An expanded key. Boxed because the AES schedules are large.
pub(crate) enum Key {
    Aes128(Box<Aes128Gcm>),
    Aes256(Box<Aes256Gcm>),
    ChaCha(ChaCha20Poly1305),
    XChaCha(XChaCha20Poly1305),
}

fn seal<C: AeadInOut>(cipher: &C, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Option<TagBytes> {
    let tag = cipher
        .encrypt_inout_detached(nonce.try_into().ok()?, aad, in_out.into())
        .ok()?;
    tag.as_slice().try_into().ok()
}

fn open<C: AeadInOut>(cipher: &C, nonce: &[u8], aad: &[u8], in_out: &mut [u8], tag: &TagBytes) -> bool {
    let (Ok(nonce), Ok(tag)) = (nonce.try_into(), tag.as_slice().try_into()) else {
        return false;
    };
    cipher.decrypt_inout_detached(nonce, aad, in_out.into(), tag).is_ok()
}

impl Engine for RustCrypto {
    const NAME: &'static str = "rustcrypto";

    type Sealing = Key;
    type Opening = Key;

    fn has(_: Suite) -> bool {
        true
    }

    fn sealing(suite: Suite, key: &[u8]) -> Option<Key> {
        Some(match suite {
            Suite::Aes128Gcm => Key::Aes128(Box::new(Aes128Gcm::new_from_slice(key).ok()?)),
            Suite::Aes256Gcm => Key::Aes256(Box::new(Aes256Gcm::new_from_slice(key).ok()?)),
            Suite::ChaCha20Poly1305 => Key::ChaCha(ChaCha20Poly1305::new_from_slice(key).ok()?),
            Suite::XChaCha20Poly1305 => Key::XChaCha(XChaCha20Poly1305::new_from_slice(key).ok()?),
        })
    }

    fn opening(suite: Suite, key: &[u8]) -> Option<Key> {
        Self::sealing(suite, key)
    }

    #[inline(always)]
    fn seal(key: &Key, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Option<TagBytes> {
        match key {
            Key::Aes128(cipher) => seal(cipher.as_ref(), nonce, aad, in_out),
            Key::Aes256(cipher) => seal(cipher.as_ref(), nonce, aad, in_out),
            Key::ChaCha(cipher) => seal(cipher, nonce, aad, in_out),
            Key::XChaCha(cipher) => seal(cipher, nonce, aad, in_out),
        }
    }

    #[inline(always)]
    fn open(key: &Key, nonce: &[u8], aad: &[u8], in_out: &mut [u8], tag: &TagBytes) -> bool {
        match key {
            Key::Aes128(cipher) => open(cipher.as_ref(), nonce, aad, in_out, tag),
            Key::Aes256(cipher) => open(cipher.as_ref(), nonce, aad, in_out, tag),
            Key::ChaCha(cipher) => open(cipher, nonce, aad, in_out, tag),
            Key::XChaCha(cipher) => open(cipher, nonce, aad, in_out, tag),
        }
    }
}
