//! The response header: `V | options | command | length | command data`, sealed behind its sealed length.

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite};

use super::Session;
use super::kdf::{self, Label};
use super::request::unauthentic;
use crate::{Error, Protocol, Step};

/// Longest header: four fields and a command of 255 bytes.
const MAX_HEADER: usize = 4 + 255;
/// Sealed length in front of the header.
const FRONT: usize = 2 + Suite::TAG_LEN;

impl Session {
    /// Bytes of the response header that a server sends.
    pub const RESPONSE_LEN: usize = FRONT + 4 + Suite::TAG_LEN;

    /// The response header, as the server.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn seal_response(&self) -> Result<[u8; Self::RESPONSE_LEN], Error> {
        let (key, iv) = self.response_keys();
        let seal = |labels: [&Label; 2], plain: &[u8], out: &mut [u8]| -> Result<(), Error> {
            let key = SealingKey::new(Suite::Aes128Gcm, &labels[0].derive::<16>(&*key))?;
            let nonce = Nonce::assume_unique(Suite::Aes128Gcm, &labels[1].derive::<12>(&iv))?;
            Ok(key.seal_to(nonce, &[], plain, out)?)
        };
        let mut out = [0; Self::RESPONSE_LEN];
        let (front, back) = out.split_at_mut(FRONT);
        seal([&kdf::RESPONSE_LENGTH_KEY, &kdf::RESPONSE_LENGTH_IV], &[0, 4], front)?;
        seal(
            [&kdf::RESPONSE_KEY, &kdf::RESPONSE_IV],
            &[self.response_v, 0, 0, 0],
            back,
        )?;
        Ok(out)
    }

    /// Reads the response header, as the client. A command in it is skipped, whatever it says: the one there was, to
    /// switch to another account, let a server crash its clients (CVE-2021-4070).
    ///
    /// # Errors
    /// [`Error::Unauthentic`], [`Error::TooLong`], and [`Error::Malformed`] if it answers another request.
    pub fn open_response(&self, bytes: &[u8]) -> Result<Step<()>, Error> {
        let Some((front, rest)) = bytes.split_first_chunk::<FRONT>() else {
            return Ok(Step::More(FRONT - bytes.len()));
        };
        let (key, iv) = self.response_keys();
        let open = |labels: [&Label; 2], sealed: &[u8], plain: &mut [u8]| {
            let key = OpeningKey::new(Suite::Aes128Gcm, &labels[0].derive::<16>(&*key))?;
            key.open_to(&labels[1].derive::<12>(&iv), &[], sealed, plain)
                .map_err(unauthentic)
        };
        let mut len = [0; 2];
        open([&kdf::RESPONSE_LENGTH_KEY, &kdf::RESPONSE_LENGTH_IV], front, &mut len)?;
        let len = usize::from(u16::from_be_bytes(len));
        if len > MAX_HEADER {
            return Err(Protocol::Vmess.too_long("the response header", MAX_HEADER));
        }
        let Some(sealed) = rest.get(..len + Suite::TAG_LEN) else {
            return Ok(Step::More(len + Suite::TAG_LEN - rest.len()));
        };
        let mut header = [0; MAX_HEADER];
        open([&kdf::RESPONSE_KEY, &kdf::RESPONSE_IV], sealed, &mut header[..len])?;
        if len < 4 || header[0] != self.response_v {
            return Err(Protocol::Vmess.malformed("the response is not for this request"));
        }
        Ok(Step::Done {
            value: (),
            used: FRONT + len + Suite::TAG_LEN,
        })
    }
}
