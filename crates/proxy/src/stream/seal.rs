//! Sealing payload: one copy, every layer around it where it lies.

use std::io::IoSlice;
use std::task::{Context, Waker};

use sealway_tls::records::{ALERT, MAX_PLAIN, Records};
use tokio::time::timeout;

use super::Stream;
use crate::Error;
use crate::closing::LINGER;
use crate::layer::Seal;
use crate::pool;

impl Stream {
    /// Appends payload to what is to be sent, sealed by every layer.
    pub(crate) fn seal(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.keep(payload);
        self.seal_on(payload)
    }

    /// The same of what was kept already.
    pub(super) fn seal_on(&mut self, mut payload: &[u8]) -> Result<(), Error> {
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
            self.unit(prefix.len() + now.len() + body, |sealer, out| {
                out.append(&mut prefix);
                match sealer {
                    Some(sealer) if !now.is_empty() => sealer.seal(now, out),
                    _ => {
                        out.extend_from_slice(now);
                        Ok(())
                    }
                }
            })?;
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
        self.again = None;
        self.reserve(total);
        let mut parts = parts.iter().map(|part| &**part);
        let mut part: &[u8] = &[];
        let mut left = total;
        while left > 0 {
            let mut room = self.unit_room().min(left);
            left -= room;
            self.record(|stream| {
                while room > 0 {
                    if part.is_empty() {
                        part = match parts.next() {
                            Some(next) => next,
                            None => break,
                        };
                        continue;
                    }
                    let (now, later) = part.split_at(part.len().min(room));
                    stream.tx.out.extend_from_slice(now);
                    (part, room) = (later, room - now.len());
                }
                Ok(())
            })?;
        }
        Ok(total)
    }

    /// Seals one datagram: exactly one piece of the body layer, however long.
    pub(crate) fn seal_whole(&mut self, payload: &[u8]) -> Result<(), Error> {
        if self.pads() {
            return self.seal_padded(payload);
        }
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
            self.unit(now.len(), |_, out| {
                out.extend_from_slice(now);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Appends what `fill` appends, which is about `len` bytes, as one frame in one record.
    fn unit(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut Option<Box<dyn Seal>>, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.record(|stream| {
            let at = stream.tx.out.len();
            let gap = stream.framing.as_ref().map_or(0, |framing| framing.header(len));
            stream.tx.out.resize(at + gap, 0);
            fill(&mut stream.sealer, &mut stream.tx.out)?;
            match &mut stream.framing {
                Some(framing) => framing.seal(&mut stream.tx.out, at, gap),
                None => Ok(()),
            }
        })
    }

    /// Appends what `fill` appends as one record. If that fails, nothing of it is left in the output, whoever writes that next,
    /// and nothing is sealed any more: the peer would take what follows for what is missing.
    fn record(&mut self, fill: impl FnOnce(&mut Stream) -> Result<(), Error>) -> Result<(), Error> {
        if self.tx.broken {
            return Err(Error::Closed);
        }
        let at = self.tx.out.len();
        let front = self.tls.as_ref().map_or(0, |tls| tls.front());
        self.tx.out.resize(at + front, 0);
        let mut sealed = fill(self);
        if let (Ok(()), Some(tls)) = (&sealed, sealing(&mut self.tls))
            && let Err(error) = tls.seal(&mut self.tx.out, at)
        {
            self.push_alert(&error);
            sealed = Err(error.into());
        } else if sealed.is_err() {
            self.tx.out.truncate(at);
        }
        self.tx.broken = sealed.is_err();
        sealed
    }

    /// Tells the peer why TLS is over (RFC 8446 section 6.2), if it is owed that and what is sent is still TLS. Nothing is said
    /// behind it. As much is written as can be at once; who waits for the rest waits [`LINGER`].
    pub(super) fn push_alert(&mut self, error: &sealway_tls::Error) {
        if std::mem::replace(&mut self.tx.closed, true) {
            return;
        }
        self.tx.broken = true;
        if let (Some(alert), Some(tls)) = (error.alert(), sealing(&mut self.tls))
            && tls.push(ALERT, &alert.message(), &mut self.tx.out).is_ok()
        {
            self.tx.alert = true;
            let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Writes the alert that waits, if one does, for no longer than [`LINGER`].
    pub(crate) async fn flush_alert(&mut self) {
        if self.tx.alert {
            let _ = timeout(LINGER, self.flush()).await;
        }
    }

    /// Appends bytes below the frames.
    pub(super) fn wrap_tls(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let room = if self.seals() { MAX_PLAIN } else { usize::MAX };
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(room));
            bytes = later;
            self.record(|stream| {
                stream.tx.out.extend_from_slice(now);
                Ok(())
            })?;
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
        // A server that has nothing to answer ends behind that, and has heard everything.
        self.again = None;
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
