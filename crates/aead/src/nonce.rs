//! Nonces, and sequences of them that cannot repeat.

use alloc::boxed::Box;
use core::fmt;
use core::ops::Deref;

use zeroize::Zeroizing;

use crate::{Error, Limits, Suite};

/// Longest counter field, bytes.
const MAX_COUNTER: usize = 8;

/// A nonce for sealing one message. It is used up by sealing and cannot be copied.
///
/// Kept as words of the sizes in which nonces are written, a fixed field of four bytes and a counter of eight: reading
/// bytes in other pieces than they were written makes the CPU wait for the store, a tenth of the time of a message of 64
/// bytes.
#[repr(C)]
pub struct Nonce {
    len: usize,
    /// Bytes 0 to 3.
    head: u32,
    /// Bytes 4 to 11.
    middle: u64,
    /// Bytes 12 to 23, zero in a short nonce.
    tail: [u8; 12],
}

/// The bytes of a nonce.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct NonceBytes {
    bytes: [u8; Suite::MAX_NONCE_LEN],
    len: usize,
}

impl Nonce {
    /// Takes the caller's word that these bytes were not and will not be used with the same key to seal.
    ///
    /// For protocols that compute their own nonces; everyone else takes them from a [`NonceSequence`].
    ///
    /// # Errors
    /// [`Error::NonceLength`] unless there are as many bytes as the suite's nonce has.
    #[inline(always)]
    pub fn assume_unique(suite: Suite, bytes: &[u8]) -> Result<Self, Error> {
        let len = suite.nonce_len();
        if bytes.len() != len {
            return Err(Error::NonceLength {
                need: len,
                got: bytes.len(),
            });
        }
        Ok(Self::from_bytes(bytes))
    }

    /// `bytes` has 12 or 24 bytes; anything else would be a mistake of this module and reads as zeros.
    #[inline(always)]
    fn from_bytes(bytes: &[u8]) -> Self {
        let mut nonce = Nonce {
            len: bytes.len(),
            head: 0,
            middle: 0,
            tail: [0; 12],
        };
        if let Some((head, rest)) = bytes.split_first_chunk()
            && let Some((middle, rest)) = rest.split_first_chunk()
        {
            nonce.head = u32::from_ne_bytes(*head);
            nonce.middle = u64::from_ne_bytes(*middle);
            if let Some(tail) = rest.first_chunk() {
                nonce.tail = *tail;
            }
        }
        nonce
    }

    /// The bytes, to open with or to send along.
    #[inline(always)]
    pub fn to_bytes(&self) -> NonceBytes {
        let mut bytes = [0; Suite::MAX_NONCE_LEN];
        bytes[..4].copy_from_slice(&self.head.to_ne_bytes());
        bytes[4..12].copy_from_slice(&self.middle.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.tail);
        NonceBytes { bytes, len: self.len }
    }
}

impl Deref for NonceBytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl AsRef<[u8]> for NonceBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_bytes().fmt(f)
    }
}

impl fmt::Debug for NonceBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(")?;
        for byte in self.iter() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// Byte order of a counter inside a nonce.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CounterOrder {
    /// Most significant byte first.
    BigEndian,
    /// Least significant byte first.
    LittleEndian,
}

/// Where the counter goes.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// XORed, big-endian, into the last eight bytes of the base.
    Xor,
    /// In place of the base's bytes from `at` on.
    Field {
        at: usize,
        width: usize,
        order: CounterOrder,
    },
}

/// A sequence of nonces in which none comes twice: a counter and a fixed field.
///
/// It is not `Clone`, never goes back and never wraps. When the counter field or the limit set is used up, it refuses. A
/// protocol whose counter does wrap (that of VMess has 16 bits and starts again after 65536 chunks of one key) repeats
/// nonces by its own rule: a sequence serves it up to that end, and what comes after is for the code of that protocol to
/// decide, with [`Nonce::assume_unique`] and in its own name.
pub struct NonceSequence {
    suite: Suite,
    /// Boxed and wiped: the initialisation vector is derived like a key, and moving the sequence leaves no copy behind.
    base: Box<Zeroizing<[u8; Suite::MAX_NONCE_LEN]>>,
    layout: Layout,
    /// Number of the first nonce; the limits count from it.
    first: u64,
    /// Number of the next nonce, or `None` when the 64-bit counter itself has ended.
    next: Option<u64>,
    limits: Limits,
}

