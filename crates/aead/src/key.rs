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
    #[inline(always)]
    pub(crate) fn with<T>(
        &self,
        nonce: &[u8],
        f: impl FnOnce(&LessSafeKey, [u8; 12]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match (&self.schedule, nonce.len()) {
            (Schedule::Ready(key), 12) => f(key, twelve(nonce)),
            (Schedule::Extended(key), 24) => {
                let (sub_key, inner) = extended(key, nonce)?;
                f(&sub_key, inner)
            }
            (_, got) => Err(Error::NonceLength {
                need: self.suite.nonce_len(),
                got,
            }),
        }
    }
}

/// The first twelve bytes as two words.
///
/// A nonce is written as a fixed field and a counter of eight bytes and read again at once; reading it in other pieces than
/// it was written makes the CPU wait, which shows on messages of 64 bytes.
#[inline(always)]
fn twelve(nonce: &[u8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&nonce[..4]);
    bytes[4..].copy_from_slice(&nonce[4..12]);
    bytes
}

/// The key and nonce of ChaCha20-Poly1305 that an XChaCha20 nonce stands for (draft-irtf-cfrg-xchacha-03, section 2.3).
fn extended(key: &[u8; 32], nonce: &[u8]) -> Result<(LessSafeKey, [u8; 12]), Error> {
    let (head, tail) = nonce.split_first_chunk::<SUB_KEY_NONCE>().ok_or(Error::Backend)?;
    let mut sub_key = Zeroizing::new([0; 32]);
    hchacha20(key, head, &mut sub_key);
    let mut inner = [0; 12];
    inner[4..].copy_from_slice(tail);
    Ok((expand(&CHACHA20_POLY1305, sub_key.as_slice())?, inner))
}

fn expand(algorithm: &'static Algorithm, key: &[u8]) -> Result<LessSafeKey, Error> {
    UnboundKey::new(algorithm, key)
        .map(LessSafeKey::new)
        .map_err(|_| Error::Backend)
}

/// The library's type for associated data.
#[inline]
pub(crate) fn associated(aad: &[u8]) -> Aad<&[u8]> {
    Aad::from(aad)
}
