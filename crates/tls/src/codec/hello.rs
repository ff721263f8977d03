//! The hellos (RFC 8446 sections 4.1.2 to 4.1.4).

use std::ops::Range;

use super::extension::{self, Extensions, KeyShare, Numbers};
use super::fields::{self, Fields};
use super::message::{self, HEAD, Kind, Message};
use crate::{Alert, Error};

/// Where the session id begins in a ClientHello, counted from the head of the message.
pub const SESSION_ID_AT: usize = HEAD + 2 + 32 + 1;

/// The random of a ServerHello that is a HelloRetryRequest: the SHA-256 of "HelloRetryRequest".
pub const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// The version that hellos have named since TLS 1.2.
const LEGACY_VERSION: u16 = 0x0303;

/// What a client begins with, as it came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientHello<'a> {
    /// The whole message, with its head.
    pub bytes: &'a [u8],
    /// What it says of its version in the old place; 0x0303 of every client of TLS 1.3.
    pub legacy_version: u16,
    /// Its random bytes.
    pub random: &'a [u8; 32],
    /// At most 32 bytes; they stand at [`SESSION_ID_AT`].
    pub session_id: &'a [u8],
    /// Suites, in its order.
    pub suites: Numbers<'a>,
    /// Compression methods; one byte 0 of every client of TLS 1.3.
    pub compression: &'a [u8],
    /// None of a client before TLS 1.2.
    pub extensions: Extensions<'a>,
}

impl<'a> ClientHello<'a> {
    /// Reads a whole message.
    ///
    /// # Errors
    /// [`Error::Peer`] for another message, or one that is malformed. What the extensions say is not looked at.
    pub fn read(message: Message<'a>) -> Result<Self, Error> {
        if message.kind != Kind::CLIENT_HELLO {
            return Err(Error::peer(
                Alert::UnexpectedMessage,
                "a message where ClientHello had to come",
            ));
        }
        let mut fields = Fields::new(message.body(), "ClientHello");
        let legacy_version = fields.u16()?;
        let random = fields.array()?;
        let session_id = fields.vector(1)?;
        let suites = Numbers::read(fields.vector(2)?, "the suites of ClientHello")?;
        let compression = fields.vector(1)?;
        if session_id.len() > 32 || compression.is_empty() {
            return Err(fields.malformed());
        }
        let extensions = match fields.is_empty() {
            true => Extensions::default(),
            false => Extensions::read(fields.vector(2)?)?,
        };
        fields.end()?;
        Ok(ClientHello {
            bytes: message.bytes,
            legacy_version,
            random,
            session_id,
            suites,
            compression,
            extensions,
        })
    }

    /// Where the session id stands in [`ClientHello::bytes`].
    pub fn session_id_at(&self) -> Range<usize> {
        SESSION_ID_AT..SESSION_ID_AT + self.session_id.len()
    }

    /// True if the client offers TLS 1.3.
    ///
    /// # Errors
    /// [`Error::Peer`] if what it says of versions is malformed.
    pub fn offers_tls13(&self) -> Result<bool, Error> {
        let versions = self.extensions.supported_versions()?;
        Ok(versions.is_some_and(|versions| versions.contains(extension::TLS13)))
    }
}

/// What a server answers first, as it came; a HelloRetryRequest too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerHello<'a> {
    /// The whole message, with its head.
    pub bytes: &'a [u8],
    /// What it says of its version in the old place; 0x0303 in TLS 1.2 and 1.3.
    pub legacy_version: u16,
    /// Its random bytes; [`RETRY_RANDOM`] of a HelloRetryRequest.
    pub random: &'a [u8; 32],
    /// In TLS 1.3 that of the client.
    pub session_id: &'a [u8],
    /// The suite it chose.
    pub suite: u16,
    /// 0 in TLS 1.3.
    pub compression: u8,
    /// Its extensions.
    pub extensions: Extensions<'a>,
}

impl<'a> ServerHello<'a> {
    /// Reads a whole message.
    ///
    /// # Errors
    /// [`Error::Peer`] for another message, or one that is malformed. What the extensions say is not looked at.
    pub fn read(message: Message<'a>) -> Result<Self, Error> {
        if message.kind != Kind::SERVER_HELLO {
            return Err(Error::peer(
                Alert::UnexpectedMessage,
                "a message where ServerHello had to come",
            ));
        }
        let mut fields = Fields::new(message.body(), "ServerHello");
        let legacy_version = fields.u16()?;
        let random = fields.array()?;
        let session_id = fields.vector(1)?;
        let suite = fields.u16()?;
        let compression = fields.u8()?;
        if session_id.len() > 32 {
            return Err(fields.malformed());
        }
        let extensions = match fields.is_empty() {
            true => Extensions::default(),
            false => Extensions::read(fields.vector(2)?)?,
        };
        fields.end()?;
        Ok(ServerHello {
            bytes: message.bytes,
            legacy_version,
            random,
            session_id,
            suite,
            compression,
            extensions,
        })
    }

