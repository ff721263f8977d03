//! Packets of one direction on their way in.

use std::ops::Range;

use crate::{Error, HEADER_LEN, Kind, LENGTH_LEN, OVERHEAD, PacketOpener, TAG_LEN};

use super::TransportError;
use super::buffer::ReadBuffer;

/// What came in one direction, since the connection was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Received {
    /// Bytes read and used.
    pub bytes: u64,
    /// Messages, without the version packet.
    pub messages: u64,
    /// Decoys.
    pub decoys: u64,
}

enum State {
    Open,
    /// The stream ended between two packets.
    Ended,
    Failed,
}

/// What is to be done for the next message.
pub(crate) enum Next {
    /// It is here, at this place of [`Incoming::bytes`].
    Message(Range<usize>),
    /// More is to be read.
    Read,
    /// There is none: the stream has ended between two packets.
    Ended,
}

pub(crate) struct Incoming {
    buffer: ReadBuffer,
    opener: PacketOpener,
    contents_limit: usize,
    /// Bytes that follow the length of the packet at the front, once that is open; 0 before.
    need: usize,
    /// The message at the front has been opened and was not handed out.
    opened: bool,
    /// Bytes at the front that were handed out.
    used: usize,
    state: State,
    pub(crate) received: Received,
}

impl Incoming {
    pub(crate) fn new(buffer: ReadBuffer, opener: PacketOpener, contents_limit: usize, received: Received) -> Self {
        Incoming {
            buffer,
            opener,
            contents_limit,
            need: 0,
            opened: false,
            used: 0,
            state: State::Open,
            received,
        }
    }

    /// Opens what is there, up to the next message; true if there is one.
    pub(crate) fn open_next(&mut self) -> Result<bool, TransportError> {
        if self.opened {
            return Ok(true);
        }
        self.buffer.consume(std::mem::take(&mut self.used));
        match self.state {
            State::Open => {}
            State::Ended => return Ok(false),
            State::Failed => return Err(Error::Closed.into()),
        }
        let opened = self.open();
        if opened.is_err() {
            self.state = State::Failed;
        }
        Ok(opened?)
    }

    fn open(&mut self) -> Result<bool, Error> {
        loop {
            if self.need == 0 {
                let Some(length) = self.buffer.filled().first_chunk::<LENGTH_LEN>() else {
                    return Ok(false);
                };
                let need = self.opener.open_length(*length)?;
                let (claimed, limit) = (need - HEADER_LEN - TAG_LEN, self.contents_limit);
                if claimed > limit {
                    return Err(Error::PacketTooLong { claimed, limit });
                }
                self.need = need;
            }
            let total = LENGTH_LEN + self.need;
            let Some(packet) = self.buffer.filled_mut().get_mut(LENGTH_LEN..total) else {
                return Ok(false);
            };
            let (kind, _) = self.opener.open_in_place(&[], packet)?;
            self.received.bytes += total as u64;
            match kind {
                Kind::Genuine => {
                    self.received.messages += 1;
                    self.opened = true;
                    return Ok(true);
                }
                Kind::Decoy => {
                    self.received.decoys += 1;
                    self.need = 0;
                    self.buffer.consume(total);
                }
            }
        }
    }

    /// What to do to have the next message.
    pub(crate) fn next(&mut self) -> Result<Next, TransportError> {
        if self.open_next()? {
            return Ok(Next::Message(self.hand_out()));
        }
        Ok(match self.state {
            State::Ended => Next::Ended,
            _ => Next::Read,
        })
    }

    /// Where the next read goes.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.buffer.room(LENGTH_LEN + self.need)
    }

    /// Says that a read put `n` bytes there; none is the end of the stream.
    pub(crate) fn came(&mut self, n: usize) -> Result<(), TransportError> {
        self.buffer.came(n);
        if n > 0 {
            return Ok(());
        }
        if !self.is_between() {
            return Err(self.fail(TransportError::CutOff));
        }
        self.state = State::Ended;
        Ok(())
    }

    /// True if nothing has come of the next packet.
    pub(crate) fn is_between(&self) -> bool {
        self.buffer.filled().is_empty()
    }

    /// Ends the direction: nothing more comes.
    pub(crate) fn fail(&mut self, error: TransportError) -> TransportError {
        self.state = State::Failed;
        error
    }

    /// Gives the message away that has been opened: it stays where it is until the next call.
    fn hand_out(&mut self) -> Range<usize> {
        let contents = LENGTH_LEN + HEADER_LEN..LENGTH_LEN + self.need - TAG_LEN;
        debug_assert_eq!(contents.len() + OVERHEAD, LENGTH_LEN + self.need);
        self.used = LENGTH_LEN + self.need;
        self.need = 0;
        self.opened = false;
        contents
    }

    /// What a range of [`Incoming::next`] is of, until the next call.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.filled().get(range).unwrap_or_default()
    }
}
