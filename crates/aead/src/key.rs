//! Keys that wipe themselves.

use std::fmt;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use zeroize::Zeroizing;

use crate::low::portable::hchacha20;
use crate::{Error, Suite};

/// Bytes of an XChaCha20 nonce that go into the sub-key.
const SUB_KEY_NONCE: usize = 16;

/// A key that seals. Not `Clone`: two copies of a sealing key are how one nonce comes to be used twice.
///
/// Key bytes are wiped when it is dropped. The caller wipes the bytes that were passed in.
pub struct SealingKey(pub(crate) Cipher);

/// A key that opens.
///
/// Key bytes are wiped when it is dropped. The caller wipes the bytes that were passed in.
pub struct OpeningKey(pub(crate) Cipher);

impl SealingKey {
    /// Sets up a key.
    ///
    /// # Errors
    /// [`Error::KeyLength`] unless `key` has [`Suite::key_len`] bytes; [`Error::Backend`] if memory ran out.
    pub fn new(suite: Suite, key: &[u8]) -> Result<Self, Error> {
        Cipher::new(suite, key).map(SealingKey)
    }

    /// The suite of the key.
    pub const fn suite(&self) -> Suite {
        self.0.suite
    }
}

impl OpeningKey {
    /// Sets up a key.
    ///
    /// # Errors
    /// [`Error::KeyLength`] unless `key` has [`Suite::key_len`] bytes; [`Error::Backend`] if memory ran out.
    pub fn new(suite: Suite, key: &[u8]) -> Result<Self, Error> {
        Cipher::new(suite, key).map(OpeningKey)
    }

    /// The suite of the key.
    pub const fn suite(&self) -> Suite {
        self.0.suite
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({})", self.suite())
    }
}

impl fmt::Debug for OpeningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpeningKey({})", self.suite())
    }
}

/// An expanded key.
pub(crate) struct Cipher {
    pub(crate) suite: Suite,
    schedule: Schedule,
}

enum Schedule {
    /// Expanded once. The library keeps it in memory of its own, which it clears when freeing it.
    Ready(LessSafeKey),
    /// XChaCha20: a sub-key is derived for every message.
    Extended(Box<Zeroizing<[u8; 32]>>),
}

impl Cipher {
    fn new(suite: Suite, key: &[u8]) -> Result<Self, Error> {
        if key.len() != suite.key_len() {
            return Err(Error::KeyLength { suite, got: key.len() });
        }
        let schedule = match suite {
            Suite::Aes128Gcm => Schedule::Ready(expand(&AES_128_GCM, key)?),
            Suite::Aes256Gcm => Schedule::Ready(expand(&AES_256_GCM, key)?),
            Suite::ChaCha20Poly1305 => Schedule::Ready(expand(&CHACHA20_POLY1305, key)?),
            Suite::XChaCha20Poly1305 => {
                // Boxed before it is filled, so that moving the key moves a pointer and leaves no copy behind.
                let mut bytes = Box::new(Zeroizing::new([0; 32]));
                bytes.copy_from_slice(key);
                Schedule::Extended(bytes)
            }
        };
        Ok(Cipher { suite, schedule })
    }

    /// Calls `f` with the key and nonce that the library understands.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        nonce: &[u8],
        f: impl FnOnce(&LessSafeKey, [u8; 12]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let wrong_length = Error::NonceLength {
            need: self.suite.nonce_len(),
            got: nonce.len(),
        };
        match &self.schedule {
            Schedule::Ready(key) => f(key, nonce.try_into().map_err(|_| wrong_length)?),
            Schedule::Extended(key) => {
                let nonce: &[u8; 24] = nonce.try_into().map_err(|_| wrong_length)?;
                let (head, tail) = nonce.split_first_chunk::<SUB_KEY_NONCE>().ok_or(Error::Backend)?;
                let mut sub_key = Zeroizing::new([0; 32]);
                hchacha20(key, head, &mut sub_key);
                let mut inner = [0; 12];
                inner[4..].copy_from_slice(tail);
                f(&expand(&CHACHA20_POLY1305, sub_key.as_slice())?, inner)
            }
        }
    }
}

pub(crate) fn expand(algorithm: &'static Algorithm, key: &[u8]) -> Result<LessSafeKey, Error> {
    UnboundKey::new(algorithm, key)
        .map(LessSafeKey::new)
        .map_err(|_| Error::Backend)
}

/// The library's type for associated data.
#[inline]
pub(crate) fn associated(aad: &[u8]) -> Aad<&[u8]> {
    Aad::from(aad)
}
