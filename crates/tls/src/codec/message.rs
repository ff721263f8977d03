//! A handshake message: its kind, its length, its body.

use super::fields;
use crate::{Alert, Error};

/// Bytes in front of the body of a message.
pub const HEAD: usize = 4;

/// What a message is (RFC 8446 section 4). Any byte may come.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Kind(pub u8);

impl Kind {
    /// `client_hello`
    pub const CLIENT_HELLO: Kind = Kind(1);
    /// `server_hello`, which a HelloRetryRequest is too
    pub const SERVER_HELLO: Kind = Kind(2);
    /// `new_session_ticket`
    pub const NEW_SESSION_TICKET: Kind = Kind(4);
    /// `encrypted_extensions`
    pub const ENCRYPTED_EXTENSIONS: Kind = Kind(8);
    /// `certificate`
    pub const CERTIFICATE: Kind = Kind(11);
    /// `certificate_request`
    pub const CERTIFICATE_REQUEST: Kind = Kind(13);
    /// `certificate_verify`
    pub const CERTIFICATE_VERIFY: Kind = Kind(15);
    /// `finished`
    pub const FINISHED: Kind = Kind(20);
    /// `key_update`
    pub const KEY_UPDATE: Kind = Kind(24);
    /// `compressed_certificate` (RFC 8879)
    pub const COMPRESSED_CERTIFICATE: Kind = Kind(25);
    /// `message_hash`, which stands for the first hello in a transcript with a HelloRetryRequest
    pub const MESSAGE_HASH: Kind = Kind(254);
}

/// A whole message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message<'a> {
    /// What it is.
    pub kind: Kind,
    /// All of it, with its head: what a transcript takes.
    pub bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// What stands behind the head.
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEAD..).unwrap_or_default()
    }

    /// The message that `bytes` begin with. `None`: some of it has not come.
    ///
    /// # Errors
    /// [`Error::Peer`] if it says that it is longer than `limit` bytes, head included.
    pub fn first(bytes: &'a [u8], limit: usize) -> Result<Option<Self>, Error> {
        let [kind, a, b, c, ..] = bytes else { return Ok(None) };
        let whole = HEAD + u32::from_be_bytes([0, *a, *b, *c]) as usize;
        if whole > limit {
            return Err(too_long("a handshake message that is too long"));
        }
        Ok(bytes.get(..whole).map(|bytes| Message {
            kind: Kind(*kind),
            bytes,
        }))
    }
}

/// Writes a message of this kind.
pub(super) fn write(
    out: &mut Vec<u8>,
    kind: Kind,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(kind.0);
    fields::vector(out, 3, body)
}

/// Above one of the limits.
pub(super) fn too_long(what: &'static str) -> Error {
    Error::peer(Alert::RecordOverflow, what)
}
