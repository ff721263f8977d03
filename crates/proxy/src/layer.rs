//! What a protocol does to the bytes of a stream, in either direction.

use std::ops::Range;

use crate::Error;

/// What opening did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Opened {
    /// Bytes of the input that are done with.
    pub(crate) consumed: usize,
    /// Bytes written at the output position.
    pub(crate) produced: usize,
    /// The peer said that nothing follows.
    pub(crate) end: bool,
    /// From here on the layer leaves bytes as they are and can be taken away.
    pub(crate) through: bool,
}

/// Opens what arrives.
pub(crate) trait Open: Send {
    /// Opens what is whole in `buffer[input]`, writing the payload from `out` on, which is never behind the input.
    ///
    /// Payloads are joined, so the output is never longer than what was consumed.
    fn open(&mut self, buffer: &mut [u8], out: usize, input: Range<usize>) -> Result<Opened, Error>;

    /// True if a stream that ends here, with nothing unfinished, is whole without a sign of its end.
    fn may_end(&self) -> bool {
        true
    }
}

/// Seals what is sent.
pub(crate) trait Seal: Send {
    /// Most payload in one piece.
    fn max_payload(&self) -> usize;

    /// Most bytes that a piece adds to its payload.
    fn overhead(&self) -> usize;

    /// Appends one piece.
    fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error>;

    /// Appends what says that nothing follows, if the protocol has such a thing.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Error>;
}
