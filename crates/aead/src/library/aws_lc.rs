//! aws-lc.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use crate::{Error, Suite};

/// An expanded key. The library keeps it in memory of its own, which it clears when freeing it.
///
/// After an error of a call the output may hold anything: the caller wipes it.
pub(crate) struct LibraryKey(LessSafeKey);

impl LibraryKey {
    /// Sets up a key; of XChaCha20 it is a sub-key.
    #[inline]
    pub(crate) fn new(suite: Suite, key: &[u8]) -> Result<Self, Error> {
        let algorithm = match suite {
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 | Suite::XChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        UnboundKey::new(algorithm, key)
            .map(|key| LibraryKey(LessSafeKey::new(key)))
            .map_err(|_| Error::Backend)
    }

    /// Seals in place; gives the tag.
    #[inline(always)]
    pub(crate) fn seal_in_place(&self, nonce: [u8; 12], aad: &[u8], in_out: &mut [u8]) -> Result<[u8; 16], Error> {
        let mut tag = [0; 16];
        self.seal_in_place_to(nonce, aad, in_out, &mut tag)?;
        Ok(tag)
    }

    /// Seals in place, and the tag into a buffer of its length.
    #[inline(always)]
    pub(crate) fn seal_in_place_to(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), Error> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_scatter(nonce, Aad::from(aad), in_out, &[], tag)
            .map_err(|_| Error::Backend)
    }

    /// Seals from one buffer into another of the same length, and the tag into a third.
    #[inline(always)]
    pub(crate) fn seal_to(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        plaintext: &[u8],
        ciphertext: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), Error> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_out_of_place_scatter(nonce, Aad::from(aad), plaintext, ciphertext, &[], tag)
            .map_err(|_| Error::Backend)
    }

    /// Opens in place.
    #[inline(always)]
    pub(crate) fn open_in_place(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; 16],
    ) -> Result<(), Error> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        match self.0.open_in_place_separate_tag(nonce, Aad::from(aad), tag, in_out) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Unauthentic),
        }
    }

    /// Opens from one buffer into another of the same length.
    #[inline(always)]
    pub(crate) fn open_to(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8],
        plaintext: &mut [u8],
    ) -> Result<(), Error> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0
            .open_separate_gather(nonce, Aad::from(aad), ciphertext, tag, plaintext)
            .map_err(|_| Error::Unauthentic)
    }
}
