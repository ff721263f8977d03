//! Nonces, and sequences of them that cannot repeat.

use std::fmt;

use crate::{Error, Limits, Suite};

/// Longest counter field, bytes.
const MAX_COUNTER: usize = 8;

/// A nonce for sealing one message. It is used up by sealing and cannot be copied.
pub struct Nonce {
    bytes: [u8; Suite::MAX_NONCE_LEN],
    len: u8,
}

impl Nonce {
    /// Takes the caller's word that these bytes were not and will not be used with the same key to seal.
    ///
    /// For protocols that compute their own nonces; everyone else takes them from a [`NonceSequence`].
    ///
    /// # Errors
    /// [`Error::NonceLength`] unless there are as many bytes as the suite's nonce has.
    #[inline]
    pub fn assume_unique(suite: Suite, bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() != suite.nonce_len() {
            return Err(Error::NonceLength {
                need: suite.nonce_len(),
                got: bytes.len(),
            });
        }
        let mut nonce = Nonce {
            bytes: [0; Suite::MAX_NONCE_LEN],
            len: suite.nonce_len() as u8,
        };
        // Of fixed length in the common case: no call to copy twelve bytes.
        if let Ok(short) = <&[u8; 12]>::try_from(bytes) {
            nonce.bytes[..12].copy_from_slice(short);
        } else {
            nonce.bytes[..bytes.len()].copy_from_slice(bytes);
        }
        Ok(nonce)
    }

