//! Messages of v1 over a stream, for peers that do not speak v2. Everything [`crate`] says of cancellation and time holds.

use std::future::poll_fn;

use sealway_bip324::Magic;
use sealway_bip324::message::Message;
use sealway_bip324::stream::{Incoming, Outgoing, TransportError, V1Messages};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::outgoing::poll_room;
use crate::{Receiver, Sender};

/// What comes from a v1 peer, checked: network, length, checksum and type.
pub type V1Receiver<R> = Receiver<R, V1Messages>;

/// What is sent to a v1 peer.
pub type V1Sender<W> = Sender<W, Magic>;

impl<R> Receiver<R, V1Messages> {
    /// Reads from a stream of which `received` has been read already, for payloads of at most `payload_limit` bytes.
    pub fn new(io: R, magic: Magic, payload_limit: u32, received: Vec<u8>) -> Self {
        Receiver::over(io, Incoming::new(V1Messages::new(magic, payload_limit), received))
    }
}

impl<R: AsyncRead + Unpin> Receiver<R, V1Messages> {
    /// Waits for the next message; `None` once the peer has ended its direction between two messages. Cancellation-safe.
    ///
    /// A message with a wrong checksum or type is dropped, as in Bitcoin Core: [`Received::dropped`](crate::Received::dropped)
    /// counts it, and the next one is waited for.
    ///
    /// # Errors
    /// [`TransportError`]; nothing more comes after one. Another network and a length above the limit are such.
    pub async fn recv(&mut self) -> Result<Option<Message<'_>>, TransportError> {
        let next = poll_fn(|cx| self.incoming.poll_next(cx, &mut self.io)).await?;
        Ok(next.map(|message| Message {
            command: message.head,
            payload: self.incoming.bytes(message.body),
        }))
    }
}

impl<W> Sender<W, Magic> {
    /// Writes to a stream; nothing more is taken while `output_limit` bytes wait.
    pub fn new(io: W, magic: Magic, output_limit: usize) -> Self {
        Sender::over(io, Outgoing::new(magic, output_limit))
    }
}

impl<W: AsyncWrite + Unpin> Sender<W, Magic> {
    /// Takes a message, and leaves it here until [`Sender::flush`] or until much is to be sent. Cancellation-safe: dropped
    /// before it is ready, the message was not taken.
    ///
    /// # Errors
    /// `Error::ContentsTooLong` for a payload that a length cannot say; [`TransportError::Io`] ends the connection.
    pub async fn feed(&mut self, message: &Message<'_>) -> Result<(), TransportError> {
        poll_fn(|cx| poll_room(&mut self.outgoing, cx, &mut self.io)).await?;
        self.outgoing.encode(message)
    }
}
