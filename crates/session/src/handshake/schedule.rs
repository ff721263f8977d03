//! The running hash of everything sent, and the running secret.

use sealway_aead::Suite;
use sealway_aead::derive::{Direction, Hash, Label, Prk};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::session::mac;
use crate::{CheckString, Error};

/// Name and version of the protocol.
pub(super) const NAME: &[u8; 17] = b"sealway session 1";

pub(super) const CONFIRM_INITIATOR: &str = "sealway session confirm initiator";
pub(super) const CONFIRM_RESPONDER: &str = "sealway session confirm responder";

const MIX: &str = "sealway session mix";
const SEAL: &str = "sealway session handshake";
const PASSWORD: &str = "sealway session password";
const CHECK: &str = "sealway session check";
const MASTER: &str = "sealway session master";
const COMMITMENT: &[u8] = b"sealway session 1 commitment";
const CODE: &[u8] = b"sealway session 1 code";

/// SHA-256 of these parts, one after the other.
fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// The hash that everything starts from: protocol and prologue.
pub(super) fn start(prologue: &[u8]) -> [u8; 32] {
    sha256(&[NAME, &(prologue.len() as u64).to_be_bytes(), prologue])
}

/// What flight 1 says of the nonce that flight 3 shows.
pub(super) fn commitment(nonce: &[u8; 32]) -> [u8; 32] {
    sha256(&[COMMITMENT, nonce])
}

/// What SPAKE2 is given for a code phrase: bound to this protocol and to the prologue.
pub(super) fn password(code: &[u8], start: &[u8; 32]) -> Result<Zeroizing<[u8; 32]>, Error> {
    mac(&Prk::extract(Hash::Sha256, CODE, code), PASSWORD, start)
}

/// The running hash of everything sent, and the secret of everything agreed on so far.
pub(super) struct Schedule {
    hash: [u8; 32],
    secret: Prk,
}

impl Schedule {
    /// From the start and flight 1.
    pub(super) fn new(start: &[u8; 32], flight: &[u8]) -> Self {
        let hash = sha256(&[start, flight]);
        Schedule {
            secret: Prk::extract(Hash::Sha256, NAME, &hash),
            hash,
        }
    }

    /// Takes bytes of a flight into the hash.
    pub(super) fn hash(&mut self, sent: &[u8]) {
        self.hash = sha256(&[&self.hash, sent]);
    }

    /// Takes a secret in.
    pub(super) fn mix(&mut self, secret: &[u8]) -> Result<(), Error> {
        let salt = mac(&self.secret, MIX, &self.hash)?;
        self.secret = Prk::extract(Hash::Sha256, &*salt, secret);
        Ok(())
    }

    /// Seals `text` in place and puts its tag behind it, under a key for this moment alone; hashes what is sent.
    pub(super) fn seal(&mut self, suite: Suite, direction: Direction, text: &mut Vec<u8>) -> Result<(), Error> {
        let label = Label::new(SEAL, suite, direction).context(&self.hash);
        let mut sealer = self.secret.traffic(&label)?.into_sealer()?;
        let sealed = sealer.seal_in_place(&self.hash, text)?;
        text.extend_from_slice(sealed.tag.as_bytes());
        self.hash(text);
        Ok(())
    }

    /// Opens what [`Schedule::seal`] sealed; hashes it as it came.
    pub(super) fn open<const N: usize>(
        &mut self,
        suite: Suite,
        direction: Direction,
        sealed: &[u8],
    ) -> Result<Zeroizing<[u8; N]>, Error> {
        let label = Label::new(SEAL, suite, direction).context(&self.hash);
        let mut opener = self.secret.traffic(&label)?.into_opener()?;
        let mut text = Zeroizing::new([0; N]);
        let (ciphertext, tag) = sealed.split_at_checked(N).ok_or(Error::Unauthentic)?;
        text.copy_from_slice(ciphertext);
        opener.open_in_place(&self.hash, &mut *text, &sealway_aead::Tag::from_slice(tag)?)?;
        self.hash(sealed);
        Ok(text)
    }

    /// Proof that an end has all secrets so far and saw the same bytes. Unlike the tag of an AEAD it commits to the key, so
    /// one proof tests one guess of a code phrase.
    pub(super) fn confirmation(&self, label: &str) -> Result<Zeroizing<[u8; 32]>, Error> {
        mac(&self.secret, label, &self.hash)
    }

    /// What the check string is made with: bound to everything up to the end of flight 2.
    pub(super) fn checker(&self) -> Result<Checker, Error> {
        Ok(Checker(self.secret.export_prk(CHECK, &self.hash)?))
    }

    /// The secret of the session, and the hash of the whole handshake.
    pub(super) fn finish(self) -> Result<(Prk, [u8; 32]), Error> {
        Ok((self.secret.export_prk(MASTER, &self.hash)?, self.hash))
    }
}

/// Makes the check string.
pub(super) struct Checker(Prk);

impl Checker {
    /// With the nonce that flight 3 shows. Nothing else of flight 3 goes in: whoever is in between could vary it after having
    /// seen the string of the other side.
    pub(super) fn string(&self, nonce: &[u8; 32]) -> Result<CheckString, Error> {
        let mut bytes = [0; 5];
        self.0.export(CHECK, nonce, &mut bytes)?;
        Ok(CheckString::new(bytes))
    }
}