    /// The bytes, to open with or to send along.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl AsRef<[u8]> for Nonce {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(")?;
        for byte in self.as_bytes() {
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
/// It is not `Clone`, never goes back and never wraps. When the counter field or the limit set is used up, it refuses.
pub struct NonceSequence {
    base: [u8; Suite::MAX_NONCE_LEN],
    len: u8,
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
        let base = Nonce::assume_unique(suite, iv)?;
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
        let mut base = Nonce {
            bytes: [0; Suite::MAX_NONCE_LEN],
            len: suite.nonce_len() as u8,
        };
        base.bytes[..at].copy_from_slice(&fixed[..at]);
        base.bytes[at + width..suite.nonce_len()].copy_from_slice(&fixed[at..]);
        Ok(Self::new(suite, base, Layout::Field { at, width, order }))
    }

    fn new(suite: Suite, base: Nonce, layout: Layout) -> Self {
        NonceSequence {
            base: base.bytes,
            len: base.len,
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
    /// Before the first nonce, the limits count from here. Later it only skips ahead: a number lower than the next one
    /// is ignored, and a sequence that has ended stays so.
    #[must_use]
    pub fn starting_at(mut self, number: u64) -> Self {
        if self.next == Some(self.first) {
            self.first = number;
            self.next = Some(number);
        } else {
            self.next = self.next.map(|next| next.max(number));
        }
        self
    }

    /// The same sequence with the message limits of `limits`; the counter field's own end still holds.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
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

    /// Refuses a suite whose nonce has another length.
    pub(crate) fn check_fits(&self, suite: Suite) -> Result<(), Error> {
        if usize::from(self.len) == suite.nonce_len() {
            Ok(())
        } else {
            Err(Error::NonceLength {
                need: suite.nonce_len(),
                got: usize::from(self.len),
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
        let mut bytes = self.base;
        match self.layout {
            Layout::Xor => {
                let end = usize::from(self.len);
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
        Nonce { bytes, len: self.len }
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
mod tests {
    use super::*;
    use crate::RekeyPolicy;

    fn hex(nonce: &Nonce) -> String {
        nonce.as_bytes().iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn xor_layout_follows_tls13() {
        let mut sequence = NonceSequence::xor(Suite::Aes128Gcm, &[0xff; 12])
            .unwrap()
            .starting_at(0x0102);
        assert_eq!(hex(&sequence.advance().unwrap().nonce), "fffffffffffffffffffffefd");
        assert_eq!(hex(&sequence.advance().unwrap().nonce), "fffffffffffffffffffffefc");
    }

    #[test]
    fn field_layouts() {
        let mut s = NonceSequence::fixed_then_counter(Suite::ChaCha20Poly1305, &[0xaa; 4]).unwrap();
        assert_eq!(hex(&s.advance().unwrap().nonce), "aaaaaaaa0000000000000000");
        assert_eq!(hex(&s.advance().unwrap().nonce), "aaaaaaaa0000000000000001");
        let mut s = NonceSequence::counter_then_fixed(Suite::Aes128Gcm, 2, CounterOrder::BigEndian, &[7; 10]).unwrap();
        s = s.starting_at(0x1234);
        assert_eq!(hex(&s.advance().unwrap().nonce), "123407070707070707070707");
        let mut s =
            NonceSequence::counter_then_fixed(Suite::ChaCha20Poly1305, 4, CounterOrder::LittleEndian, &[9; 8]).unwrap();
        s = s.starting_at(0x0a0b0c0d);
        assert_eq!(hex(&s.advance().unwrap().nonce), "0d0c0b0a0909090909090909");
    }

    #[test]
    fn layouts_that_do_not_fit_are_refused() {
        for fixed in [0, 1, 2, 3, 12, 13, 24, 100] {
            let result = NonceSequence::fixed_then_counter(Suite::Aes256Gcm, &vec![0; fixed]);
            assert!(matches!(result, Err(Error::NonceLayout { .. })), "{fixed}");
        }
        assert!(NonceSequence::fixed_then_counter(Suite::XChaCha20Poly1305, &[0; 16]).is_ok());
        let order = CounterOrder::BigEndian;
        assert!(NonceSequence::counter_then_fixed(Suite::Aes256Gcm, 0, order, &[0; 12]).is_err());
        assert!(NonceSequence::counter_then_fixed(Suite::Aes256Gcm, 9, order, &[0; 3]).is_err());
        assert!(NonceSequence::xor(Suite::Aes256Gcm, &[0; 24]).is_err());
    }

    #[test]
    fn a_narrow_counter_ends_and_never_wraps() {
        let order = CounterOrder::BigEndian;
        let mut s = NonceSequence::counter_then_fixed(Suite::Aes128Gcm, 1, order, &[0; 11]).unwrap();
        let mut seen = std::collections::HashSet::new();
        for number in 0..256 {
            let step = s.advance().unwrap();
            assert_eq!(step.number, number);
            assert!(seen.insert(hex(&step.nonce)));
        }
        for _ in 0..3 {
            assert!(matches!(s.advance(), Err(Error::Exhausted)));
        }
        assert_eq!(s.remaining(), 0);
    }

    #[test]
    fn the_end_of_u64_is_the_end() {
        let limits = Limits::of(Suite::ChaCha20Poly1305);
        let mut s = NonceSequence::xor(Suite::ChaCha20Poly1305, &[0; 12])
            .unwrap()
            .with_limits(limits);
        assert_eq!(s.remaining(), u64::MAX);
        s = s.starting_at(u64::MAX);
        assert_eq!(s.remaining(), 1);
        assert_eq!(hex(&s.advance().unwrap().nonce), "00000000ffffffffffffffff");
        assert!(matches!(s.advance(), Err(Error::Exhausted)));
        assert!(matches!(s.starting_at(0).advance(), Err(Error::Exhausted)));
    }

    #[test]
    fn a_start_moves_the_limits_and_never_goes_back() {
        let limits = Limits::of(Suite::Aes256Gcm).with_max_messages(3);
        let mut s = NonceSequence::xor(Suite::Aes256Gcm, &[0; 12])
            .unwrap()
            .with_limits(limits)
            .starting_at(1 << 60);
        assert_eq!(s.remaining(), 3);
        assert_eq!(s.advance().unwrap().number, 1 << 60);
        s = s.starting_at(5);
        assert_eq!(s.advance().unwrap().number, (1 << 60) + 1);
        s = s.starting_at((1 << 60) + 2);
        assert_eq!(s.advance().unwrap().number, (1 << 60) + 2);
        assert!(matches!(s.advance(), Err(Error::Exhausted)));
    }

    #[test]
    fn soft_and_hard_limits() {
        let limits = Limits {
            rekey: RekeyPolicy {
                bytes: u64::MAX,
                messages: 3,
            },
            max_messages: 5,
            max_blocks: u64::MAX,
        };
        let mut s = NonceSequence::xor(Suite::Aes256Gcm, &[0; 12])
            .unwrap()
            .with_limits(limits);
        let due: Vec<bool> = (0..5).map(|_| s.advance().unwrap().rekey).collect();
        assert_eq!(due, [false, false, true, true, true]);
        assert!(matches!(s.advance(), Err(Error::Exhausted)));
    }

    #[test]
    fn debug_does_not_show_the_fixed_field() {
        let s = NonceSequence::xor(Suite::Aes256Gcm, &[0xab; 12]).unwrap();
        assert!(!format!("{s:?}").contains("171"));
        assert!(!format!("{s:?}").to_lowercase().contains("ab"));
    }
}
