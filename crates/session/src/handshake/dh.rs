//! X25519 (RFC 7748).

use std::fmt;

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
