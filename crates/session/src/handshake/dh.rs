//! X25519 (RFC 7748).

use std::fmt;

use sealway_aead::derive::{Hash, Prk};
use x25519_dalek::{PublicKey, SharedSecret, StaticSecret};
use zeroize::Zeroizing;

use crate::Error;
use crate::wipe::leaving_no_stack;

/// An X25519 key: the long-lived one by which an end is known, or one for one handshake. Wiped when dropped.
#[derive(Clone)]
pub struct StaticKey {
    /// Boxed, so that moving it moves a pointer and leaves no copy behind.
    secret: Box<StaticSecret>,
    public: [u8; 32],
}

impl StaticKey {
    /// A new key. `random` fills its argument from a cryptographic generator.
    pub fn generate(random: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        random(&mut *secret);
        Self::from_bytes(&secret)
    }

    /// The key with these secret bytes, which the caller wipes.
    pub fn from_bytes(secret: &[u8; 32]) -> Self {
        leaving_no_stack(|| {
            let secret = Box::new(StaticSecret::from(*secret));
            let public = PublicKey::from(&*secret).to_bytes();
            StaticKey { secret, public }
        })
    }

    /// The secret bytes, to be kept where nobody else reads them.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.secret.to_bytes())
    }

    /// The public key, by which the other end knows this one.
    pub const fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// A secret that the owner of `theirs` has as well, and nobody else, for this `purpose`: a label, at most 255 bytes. It is always
    /// the same, so it is none for sealing with.
    ///
    /// # Errors
    /// [`Error::Malformed`] if `theirs` is a point of small order, [`Error::Aead`] for a label that is too long.
    pub fn pair_secret(&self, theirs: &[u8; 32], purpose: &str) -> Result<Zeroizing<[u8; 32]>, Error> {
        let shared = self.agree(theirs)?;
        let mut both = [self.public, *theirs];
        both.sort_unstable();
        let mut secret = Zeroizing::new([0; 32]);
        Prk::extract(Hash::Sha256, b"sealway pair", shared.as_bytes()).export(
            purpose,
            both.as_flattened(),
            &mut *secret,
        )?;
        Ok(secret)
    }

    /// The secret in common with the owner of `theirs`.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it is zero whatever this key is: `theirs` is a point of small order. Found in constant time.
    pub(super) fn agree(&self, theirs: &[u8; 32]) -> Result<SharedSecret, Error> {
        let shared = leaving_no_stack(|| self.secret.diffie_hellman(&PublicKey::from(*theirs)));
        if shared.was_contributory() {
            Ok(shared)
        } else {
            Err(Error::Malformed { what: "X25519 key" })
        }
    }
}

impl fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaticKey(")?;
        for byte in self.public {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> [u8; 32] {
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
    }

    /// RFC 7748 section 6.1.
    #[test]
    fn the_exchange_of_the_rfc() {
        let alice = bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        let bob = StaticKey::from_bytes(&bytes(
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        ));
        let shared = bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        assert_eq!(
            bob.public(),
            &bytes("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
        );
        assert_eq!(bob.agree(&alice).unwrap().as_bytes(), &shared);
    }

    #[test]
    fn a_pair_has_a_secret_of_its_own_for_each_purpose() {
        let [ours, theirs, other] = [1, 2, 3].map(|byte| StaticKey::from_bytes(&[byte; 32]));
        let secret = ours.pair_secret(theirs.public(), "lan").unwrap();
        assert_eq!(*theirs.pair_secret(ours.public(), "lan").unwrap(), *secret);
        for another in [
            ours.pair_secret(theirs.public(), "relay"),
            ours.pair_secret(other.public(), "lan"),
            other.pair_secret(theirs.public(), "lan"),
        ] {
            assert_ne!(*another.unwrap(), *secret);
        }
        assert!(ours.pair_secret(&[0; 32], "lan").is_err());
        assert!(ours.pair_secret(theirs.public(), &"l".repeat(256)).is_err());
    }

    #[test]
    fn a_point_of_small_order_gives_no_secret() {
        let key = StaticKey::from_bytes(&[5; 32]);
        for first in [0, 1] {
            let mut point = [0; 32];
            point[0] = first;
            assert_eq!(key.agree(&point).err(), Some(Error::Malformed { what: "X25519 key" }));
        }
    }

    #[test]
    fn debug_shows_the_public_key_only() {
        let shown = format!("{:?}", StaticKey::from_bytes(&[5; 32]));
        assert!(!shown.contains("0505"), "{shown}");
    }
}
