//! Messages of one direction on their way out.

use std::io;

use crate::decoy::Decoys;
use crate::message::{Message, v1};
use crate::{CONTENTS_MAX, Error, HEADER_LEN, Kind, LENGTH_LEN, Magic, OVERHEAD, PacketSealer, TAG_LEN};

use super::TransportError;
use crate::buffer::WriteBuffer;

/// What was sent in one direction, since the connection was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Sent {
    /// Bytes sealed and taken for sending.
    pub bytes: u64,
    /// Messages, without the version packet.
    pub messages: u64,
    /// Decoys.
    pub decoys: u64,
}

/// What has bytes to be written.
pub trait Output {
    /// What is to be written.
    ///
    /// # Errors
    /// [`Error::Closed`] after a write failed.
    fn rest(&self) -> Result<&[u8], TransportError>;

    /// Says how a write ended. To have written nothing is a failure.
    ///
    /// # Errors
    /// That of the write: nothing more is to be written then.
    fn wrote(&mut self, written: io::Result<usize>) -> Result<(), TransportError>;

    /// True if something was written that has not been flushed.
    fn is_unflushed(&self) -> bool;

    /// Says how a flush went, or the end of the direction.
    ///
    /// # Errors
    /// That of the flush: nothing more is to be written then.
    fn flushed(&mut self, done: io::Result<()>) -> Result<(), TransportError>;
}

/// A write of no bytes would be repeated for ever.
pub(super) fn some(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        written => written,
    }
}

/// One direction of a connection, on its way out: a [`PacketSealer`] makes packets of messages, a [`Magic`] messages of v1.
pub struct Outgoing<F> {
    framing: F,
    buffer: WriteBuffer,
    failed: bool,
    /// Something was written that has not been flushed.
    unflushed: bool,
    sent: Sent,
    /// What decides about decoys, of packets.
    decoys: Option<Box<Decoys>>,
}

impl<F> Outgoing<F> {
    /// A direction that takes nothing more while `limit` bytes wait.
    pub fn new(framing: F, limit: usize) -> Self {
        Self::after(framing, limit, Sent::default())
    }

    pub(super) fn after(framing: F, limit: usize, sent: Sent) -> Self {
        Outgoing {
            framing,
            buffer: WriteBuffer::new(limit),
            failed: false,
            unflushed: false,
            sent,
            decoys: None,
        }
    }

    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.sent
    }

    /// Bytes that wait to be written.
    pub fn waiting(&self) -> usize {
        self.buffer.waiting()
    }

    /// What is to be written before a message is taken; nothing if there is room.
    ///
    /// # Errors
    /// As [`Output::rest`].
    pub fn in_the_way(&self) -> Result<&[u8], TransportError> {
        self.check()?;
        Ok(self.buffer.in_the_way())
    }

    fn check(&self) -> Result<(), TransportError> {
        if self.failed { Err(Error::Closed.into()) } else { Ok(()) }
    }
}

impl Outgoing<PacketSealer> {
    /// Sends decoys by a policy from here on; `None`, as at first, sends none.
    ///
    /// A decoy is sealed right behind the message that it follows and leaves with it. It is left out while as much waits as the
    /// limit says: a peer that does not read gets none, and what waits is below the limit, one message and one decoy.
    pub fn set_decoys(&mut self, decoys: Option<Decoys>) {
        self.decoys = decoys.map(Box::new);
    }

    /// What [`Outgoing::set_decoys`] set.
    pub fn decoys(&mut self) -> Option<&mut Decoys> {
        self.decoys.as_deref_mut()
    }

    /// Seals a packet of parts that lie apart, and after a message the decoy that follows it, if one does. A packet number is
    /// used up, so nothing may come between this and telling the caller that the message was taken.
    ///
    /// # Errors
    /// [`Error::ContentsTooLong`] above 2^24 - 1 bytes, after which the direction may go on. Otherwise it is over.
    pub fn seal(&mut self, kind: Kind, parts: &[&[u8]]) -> Result<(), TransportError> {
        let len = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
        self.packet(kind, len, |wire| {
            for part in parts {
                wire.extend_from_slice(part);
            }
        })?;
        match kind {
            Kind::Genuine => self.follow(),
            Kind::Decoy => Ok(()),
        }
    }

    /// Seals a decoy that follows no message, of a size that the policy allows. None is sealed while something waits to be
    /// written, or without [`Outgoing::set_decoys`].
    ///
    /// # Errors
    /// Any ends the direction.
    pub fn seal_cover(&mut self) -> Result<(), TransportError> {
        self.check()?;
        match &mut self.decoys {
            Some(decoys) if self.buffer.waiting() == 0 => {
                let len = decoys.size().inspect_err(|_| self.failed = true)?;
                self.decoy(len)
            }
            _ => Ok(()),
        }
    }

    /// Seals the decoy that follows a message, if one does and there is room. Any error ends the direction: the message is
    /// sealed already, and must not be sent again.
    fn follow(&mut self) -> Result<(), TransportError> {
        let Some(decoys) = &mut self.decoys else {
            return Ok(());
        };
        match decoys.after_message().inspect_err(|_| self.failed = true)? {
            Some(len) if self.buffer.in_the_way().is_empty() => self.decoy(len),
            _ => Ok(()),
        }
    }

