//! The table of resident keys.

use alloc::boxed::Box;
use alloc::vec;
use core::fmt;
#[cfg(feature = "aes")]
use std::sync::MutexGuard;

#[cfg(feature = "aes")]
use lone::{LoneKey, LoneKeys};
use zeroize::Zeroize;

use crate::library::LibraryKey;
use crate::low::{KeyWords, Keyring};
use crate::{Error, Suite};

#[cfg(feature = "aes")]
mod lone;
#[cfg(feature = "aes")]
pub(super) use lone::key_of;

/// The place of a key in a table of [`Keys`], counted from 0.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Slot(pub u32);

/// Keys set up once and used by many jobs.
///
/// The table never moves, so no copy of a key is left behind; keys are wiped when overwritten, cleared or dropped. It
/// holds AES keys expanded. A slot with a ChaCha20 key costs 33 bytes and is set in a few nanoseconds, so a fresh key for
/// every message is cheap.
///
/// Where ChaCha20 messages on their own go through the library (feature `aes`, without AVX-512), the table also keeps keys in the
/// library's form, some 600 bytes each, for slots that are used so again: of slots whose numbers are equal modulo 256 the last one.
/// That is 170 KB at most, whatever the number of slots; 12 KB of it are taken with the first such message.
pub struct Keys {
    words: Box<[KeyWords]>,
    suites: Box<[Option<Suite>]>,
    /// Empty until the first AES key comes, then one for every slot.
    expanded: Box<[Option<LibraryKey>]>,
    #[cfg(feature = "aes")]
    lone: LoneKeys,
}

impl Keys {
    /// Most slots a table can have.
    pub const MAX_SLOTS: usize = 1 << 31;

    /// An empty table.
    ///
    /// # Panics
    /// Above [`Keys::MAX_SLOTS`].
    pub fn with_slots(slots: usize) -> Self {
        assert!(slots <= Self::MAX_SLOTS, "a key table has at most 2^31 slots");
        Keys {
            words: vec![KeyWords::default(); slots].into_boxed_slice(),
            suites: vec![None; slots].into_boxed_slice(),
            expanded: Box::default(),
            #[cfg(feature = "aes")]
            lone: LoneKeys::default(),
        }
    }

    /// Slots there are.
    pub fn slots(&self) -> usize {
        self.suites.len()
    }

    /// Puts a key into a slot, in place of the one that was there. The caller wipes the bytes passed in.
    ///
    /// # Errors
    /// [`Error::NoSuchSlot`] outside the table, [`Error::KeyLength`] unless `key` has [`Suite::key_len`] bytes,
    /// [`Error::NotBuilt`], [`Error::Backend`] if memory ran out; the slot then keeps what it had.
    #[inline]
    pub fn set(&mut self, slot: Slot, suite: Suite, key: &[u8]) -> Result<(), Error> {
        let index = self.index(slot)?;
        if key.len() != suite.key_len() {
            return Err(Error::KeyLength { suite, got: key.len() });
        }
        match suite {
            Suite::ChaCha20Poly1305 | Suite::XChaCha20Poly1305 => {
                if let Ok(key) = key.try_into() {
                    self.words[index].set(key);
                }
                if let Some(old) = self.expanded.get_mut(index) {
                    *old = None;
                }
            }
            Suite::Aes128Gcm | Suite::Aes256Gcm => self.set_expanded(index, LibraryKey::new(suite, key)?),
        }
        self.suites[index] = Some(suite);
        self.forget_lone(index);
        Ok(())
    }

    #[cold]
    fn set_expanded(&mut self, index: usize, key: LibraryKey) {
        if self.expanded.is_empty() {
            self.expanded = (0..self.slots()).map(|_| None).collect();
        }
        self.expanded[index] = Some(key);
        self.words[index].zeroize();
    }

