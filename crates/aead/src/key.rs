//! Keys that wipe themselves.

#[cfg(feature = "aes")]
mod beside;

use alloc::boxed::Box;
use core::fmt;

#[cfg(feature = "aes")]
use beside::Library;
use zeroize::{Zeroize, Zeroizing};

#[cfg(feature = "aes")]
use crate::cpu;
use crate::library::LibraryKey;
use crate::low::portable::{hchacha20, hchacha20_words};
use crate::low::{self, KeyWords, Single, Text, Use, scrub_stack};
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
    /// [`Error::KeyLength`] unless `key` has [`Suite::key_len`] bytes; [`Error::NotBuilt`] for a suite that this build does not
    /// have; [`Error::Backend`] if memory ran out.
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
    /// [`Error::KeyLength`] unless `key` has [`Suite::key_len`] bytes; [`Error::NotBuilt`] for a suite that this build does not
    /// have; [`Error::Backend`] if memory ran out.
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

/// Shortest message that our own kernels take from the library, bytes, on a CPU that does 512 bits in two halves: where
/// they overtake it with a resident key. Elsewhere they are ahead at any length, and the library's key is never made.
///
/// Measured with `examples/jobs_speed single` on Zen 4: below, the library's blocks of four are sooner done; at 1024 bytes
/// it is 3% ahead, at 1500 level, at 2048 11% behind, at 16 KiB 46%. On Emerald Rapids the library is behind by 35% at 0
/// and 64 bytes, 27% at 1024, 51% at 2048 and 100% at 16 KiB.
#[cfg(feature = "aes")]
const OWN_FROM: usize = 1408;

/// Words of stack that the library's ChaCha20-Poly1305 may leave its state on, key included: its frames take 1 KiB with ours
/// between, more without optimisation. `tests/residue.rs` looks. AES-GCM keeps its expanded key in the library's own memory.
pub(crate) const LIBRARY_SCRUB: usize = if cfg!(debug_assertions) { 640 } else { 192 };

enum Schedule {
    /// Expanded once.
    Ready(LibraryKey),
    /// ChaCha20 where our own kernels run and the library is ahead on short messages.
    #[cfg(feature = "aes")]
    Either(Box<OwnKey>, Library),
    /// XChaCha20 through the library: a sub-key is derived for every message.
    Extended(Box<Zeroizing<[u8; 32]>>),
    /// Our own kernels at any length: XChaCha20, for which they need no key of the library's set up for each message, and
    /// ChaCha20 where they are always ahead.
    Own(Box<OwnKey>),
}

/// A key for our own kernels, with the proof that they run here. Where they do not, the library is at least as fast.
struct OwnKey {
    words: KeyWords,
    extended: bool,
    have: Single,
}

impl OwnKey {
    /// Boxed before it is filled, so that moving the key moves a pointer and leaves no copy behind.
    fn new(extended: bool, key: &[u8; 32]) -> Option<Box<Self>> {
        let have = Single::probe()?;
        let mut own = Box::new(OwnKey {
            words: KeyWords::default(),
            extended,
            have,
        });
        own.words.set(key);
        Some(own)
    }

    /// Seals or opens; gives the tag that the ciphertext should have, and decrypts whether authentic or not.
    #[inline]
    fn run(&self, nonce: &[u8], aad: &[u8], text: &mut Text<'_>, way: Use) -> [u8; 16] {
        let words = nonce.as_chunks::<4>().0;
        let word = |i: usize| words.get(i).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if !self.extended {
            return low::one(self.have, &self.words, &[0, word(0), word(1), word(2)], aad, text, way);
        }
        let mut sub_key = KeyWords::default();
        let head = [word(0), word(1), word(2), word(3)];
        hchacha20_words(&self.words.0, &head, &mut sub_key.0);
        let tag = low::one(self.have, &sub_key, &[0, 0, word(4), word(5)], aad, text, way);
        sub_key.zeroize();
        tag
    }
}

impl Drop for OwnKey {
    fn drop(&mut self) {
        self.words.zeroize();
    }
}

