//! XTLS Vision on a stream: the payload in padded blocks, and the end of TLS in each direction by itself.
//!
//! While blocks are read, records of TLS are opened one at a time: what follows the record with the last block may be payload
//! that no TLS is around. A direction that has left TLS is never spoken TLS in again: no `close_notify`, no new key, no answer
//! to a wish for one. It is as bare as a socket, and the kernel may move what is left of it.

use std::time::Duration;

use sealway_v2ray::UserId;
use sealway_v2ray::vless::vision::{FIRST_HEAD, Filter, MAX_BLOCK, Reader, Seed, Writer};

use super::{FRAMES, PAYLOAD, SOCKET, Stream};
use crate::{Error, random};

/// How long a request header waits for the first payload, which is padded together with it.
pub(crate) const HOLD: Duration = Duration::from_millis(500);

/// What pads one stream.
pub(super) struct Vision {
    filter: Filter,
    /// Until the blocks that are received have ended.
    reader: Option<Reader>,
    /// Until the blocks that are sent have ended.
    writer: Option<Writer>,
}

impl Stream {
    /// Pads what is sent from here on, and takes what is received to be padded. `id` is that of the request. `leaves`: what is
    /// sent may leave TLS; the peer decides for its own direction.
    pub(crate) fn set_vision(&mut self, id: UserId, seed: Seed, leaves: bool) {
        if !self.rx.regions[PAYLOAD].is_empty() {
            self.rx.demote(FRAMES);
        }
        self.one_by_one = true;
        self.vision = Some(Box::new(Vision {
            filter: Filter::default(),
            reader: Some(Reader::new(id)),
            writer: Some(Writer::new(id, seed, leaves)),
        }));
    }

    /// Opens records one at a time, if it may turn out that what follows one is no TLS.
    pub(crate) fn set_one_by_one(&mut self, one_by_one: bool) {
        self.one_by_one = one_by_one;
    }

    /// Whether Vision can be spoken over it: TLS 1.3 with nothing between it and the protocol.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with what is in the way.
    pub(crate) fn carries_vision(&self) -> Result<(), Error> {
        use sealway_tls::records::Version;
        Err(Error::Unsupported(match &self.tls {
            _ if self.framing.is_some() => "xtls-rprx-vision over another transport than raw",
            None => "xtls-rprx-vision without TLS around it",
            Some(tls) if tls.version() == Version::Tls13 => return Ok(()),
            Some(_) => "xtls-rprx-vision over TLS 1.2: both ends have to allow TLS 1.3",
        }))
    }

    /// True while what is sent is padded.
    pub(crate) fn pads(&self) -> bool {
        self.vision.as_ref().is_some_and(|vision| vision.writer.is_some())
    }

    /// True while what is received may be padded.
    pub(super) fn unpads(&self) -> bool {
        self.vision.as_ref().is_some_and(|vision| vision.reader.is_some())
    }

    /// True if what is received is not within a block: a direction that ends there is whole.
    pub(super) fn is_between_blocks(&self) -> bool {
        let reader = self.vision.as_ref().and_then(|vision| vision.reader.as_ref());
        reader.is_none_or(Reader::may_end)
    }

    /// True if what is sent is sealed by TLS.
    pub(super) fn seals(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.has_ended_sealing())
    }

    /// True if what is received is sealed by TLS.
    pub(super) fn unseals(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.has_ended_opening())
    }

    /// Finds the payload in the blocks that have been opened so far.
    pub(super) fn open_blocks(&mut self) -> Result<(), Error> {
        let out = self.rx.out(FRAMES);
        let input = self.rx.regions[FRAMES].clone();
        let (Some(vision), Some(buf)) = (&mut self.vision, &mut self.rx.buf) else {
            return Ok(());
        };
        let Some(reader) = &mut vision.reader else {
            return Ok(());
        };
        let (mut at, mut produced) = (input.start, 0);
        while let Some(part) = reader.next(&buf[at..input.end])? {
            at += part.skip;
            let content = at..at + part.content;
            at = content.end;
            if !content.is_empty() {
                vision.filter.hear(&buf[content.clone()]);
            }
            buf.copy_within(content, out + produced);
            produced += part.content;
        }
        let through = reader.is_through();
        self.rx.moved(FRAMES, at - input.start, produced);
        if let Some(direct) = through {
            vision.reader = None;
            self.one_by_one = false;
            // What TLS has opened behind the last block is payload as well.
            self.pass_and_look();
            if direct {
                if let Some(tls) = &mut self.tls {
                    tls.end_opening()?;
                }
                tracing::trace!("vision: what comes has left TLS");
            }
            self.rx.fresh |= !self.rx.regions[SOCKET].is_empty();
            self.forget_what_has_ended();
        }
        Ok(())
    }

    /// Hands bytes above the frames up as payload, of which a handshake may still be to be found.
    pub(super) fn pass_and_look(&mut self) {
        let before = self.rx.regions[PAYLOAD].len();
        self.rx.pass(FRAMES);
        if let (Some(vision), Some(buf)) = (&mut self.vision, &self.rx.buf)
            && vision.writer.is_some()
        {
            let payload = &buf[self.rx.regions[PAYLOAD].clone()];
            vision.filter.hear(&payload[before..]);
        }
    }

    /// Appends payload in blocks, each a record of its own, with what is held back in front of the first.
    pub(super) fn seal_padded(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut unit = std::mem::take(&mut self.tx.prefix);
        self.tx.farewell = Vec::new();
        let Some(vision) = &mut self.vision else { return Ok(()) };
        let Some(writer) = &mut vision.writer else {
            return Ok(());
        };
        let padded = writer.pad(payload, &mut vision.filter, || random::bytes().map(u32::from_ne_bytes))?;
        let through = writer.is_through();
        self.reserve(padded.end + padded.blocks.len() * (MAX_BLOCK - FIRST_HEAD) / 2);
        for block in padded.blocks {
            unit.extend_from_slice(block.head());
            unit.extend_from_slice(&payload[block.content]);
            unit.resize(unit.len() + block.padding, 0);
            self.wrap_tls(&unit)?;
            unit.clear();
        }
        let Some(direct) = through else { return Ok(()) };
        if let Some(vision) = &mut self.vision {
            vision.writer = None;
        }
        if direct {
            if let Some(tls) = &mut self.tls {
                tls.end_sealing();
            }
            tracing::trace!("vision: what is sent has left TLS");
        }
        self.forget_what_has_ended();
        match &payload[padded.end..] {
            [] => Ok(()),
            rest => self.seal_on(rest),
        }
    }

    fn forget_what_has_ended(&mut self) {
        self.vision
            .take_if(|vision| vision.reader.is_none() && vision.writer.is_none());
        self.tls
            .take_if(|tls| tls.has_ended_opening() && tls.has_ended_sealing());
    }
}

/// Whether these bytes begin with a whole record of TLS.
pub(super) fn holds_record(bytes: &[u8]) -> bool {
    match bytes {
        [_, _, _, high, low, rest @ ..] => rest.len() >= usize::from(u16::from_be_bytes([*high, *low])),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