    /// True if it asks for another ClientHello.
    pub fn is_retry(&self) -> bool {
        *self.random == RETRY_RANDOM
    }

    /// The version that it chose: that of `supported_versions`, without which it is the old field's.
    ///
    /// # Errors
    /// [`Error::Peer`] if the extension is malformed.
    pub fn version(&self) -> Result<u16, Error> {
        match self.extensions.get(extension::SUPPORTED_VERSIONS) {
            Some(body) => extension::number(body, "supported_versions"),
            None => Ok(self.legacy_version),
        }
    }

    /// The server's key share.
    ///
    /// # Errors
    /// [`Error::Peer`] if the extension is malformed.
    pub fn key_share(&self) -> Result<Option<KeyShare<'a>>, Error> {
        let body = self.extensions.get(extension::KEY_SHARE);
        body.map(|body| Ok(extension::server_share(body)?.0)).transpose()
    }

    /// The group that a HelloRetryRequest asks for.
    ///
    /// # Errors
    /// [`Error::Peer`] if the extension is malformed.
    pub fn retry_group(&self) -> Result<Option<u16>, Error> {
        let body = self.extensions.get(extension::KEY_SHARE);
        body.map(|body| extension::number(body, "key_share")).transpose()
    }

    /// The same message with another key of the same length in its key share.
    ///
    /// # Errors
    /// [`Error::Peer`] if it has no key share, or a malformed one; [`Error::Given`] for a key of another length.
    pub fn with_key(&self, key: &[u8]) -> Result<Vec<u8>, Error> {
        let body = self.extensions.get(extension::KEY_SHARE);
        let body = body.ok_or(Error::peer(Alert::MissingExtension, "ServerHello without key_share"))?;
        let (share, at) = extension::server_share(body)?;
        if share.key.len() != key.len() {
            return Err(Error::Given("a key of another length than the one it replaces"));
        }
        // The body lies in the message: how far from its end is known without counting what stands before it.
        let before = Extensions::iter(&self.extensions).take_while(|(kind, _)| *kind != extension::KEY_SHARE);
        let before: usize = before.map(|(_, body)| 4 + body.len()).sum();
        let start = self.bytes.len() - self.extensions.bytes().len() + before + 4;
        let mut bytes = self.bytes.to_vec();
        let place = bytes.get_mut(start + at.start..start + at.end);
        place
            .ok_or(Error::Given("no hello that was read"))?
            .copy_from_slice(key);
        Ok(bytes)
    }
}

/// Appends a ClientHello with these extensions, each as number and body.
///
/// # Errors
/// [`Error::Given`] for a field that is longer than fits.
pub fn write_client_hello(
    out: &mut Vec<u8>,
    random: &[u8; 32],
    session_id: &[u8],
    suites: &[u16],
    extensions: &[(u16, &[u8])],
) -> Result<(), Error> {
    message::write(out, Kind::CLIENT_HELLO, |out| {
        out.extend_from_slice(&LEGACY_VERSION.to_be_bytes());
        out.extend_from_slice(random);
        fields::bytes(out, 1, session_id)?;
        fields::vector(out, 2, |out| {
            out.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
            Ok(())
        })?;
        fields::bytes(out, 1, &[0])?;
        extension::write(out, extensions)
    })
}

/// Appends a ServerHello with these extensions, or with [`RETRY_RANDOM`] a HelloRetryRequest.
///
/// # Errors
/// [`Error::Given`] for a field that is longer than fits.
pub fn write_server_hello(
    out: &mut Vec<u8>,
    random: &[u8; 32],
    session_id: &[u8],
    suite: u16,
    extensions: &[(u16, &[u8])],
) -> Result<(), Error> {
    message::write(out, Kind::SERVER_HELLO, |out| {
        out.extend_from_slice(&LEGACY_VERSION.to_be_bytes());
        out.extend_from_slice(random);
        fields::bytes(out, 1, session_id)?;
        out.extend_from_slice(&suite.to_be_bytes());
        out.push(0);
        extension::write(out, extensions)
    })
}
