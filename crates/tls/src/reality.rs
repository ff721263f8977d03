//! REALITY, as pure code: what a client hides in the session id of its hello, and what both ends make of it.
//!
//! A client's hello has a key share of X25519. With it and the server's key both ends make an [`AuthKey`], which belongs to this
//! hello alone. With that the client seals into its session id who it is, and the server signs its certificate.

pub mod certificate;
pub mod flight;
pub mod gate;
pub mod keys;
pub mod memory;
pub mod proof;
pub mod session_id;

use std::fmt;

use sealway_aead::derive::{Hash, Prk};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::group::X25519Secret;

/// The key of one hello, known to its client and to the holder of the server's private key. Wiped when dropped.
#[derive(Clone)]
pub struct AuthKey(Zeroizing<[u8; 32]>);

impl AuthKey {
    /// The key of the hello with this random, of whose key share and the server's key one half is `secret` and the other
    /// `public`.
    ///
    /// # Errors
    /// [`Error::Peer`] for a public key of small order.
    pub fn new(secret: &X25519Secret, public: &[u8; 32], random: &[u8; 32]) -> Result<Self, Error> {
        let shared = secret.agree(public)?;
        let mut key = Zeroizing::new([0; 32]);
        Prk::extract(Hash::Sha256, &random[..20], shared.as_slice())
            .expand_raw(b"REALITY", key.as_mut_slice())
            .map_err(|_| Error::Library("HKDF"))?;
        Ok(AuthKey(key))
    }

    /// The key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for AuthKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthKey(…)")
    }
}
