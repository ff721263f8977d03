//! Records in the clear (RFC 8446 section 5.1), and the heads of those that are not.

use super::message::too_long;
use crate::{Alert, Error};

/// Bytes in front of the content of a record.
pub const HEAD: usize = 5;
/// Most plaintext in one record.
pub const MAX_PLAIN: usize = 1 << 14;
/// Most content of a sealed record (RFC 8446 section 5.2).
pub const MAX_SEALED: usize = MAX_PLAIN + 256;

/// Kind of a record: `change_cipher_spec`.
pub const CHANGE_CIPHER_SPEC: u8 = 20;
/// Kind of a record: `alert`.
pub const ALERT: u8 = 21;
/// Kind of a record: `handshake`.
pub const HANDSHAKE: u8 = 22;
/// Kind of a record: `application_data`, which all sealed records say they are.
pub const APPLICATION: u8 = 23;

/// A record as it came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record<'a> {
    /// What it says it is.
    pub kind: u8,
    /// Its head, which is what a sealed one authenticates.
    pub head: [u8; HEAD],
    /// Its content.
    pub content: &'a [u8],
}

/// The kind and the length of the record that begins with this head.
///
/// # Errors
/// [`Error::Peer`] for what is no record of TLS, and for one that is longer than its kind may be.
pub fn length(head: &[u8; HEAD]) -> Result<(u8, usize), Error> {
    let [kind, major, _, high, low] = *head;
    if !(CHANGE_CIPHER_SPEC..=APPLICATION).contains(&kind) || major != 3 {
        return Err(Error::peer(Alert::UnexpectedMessage, "bytes that are no record of TLS"));
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    let limit = if kind == APPLICATION { MAX_SEALED } else { MAX_PLAIN };
    if length > limit {
        return Err(too_long("a record that is too long"));
    }
    Ok((kind, length))
}

impl<'a> Record<'a> {
    /// The record that `bytes` begin with; it takes [`Record::len`] bytes. `None`: some of it has not come.
    ///
    /// # Errors
    /// Those of [`length`].
    pub fn first(bytes: &'a [u8]) -> Result<Option<Self>, Error> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let (kind, length) = length(head)?;
        Ok(rest.get(..length).map(|content| Record {
            kind,
            head: *head,
            content,
        }))
    }

    /// Bytes of the record, with its head.
    pub fn len(&self) -> usize {
        HEAD + self.content.len()
    }

    /// True if it has no content.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }
}

/// Writes content into as many records in the clear as it needs. `minor` is the second byte of their version: 1 for a first
/// ClientHello, 3 for all else.
pub fn write(out: &mut Vec<u8>, kind: u8, minor: u8, content: &[u8]) {
    for part in content.chunks(MAX_PLAIN) {
        let [high, low] = (part.len() as u16).to_be_bytes();
        out.extend_from_slice(&[kind, 3, minor, high, low]);
        out.extend_from_slice(part);
    }
}
