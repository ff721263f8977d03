//! What lies between the bytes of a connection and its payload: the frames of a transport, and the body of a protocol.

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

/// Opens the body of a protocol.
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

/// Seals the body of a protocol.
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

/// The frames of a transport, between TLS and the body: both directions.
pub(crate) trait Framing: Send {
    /// Most bytes that a frame adds in front of its payload.
    fn max_header(&self) -> usize;

    /// Bytes to leave in front of a payload that is about `payload` bytes long.
    fn header(&self, payload: usize) -> usize;

    /// Makes a frame of what stands in `out` behind `at` and a gap of `gap` bytes. If the payload came out shorter than was
    /// expected when the gap was left, it is moved.
    fn seal(&mut self, out: &mut Vec<u8>, at: usize, gap: usize) -> Result<(), Error>;

    /// Appends what says that nothing follows.
    fn close(&mut self, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Opens what is whole in `buffer[input]`, as [`Open::open`] does. What is to be answered is appended to `reply`.
    fn open(
        &mut self,
        buffer: &mut [u8],
        out: usize,
        input: Range<usize>,
        reply: &mut Vec<u8>,
    ) -> Result<Opened, Error>;

    /// Whether the end of what we send can be said without closing the connection.
    fn can_half_close(&self) -> bool;
}
