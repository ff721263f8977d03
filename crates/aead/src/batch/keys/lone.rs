//! ChaCha20 keys as the library has them, for messages that go through it on their own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use zeroize::Zeroizing;

use crate::Suite;
use crate::library::LibraryKey;
use crate::low::KeyWords;

/// One for each slot, from the first message on that goes through the library.
#[derive(Default)]
pub(super) struct LoneKeys(OnceLock<Box<[LoneKey]>>);

/// A key that was set up for the second message that wanted it: one that is used once need not be kept.
#[derive(Default)]
struct LoneKey {
    key: OnceLock<LibraryKey>,
    used: AtomicBool,
}

impl LoneKeys {
    /// The key of a slot, of which `words` has the words; `None` for the first message that asks, or if memory ran out.
    pub(super) fn get(&self, index: usize, words: &[KeyWords]) -> Option<&LibraryKey> {
        let all = self
            .0
            .get_or_init(|| words.iter().map(|_| LoneKey::default()).collect());
        let (lone, words) = (all.get(index)?, words.get(index)?);
        if let Some(key) = lone.key.get() {
            return Some(key);
        }
        // Two threads at once: which of them is first makes no difference to the bytes.
        if !lone.used.swap(true, Ordering::Relaxed) {
            return None;
        }
        let key = key_of(words)?;
        Some(lone.key.get_or_init(|| key))
    }

    /// Wipes the key of a slot.
    #[inline(always)]
    pub(super) fn forget(&mut self, index: usize) {
        if let Some(lone) = self.0.get_mut().and_then(|all| all.get_mut(index)) {
            *lone = LoneKey::default();
        }
    }
}

/// A key of the library, from the words of one; `None` if memory ran out.
pub(in super::super) fn key_of(words: &KeyWords) -> Option<LibraryKey> {
    let mut bytes = Zeroizing::new([0u8; 32]);
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&words.0) {
        *bytes = word.to_le_bytes();
    }
    LibraryKey::new(Suite::ChaCha20Poly1305, bytes.as_slice()).ok()
}
