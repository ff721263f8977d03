//! What follows the hellos (RFC 8446 sections 4.3, 4.4 and 4.6).

use super::extension::{self, Extensions};
use super::fields::{self, Fields};
use super::message::{self, Kind};
use crate::Error;

/// What a server says under the first keys.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EncryptedExtensions<'a>(pub Extensions<'a>);

impl<'a> EncryptedExtensions<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is malformed.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(body, "EncryptedExtensions");
        let extensions = Extensions::read(fields.vector(2)?)?;
        fields.end()?;
        Ok(EncryptedExtensions(extensions))
    }
}

/// One certificate of a chain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CertificateEntry<'a> {
    /// The certificate, DER.
    pub der: &'a [u8],
    /// What belongs to it.
    pub extensions: Extensions<'a>,
}

/// A chain of certificates: its own first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Certificate<'a> {
    /// Empty of a server.
    pub context: &'a [u8],
    /// The chain, which may be empty.
    pub entries: Vec<CertificateEntry<'a>>,
}

impl<'a> Certificate<'a> {
    /// Most certificates of a chain.
    pub const MAX_ENTRIES: usize = 32;

    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is malformed, or has more than [`Certificate::MAX_ENTRIES`] certificates.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(body, "Certificate");
        let context = fields.vector(1)?;
        let mut list = Fields::new(fields.vector(3)?, "Certificate");
        fields.end()?;
        let mut entries = Vec::new();
        while !list.is_empty() {
            let der = list.vector(3)?;
            let extensions = Extensions::read(list.vector(2)?)?;
            if der.is_empty() {
                return Err(list.malformed());
            }
            if entries.len() == Certificate::MAX_ENTRIES {
                return Err(message::too_long("a chain of too many certificates"));
            }
            entries.push(CertificateEntry { der, extensions });
        }
        Ok(Certificate { context, entries })
    }
}

/// A signature over the handshake so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CertificateVerify<'a> {
    /// Number of the signature scheme.
    pub scheme: u16,
    /// The signature.
    pub signature: &'a [u8],
}

impl<'a> CertificateVerify<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is malformed.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(body, "CertificateVerify");
        let scheme = fields.u16()?;
        let signature = fields.vector(2)?;
        fields.end()?;
        Ok(CertificateVerify { scheme, signature })
    }
}

/// What a server gives for coming back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewSessionTicket<'a> {
    /// Seconds that it holds.
    pub lifetime: u32,
    /// What is added to its age.
    pub age_add: u32,
    /// What tells tickets of one connection apart.
    pub nonce: &'a [u8],
    /// The ticket.
    pub ticket: &'a [u8],
    /// What belongs to it.
    pub extensions: Extensions<'a>,
}

impl<'a> NewSessionTicket<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is malformed.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(body, "NewSessionTicket");
        let (lifetime, age_add) = (fields.u32()?, fields.u32()?);
        let (nonce, ticket) = (fields.vector(1)?, fields.vector(2)?);
        let extensions = Extensions::read(fields.vector(2)?)?;
        fields.end()?;
        if ticket.is_empty() {
            return Err(fields.malformed());
        }
        Ok(NewSessionTicket {
            lifetime,
            age_add,
            nonce,
            ticket,
            extensions,
        })
    }
}

/// A new sending key is in use from the next record on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyUpdate {
    /// The other end is to change its own too.
    pub wanted: bool,
}

impl KeyUpdate {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is malformed.
    pub fn read(body: &[u8]) -> Result<Self, Error> {
        match body {
            [wanted @ (0 | 1)] => Ok(KeyUpdate { wanted: *wanted == 1 }),
            [_] => Err(fields::illegal("a KeyUpdate that asks for something else")),
            _ => Err(Fields::new(body, "KeyUpdate").malformed()),
        }
    }
}

/// Appends EncryptedExtensions.
///
/// # Errors
/// [`Error::Given`] for a field that is longer than fits.
pub fn write_encrypted_extensions(out: &mut Vec<u8>, extensions: &[(u16, &[u8])]) -> Result<(), Error> {
    message::write(out, Kind::ENCRYPTED_EXTENSIONS, |out| extension::write(out, extensions))
}

/// Appends a server's Certificate: a chain without extensions.
///
/// # Errors
/// [`Error::Given`] for a chain that is longer than fits.
pub fn write_certificate<C: AsRef<[u8]>>(out: &mut Vec<u8>, chain: &[C]) -> Result<(), Error> {
    message::write(out, Kind::CERTIFICATE, |out| {
        out.push(0);
        fields::vector(out, 3, |out| {
            chain.iter().try_for_each(|der| {
                fields::bytes(out, 3, der.as_ref())?;
                fields::bytes(out, 2, &[])
            })
        })
    })
}

/// What the signature of a server's CertificateVerify is over; `transcript` is the hash of all messages before it.
pub fn signed_by_server(transcript: &[u8]) -> Vec<u8> {
    [&[b' '; 64], &b"TLS 1.3, server CertificateVerify\0"[..], transcript].concat()
}

/// Appends a CertificateVerify.
///
/// # Errors
/// [`Error::Given`] for a signature that is longer than fits.
pub fn write_certificate_verify(out: &mut Vec<u8>, scheme: u16, signature: &[u8]) -> Result<(), Error> {
    message::write(out, Kind::CERTIFICATE_VERIFY, |out| {
        out.extend_from_slice(&scheme.to_be_bytes());
        fields::bytes(out, 2, signature)
    })
}

/// Appends a Finished.
///
/// # Errors
/// [`Error::Given`] for one that is longer than fits.
pub fn write_finished(out: &mut Vec<u8>, verify_data: &[u8]) -> Result<(), Error> {
    message::write(out, Kind::FINISHED, |out| {
        out.extend_from_slice(verify_data);
        Ok(())
    })
}

/// Appends a KeyUpdate.
pub fn write_key_update(out: &mut Vec<u8>, wanted: bool) {
    out.extend_from_slice(&[Kind::KEY_UPDATE.0, 0, 0, 1, u8::from(wanted)]);
}
