//! What a password becomes on the wire.

use std::fmt;
use std::hash::{Hash, Hasher};

use sha2::{Digest, Sha224};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// The SHA-224 of a password as 56 lower-case hexadecimal digits: all that a client shows, and so as secret as the password
/// itself. Comparison takes the same time wherever the digits differ. Wiped when it is dropped.
#[derive(Clone, Eq)]
pub struct Key([u8; Key::LEN]);

impl Key {
    /// Bytes of a key.
    pub const LEN: usize = 56;

    /// The key of a password.
    pub fn of_password(password: &str) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digest = Sha224::digest(password);
        let mut key = [0; Key::LEN];
        for (digits, byte) in key.chunks_exact_mut(2).zip(&digest) {
            digits[0] = DIGITS[usize::from(byte >> 4)];
            digits[1] = DIGITS[usize::from(byte & 15)];
        }
        digest.as_mut_slice().zeroize();
        Key(key)
    }

    /// A key of bytes from the wire, whatever they are.
    pub const fn from_bytes(bytes: [u8; Key::LEN]) -> Self {
        Key(bytes)
    }

    /// The digits.
    pub const fn as_bytes(&self) -> &[u8; Key::LEN] {
        &self.0
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Shows only the first four digits: the key is a secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}…)", self.0[..4].escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_password() {
        let key = Key::of_password("password");
        assert_eq!(
            std::str::from_utf8(key.as_bytes()).unwrap(),
            "d63dc919e201d7bc4c825630d2cf25fdc93d4b2f0d46706d29038d01"
        );
        assert_eq!(key, Key::from_bytes(*key.as_bytes()));
        for at in [0, 27, 55] {
            let mut other = *key.as_bytes();
            other[at] ^= 1;
            assert_ne!(key, Key::from_bytes(other));
        }
        // Digits, so letter case counts.
        assert_ne!(
            key,
            Key::from_bytes(key.as_bytes().to_ascii_uppercase().try_into().unwrap())
        );
    }

    #[test]
    fn debug_keeps_the_secret() {
        assert_eq!(format!("{:?}", Key::of_password("password")), "Key(d63d…)");
    }
}