    fn decoy(&mut self, len: usize) -> Result<(), TransportError> {
        // What is in it does not show.
        self.packet(Kind::Decoy, len, |wire| wire.resize(wire.len() + len, 0))
    }

    /// Seals a packet whose contents, `got` bytes, are appended by `fill`.
    fn packet(&mut self, kind: Kind, got: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), TransportError> {
        self.check()?;
        if got > CONTENTS_MAX {
            let limit = CONTENTS_MAX;
            return Err(Error::ContentsTooLong { got, limit }.into());
        }
        let wire = self.buffer.tail();
        let start = wire.len();
        wire.reserve(got + OVERHEAD);
        wire.extend_from_slice(&[0; LENGTH_LEN + HEADER_LEN]);
        fill(wire);
        wire.extend_from_slice(&[0; TAG_LEN]);
        if let Err(error) = self.framing.seal_in_place(kind, &[], &mut wire[start..]) {
            wire.truncate(start);
            self.failed = true;
            return Err(error.into());
        }
        self.sent.bytes += (got + OVERHEAD) as u64;
        match kind {
            Kind::Genuine => self.sent.messages += 1,
            Kind::Decoy => self.sent.decoys += 1,
        }
        Ok(())
    }
}

impl Outgoing<Magic> {
    /// Takes a message of v1.
    ///
    /// # Errors
    /// [`Error::ContentsTooLong`] for a payload that a length cannot say, after which the direction may go on.
    pub fn encode(&mut self, message: &Message<'_>) -> Result<(), TransportError> {
        self.check()?;
        v1::encode(self.framing, message, self.buffer.tail())?;
        self.sent.messages += 1;
        self.sent.bytes += (v1::HEADER_LEN + message.payload.len()) as u64;
        Ok(())
    }
}

impl<F> Output for Outgoing<F> {
    fn rest(&self) -> Result<&[u8], TransportError> {
        self.check()?;
        Ok(self.buffer.rest())
    }

    fn wrote(&mut self, written: io::Result<usize>) -> Result<(), TransportError> {
        let written = some(written);
        self.failed |= written.is_err();
        self.buffer.wrote(written?);
        self.unflushed = true;
        Ok(())
    }

    fn is_unflushed(&self) -> bool {
        self.unflushed
    }

    fn flushed(&mut self, done: io::Result<()>) -> Result<(), TransportError> {
        self.failed |= done.is_err();
        self.unflushed &= done.is_err();
        Ok(done?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoy::DecoyPolicy;
    use crate::fschacha::SendChain;

    /// A direction that takes nothing more while 100 bytes wait, and sends a decoy of 30 bytes after every message.
    fn outgoing() -> Outgoing<PacketSealer> {
        let chain = SendChain::new(&[1; 32], &[2; 32]).unwrap();
        let mut outgoing = Outgoing::new(PacketSealer::new(chain), 100);
        let policy = DecoyPolicy::new(100, 10, 10).unwrap();
        outgoing.set_decoys(Some(Decoys::new(policy, &[3; 32])));
        outgoing
    }

    fn counts(outgoing: &Outgoing<PacketSealer>) -> (u64, u64, usize) {
        (outgoing.sent().messages, outgoing.sent().decoys, outgoing.waiting())
    }

    #[test]
    fn a_decoy_follows_its_message_while_there_is_room() {
        let mut outgoing = outgoing();
        outgoing.seal(Kind::Genuine, &[b"12345", b"67890"]).unwrap();
        assert_eq!(counts(&outgoing), (1, 1, 60));
        outgoing.seal(Kind::Genuine, &[&[0; 19]]).unwrap();
        assert_eq!(counts(&outgoing), (2, 2, 129));
        // As much waits as the limit says: the message that is taken all the same brings no decoy.
        outgoing.seal(Kind::Genuine, &[b""]).unwrap();
        assert_eq!(counts(&outgoing), (3, 2, 149));
        outgoing.wrote(Ok(149)).unwrap();
        outgoing.seal(Kind::Genuine, &[&[0; 80]]).unwrap();
        assert_eq!(counts(&outgoing), (4, 2, 100));
        // One that is asked for brings no other.
        outgoing.wrote(Ok(100)).unwrap();
        outgoing.seal(Kind::Decoy, &[b""]).unwrap();
        assert_eq!(counts(&outgoing), (4, 3, 20));
    }

    #[test]
    fn cover_is_sealed_only_while_nothing_waits() {
        let mut outgoing = outgoing();
        for _ in 0..3 {
            outgoing.seal_cover().unwrap();
            assert_eq!(counts(&outgoing), (0, 1, 30));
        }
        outgoing.wrote(Ok(30)).unwrap();
        outgoing.seal_cover().unwrap();
        assert_eq!(counts(&outgoing), (0, 2, 30));
        outgoing.wrote(Ok(30)).unwrap();
        outgoing.set_decoys(None);
        outgoing.seal_cover().unwrap();
        outgoing.seal(Kind::Genuine, &[b""]).unwrap();
        assert_eq!(counts(&outgoing), (1, 2, 20));
    }
}
