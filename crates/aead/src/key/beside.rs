//! The library's key for short messages, where the library is ahead on them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use zeroize::Zeroizing;

use crate::library::LibraryKey;
use crate::low::KeyWords;
use crate::{Error, Suite};

/// The library's key beside one of our own, made for the second message that wants it.
///
/// It costs as much as our own kernels lose on a few short messages, and a key used once never needs it. The first short
/// message therefore takes our own kernels, whatever its length.
#[derive(Default)]
pub(super) struct Library {
    key: OnceLock<LibraryKey>,
    used: AtomicBool,
}

impl Library {
    /// True for the first message that wants the key.
    #[inline(always)]
    pub(super) fn is_first(&self) -> bool {
        // Two threads at once: which of them is first makes no difference to the bytes.
        self.key.get().is_none() && !self.used.swap(true, Ordering::Relaxed)
    }

    /// The key, made of the words of our own if it was not there. If two threads do so at once, one of the two keys is dropped, which
    /// wipes it.
    #[inline(always)]
    pub(super) fn get(&self, words: &KeyWords) -> Result<&LibraryKey, Error> {
        match self.key.get() {
            Some(key) => Ok(key),
            None => self.make(words),
        }
    }

    #[cold]
    fn make(&self, words: &KeyWords) -> Result<&LibraryKey, Error> {
        let mut bytes = Zeroizing::new([0; 32]);
        for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&words.0) {
            *bytes = word.to_le_bytes();
        }
        let key = LibraryKey::new(Suite::ChaCha20Poly1305, bytes.as_slice())?;
        Ok(self.key.get_or_init(|| key))
    }
}
