//! What connections over a stream have in common, blocking or not: buffers, packets of a direction, errors. No stream here.

mod buffer;
mod draw;
mod error;
mod incoming;
mod outgoing;

pub(crate) use buffer::ReadBuffer;
#[cfg(feature = "tokio")]
pub(crate) use buffer::WriteBuffer;
pub use draw::{draw_garbage, draw_key};
pub use error::{HandshakeError, TransportError};
pub use incoming::Received;
pub(crate) use incoming::{Incoming, Next};
pub(crate) use outgoing::Outgoing;
pub use outgoing::Sent;

use crate::{Awaiting, Connection, Error, PacketOpener, PacketSealer, Parts};

/// Both directions of a connection after its handshake, of which `buffer` holds what has come since.
pub(crate) fn directions(parts: Parts, buffer: ReadBuffer) -> (Incoming, Outgoing) {
    let Parts {
        send,
        recv,
        counters,
        options,
        // The handshake is read to its end and not beyond, and all of it has been sent.
        unread: _,
        output: _,
        events: _,
        role: _,
        session_id: _,
    } = parts;
    let received = Received {
        bytes: counters.bytes_received,
        messages: 0,
        decoys: counters.decoys_received,
    };
    let sent = Sent {
        bytes: counters.bytes_sent,
        messages: 0,
        decoys: counters.decoys_sent,
    };
    (
        Incoming::new(buffer, PacketOpener::new(recv), options.contents_limit, received),
        Outgoing::new(PacketSealer::new(send), options.output_limit, sent),
    )
}

/// Why a handshake failed, of which `received` bytes had come.
pub(crate) fn failed(error: TransportError, connection: &Connection, received: u64) -> HandshakeError {
    HandshakeError {
        before_terminator: matches!(error, TransportError::Protocol(Error::NoTerminator))
            || matches!(
                connection.progress().awaiting,
                Awaiting::Key { .. } | Awaiting::Garbage { .. }
            ),
        error,
        peer_may_speak_v1_only: connection.peer_may_speak_v1_only() && received == 0,
        bytes_received: received,
    }
}

/// A handshake that did not begin.
pub(crate) fn not_begun(error: Error) -> HandshakeError {
    HandshakeError {
        error: error.into(),
        peer_may_speak_v1_only: false,
        bytes_received: 0,
        before_terminator: false,
    }
}
