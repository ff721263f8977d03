//! Sealing payload: one copy, every layer around it where it lies.

use std::io::IoSlice;

use sealway_tls::records::{MAX_PLAIN, Records};

use super::Stream;
use crate::Error;
use crate::pool;

impl Stream {
    /// Appends payload to what is to be sent, sealed by every layer.
    pub(crate) fn seal(&mut self, mut payload: &[u8]) -> Result<(), Error> {
        if self.pads() {
            return self.seal_padded(payload);
        }
        let prefix = std::mem::take(&mut self.tx.prefix);
        self.tx.farewell = Vec::new();
        let unit = self.sealer.as_ref().map_or(usize::MAX, |s| s.max_payload());
        let room = self.unit_room();
        // One piece is one unit of every layer. What does not fit together goes layer by layer.
        let body = self.sealer.as_ref().map_or(0, |s| s.overhead());
        let mut prefix = if prefix.len() + body < room {
            prefix
        } else {
            self.wrap(&prefix)?;
            Vec::new()
        };
        self.reserve(payload.len() + prefix.len());
        while !payload.is_empty() || !prefix.is_empty() {
            let most = unit.min(room - prefix.len() - body);
            let (now, later) = payload.split_at(payload.len().min(most));
            payload = later;
            let tls_at = self.tx.out.len();
            let front = self.tls.as_ref().map_or(0, |tls| tls.front());
            self.tx.out.resize(tls_at + front, 0);
            let frame_at = self.tx.out.len();
            let gap = self
                .framing
                .as_ref()
                .map_or(0, |framing| framing.header(prefix.len() + now.len() + body));
            self.tx.out.resize(frame_at + gap, 0);
            self.tx.out.append(&mut prefix);
            match &mut self.sealer {
                Some(sealer) if !now.is_empty() => sealer.seal(now, &mut self.tx.out)?,
                _ => self.tx.out.extend_from_slice(now),
            }
            if let Some(framing) = &mut self.framing {
                framing.seal(&mut self.tx.out, frame_at, gap)?;
            }
            if let Some(tls) = sealing(&mut self.tls) {
                tls.seal(&mut self.tx.out, tls_at)?;
            }
        }
        Ok(())
    }

    /// Appends the parts of one payload, `most` bytes at most, joined into as few units of the layers as they fit in.
    /// Returns how many bytes that were.
    pub(crate) fn seal_parts(&mut self, parts: &[IoSlice<'_>], most: usize) -> Result<usize, Error> {
        let total = parts.iter().map(|part| part.len()).sum::<usize>().min(most);
        if self.sealer.is_some() || self.framing.is_some() || self.holds_prefix() || self.pads() {
            let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).take(total).collect();
            self.seal(&whole)?;
            return Ok(total);
        }
        self.reserve(total);
        let mut parts = parts.iter().map(|part| &**part);
        let mut part: &[u8] = &[];
        let mut left = total;
        while left > 0 {
            let at = self.tx.out.len();
            self.tx
                .out
                .resize(at + self.tls.as_ref().map_or(0, |tls| tls.front()), 0);
            let mut room = self.unit_room().min(left);
            left -= room;
            while room > 0 {
                if part.is_empty() {
                    part = match parts.next() {
                        Some(next) => next,
                        None => break,
                    };
                    continue;
                }
                let (now, later) = part.split_at(part.len().min(room));
                self.tx.out.extend_from_slice(now);
                (part, room) = (later, room - now.len());
            }
            if let Some(tls) = sealing(&mut self.tls) {
                tls.seal(&mut self.tx.out, at)?;
            }
        }
        Ok(total)
    }

    /// Seals one datagram: exactly one piece of the body layer, however long.
    pub(crate) fn seal_whole(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut unit = std::mem::take(&mut self.tx.prefix);
        match &mut self.sealer {
            Some(sealer) => sealer.seal(payload, &mut unit)?,
            None => unit.extend_from_slice(payload),
        }
        self.wrap(&unit)
    }

    /// Most bytes under the frames that one unit of the layers below can take.
    fn unit_room(&self) -> usize {
        let below = if self.seals() { MAX_PLAIN } else { 1 << 20 };
        below - self.framing.as_ref().map_or(0, |framing| framing.max_header())
    }

    /// Makes room in the output for `payload` bytes and their framing.
    pub(super) fn reserve(&mut self, payload: usize) {
        let unit = self
            .sealer
            .as_ref()
            .map_or(usize::MAX, |s| s.max_payload())
            .min(self.unit_room() - 128);
        let need = payload + (payload / unit + 1) * 128;
        if self.tx.out.capacity() == 0 {
            self.tx.out = pool::take_out(need);
        } else {
            self.tx.out.reserve(need);
        }
    }

    /// Appends bytes of the body layer as frames and records.
    pub(super) fn wrap(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.tx.farewell = Vec::new();
        let room = self.unit_room();
        self.reserve(bytes.len());
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(room));
            bytes = later;
            let tls_at = self.tx.out.len();
            let front = self.tls.as_ref().map_or(0, |tls| tls.front());
            self.tx.out.resize(tls_at + front, 0);
            let frame_at = self.tx.out.len();
            let gap = self.framing.as_ref().map_or(0, |framing| framing.header(now.len()));
            self.tx.out.resize(frame_at + gap, 0);
            self.tx.out.extend_from_slice(now);
            if let Some(framing) = &mut self.framing {
                framing.seal(&mut self.tx.out, frame_at, gap)?;
            }
            if let Some(tls) = sealing(&mut self.tls) {
                tls.seal(&mut self.tx.out, tls_at)?;
            }
        }
        Ok(())
    }

    /// Appends bytes below the frames.
    pub(super) fn wrap_tls(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let Some(tls) = sealing(&mut self.tls) else {
            self.tx.out.extend_from_slice(bytes);
            return Ok(());
        };
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(MAX_PLAIN));
            bytes = later;
            let at = self.tx.out.len();
            self.tx.out.resize(at + tls.front(), 0);
            self.tx.out.extend_from_slice(now);
            tls.seal(&mut self.tx.out, at)?;
        }
        Ok(())
    }

    /// Appends what is held back for the first payload, without payload.
    pub(crate) fn seal_prefix(&mut self) -> Result<(), Error> {
        if self.pads() && self.holds_prefix() {
            return self.seal_padded(&[]);
        }
        let prefix = std::mem::take(&mut self.tx.prefix);
        self.wrap(&prefix)
    }

    /// Appends what says, on every layer that can, that nothing follows.
    pub(crate) fn seal_end(&mut self) -> Result<(), Error> {
        self.seal_prefix()?;
        if let Some(sealer) = &mut self.sealer {
            let mut end = Vec::new();
            sealer.end(&mut end)?;
            self.wrap(&end)?;
        }
        Ok(())
    }

    /// Appends what closes the transport: its last frame and `close_notify`.
    pub(crate) fn seal_close(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.tx.closed, true) {
            return Ok(());
        }
        if let Some(framing) = &mut self.framing {
            let mut close = Vec::new();
            framing.close(&mut close)?;
            self.wrap_tls(&close)?;
        }
        if let Some(tls) = sealing(&mut self.tls) {
            tls.push_close(&mut self.tx.out)?;
        }
        Ok(())
    }
}

/// The record layer, if what is sent is sealed by it.
fn sealing(tls: &mut Option<Box<Records>>) -> Option<&mut Records> {
    tls.as_deref_mut().filter(|tls| !tls.has_ended_sealing())
}
