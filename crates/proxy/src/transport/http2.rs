//! HTTP/2 (RFC 9113): one connection that carries many streams, in both roles, for whatever transport speaks over it.
//!
//! ```text
//!  Server  one connection's server: hands out an Exchange for each request
//!  Client  one connection's client: takes requests, gives a Body for each
//!  Body    what goes both ways on one stream, as a carrier: raw bytes in DATA frames
//! ```
//!
//! The frames are those of the library `h2`. What is here is the way between it and a [`Stream`] ([`wire`]), the flow-control
//! windows, what a stranger may hold, and when a connection ends. Nothing here knows what the streams are for.
//!
//! # A server
//!
//! [`Server::begin`] shakes hands and waits for the first request, under the deadline of whoever calls it. [`Server::next`]
//! drives the connection and hands out an [`Exchange`] a request; the caller asks again at once. An exchange becomes a
//! [`Body`] with the head of the response and what ends it, or is refused. The head leaves with the first bytes of the body.
//!
//! # A client
//!
//! [`Client::open`] shakes hands and spawns the task that drives the connection. [`Client::request`] gives a [`Body`] at once;
//! the head of the response is looked at when the first bytes are read, by a function that the caller brings.
//!
//! # Limits
//!
//! Until one stream of a connection has shown who it is ([`Virtual::trust`](crate::carrier::Virtual::trust)), the connection
//! may have [`STRANGERS_WINDOW`] bytes on their way to us on all of its streams together, and [`STRANGERS`] streams are served
//! at a time. Others wait, for a client that knows nothing of this opens all that it needs at once. What is too much is
//! refused in a way that says that nothing was done with it: all connections together have room for [`STRANGERS_EVERYWHERE`]
//! such streams and [`HEADS_EVERYWHERE`] bytes of their heads, besides [`STRANGERS_ALWAYS`] and [`HEADS_ALWAYS`] of each. From then on the windows are those of [`Options`].
//!
//! Such a connection lasts [`STRANGERS_IDLE`] without streams, and takes no more of them after [`STRANGERS_AGE`]. Each stream
//! that ends without showing who it is counts; after [`MAX_RESETS`] of them the connection ends.

mod body;
mod client;
mod server;
mod tally;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use std::time::Duration;

use crate::Error;

pub(crate) use body::{Body, Trailers};
pub(crate) use client::{Client, Pings};
pub(crate) use server::{Exchange, Server};

/// Bytes that may be on their way to us on one stream, unless the settings say otherwise.
pub(crate) const STREAM_WINDOW: u32 = 1 << 20;

/// Both windows while nobody has shown who it is: what HTTP/2 begins with, which no server can make smaller.
const STRANGERS_WINDOW: u32 = 65_535;

/// Streams that a client may have open at a time.
pub(crate) const MAX_STREAMS: u32 = 1000;

/// Streams of a connection that are served at a time while none of them has shown who it is.
const STRANGERS: usize = 32;

/// Streams, served or waiting, of all connections of this process on which nobody has shown who it is, besides
/// [`STRANGERS_ALWAYS`] of each.
const STRANGERS_EVERYWHERE: usize = 16 << 10;

/// Streams that a connection has room for whatever others do.
const STRANGERS_ALWAYS: usize = 4;

/// Bytes of the heads of requests that wait on all such connections, besides [`HEADS_ALWAYS`] of each.
const HEADS_EVERYWHERE: usize = 16 << 20;

/// Bytes of waiting heads that a connection has room for whatever others do.
const HEADS_ALWAYS: usize = 128 << 10;

/// Bytes of waiting heads of one connection: those of [`MAX_STREAMS`] usual ones.
const HEADS_MOST: usize = 2 << 20;

/// Streams that a client may open and take back, one after the other, without any that shows who it is.
const MAX_RESETS: usize = 200;

/// As [`MAX_RESETS`], of those that come and go between two looks at the connection.
const MAX_UNSEEN_RESETS: usize = 64;

/// Bytes of DATA frames' overhead that may wait, where small frames count as 256 bytes.
const FRAMES_BUDGET: usize = 2 << 20;

/// Longest frame that we take, bytes.
const MAX_FRAME: u32 = 64 << 10;

/// Longest head of a request or response, bytes, as HTTP/2 counts them.
pub(crate) const MAX_HEADERS: u32 = 16 << 10;

/// Bytes of one stream that wait to be framed.
const SEND_BUFFER: usize = 256 << 10;

/// Most bytes that are handed to the library in one piece.
const PIECE: usize = 64 << 10;

/// A stranger's connection without streams is closed after this time. So is every other that does not answer our good-bye.
const STRANGERS_IDLE: Duration = Duration::from_secs(10);

/// A connection on which nobody has shown who it is takes no streams after this time, and ends with those that are served.
const STRANGERS_AGE: Duration = Duration::from_secs(60);

/// A connection without streams is closed after this time.
const IDLE: Duration = Duration::from_secs(300);

/// What may be different from one use to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Bytes that may be on their way to us on one stream, once the peer has shown who it is. Clients trust their server.
    pub(crate) window: u32,
    /// Longest head of a request or response, bytes.
    pub(crate) max_headers: u32,
}

impl Options {
    /// Bytes that may be on their way to us on all streams of a connection, once the peer has shown who it is: the windows of
    /// all of them. With less, streams whose readers are slow would stop the others.
    fn connection_window(&self) -> u32 {
        let most = u64::from(self.window.max(STREAM_WINDOW)) * u64::from(MAX_STREAMS);
        most.min((1 << 31) - 1) as u32
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            window: STREAM_WINDOW,
            max_headers: MAX_HEADERS,
        }
    }
}

/// What a failure of the library is to whoever reads or writes a stream: without the peer's word that this was the end, it
/// broke, whether the stream alone did or its connection.
fn io_error(error: h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

/// What a failure of the library is to whoever serves a connection.
fn failure(error: h2::Error) -> Error {
    if error.is_io() || error.is_remote() {
        let kind = error.get_io().map_or(io::ErrorKind::ConnectionAborted, io::Error::kind);
        return Error::Io(io::Error::new(kind, error));
    }
    Error::protocol("HTTP/2", "a frame that may not be")
}
