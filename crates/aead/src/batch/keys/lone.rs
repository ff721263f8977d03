//! ChaCha20 keys as the library has them, for messages that go through it on their own.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use zeroize::Zeroizing;

use crate::Suite;
use crate::library::LibraryKey;
use crate::low::KeyWords;

/// Keys that are kept, at most. Each takes some 600 bytes of the library's memory, and 48 here.
const ENTRIES: usize = 256;

/// A cache of keys, in which the slot's number alone says where a key may be. It has no memory before the first message that goes
/// through the library.
#[derive(Default)]
pub(super) struct LoneKeys(OnceLock<Box<[Mutex<LoneKey>]>>);

/// What was kept last of the slots that share an entry.
#[derive(Default)]
pub(in super::super) struct LoneKey {
    /// The slot that asked last.
    slot: Option<usize>,
    /// Its key, from the second message in a row on: one that is used once need not be kept. Wiped when dropped.
    key: Option<LibraryKey>,
}

impl LoneKeys {
    /// The entry of a slot, of which `words` has the words, held until it is dropped. `None` for the first message that asks, and while
    /// another thread has the entry: the caller makes a key of its own then.
    pub(super) fn get(&self, index: usize, words: &[KeyWords]) -> Option<MutexGuard<'_, LoneKey>> {
        let slot_words = words.get(index)?;
        let entries = self.0.get_or_init(|| {
            let count = words.len().min(ENTRIES);
            (0..count).map(|_| Mutex::default()).collect()
        });
        let mut entry = entries.get(index % ENTRIES)?.try_lock().ok()?;
        if entry.slot != Some(index) {
            *entry = LoneKey {
                slot: Some(index),
                key: None,
            };
            return None;
        }
        if entry.key.is_none() {
            entry.key = key_of(slot_words);
        }
        Some(entry)
    }

    /// Wipes the key of a slot.
    #[inline(always)]
    pub(super) fn forget(&mut self, index: usize) {
        let entry = self.0.get_mut().and_then(|entries| entries.get_mut(index % ENTRIES));
        if let Some(entry) = entry {
            let entry = entry.get_mut().unwrap_or_else(PoisonError::into_inner);
            if entry.slot == Some(index) {
                *entry = LoneKey::default();
            }
        }
    }
}

impl LoneKey {
    /// The key; `None` if memory ran out.
    pub(in super::super) const fn key(&self) -> Option<&LibraryKey> {
        self.key.as_ref()
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

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// True if an entry came with a key.
    fn is_kept(lone: &LoneKeys, index: usize, words: &[KeyWords]) -> bool {
        let entry = lone.get(index, words);
        entry.is_some_and(|entry| entry.key().is_some())
    }

    #[test]
    fn an_entry_has_the_slot_that_asked_last() {
        let words: Vec<_> = (0..3 * ENTRIES).map(|_| KeyWords::default()).collect();
        let (mut lone, other) = (LoneKeys::default(), ENTRIES + 7);
        let asked = [7, 7, 7, other, other, 8, 7, other, 7, 7].map(|index| is_kept(&lone, index, &words));
        let want = [false, true, true, false, true, false, false, false, false, true];
        assert_eq!(asked, want);
        assert!(!is_kept(&lone, words.len(), &words), "there is no such slot");
        // What becomes of another slot is nothing to this one.
        lone.forget(other);
        assert!(is_kept(&lone, 7, &words));
        lone.forget(7);
        assert!(!is_kept(&lone, 7, &words));
    }

    #[test]
    fn memory_is_bounded() {
        for (slots, entries) in [(0, None), (3, Some(3)), (10 * ENTRIES, Some(ENTRIES))] {
            let words: Vec<_> = (0..slots).map(|_| KeyWords::default()).collect();
            let lone = LoneKeys::default();
            for index in 0..slots {
                assert!(!is_kept(&lone, index, &words));
            }
            assert_eq!(lone.0.get().map(|entries| entries.len()), entries);
        }
    }

    #[test]
    fn an_entry_that_is_in_use_is_not_waited_for() {
        let words = [KeyWords::default()];
        let lone = LoneKeys::default();
        assert!(!is_kept(&lone, 0, &words));
        let held = lone.get(0, &words);
        assert!(held.is_some() && lone.get(0, &words).is_none());
        drop(held);
        assert!(is_kept(&lone, 0, &words));
    }
}