    /// Wipes the key of a slot and leaves it empty.
    ///
    /// # Errors
    /// [`Error::NoSuchSlot`] outside the table.
    pub fn clear(&mut self, slot: Slot) -> Result<(), Error> {
        let index = self.index(slot)?;
        self.words[index].zeroize();
        self.suites[index] = None;
        self.forget_lone(index);
        if let Some(old) = self.expanded.get_mut(index) {
            *old = None;
        }
        Ok(())
    }

    /// The suite of the key in a slot, or `None` if it is empty or outside the table.
    #[inline]
    pub fn suite(&self, slot: Slot) -> Option<Suite> {
        self.suites.get(slot.0 as usize).copied().flatten()
    }

    fn index(&self, slot: Slot) -> Result<usize, Error> {
        let index = slot.0 as usize;
        if index < self.slots() {
            Ok(index)
        } else {
            Err(Error::NoSuchSlot {
                slot: slot.0,
                slots: self.slots(),
            })
        }
    }

    /// ChaCha20 keys, by slot.
    pub(super) fn words(&self) -> &[KeyWords] {
        &self.words
    }

    /// The ring of these keys and of derived ones.
    pub(super) fn ring<'a>(&'a self, derived: &'a [KeyWords]) -> Keyring<'a> {
        Keyring {
            resident: &self.words,
            derived,
        }
    }

    /// The library's form of the ChaCha20 key of a slot, if the key has gone through the library before and is kept.
    #[cfg(feature = "aes")]
    pub(super) fn lone(&self, slot: Slot) -> Option<MutexGuard<'_, LoneKey>> {
        self.lone.get(slot.0 as usize, &self.words)
    }

    /// The slot has another key, or none.
    #[inline(always)]
    fn forget_lone(&mut self, _index: usize) {
        #[cfg(feature = "aes")]
        self.lone.forget(_index);
    }

    /// The AES key of a slot.
    pub(super) fn expanded(&self, slot: Slot) -> Option<&LibraryKey> {
        self.expanded.get(slot.0 as usize)?.as_ref()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.words.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("slots", &self.slots())
            .field("set", &self.suites.iter().flatten().count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "aes")]
    #[cfg_attr(miri, ignore = "sets up AES keys in the C library")]
    fn slots_hold_what_was_set_last() {
        let mut keys = Keys::with_slots(2);
        assert_eq!(keys.suite(Slot(0)), None);
        keys.set(Slot(0), Suite::Aes128Gcm, &[1; 16]).unwrap();
        keys.set(Slot(1), Suite::XChaCha20Poly1305, &[2; 32]).unwrap();
        assert!(keys.expanded(Slot(0)).is_some());
        keys.set(Slot(0), Suite::ChaCha20Poly1305, &[3; 32]).unwrap();
        assert_eq!(keys.suite(Slot(0)), Some(Suite::ChaCha20Poly1305));
        assert!(keys.expanded(Slot(0)).is_none(), "the AES key is gone");
        keys.set(Slot(1), Suite::Aes256Gcm, &[4; 32]).unwrap();
        assert_eq!(keys.words()[1].0, [0; 8], "the ChaCha20 key is wiped");
        keys.clear(Slot(0)).unwrap();
        assert_eq!(keys.suite(Slot(0)), None);
        assert_eq!(keys.words()[0].0, [0; 8]);
    }

    #[test]
    fn wrong_slots_and_lengths_are_refused() {
        let mut keys = Keys::with_slots(1);
        keys.set(Slot(0), Suite::ChaCha20Poly1305, &[3; 32]).unwrap();
        let wrong = keys.set(Slot(1), Suite::ChaCha20Poly1305, &[3; 32]);
        assert_eq!(wrong, Err(Error::NoSuchSlot { slot: 1, slots: 1 }));
        let wrong = keys.set(Slot(0), Suite::Aes128Gcm, &[3; 32]);
        assert_eq!(
            wrong,
            Err(Error::KeyLength {
                suite: Suite::Aes128Gcm,
                got: 32
            })
        );
        assert_eq!(keys.suite(Slot(0)), Some(Suite::ChaCha20Poly1305), "kept");
        assert_eq!(keys.suite(Slot(u32::MAX)), None);
    }
}
