//! One end of a connection, driven by bytes.

mod assembly;
mod receive;
mod types;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use core::fmt;

use crate::buffer::WriteBuffer;
use crate::decoy::{DECOYS_PER_MOMENT, Moment, Shaper};
use crate::handshake::{Initiator, Responder};
use crate::{CONTENTS_MAX, Error, GARBAGE_MAX, Kind, LocalKey, Magic, PacketSealer, Role};

#[cfg(test)]
mod tests;

use assembly::Assembly;
use receive::Receive;
pub use types::{Awaiting, Contents, Counters, DEFAULT_CONTENTS_LIMIT, Event, Options, Parts, Progress};

/// Bytes after which a peer that has answered nothing may be one that speaks v1 only: the length of a v1 header.
const V1_HEADER_LEN: u64 = 24;

/// One end of a BIP324 connection.
///
/// In any order and as often as there is something to do:
///
/// - give what came to [`Connection::handle_input`]: it says how much it took, and takes nothing while events wait that
///   have reached the limits of [`Options`];
/// - take events from [`Connection::poll_event`] until there are none;
/// - send what [`Connection::output`] shows and tell how much by [`Connection::advance_output`], also right after making the
///   connection: an initiator speaks first;
/// - send messages by [`Connection::send`] once [`Connection::can_send`].
///
/// After an error of [`Connection::handle_input`] the connection is to be closed without a word: there is no more output,
/// and every call answers [`Error::Closed`]. Events of packets before the wrong one are still there.
///
/// It knows no time. [`Connection::progress`] says what is awaited: a caller closes a handshake that takes longer than a
/// minute, and a packet that has begun and does not get on, since its length is not authentic until it is whole.
pub struct Connection {
    role: Role,
    receive: Receive,
    assembly: Assembly,
    sealer: Option<PacketSealer>,
    session_id: Option<[u8; 32]>,
    /// True once the peer's version packet was authentic.
    established: bool,
    events: VecDeque<Event>,
    /// Bytes of contents in `events`.
    event_bytes: usize,
    out: WriteBuffer,
    counters: Counters,
    options: Options,
}

impl Connection {
    /// The end that opened the connection. Its first output is there at once.
    ///
    /// # Errors
    /// [`Error::GarbageTooLong`], or [`Error::ContentsTooLong`] for a limit, a decoy or a version of [`Options`].
    pub fn initiator(magic: Magic, key: LocalKey, mut options: Options) -> Result<Self, Error> {
        options.check()?;
        let garbage = core::mem::take(&mut options.garbage);
        let initiator = Initiator::new(magic, key, garbage)?;
        let mut out = WriteBuffer::new(options.output_limit);
        let receive = Receive::Key(initiator.start(out.tail()));
        Ok(Self::new(Role::Initiator, receive, out, options))
    }

    /// The end that accepted the connection. It says nothing before it knows that the peer does not speak v1.
    ///
    /// # Errors
    /// As [`Connection::initiator`].
    pub fn responder(magic: Magic, key: LocalKey, mut options: Options) -> Result<Self, Error> {
        options.check()?;
        let garbage = core::mem::take(&mut options.garbage);
        let receive = Receive::Prefix(Responder::new(magic, key, garbage)?);
        let out = WriteBuffer::new(options.output_limit);
        Ok(Self::new(Role::Responder, receive, out, options))
    }

    fn new(role: Role, receive: Receive, out: WriteBuffer, options: Options) -> Self {
        Connection {
            role,
            receive,
            assembly: Assembly::default(),
            sealer: None,
            session_id: None,
            established: false,
            events: VecDeque::new(),
            event_bytes: 0,
            out,
            counters: Counters::default(),
            options,
        }
    }

