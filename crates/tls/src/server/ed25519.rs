//! A server whose certificate has a key of Ed25519.

use aws_lc_rs::signature::Ed25519KeyPair;

use super::Identity;
use crate::codec::{ClientHello, Numbers};
use crate::error::{Alert, Error};

/// `ed25519` in `signature_algorithms`
pub const ED25519: u16 = 0x0807;

/// A chain of certificates, the first of which has a key of Ed25519.
pub struct Ed25519 {
    chain: Vec<Vec<u8>>,
    key: Ed25519KeyPair,
}

impl Ed25519 {
    /// A chain as DER, the server's own certificate first, and the 32 bytes of its private key (RFC 8032 section 5.1.5).
    ///
    /// # Errors
    /// [`Error::Given`] for an empty chain, [`Error::Library`] if memory ran out.
    pub fn new(chain: Vec<Vec<u8>>, seed: &[u8; 32]) -> Result<Self, Error> {
        if chain.is_empty() {
            return Err(Error::Given("no certificate"));
        }
        let key = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| Error::Library("no key of Ed25519"))?;
        Ok(Ed25519 { chain, key })
    }
}

impl Identity for Ed25519 {
    fn certificates(&self, _: &ClientHello<'_>, _: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.chain.clone())
    }

    fn sign(&self, offered: Numbers<'_>, content: &[u8]) -> Result<(u16, Vec<u8>), Error> {
        if !offered.contains(ED25519) {
            return Err(Error::peer(
                Alert::HandshakeFailure,
                "a client that does not take Ed25519",
            ));
        }
        let signature = self.key.try_sign(content);
        let signature = signature.map_err(|_| Error::Library("Ed25519 could not sign"))?;
        Ok((ED25519, signature.as_ref().to_vec()))
    }
}