/// The next nonce of a sequence.
#[derive(Debug)]
pub struct Numbered {
    /// The nonce.
    pub nonce: Nonce,
    /// Its number.
    pub number: u64,
    /// True from the soft limit on: time for a new key.
    pub rekey: bool,
}

impl NonceSequence {
    /// An initialisation vector with the message number XORed into its last eight bytes, big-endian.
    ///
    /// This is the nonce of TLS 1.3 (RFC 8446 section 5.3) and of our own records. `iv` has the length of the suite's
    /// nonce and is secret by custom, though nothing breaks if it is not.
    ///
    /// # Errors
    /// [`Error::NonceLength`] for an `iv` of another length.
    pub fn xor(suite: Suite, iv: &[u8]) -> Result<Self, Error> {
        if iv.len() != suite.nonce_len() {
            return Err(Error::NonceLength {
                need: suite.nonce_len(),
                got: iv.len(),
            });
        }
        let mut base = Box::new(Zeroizing::new([0; Suite::MAX_NONCE_LEN]));
        base[..iv.len()].copy_from_slice(iv);
        Ok(Self::new(suite, base, Layout::Xor))
    }

    /// A fixed field followed by a big-endian counter that fills the rest (RFC 5116 section 3.2).
    ///
    /// # Errors
    /// [`Error::NonceLayout`] unless the counter that remains has 1 to 8 bytes.
    pub fn fixed_then_counter(suite: Suite, fixed: &[u8]) -> Result<Self, Error> {
        let width = suite.nonce_len().saturating_sub(fixed.len());
        Self::with_field(suite, fixed, fixed.len(), width, CounterOrder::BigEndian)
    }

    /// A counter of `width` bytes in the given order, followed by a fixed field that fills the rest.
    ///
    /// # Errors
    /// [`Error::NonceLayout`] unless `width` is 1 to 8 and both fields together have the length of the suite's nonce.
    pub fn counter_then_fixed(suite: Suite, width: usize, order: CounterOrder, fixed: &[u8]) -> Result<Self, Error> {
        Self::with_field(suite, fixed, 0, width, order)
    }

    fn with_field(suite: Suite, fixed: &[u8], at: usize, width: usize, order: CounterOrder) -> Result<Self, Error> {
        if width == 0 || width > MAX_COUNTER || fixed.len().checked_add(width) != Some(suite.nonce_len()) {
            return Err(Error::NonceLayout {
                suite,
                fixed: fixed.len(),
                counter: width,
            });
        }
        let mut base = Box::new(Zeroizing::new([0; Suite::MAX_NONCE_LEN]));
        base[..at].copy_from_slice(&fixed[..at]);
        base[at + width..suite.nonce_len()].copy_from_slice(&fixed[at..]);
        Ok(Self::new(suite, base, Layout::Field { at, width, order }))
    }

    fn new(suite: Suite, base: Box<Zeroizing<[u8; Suite::MAX_NONCE_LEN]>>, layout: Layout) -> Self {
        NonceSequence {
            suite,
            base,
            layout,
            first: 0,
            next: Some(0),
            limits: Limits::of(suite),
        }
    }

    /// First number the counter field cannot hold, or `None` when it holds all of u64.
    fn field_end(&self) -> Option<u64> {
        match self.layout {
            Layout::Xor => None,
            Layout::Field { width, .. } => 1u64.checked_shl(8 * width as u32),
        }
    }