impl Cipher {
    fn new(suite: Suite, key: &[u8]) -> Result<Self, Error> {
        if key.len() != suite.key_len() {
            return Err(Error::KeyLength { suite, got: key.len() });
        }
        let own = |extended| key.try_into().ok().and_then(|key| OwnKey::new(extended, key));
        let schedule = match suite {
            Suite::Aes128Gcm | Suite::Aes256Gcm => Schedule::Ready(LibraryKey::new(suite, key)?),
            Suite::ChaCha20Poly1305 => match own(false) {
                #[cfg(feature = "aes")]
                Some(own) if cpu::splits_512() => Schedule::Either(own, Library::default()),
                Some(own) => Schedule::Own(own),
                None => Schedule::Ready(LibraryKey::new(suite, key)?),
            },
            Suite::XChaCha20Poly1305 if Single::probe().is_some() => Schedule::Own(own(true).ok_or(Error::Backend)?),
            Suite::XChaCha20Poly1305 => {
                // Boxed before it is filled, so that moving the key moves a pointer and leaves no copy behind.
                let mut bytes = Box::new(Zeroizing::new([0; 32]));
                bytes.copy_from_slice(key);
                Schedule::Extended(bytes)
            }
        };
        Ok(Cipher { suite, schedule })
    }

    fn wrong_length(&self, nonce: &[u8]) -> Error {
        Error::NonceLength {
            need: self.suite.nonce_len(),
            got: nonce.len(),
        }
    }

    /// Seals or opens with our own kernels if they are the faster for this key and length; gives the tag that the
    /// ciphertext should have.
    ///
    /// When opening, the text is decrypted whether authentic or not: the caller compares the tags and wipes.
    ///
    /// # Errors
    /// [`Error::NonceLength`]; the text is then untouched.
    #[inline(always)]
    #[cfg_attr(
        not(feature = "aes"),
        allow(unused_variables, reason = "nobody else is faster at any length")
    )]
    pub(crate) fn run_own<'a>(
        &self,
        nonce: &[u8],
        aad: &[u8],
        len: usize,
        text: impl FnOnce() -> Text<'a>,
        way: Use,
    ) -> Option<Result<[u8; 16], Error>> {
        let own = match &self.schedule {
            Schedule::Own(own) => own,
            #[cfg(feature = "aes")]
            Schedule::Either(own, library) if len >= OWN_FROM || library.is_first() => own,
            _ => return None,
        };
        if nonce.len() != self.suite.nonce_len() {
            return Some(Err(self.wrong_length(nonce)));
        }
        Some(Ok(own.run(nonce, aad, &mut text(), way)))
    }

    /// Calls `f` with the key and nonce that the library understands; for what [`Cipher::run_own`] leaves.
    #[inline(always)]
    pub(crate) fn with<T>(
        &self,
        nonce: &[u8],
        f: impl FnOnce(&LibraryKey, [u8; 12]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let result = match (&self.schedule, nonce.len()) {
            (Schedule::Ready(key), 12) => f(key, twelve(nonce)),
            #[cfg(feature = "aes")]
            (Schedule::Either(own, library), 12) => f(library.get(&own.words)?, twelve(nonce)),
            (Schedule::Extended(key), 24) => {
                let (sub_key, inner) = extended(key, nonce)?;
                f(&sub_key, inner)
            }
            // `run_own` leaves none of these.
            (Schedule::Own(_), _) => return Err(Error::Backend),
            _ => return Err(self.wrong_length(nonce)),
        };
        if matches!(self.suite, Suite::ChaCha20Poly1305 | Suite::XChaCha20Poly1305) {
            scrub_stack::<LIBRARY_SCRUB>();
        }
        result
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
fn extended(key: &[u8; 32], nonce: &[u8]) -> Result<(LibraryKey, [u8; 12]), Error> {
    let (head, tail) = nonce.split_first_chunk::<SUB_KEY_NONCE>().ok_or(Error::Backend)?;
    let mut sub_key = Zeroizing::new([0; 32]);
    hchacha20(key, head, &mut sub_key);
    let mut inner = [0; 12];
    inner[4..].copy_from_slice(tail);
    Ok((LibraryKey::new(Suite::XChaCha20Poly1305, sub_key.as_slice())?, inner))
}
