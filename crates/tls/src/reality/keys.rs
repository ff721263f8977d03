//! Long-lived keys of servers, and what clients are told of them.

use aws_lc_rs::signature::{KeyPair, ML_DSA_65_SIGNING, PqdsaKeyPair};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::group::{self, MLKEM_KEY_LEN, X25519Secret};

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

/// The encapsulation key of ML-KEM-768 that belongs to a seed (FIPS 203, `d` and `z`).
pub fn mlkem768_public(seed: &[u8; 64]) -> [u8; MLKEM_KEY_LEN] {
    group::mlkem768_public(seed)
}
