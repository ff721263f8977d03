//! Long-lived keys of servers, and what clients are told of them.

use aws_lc_rs::signature::{KeyPair, ML_DSA_65_SIGNING, PqdsaKeyPair};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::group::X25519Secret;

/// Bytes of a public key of ML-DSA-65.
pub const MLDSA65_PUBLIC_LEN: usize = 1952;

/// A private key of X25519 in the one form of the many that are equal (RFC 7748 section 5).
pub fn clamped(mut private: [u8; 32]) -> Zeroizing<[u8; 32]> {
    private[0] &= 248;
    private[31] = private[31] & 127 | 64;
    Zeroizing::new(private)
}

/// The public key of X25519 that belongs to a private key.
pub fn x25519_public(private: &[u8; 32]) -> [u8; 32] {
    X25519Secret::new(private).public()
}

/// The public key of ML-DSA-65 that belongs to a seed.
///
/// # Errors
/// [`Error::Library`].
pub fn mldsa65_public(seed: &[u8; 32]) -> Result<Vec<u8>, Error> {
    let pair = PqdsaKeyPair::from_seed(&ML_DSA_65_SIGNING, seed).map_err(|_| Error::Library("ML-DSA-65"))?;
    Ok(pair.public_key().as_ref().to_vec())
}
