//! A certificate that comes compressed (RFC 8879).

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::fields::{self, Fields};
use super::{HEAD, MAX_MESSAGE};
use crate::Error;

/// The only algorithm that is read: brotli (RFC 7932).
const BROTLI: u16 = 2;

/// A Certificate message behind compression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CompressedCertificate<'a> {
    /// Bytes that the body of the Certificate has, [`MAX_MESSAGE`] at most with a head.
    pub length: usize,
    /// What these bytes were compressed to.
    pub compressed: &'a [u8],
}

impl<'a> CompressedCertificate<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is malformed, compressed otherwise than by brotli, or says that there is more behind it than fits a
    /// message.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(body, "CompressedCertificate");
        let algorithm = fields.u16()?;
        let length = fields.u24()?;
        let compressed = fields.vector(3)?;
        fields.end()?;
        if length > MAX_MESSAGE - HEAD {
            return Err(fields::illegal("a compressed certificate that is too long"));
        }
        if algorithm != BROTLI {
            return Err(fields::illegal("a compression of certificates that was not offered"));
        }
        Ok(CompressedCertificate { length, compressed })
    }

    /// The body of the Certificate. For the time of the call there is a window of 16 MiB at most besides it.
    ///
    /// # Errors
    /// [`Error::Peer`] if it cannot be decompressed, or is longer or shorter than [`CompressedCertificate::length`].
    pub fn decompress(&self) -> Result<Vec<u8>, Error> {
        let alloc = StandardAlloc::default;
        let mut state = BrotliState::new_strict(alloc(), alloc(), alloc());
        let mut out = vec![0; self.length];
        let (mut unread, mut read) = (self.compressed.len(), 0);
        let (mut room, mut written, mut total) = (out.len(), 0, 0);
        let outcome = BrotliDecompressStream(
            &mut unread,
            &mut read,
            self.compressed,
            &mut room,
            &mut written,
            &mut out,
            &mut total,
            &mut state,
        );
        match outcome {
            BrotliResult::ResultSuccess if written == self.length => Ok(out),
            _ => Err(Fields::new(&[], "a compressed certificate that is not what it says").malformed()),
        }
    }
}
