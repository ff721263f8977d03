//! The hash of what both ends have said.

use sha2::{Digest as _, Sha256, Sha384};

use crate::codec::Kind;
use crate::suite::{Digest, HashKind};

#[derive(Clone)]
enum Running {
    Sha256(Sha256),
    Sha384(Sha384),
}

/// The hash of a handshake's messages, as far as it has come (RFC 8446 section 4.4.1).
#[derive(Clone)]
pub struct Transcript(Running);

impl Transcript {
    /// Of nothing yet.
    pub fn new(hash: HashKind) -> Self {
        Transcript(match hash {
            HashKind::Sha256 => Running::Sha256(Sha256::new()),
            HashKind::Sha384 => Running::Sha384(Sha384::new()),
        })
    }

    /// One with a HelloRetryRequest, up to the first hello: that stands in it as its hash.
    pub fn after_retry(hash: HashKind, hello: &[u8]) -> Self {
        let mut transcript = Transcript::new(hash);
        transcript.add(&[Kind::MESSAGE_HASH.0, 0, 0, hash.output_len() as u8]);
        transcript.add(hash.digest(hello).as_ref());
        transcript
    }

    /// A whole message, or its next part.
    pub fn add(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Running::Sha256(hash) => hash.update(bytes),
            Running::Sha384(hash) => hash.update(bytes),
        }
    }

    /// The hash of all that was added.
    pub fn value(&self) -> Digest {
        match &self.0 {
            Running::Sha256(hash) => Digest::new(&hash.clone().finalize()),
            Running::Sha384(hash) => Digest::new(&hash.clone().finalize()),
        }
    }
}
