//! The session id, in which a client says who it is.
//!
//! It is 16 bytes, sealed with AES-256-GCM under the [`AuthKey`] of the hello: version, time and short id. The nonce is the end
//! of the hello's random, and the whole handshake message, with zeros in place of the session id, is authenticated with it. So
//! a server knows of every byte of the hello that the client wrote it.

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, Tag};

use subtle::{Choice, ConstantTimeEq};

use super::AuthKey;
use crate::codec::{HEAD, Kind, MAX_HELLO, SESSION_ID_AT};
use crate::error::Error;

/// Where the random stands in the handshake message: behind its head and the version.
const RANDOM: std::ops::Range<usize> = HEAD + 2..HEAD + 34;
/// Where the length of the session id stands.
const ID_LEN_AT: usize = RANDOM.end;
/// Where the session id stands.
pub(crate) const SESSION_ID: std::ops::Range<usize> = SESSION_ID_AT..SESSION_ID_AT + 32;

/// What a client says of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Claim {
    /// Its version.
    pub version: [u8; 3],
    /// Unix time, seconds. It ends in 2106.
    pub time: u32,
    /// Which of the server's short ids it has.
    pub short_id: [u8; 8],
}

impl Claim {
    fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..3].copy_from_slice(&self.version);
        bytes[4..8].copy_from_slice(&self.time.to_be_bytes());
        bytes[8..].copy_from_slice(&self.short_id);
        bytes
    }

    fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, _, t0, t1, t2, t3, short_id @ ..] = bytes;
        Claim {
            version: [a, b, c],
            time: u32::from_be_bytes([t0, t1, t2, t3]),
            short_id,
        }
    }
}

/// The random of a hello, which is a whole handshake message with a session id of 32 bytes. `None`: it is no such message.
pub fn random(hello: &[u8]) -> Option<&[u8; 32]> {
    let fits = hello.len() <= MAX_HELLO && hello.len() >= SESSION_ID.end;
    if !fits || hello[0] != Kind::CLIENT_HELLO.0 || hello[ID_LEN_AT] != 32 {
        return None;
    }
    hello[RANDOM].try_into().ok()
}

/// Seals a claim into the session id of a hello, which must be whole otherwise.
///
/// # Errors
/// [`Error::Given`] if `hello` is not a hello with a session id of 32 bytes; [`Error::Library`].
pub fn seal(key: &AuthKey, claim: &Claim, hello: &mut [u8]) -> Result<(), Error> {
    let random = *random(hello).ok_or(Error::Given("no hello with a session id of 32 bytes"))?;
    hello[SESSION_ID].fill(0);
    let key = SealingKey::new(Suite::Aes256Gcm, key.as_bytes()).map_err(|_| Error::Library("AES-256-GCM"))?;
    let nonce = Nonce::assume_unique(Suite::Aes256Gcm, &random[20..]).map_err(|_| Error::Library("AES-256-GCM"))?;
    let mut sealed = claim.to_bytes();
    let tag = key
        .seal_in_place(nonce, hello, &mut sealed)
        .map_err(|_| Error::Library("AES-256-GCM"))?;
    let (text, end) = hello[SESSION_ID].split_at_mut(sealed.len());
    text.copy_from_slice(&sealed);
    end.copy_from_slice(tag.as_bytes());
    Ok(())
}

/// Opens the session id of a hello.
///
/// # Errors
/// [`Error::Unauthentic`] for whatever was not sealed with this key, a message that is no hello included.
pub fn open(key: &AuthKey, hello: &[u8]) -> Result<Claim, Error> {
    let random = random(hello).ok_or(Error::Unauthentic)?;
    let mut zeroed = hello.to_vec();
    zeroed[SESSION_ID].fill(0);
    let (text, tag) = hello[SESSION_ID].split_at(16);
    let mut opened: [u8; 16] = text.try_into().map_err(|_| Error::Unauthentic)?;
    let tag = Tag::from_slice(tag).map_err(|_| Error::Unauthentic)?;
    let key = OpeningKey::new(Suite::Aes256Gcm, key.as_bytes()).map_err(|_| Error::Library("AES-256-GCM"))?;
    key.open_in_place(&random[20..], &zeroed, &mut opened, &tag)
        .map_err(|_| Error::Unauthentic)?;
    Ok(Claim::from_bytes(opened))
}

/// What a server asks of clients.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// What clients may identify themselves with.
    pub short_ids: Vec<[u8; 8]>,
    /// The lowest version.
    pub min_version: Option<[u8; 3]>,
    /// The highest version.
    pub max_version: Option<[u8; 3]>,
    /// By how many milliseconds clocks may differ. `None`: any time.
    pub max_skew: Option<u64>,
}

/// Why a client that has the key is not let in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// Its version is below the lowest or above the highest.
    Version,
    /// Its clock differs by this many seconds.
    Time(u64),
    /// It has none of the short ids.
    ShortId,
}

impl Terms {
    /// Whether a client that claims this is let in. `now` is the Unix time in milliseconds.
    ///
    /// # Errors
    /// The first [`Refusal`] in their order.
    pub fn check(&self, claim: &Claim, now: u64) -> Result<(), Refusal> {
        let below = self.min_version.is_some_and(|min| claim.version < min);
        let above = self.max_version.is_some_and(|max| claim.version > max);
        if below || above {
            return Err(Refusal::Version);
        }
        let skew = now.abs_diff(u64::from(claim.time) * 1000);
        if self.max_skew.is_some_and(|most| skew > most) {
            return Err(Refusal::Time(skew / 1000));
        }
        let equal = self.short_ids.iter().map(|id| id.ct_eq(&claim.short_id));
        match bool::from(equal.fold(Choice::from(0), |one, other| one | other)) {
            true => Ok(()),
            false => Err(Refusal::ShortId),
        }
    }
}

#[cfg(test)]
mod tests;
