//! What comes in.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::handshake::{
    AwaitingKey, AwaitingTerminator, AwaitingVersion, Garbage, Key, Keyed, Prefix, Responder, Version,
};
use crate::{Error, HEADER_LEN, Kind, PacketOpener, TAG_LEN};

use super::{Connection, Event, Parts};

/// What the next bytes are.
pub(super) enum Receive {
    Prefix(Responder),
    Key(AwaitingKey),
    Garbage(AwaitingTerminator),
    Version(AwaitingVersion),
    Packets(PacketOpener),
    V1,
    Closed,
}

impl Connection {
    /// Takes bytes that came, in any pieces; gives how many it took.
    ///
    /// It takes all of them unless events wait that have reached the limits of [`super::Options`], or the peer speaks v1: then
    /// 16 bytes, and none from then on.
    ///
    /// # Errors
    /// Whatever a peer can do wrong, see [`Error::ends_connection`]: the connection is then over, and is to be closed without
    /// a word. [`Error::Closed`] from then on. [`Error::Aead`] if memory ran out.
    pub fn handle_input(&mut self, input: &[u8]) -> Result<usize, Error> {
        if matches!(self.receive, Receive::Closed) {
            return Err(Error::Closed);
        }
        let mut used = 0;
        while used < input.len() && !self.is_full() && !matches!(self.receive, Receive::V1) {
            match self.step(&input[used..]) {
                Ok(n) => {
                    used += n;
                    self.counters.bytes_received += n as u64;
                }
                Err(error) => {
                    self.close();
                    return Err(error);
                }
            }
        }
        Ok(used)
    }

    /// Reads up to the end of whatever is read.
    fn step(&mut self, input: &[u8]) -> Result<usize, Error> {
        if let Receive::Version(_) | Receive::Packets(_) = self.receive {
            return self.packet(input);
        }
        let (used, next) = match core::mem::replace(&mut self.receive, Receive::Closed) {
            Receive::Prefix(responder) => match responder.prefix(input, self.out.tail()) {
                (used, Prefix::More(responder)) => (used, Receive::Prefix(responder)),
                (used, Prefix::V1(prefix)) => {
                    self.events.push_back(Event::V1 { prefix });
                    (used, Receive::V1)
                }
                (used, Prefix::V2(key)) => (used, Receive::Key(key)),
            },
            Receive::Key(key) => match key.key(input)? {
                (used, Key::More(key)) => (used, Receive::Key(key)),
                (used, Key::Done(keyed)) => (used, self.keyed(keyed)?),
            },
            Receive::Garbage(garbage) => match garbage.garbage(input)? {
                (used, Garbage::More(garbage)) => (used, Receive::Garbage(garbage)),
                (used, Garbage::Done(version)) => (used, Receive::Version(version)),
            },
            other => (0, other),
        };
        self.receive = next;
        Ok(used)
    }

    /// Sends what follows the exchange of keys.
    fn keyed(&mut self, keyed: Keyed) -> Result<Receive, Error> {
        let decoys = core::mem::take(&mut self.options.decoys);
        let (sealer, next) = keyed.send(decoys.iter().map(Vec::as_slice), &self.options.version, self.out.tail())?;
        self.counters.decoys_sent += decoys.len() as u64;
        self.sealer = Some(sealer);
        Ok(Receive::Garbage(next))
    }

    /// Reads up to the end of a length or of a packet.
    fn packet(&mut self, input: &[u8]) -> Result<usize, Error> {
        if self.assembly.wants_length() {
            let (used, length) = self.assembly.push_length(input);
            if let Some(length) = length {
                let need = match &mut self.receive {
                    Receive::Version(version) => version.open_length(length)?,
                    Receive::Packets(opener) => opener.open_length(length)?,
                    _ => return Err(Error::Closed),
                };
                let (claimed, limit) = (need - HEADER_LEN - TAG_LEN, self.options.contents_limit);
                if claimed > limit {
                    return Err(Error::PacketTooLong { claimed, limit });
                }
                self.assembly.expect(need);
            }
            return Ok(used);
        }
        let (used, packet) = self.assembly.push(input);
        let Some(packet) = packet else { return Ok(used) };
        if let Receive::Packets(opener) = &mut self.receive {
            let (kind, _) = opener.open_in_place(&[], packet)?;
            self.deliver(kind);
            return Ok(used);
        }
        if let Receive::Version(version) = core::mem::replace(&mut self.receive, Receive::Closed) {
            match version.open(packet)? {
                Version::Decoy(version) => {
                    self.receive = Receive::Version(version);
                    self.deliver(Kind::Decoy);
                }
                Version::Done(established) => {
                    self.receive = Receive::Packets(established.opener);
                    self.assembly.discard();
                    self.session_id = Some(established.session_id);
                    self.established = true;
                    self.events.push_back(Event::Established {
                        session_id: established.session_id,
                    });
                }
            }
        }
        Ok(used)
    }

    /// Makes an event of a packet that was authentic.
    fn deliver(&mut self, kind: Kind) {
        let event = match kind {
            Kind::Genuine => {
                self.counters.messages_received += 1;
                let contents = self.assembly.finish();
                self.event_bytes += contents.len();
                Event::Message(contents)
            }
            Kind::Decoy => {
                let len = self.assembly.discard();
                self.counters.decoys_received += 1;
                self.counters.decoy_bytes_received += len as u64;
                Event::Decoy { len }
            }
        };
        self.events.push_back(event);
    }

    /// Takes the connection apart if it is established.
    pub(super) fn apart(mut self) -> Result<Parts, Box<Connection>> {
        let (opener, sealer, session_id) = match (&self.receive, &self.sealer, self.session_id) {
            (Receive::Packets(opener), Some(sealer), Some(id))
                if !opener.is_closed() && sealer.next_number().is_some() =>
            {
                let receive = core::mem::replace(&mut self.receive, Receive::Closed);
                (receive, self.sealer.take(), id)
            }
            _ => return Err(Box::new(self)),
        };
        let (Receive::Packets(opener), Some(sealer)) = (opener, sealer) else {
            return Err(Box::new(self));
        };
        let (Some((recv, _)), Some(send)) = (opener.into_chain(), sealer.into_chain()) else {
            return Err(Box::new(self));
        };
        Ok(Parts {
            role: self.role,
            session_id,
            send,
            recv,
            unread: core::mem::take(&mut self.assembly).into_unread(),
            output: self.output().to_vec(),
            events: self.events,
            counters: self.counters,
            options: self.options,
        })
    }
}
