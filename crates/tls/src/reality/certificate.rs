//! The server's certificate: one made for each connection, which only the client that it is for can tell from any other.
//!
//! It is the least that is a certificate: serial number 0, no names, years before any clock, a key of Ed25519 that lives as long as the
//! process. Where its signature would be stands an HMAC under the key that the client and the server share. With a key of ML-DSA-65
//! it has an extension besides, which signs both hellos: so whoever breaks X25519 cannot stand for the server.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair, ML_DSA_65_SIGNING, PqdsaKeyPair};
use hmac::{Hmac, KeyInit, Mac};
use sealway_aead::wipe::leaving_no_stack;
use sha2::Sha512;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::codec::{ClientHello, Numbers};
use crate::error::Error;
use crate::server::{ED25519, Identity};

/// Bytes of a signature of ML-DSA-65 (FIPS 204).
pub const MLDSA65_LEN: usize = 3309;
/// Bytes of a public key of ML-DSA-65.
pub const MLDSA65_KEY_LEN: usize = 1952;
/// Where the signature of ML-DSA-65 begins in a certificate that has one.
pub const MLDSA65_AT: usize = 126;
/// Bytes of a public key of Ed25519.
pub const PUBLIC_LEN: usize = 32;
/// Bytes of what stands for the signature.
pub const SIGNATURE_LEN: usize = 64;

/// Stack that is overwritten behind a hash that takes a secret, in words of eight bytes.
const STACK_WORDS: usize = 1024;

/// A certificate up to its length: the outer sequence, and that of what is signed.
const HEAD: &[u8] = &[0x30, 0x81, 0xaf, 0x30, 0x63];
/// The same with the extension.
const HEAD_WITH_EXTENSION: &[u8] = &[0x30, 0x82, 0x0d, 0xb1, 0x30, 0x82, 0x0d, 0x63];
/// Version 3, serial number 0, Ed25519, no issuer, the year 1 twice, no subject, and a key of Ed25519 up to its bytes.
const FIELDS: &[u8] = b"\xa0\x03\x02\x01\x02\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x30\x00\
\x30\x22\x18\x0f00010101000000Z\x18\x0f00010101000000Z\x30\x00\
\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
/// One extension, with the identifier 0.0, up to its bytes.
const EXTENSION: &[u8] = &[
    0xa3, 0x82, 0x0c, 0xfc, 0x30, 0x82, 0x0c, 0xf8, 0x30, 0x82, 0x0c, 0xf4, 0x06, 0x01, 0x00, 0x04, 0x82, 0x0c, 0xed,
];
/// Ed25519, and a signature up to its bytes.
const SIGNATURE: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x41, 0x00];

/// HMAC-SHA512 under the key that both ends share.
fn hmac(auth: &[u8; 32], parts: &[&[u8]]) -> [u8; SIGNATURE_LEN] {
    leaving_no_stack::<STACK_WORDS, _>(|| {
        let mut block = Zeroizing::new([0; 128]);
        block[..32].copy_from_slice(auth);
        let mut mac = Hmac::<Sha512>::new((&*block).into());
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    })
}

/// What stands in the place of a certificate's signature.
pub fn signature(auth: &[u8; 32], public: &[u8; PUBLIC_LEN]) -> [u8; SIGNATURE_LEN] {
    hmac(auth, &[public])
}

/// What the extension of ML-DSA-65 signs.
pub fn signed(
    auth: &[u8; 32],
    public: &[u8; PUBLIC_LEN],
    client_hello: &[u8],
    server_hello: &[u8],
) -> [u8; SIGNATURE_LEN] {
    hmac(auth, &[public, client_hello, server_hello])
}

/// The keys of a server, of which a process has one.
pub struct ServerKey {
    ed25519: Ed25519KeyPair,
    public: [u8; PUBLIC_LEN],
    mldsa65: Option<PqdsaKeyPair>,
}

