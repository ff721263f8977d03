//! Fields read off the front of bytes, and vectors written behind their lengths.

use crate::{Alert, Error};

/// Reads fields off the front; an error names what is being read.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Fields { rest: bytes, what }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(self.malformed())?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(self.malformed())?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_be_bytes(*self.array()?))
    }

    /// A number of three bytes.
    pub(super) fn u24(&mut self) -> Result<usize, Error> {
        let [a, b, c] = *self.array()?;
        Ok(u32::from_be_bytes([0, a, b, c]) as usize)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_be_bytes(*self.array()?))
    }

    /// A vector behind its length, which is a number of `width` bytes.
    pub(super) fn vector(&mut self, width: usize) -> Result<&'a [u8], Error> {
        let length = self.take(width)?;
        let length = length.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        self.take(length)
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.malformed())
    }

    pub(super) fn malformed(&self) -> Error {
        Error::peer(Alert::DecodeError, self.what)
    }
}

/// Writes a vector behind its length, which is a number of `width` bytes.
///
/// # Errors
/// [`Error::Given`] if the content is too long for that.
pub(super) fn vector(
    out: &mut Vec<u8>,
    width: usize,
    content: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let at = out.len();
    out.resize(at + width, 0);
    content(out)?;
    let length = (out.len() - at - width) as u64;
    if length >> (8 * width) != 0 {
        return Err(Error::Given("a field of a handshake message is too long"));
    }
    out[at..at + width].copy_from_slice(&length.to_be_bytes()[8 - width..]);
    Ok(())
}

/// [`vector`] of these bytes.
pub(super) fn bytes(out: &mut Vec<u8>, width: usize, content: &[u8]) -> Result<(), Error> {
    vector(out, width, |out| {
        out.extend_from_slice(content);
        Ok(())
    })
}

/// A value that contradicts another.
pub(super) fn illegal(what: &'static str) -> Error {
    Error::peer(Alert::IllegalParameter, what)
}