    /// Which end this is.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The next event, in the order in which things came.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Message(contents) = &event {
            self.event_bytes -= contents.len();
        }
        Some(event)
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        self.out.rest()
    }

    /// Says that the first `n` bytes of the output have been sent; of more than there are, all.
    pub fn advance_output(&mut self, n: usize) {
        let n = n.min(self.out.waiting());
        self.out.wrote(n);
        self.counters.bytes_sent += n as u64;
    }

    /// True from when the peer's key is here, which may be before the peer has shown that it has ours.
    pub const fn can_send(&self) -> bool {
        self.sealer.is_some()
    }

    /// True once the peer's version packet was authentic.
    pub const fn is_established(&self) -> bool {
        self.established && matches!(self.receive, Receive::Packets(_))
    }

    /// The session id, from when the peer's version packet was authentic: compared by other means, it shows that nobody
    /// stands between the two ends.
    pub const fn session_id(&self) -> Option<&[u8; 32]> {
        match (self.established, &self.session_id) {
            (true, Some(id)) => Some(id),
            _ => None,
        }
    }

    /// What has been sent and received.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Seals a message into the output.
    ///
    /// # Errors
    /// [`Error::NotReady`] before [`Connection::can_send`], [`Error::OutputFull`] while as much waits as
    /// [`Options::output_limit`] says, [`Error::ContentsTooLong`] above 2^24 - 1 bytes, [`Error::Closed`] after a failure.
    pub fn send(&mut self, contents: &[u8]) -> Result<(), Error> {
        self.check_room()?;
        self.seal(Kind::Genuine, contents)
    }

    /// Seals a packet that the other end throws away. What is in it does not show: zeros are as good as anything.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn send_decoy(&mut self, contents: &[u8]) -> Result<(), Error> {
        self.check_room()?;
        self.seal(Kind::Decoy, contents)
    }

    /// Seals a message with the decoys that a shaper wants before and after it. `random` gives a fresh random number at each
    /// call.
    ///
    /// # Errors
    /// As [`Connection::send`]; decoys that were sealed before an error stay.
    pub fn send_shaped(
        &mut self,
        contents: &[u8],
        shaper: &mut dyn Shaper,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), Error> {
        self.check_room()?;
        if contents.len() > CONTENTS_MAX {
            return Err(Error::ContentsTooLong {
                got: contents.len(),
                limit: CONTENTS_MAX,
            });
        }
        let contents_len = contents.len();
        self.shape(Moment::Before { contents_len }, shaper, random)?;
        self.seal(Kind::Genuine, contents)?;
        self.shape(Moment::After { contents_len }, shaper, random)
    }

    /// Seals the decoys that a shaper wants while nothing is to be sent.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn idle(&mut self, shaper: &mut dyn Shaper, random: &mut dyn FnMut() -> u64) -> Result<(), Error> {
        self.check_room()?;
        self.shape(Moment::Idle, shaper, random)
    }

    fn shape(&mut self, moment: Moment, shaper: &mut dyn Shaper, random: &mut dyn FnMut() -> u64) -> Result<(), Error> {
        for _ in 0..DECOYS_PER_MOMENT {
            match shaper.decoy(moment, random()) {
                Some(len) => self.seal(Kind::Decoy, &vec![0; len.min(CONTENTS_MAX)])?,
                None => break,
            }
        }
        Ok(())
    }

    fn check_room(&self) -> Result<(), Error> {
        if matches!(self.receive, Receive::Closed | Receive::V1) {
            return Err(Error::Closed);
        }
        if self.sealer.is_none() {
            return Err(Error::NotReady);
        }
        let (waiting, limit) = (self.out.waiting(), self.options.output_limit);
        if waiting >= limit {
            return Err(Error::OutputFull { waiting, limit });
        }
        Ok(())
    }

    fn seal(&mut self, kind: Kind, contents: &[u8]) -> Result<(), Error> {
        let sealer = self.sealer.as_mut().ok_or(Error::NotReady)?;
        match sealer.seal(kind, &[], contents, self.out.tail()) {
            Ok(()) => {
                match kind {
                    Kind::Genuine => self.counters.messages_sent += 1,
                    Kind::Decoy => self.counters.decoys_sent += 1,
                }
                Ok(())
            }
            Err(error @ Error::ContentsTooLong { .. }) => Err(error),
            Err(error) => {
                self.close();
                Err(error)
            }
        }
    }

    /// What is awaited from the peer.
    pub fn progress(&self) -> Progress {
        let awaiting = if self.is_full() {
            Awaiting::Caller
        } else {
            match &self.receive {
                Receive::Prefix(responder) => Awaiting::Prefix {
                    missing: responder.missing(),
                },
                Receive::Key(key) => Awaiting::Key { missing: key.missing() },
                Receive::Garbage(garbage) => Awaiting::Garbage {
                    received: garbage.received(),
                    limit: GARBAGE_MAX + crate::TERMINATOR_LEN,
                },
                Receive::Version(_) | Receive::Packets(_) => self.assembly.awaiting(),
                Receive::V1 | Receive::Closed => Awaiting::Nothing,
            }
        };
        Progress {
            awaiting,
            established: self.is_established(),
        }
    }

    /// True while a peer that closes the connection may be one that speaks v1 only, so that another connection, in v1, is
    /// worth a try: an initiator that has sent 24 bytes, the length of a v1 header, and has received none.
    pub fn peer_may_speak_v1_only(&self) -> bool {
        self.role == Role::Initiator && self.counters.bytes_received == 0 && self.counters.bytes_sent >= V1_HEADER_LEN
    }

    /// Takes an established connection apart, for whoever goes on by other means.
    ///
    /// # Errors
    /// Gives the connection back if it is not established.
    pub fn into_parts(self) -> Result<Parts, Box<Connection>> {
        if !self.is_established() {
            return Err(Box::new(self));
        }
        self.apart()
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.options.event_limit || self.event_bytes >= self.options.event_bytes_limit
    }

    /// Ends it: keys are wiped, and nothing is left to be sent.
    fn close(&mut self) {
        self.receive = Receive::Closed;
        self.sealer = None;
        self.assembly = Assembly::default();
        self.out = WriteBuffer::new(self.options.output_limit);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("progress", &self.progress())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