impl ServerKey {
    /// A key of Ed25519 from 32 random bytes and, for clients that were given its public key, one of ML-DSA-65 from its seed.
    ///
    /// # Errors
    /// [`Error::Library`] if memory ran out.
    pub fn new(random: &[u8; 32], mldsa65_seed: Option<&[u8; 32]>) -> Result<Self, Error> {
        let none = Error::Library("no key for certificates");
        let ed25519 = Ed25519KeyPair::from_seed_unchecked(random).map_err(|_| none.clone())?;
        let public = ed25519.public_key().as_ref().try_into().map_err(|_| none.clone())?;
        let mldsa65 = mldsa65_seed.map(|seed| PqdsaKeyPair::from_seed(&ML_DSA_65_SIGNING, seed));
        Ok(ServerKey {
            ed25519,
            public,
            mldsa65: mldsa65.transpose().map_err(|_| none)?,
        })
    }

    /// The public key of ML-DSA-65, [`MLDSA65_KEY_LEN`] bytes, for clients.
    pub fn mldsa65_public(&self) -> Option<&[u8]> {
        self.mldsa65.as_ref().map(|key| key.public_key().as_ref())
    }

    /// The certificate for the client with this key, by the whole messages of both hellos.
    ///
    /// # Errors
    /// [`Error::Library`] if memory ran out.
    pub fn certificate(&self, auth: &[u8; 32], client_hello: &[u8], server_hello: &[u8]) -> Result<Vec<u8>, Error> {
        let mut der = Vec::with_capacity(MLDSA65_AT + MLDSA65_LEN + SIGNATURE.len() + SIGNATURE_LEN);
        der.extend_from_slice(if self.mldsa65.is_some() {
            HEAD_WITH_EXTENSION
        } else {
            HEAD
        });
        der.extend_from_slice(FIELDS);
        der.extend_from_slice(&self.public);
        if let Some(key) = &self.mldsa65 {
            der.extend_from_slice(EXTENSION);
            let content = signed(auth, &self.public, client_hello, server_hello);
            let at = der.len();
            der.resize(at + MLDSA65_LEN, 0);
            let made = key.sign(&content, &mut der[at..]);
            if made != Ok(MLDSA65_LEN) {
                return Err(Error::Library("ML-DSA-65 could not sign"));
            }
        }
        der.extend_from_slice(SIGNATURE);
        der.extend_from_slice(&signature(auth, &self.public));
        Ok(der)
    }

    /// Who the server is to the client with this key.
    pub fn for_client(&self, auth: &[u8; 32]) -> ForClient<'_> {
        ForClient {
            key: self,
            auth: Zeroizing::new(*auth),
        }
    }
}

/// Who a server is to one client: a certificate made for it.
pub struct ForClient<'a> {
    key: &'a ServerKey,
    auth: Zeroizing<[u8; 32]>,
}

impl Identity for ForClient<'_> {
    fn certificates(&self, client: &ClientHello<'_>, server_hello: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        Ok(vec![self.key.certificate(&self.auth, client.bytes, server_hello)?])
    }

    /// Signs with Ed25519 whatever the client offers: a hello like a browser's does not name it.
    fn sign(&self, _: Numbers<'_>, content: &[u8]) -> Result<(u16, Vec<u8>), Error> {
        let signature = self.key.ed25519.try_sign(content);
        let signature = signature.map_err(|_| Error::Library("Ed25519 could not sign"))?;
        Ok((ED25519, signature.as_ref().to_vec()))
    }
}

/// True if a certificate whose key of Ed25519 is `public` was made for the client with this key. In constant time.
pub fn is_for(auth: &[u8; 32], public: &[u8; PUBLIC_LEN], der: &[u8]) -> bool {
    let Some((_, last)) = der.split_last_chunk::<SIGNATURE_LEN>() else {
        return false;
    };
    bool::from(signature(auth, public).ct_eq(last))
}

#[cfg(test)]
mod tests;
