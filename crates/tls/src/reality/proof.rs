//! What a client makes of a server's certificate: whether it was made for this client, by the holder of the key it was given.

use aws_lc_rs::signature::{ED25519, ML_DSA_65, UnparsedPublicKey};

use super::AuthKey;
use super::certificate::{MLDSA65_KEY_LEN, is_for, signed};
use crate::client::Shown;

/// A key of Ed25519, up to its bytes: SubjectPublicKeyInfo (RFC 8410 section 4).
const ED25519_KEY: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// What a certificate is to the client it was shown to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Proof {
    /// It is the server's, which holds this key of Ed25519.
    Genuine([u8; 32]),
    /// It was made for this client, but is not signed by the key of ML-DSA-65 that the client was given.
    Unsigned,
    /// It is somebody else's.
    Other,
}

impl Proof {
    /// Judges what a server showed. `mldsa65` is the key that it must have besides, if any.
    pub fn of(key: &AuthKey, shown: &Shown<'_>, mldsa65: Option<&[u8; MLDSA65_KEY_LEN]>) -> Proof {
        let Some(leaf) = shown.chain.first().and_then(|der| Leaf::read(der)) else {
            return Proof::Other;
        };
        if !is_for(key.as_bytes(), leaf.public, leaf.der) {
            return Proof::Other;
        }
        let Some(mldsa65) = mldsa65 else {
            return Proof::Genuine(*leaf.public);
        };
        let content = signed(key.as_bytes(), leaf.public, shown.client_hello, shown.server_hello);
        let judge = UnparsedPublicKey::new(&ML_DSA_65, mldsa65);
        match leaf
            .extension
            .is_some_and(|signature| judge.verify(&content, signature).is_ok())
        {
            true => Proof::Genuine(*leaf.public),
            false => Proof::Unsigned,
        }
    }

    /// Whether a signature is one of this key of Ed25519.
    pub fn signed(public: &[u8; 32], message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, public)
            .verify(message, signature)
            .is_ok()
    }
}

/// What is looked at of a certificate with a key of Ed25519.
struct Leaf<'a> {
    der: &'a [u8],
    public: &'a [u8; 32],
    /// The content of its first extension.
    extension: Option<&'a [u8]>,
}

/// An element of DER: its tag and its content.
type Element<'a> = (u8, &'a [u8]);

/// Takes an element off the front (X.690 section 8.1), with its length in at most three bytes.
fn element<'a>(rest: &mut &'a [u8]) -> Option<Element<'a>> {
    let [tag, first, tail @ ..] = *rest else { return None };
    let (length, tail) = match (*first, tail) {
        (0..=0x7f, tail) => (usize::from(*first), tail),
        (0x81, [a, tail @ ..]) => (usize::from(*a), tail),
        (0x82, [a, b, tail @ ..]) => (usize::from(u16::from_be_bytes([*a, *b])), tail),
        _ => return None,
    };
    let (content, after) = tail.split_at_checked(length)?;
    *rest = after;
    Some((*tag, content))
}

fn sequence<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    match element(rest)? {
        (0x30, content) => Some(content),
        _ => None,
    }
}

impl<'a> Leaf<'a> {
    /// `None`: it is no certificate, or one with another kind of key.
    fn read(der: &'a [u8]) -> Option<Leaf<'a>> {
        let mut rest = der;
        let mut certificate = sequence(&mut rest)?;
        if !rest.is_empty() {
            return None;
        }
        let mut fields = sequence(&mut certificate)?;
        if fields.first() == Some(&0xa0) {
            element(&mut fields)?;
        }
        // Serial number, algorithm, issuer, validity, subject.
        for _ in 0..5 {
            element(&mut fields)?;
        }
        let after = fields.strip_prefix(ED25519_KEY)?;
        let (public, mut after) = after.split_first_chunk()?;
        let mut extension = None;
        while let Some((tag, content)) = element(&mut after) {
            if tag == 0xa3 {
                extension = first_extension(content);
            }
        }
        Some(Leaf { der, public, extension })
    }
}

/// The content of the first extension of a list.
fn first_extension(mut list: &[u8]) -> Option<&[u8]> {
    let mut all = sequence(&mut list)?;
    let mut first = sequence(&mut all)?;
    // Its name, perhaps that it is critical, its content.
    while let Some((tag, content)) = element(&mut first) {
        if tag == 4 {
            return Some(content);
        }
    }
    None
}

#[cfg(test)]
mod tests;
