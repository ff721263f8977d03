//! Users as a configuration has them, in few bytes.
//!
//! There may be 100,000. Connections know them by other tables; this list is kept for reloads, which compare it, and for whoever asks
//! for the settings, and each user in it costs some 20 bytes beside his e-mail.

use std::fmt;
use std::marker::PhantomData;

use sealway_v2ray::same_secret;
use zeroize::Zeroizing;

/// Users one after the other, in the order in which they came. They are made of it again when they are asked for. Compared in a time
/// that does not depend on where they differ, and wiped when it is dropped.
#[derive(Clone)]
pub struct Packed<T> {
    bytes: Zeroizing<Vec<u8>>,
    len: usize,
    users: PhantomData<T>,
}

/// What can be packed.
pub trait Pack: Sized {
    /// Writes it.
    fn pack(&self, to: &mut Packer);

    /// Reads what [`Pack::pack`] has written. `None`: it is something else.
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self>;
}

/// Where users are written.
#[derive(Default)]
pub struct Packer(Zeroizing<Vec<u8>>);

impl Packer {
    /// Appends bytes. What was written moves to a larger place of ours, so that the smaller one is wiped.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let needed = self.0.len() + bytes.len();
        if needed > self.0.capacity() {
            self.move_to((self.0.capacity() * 2).max(needed));
        }
        self.0.extend_from_slice(bytes);
    }

    fn move_to(&mut self, capacity: usize) {
        let mut larger = Zeroizing::new(Vec::with_capacity(capacity));
        larger.extend_from_slice(&self.0);
        self.0 = larger;
    }

    /// Appends a number: seven bits a byte, the lowest first.
    pub(super) fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes(&[number as u8 | 0x80]);
            number >>= 7;
        }
        self.bytes(&[number as u8]);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }
}

/// Where users are read from.
pub struct Unpacker<'a>(&'a [u8]);

impl<'a> Unpacker<'a> {
    #[cfg(test)]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Unpacker(bytes)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn number_of<N: TryFrom<u64>>(&mut self) -> Option<N> {
        N::try_from(self.number()?).ok()
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let len = self.number_of()?;
        String::from_utf8(self.bytes(len)?.to_vec()).ok()
    }
}

impl<T: Pack> Packed<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let mut rest = Unpacker(&self.bytes);
        std::iter::from_fn(move || T::unpack(&mut rest))
    }
}

#[cfg(test)]
impl<T> Packed<T> {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

impl<T: Pack> FromIterator<T> for Packed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(users: I) -> Self {
        let (mut to, mut len) = (Packer::default(), 0);
        for user in users {
            user.pack(&mut to);
            len += 1;
        }
        to.move_to(to.0.len());
        Packed {
            bytes: to.0,
            len,
            users: PhantomData,
        }
    }
}

impl<T> Default for Packed<T> {
    fn default() -> Self {
        Packed {
            bytes: Zeroizing::default(),
            len: 0,
            users: PhantomData,
        }
    }
}

impl<T> PartialEq for Packed<T> {
    fn eq(&self, other: &Self) -> bool {
        same_secret(&self.bytes, &other.bytes)
    }
}

impl<T: Pack + fmt::Debug> fmt::Debug for Packed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
