//! The subjects that run inside this process, under one face.
//!
//! Every engine gets the same key, nonce, AAD and buffer and works in place with the tag apart, so that what differs is
//! the engine. Calls are resolved at compile time: no engine pays for the face.

#[cfg(feature = "peers")]
mod peers;
mod rustcrypto;

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, Tag};

#[cfg(feature = "peers")]
pub(crate) use peers::{AwsLc, Ring};
pub(crate) use rustcrypto::RustCrypto;

/// A tag, bytes.
pub(crate) type TagBytes = [u8; Suite::TAG_LEN];

/// An AEAD implementation.
pub(crate) trait Engine: 'static {
    /// The subject's name.
    const NAME: &'static str;

    /// A key that seals.
    type Sealing;

    /// A key that opens.
    type Opening;

    /// True if the engine has the suite.
    fn has(suite: Suite) -> bool;

    /// Sets up a key to seal with, or `None` if the engine refuses.
    fn sealing(suite: Suite, key: &[u8]) -> Option<Self::Sealing>;

    /// Sets up a key to open with, or `None` if the engine refuses.
    fn opening(suite: Suite, key: &[u8]) -> Option<Self::Opening>;

    /// Seals in place, or `None` if the engine refuses.
    fn seal(key: &Self::Sealing, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Option<TagBytes>;

    /// Opens in place; false if the message is not authentic or the engine refuses.
    fn open(key: &Self::Opening, nonce: &[u8], aad: &[u8], in_out: &mut [u8], tag: &TagBytes) -> bool;

    /// Seals `src` into `dst`, ciphertext and then tag; false if the engine refuses. A copy and [`Engine::seal`], unless the
    /// engine has a better way.
    #[inline(always)]
    fn seal_to(key: &Self::Sealing, nonce: &[u8], aad: &[u8], src: &[u8], dst: &mut [u8]) -> bool {
        let Some((text, room)) = dst.split_at_mut_checked(src.len()) else {
            return false;
        };
        text.copy_from_slice(src);
        match Self::seal(key, nonce, aad, text) {
            Some(tag) if room.len() == tag.len() => {
                room.copy_from_slice(&tag);
                true
            }
            _ => false,
        }
    }

    /// Opens `src`, ciphertext and then tag, into `dst`; false if it is not authentic or the engine refuses. A copy and
    /// [`Engine::open`], unless the engine has a better way.
    #[inline(always)]
    fn open_to(key: &Self::Opening, nonce: &[u8], aad: &[u8], src: &[u8], dst: &mut [u8]) -> bool {
        let Some((text, tag)) = src.split_last_chunk() else {
            return false;
        };
        if text.len() != dst.len() {
            return false;
        }
        dst.copy_from_slice(text);
        Self::open(key, nonce, aad, dst, tag)
    }
}

/// This project's own engine.
pub(crate) struct Sealway;

impl Engine for Sealway {
    const NAME: &'static str = "sealway";

    type Sealing = SealingKey;
    type Opening = OpeningKey;

    fn has(_: Suite) -> bool {
        true
    }

    #[inline(always)]
    fn sealing(suite: Suite, key: &[u8]) -> Option<SealingKey> {
        SealingKey::new(suite, key).ok()
    }

    #[inline(always)]
    fn opening(suite: Suite, key: &[u8]) -> Option<OpeningKey> {
        OpeningKey::new(suite, key).ok()
    }

    #[inline(always)]
    fn seal(key: &SealingKey, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Option<TagBytes> {
        let nonce = Nonce::assume_unique(key.suite(), nonce).ok()?;
        key.seal_in_place(nonce, aad, in_out).ok().map(|tag| tag.0)
    }

    #[inline(always)]
    fn open(key: &OpeningKey, nonce: &[u8], aad: &[u8], in_out: &mut [u8], tag: &TagBytes) -> bool {
        key.open_in_place(nonce, aad, in_out, &Tag(*tag)).is_ok()
    }
}
