//! The subjects that run inside this process, under one face.
//!
//! Every engine gets the same key, nonce, AAD and buffer and works in place with the tag apart, so that what differs is
//! the engine. Calls are resolved at compile time: no engine pays for the face.

#[cfg(feature = "peers")]
mod peers;
mod rustcrypto;

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, Tag};

#[cfg(feature = "peers")]
pub(super) use peers::{AwsLc, Ring};
pub(super) use rustcrypto::RustCrypto;

/// A tag, bytes.
pub(super) type TagBytes = [u8; Suite::TAG_LEN];

/// An AEAD implementation.
pub(super) trait Engine: 'static {
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
}

/// This project's own engine.
pub(super) struct Sealway;

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