    /// The same sequence with its next number set, for a protocol that says where to start.
    ///
    /// Before the first nonce, any number will do and the limits count from it. Later the sequence only skips ahead, and
    /// the skipped numbers count as used.
    ///
    /// # Errors
    /// [`Error::NonceBehind`] for a number lower than the next one, once a nonce was taken. [`Error::Exhausted`] if the
    /// sequence has ended or the number lies past its end: the counter field's or the hard limit's.
    pub fn starting_at(mut self, number: u64) -> Result<Self, Error> {
        let next = self.next.ok_or(Error::Exhausted)?;
        if next == self.first {
            self.first = number;
        } else if number < next {
            return Err(Error::NonceBehind { next, got: number });
        }
        self.next = Some(number);
        if self.next_number().is_none() {
            return Err(Error::Exhausted);
        }
        Ok(self)
    }

    /// The same sequence with the soft limit of `limits`, and with hard limits that are never higher than before.
    ///
    /// The suite's own hard limits ([`Limits::of`]) and the end of the counter field hold whatever is set here.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = self.limits.lowered_to(limits);
        self
    }

    /// The limits in force, the end of the counter field aside.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// The same sequence without hard limits: an opener goes on as far as the counter field does.
    ///
    /// Hard limits bind the end that seals. Only for a sequence whose numbers are never sealed with.
    pub(crate) fn following_peer(mut self) -> Self {
        self.limits.max_messages = u64::MAX;
        self.limits.max_blocks = u64::MAX;
        self
    }

    /// First number that must not be used, or `None` when all of u64 may.
    fn end(&self) -> Option<u64> {
        let by_limit = match self.limits.max_messages {
            u64::MAX => None,
            max => self.first.checked_add(max),
        };
        match (by_limit, self.field_end()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Number of the next nonce, or `None` when there is none left.
    pub fn next_number(&self) -> Option<u64> {
        self.next.filter(|&next| self.end().is_none_or(|end| next < end))
    }

    /// The suite it was made for.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Refuses a key of another suite: even with nonces of the same length, its limits would be the wrong ones.
    pub(crate) fn check_fits(&self, suite: Suite) -> Result<(), Error> {
        if self.suite == suite {
            Ok(())
        } else {
            Err(Error::SuiteMismatch {
                key: suite,
                nonces: self.suite,
            })
        }
    }

    /// How many nonces are left; `u64::MAX` also when there are 2^64.
    pub fn remaining(&self) -> u64 {
        match self.next_number() {
            None => 0,
            Some(next) => self.end().map_or((u64::MAX - next).saturating_add(1), |end| end - next),
        }
    }

    /// The next nonce.
    ///
    /// # Errors
    /// [`Error::Exhausted`] at the hard limit, and for ever after.
    #[inline]
    pub fn advance(&mut self) -> Result<Numbered, Error> {
        let number = self.next_number().ok_or(Error::Exhausted)?;
        self.next = number.checked_add(1);
        let used = number - self.first;
        Ok(Numbered {
            nonce: self.at(number),
            number,
            rekey: used >= self.limits.rekey.messages.saturating_sub(1),
        })
    }

    /// The nonce with a given number.
    fn at(&self, number: u64) -> Nonce {
        let mut bytes: [u8; Suite::MAX_NONCE_LEN] = **self.base;
        match self.layout {
            Layout::Xor => {
                let end = self.suite.nonce_len();
                for (byte, count) in bytes[end - MAX_COUNTER..end].iter_mut().zip(number.to_be_bytes()) {
                    *byte ^= count;
                }
            }
            Layout::Field {
                at,
                width,
                order: CounterOrder::BigEndian,
            } => {
                bytes[at..at + width].copy_from_slice(&number.to_be_bytes()[MAX_COUNTER - width..]);
            }
            Layout::Field {
                at,
                width,
                order: CounterOrder::LittleEndian,
            } => {
                bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
            }
        }
        Nonce::from_bytes(&bytes[..self.suite.nonce_len()])
    }
}

impl fmt::Debug for NonceSequence {
    /// Shows the position, not the fixed field, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NonceSequence")
            .field("next", &self.next_number())
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
