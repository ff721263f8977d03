//! Answers of streams.

use sealway_aead::Suite;

use super::{FROM_SERVER, check_time, wire_time};
use crate::shadowsocks::stream::malformed;
use crate::shadowsocks::{ChunkOpener, ChunkSealer, Key, MAX_SALT};
use crate::{Error, Protocol, Step, same_secret};

const TAG: usize = Suite::TAG_LEN;
/// Type, time and length; the request's salt comes on top.
const FIXED: usize = 1 + 8 + 2;

/// Seals an answer. Its header names the length of the first payload, so it is written with that.
#[derive(Debug)]
pub struct AnswerSealer {
    sealer: ChunkSealer,
    /// The answer's salt, and the request's, until they are written.
    begin: Option<([u8; MAX_SALT], [u8; MAX_SALT])>,
    salt_len: usize,
}

impl AnswerSealer {
    /// The answer to a request with this salt. `salt` has as many random bytes.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out; [`Error::Buffer`] for a salt of another length.
    pub fn new(key: &Key, salt: &[u8], request_salt: &[u8]) -> Result<Self, Error> {
        let need = key.method().salt_len();
        let padded = |salt: &[u8]| {
            let mut out = [0; MAX_SALT];
            if salt.len() != need {
                return Err(Error::Buffer { need, got: salt.len() });
            }
            out[..need].copy_from_slice(salt);
            Ok(out)
        };
        Ok(AnswerSealer {
            sealer: ChunkSealer::new(key, salt)?,
            begin: Some((padded(salt)?, padded(request_salt)?)),
            salt_len: need,
        })
    }

    /// Most payload to seal at once.
    pub fn max_payload(&self) -> usize {
        self.sealer.max_payload()
    }

    /// Most bytes that one call of [`AnswerSealer::seal`] adds to the payload.
    pub const MAX_OVERHEAD: usize = MAX_SALT + FIXED + MAX_SALT + 2 * TAG;

    /// Appends payload, behind the header if this is the first. `now` is the Unix time in seconds.
    ///
    /// # Errors
    /// As [`ChunkSealer::seal`].
    pub fn seal(&mut self, payload: &[u8], now: i64, out: &mut Vec<u8>) -> Result<(), Error> {
        let len = self.sealer.check(payload.len())?;
        let Some((salt, request_salt)) = self.begin.take() else {
            return self.sealer.seal(payload, out);
        };
        out.extend_from_slice(&salt[..self.salt_len]);
        self.sealer.message(out, |out| {
            out.push(FROM_SERVER);
            out.extend_from_slice(&wire_time(now));
            out.extend_from_slice(&request_salt[..self.salt_len]);
            out.extend_from_slice(&len.to_be_bytes());
        })?;
        self.sealer.message(out, |out| out.extend_from_slice(payload))
    }
}

/// Opens the header of an answer, as the client. What follows it comes out of the opener.
///
/// # Errors
/// [`Error::Unauthentic`], [`Error::ClockSkew`], [`Error::Field`] for what is no answer, and [`Error::Malformed`] for one to
/// another request.
pub fn open_answer(bytes: &[u8], key: &Key, request_salt: &[u8], now: i64) -> Result<Step<ChunkOpener>, Error> {
    let salt_len = key.method().salt_len();
    let used = salt_len + FIXED + salt_len + TAG;
    if bytes.len() < used {
        return Ok(Step::More(used - bytes.len()));
    }
    let mut opener = ChunkOpener::new(key, &bytes[..salt_len])?;
    let mut sealed = bytes[salt_len..used].to_vec();
    let fixed = opener.message(&mut sealed)?;
    let ([kind, time @ .., _, _], [.., a, b]) = (&fixed[..FIXED], &*fixed) else {
        return Err(malformed("a header of another length"));
    };
    if *kind != FROM_SERVER {
        return Err(Protocol::Shadowsocks.field("the type of the header", u64::from(*kind)));
    }
    let time = time.try_into().map(u64::from_be_bytes).unwrap_or_default();
    check_time(time, now)?;
    if !same_secret(&fixed[9..9 + salt_len], request_salt) {
        return Err(malformed("the answer is to another request"));
    }
    opener.expect(usize::from(u16::from_be_bytes([*a, *b])));
    Ok(Step::Done { value: opener, used })
}
