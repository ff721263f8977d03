//! One end of a proxied connection: a socket, and what lies between its bytes and the payload.
//!
//! ```text
//!  socket ── TLS records ── WebSocket frames ── body (VMess chunks, a response header) ── payload
//! ```
//!
//! What is read lies in one buffer, in regions that follow each other: payload, then what each layer has not opened yet,
//! then bytes of the socket. Each layer opens in place and closes the gap that its framing leaves. What is written is
//! built in one buffer too: one copy of the payload, every layer sealed around it where it lies.

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

use crate::Error;
use crate::layer::{Open, Seal};
use crate::pool::{self, Buf, Class};
use crate::sock::Sock;
use crate::stats::Traffic;
use crate::tls::records::{MAX_PLAIN, Records};
use crate::ws::Frames;

/// Regions of the buffer, by how many layers their bytes are through.
const SOCKET: usize = 0;
const TLS: usize = 1;
const WS: usize = 2;
const PAYLOAD: usize = 3;

/// What was received and not yet taken.
#[derive(Default)]
struct Rx {
    buf: Option<Buf>,
    regions: [Range<usize>; 4],
    /// Class to take next: grows while reads fill the buffer, shrinks when they do not.
    want: Class,
    /// The peer has said, on some layer, that nothing follows.
    end: bool,
    /// Something has arrived, or a layer was put in, since everything was opened as far as it goes.
    fresh: bool,
}

/// What is to be sent.
#[derive(Default)]
struct Tx {
    out: Vec<u8>,
    sent: usize,
    /// Bytes that precede the first payload, held so that they leave together with it.
    prefix: Vec<u8>,
    /// The transport has been told that nothing follows.
    closed: bool,
}

/// One end of a connection.
pub(crate) struct Stream {
    pub(crate) sock: Sock,
    rx: Rx,
    tx: Tx,
    tls: Option<Box<Records>>,
    ws: Option<Box<Frames>>,
    opener: Option<Box<dyn Open>>,
    sealer: Option<Box<dyn Seal>>,
    traffic: Traffic,
}

impl Rx {
    fn is_empty(&self) -> bool {
        self.regions.iter().all(Range::is_empty)
    }

    fn release_if_empty(&mut self) {
        if self.is_empty() {
            self.buf = None;
            self.regions = Default::default();
        }
    }

    /// Where the output of the layer above `level` goes: behind what is there, else as far ahead as possible.
    fn out(&mut self, level: usize) -> usize {
        if self.regions[level + 1].is_empty() {
            let floor = self.regions[level + 1..]
                .iter()
                .filter(|r| !r.is_empty())
                .map(|r| r.end)
                .max();
            let at = floor.unwrap_or(0).min(self.regions[level].start);
            self.regions[level + 1] = at..at;
        }
        self.regions[level + 1].end
    }

    /// Accounts for what a layer did.
    fn moved(&mut self, level: usize, consumed: usize, produced: usize) {
        self.regions[level].start += consumed;
        self.regions[level + 1].end += produced;
    }

    /// Hands the bytes at `level` up unchanged, as if the layer were not there.
    fn pass(&mut self, level: usize) {
        let from = self.regions[level].clone();
        if from.is_empty() {
            return;
        }
        if self.regions[level + 1].is_empty() {
            self.regions[level + 1] = from.clone();
        } else {
            let to = self.regions[level + 1].end;
            if to != from.start
                && let Some(buf) = &mut self.buf
            {
                buf.copy_within(from.clone(), to);
            }
            self.regions[level + 1].end = to + from.len();
        }
        self.regions[level] = from.end..from.end;
    }

    /// Makes the payload so far input of the layer at `level` instead.
    fn demote(&mut self, level: usize) {
        self.regions[level] = std::mem::take(&mut self.regions[PAYLOAD]);
        self.fresh = true;
    }

    /// Makes room to read behind the socket's region, and returns it.
    fn make_room(&mut self) -> Result<&mut [u8], Error> {
        let held: usize = self.regions.iter().map(Range::len).sum();
        let fits = |class: Class| held < class.size();
        let mut class = self.want;
        while !fits(class) && class != Class::LARGEST {
            class = class.larger();
        }
        if !fits(class) {
            return Err(Error::protocol("stream", "a unit longer than the largest buffer"));
        }
        let mut at = 0;
        let buf = match self.buf.take() {
            Some(mut buf) if buf.class() >= class => {
                for region in self.regions.iter_mut().rev() {
                    let len = region.len();
                    if region.start != at {
                        buf.copy_within(region.clone(), at);
                    }
                    *region = at..at + len;
                    at += len;
                }
                buf
            }
            old => {
                let mut buf = Buf::take(class);
                for region in self.regions.iter_mut().rev() {
                    let len = region.len();
                    if let Some(old) = &old {
                        buf[at..at + len].copy_from_slice(&old[region.clone()]);
                    }
                    *region = at..at + len;
                    at += len;
                }
                buf
            }
        };
        Ok(&mut self.buf.insert(buf)[at..])
    }

    /// Accounts for a read of `got` bytes into `room`.
    fn filled(&mut self, got: usize, room: usize) {
        self.regions[SOCKET].end += got;
        self.fresh = true;
        let class = self.buf.as_ref().map_or(self.want, Buf::class);
        self.want = if got == room {
            class.larger()
        } else if got < class.size() / 8 {
            class.smaller()
        } else {
            class
        };
    }
}

impl Stream {
    /// A bare socket. `traffic` counts its bytes.
    pub(crate) fn new(sock: Sock, traffic: Traffic) -> Self {
        Stream {
            sock,
            rx: Rx::default(),
            tx: Tx::default(),
            tls: None,
            ws: None,
            opener: None,
            sealer: None,
            traffic,
        }
    }

    /// Puts TLS records between the socket and the rest. `read` was received and not opened yet; `early` was opened by
    /// the handshake already.
    pub(crate) fn set_tls(&mut self, records: Records, read: &[u8], early: &[u8], end: bool) {
        self.tls = Some(Box::new(records));
        let held = read.len() + early.len();
        self.rx.end = end;
        if held == 0 {
            return;
        }
        if let Some(class) = Class::holding(held + 1) {
            let mut buf = Buf::take(class);
            buf[..early.len()].copy_from_slice(early);
            buf[early.len()..held].copy_from_slice(read);
            self.rx.regions = Default::default();
            self.rx.regions[TLS] = 0..early.len();
            self.rx.regions[SOCKET] = early.len()..held;
            self.rx.buf = Some(buf);
            self.rx.fresh = true;
        }
    }

    /// Puts WebSocket frames between what is there and the payload.
    pub(crate) fn set_ws(&mut self, frames: Frames) {
        self.rx.demote(TLS);
        self.ws = Some(Box::new(frames));
    }

    /// Opens what arrives from here on.
    pub(crate) fn set_opener(&mut self, opener: Box<dyn Open>) {
        self.rx.demote(WS);
        self.opener = Some(opener);
    }

    /// Seals what is sent from here on.
    pub(crate) fn set_sealer(&mut self, sealer: Box<dyn Seal>) {
        self.sealer = Some(sealer);
    }

    /// Sets bytes that leave ahead of the first payload, below the body layer, above WebSocket.
    pub(crate) fn set_prefix(&mut self, prefix: Vec<u8>) {
        self.tx.prefix = prefix;
    }

    /// True while bytes set with [`Stream::set_prefix`] wait for the first payload.
    pub(crate) fn holds_prefix(&self) -> bool {
        !self.tx.prefix.is_empty()
    }

    /// Puts `bytes` in front of what was received, as if they had arrived now: for data that a handshake carried.
    pub(crate) fn unread(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !self.rx.regions[PAYLOAD].is_empty() {
            self.rx.demote(WS);
        }
        let held: usize = self.rx.regions.iter().map(Range::len).sum();
        let class = Class::holding(held + bytes.len() + 1)
            .ok_or(Error::protocol("stream", "more early data than the largest buffer"))?;
        let mut buf = Buf::take(class);
        buf[..bytes.len()].copy_from_slice(bytes);
        let mut at = bytes.len();
        for (level, region) in self.rx.regions.iter_mut().enumerate().rev() {
            let len = region.len();
            if let Some(old) = &self.rx.buf {
                buf[at..at + len].copy_from_slice(&old[region.clone()]);
            }
            *region = if level == WS { 0..at + len } else { at..at + len };
            at += len;
        }
        self.rx.buf = Some(buf);
        self.rx.fresh = true;
        Ok(())
    }

    /// True if what the socket gives is payload as it is.
    pub(crate) fn is_raw_rx(&self) -> bool {
        self.tls.is_none() && self.ws.is_none() && self.opener.is_none()
    }

    /// True if payload can go to the socket as it is.
    pub(crate) fn is_raw_tx(&self) -> bool {
        self.tls.is_none() && self.ws.is_none() && self.sealer.is_none() && self.tx.prefix.is_empty()
    }

    /// True if the end of what we send can be said without closing the connection.
    ///
    /// WebSocket has a close frame, but the peers in use take it for a failure: what they have received and not passed on
    /// yet is thrown away, and nothing can be sent after it. So the end of a WebSocket connection is said when both
    /// directions are through or the time of the other one has run out, as those peers do it too.
    pub(crate) fn can_half_close(&self) -> bool {
        self.ws.is_none()
    }

    /// Payload that is ready.
    pub(crate) fn payload(&self) -> &[u8] {
        match &self.rx.buf {
            Some(buf) => &buf[self.rx.regions[PAYLOAD].clone()],
            None => &[],
        }
    }

    /// Takes `n` bytes of payload away.
    pub(crate) fn consume(&mut self, n: usize) {
        let region = &mut self.rx.regions[PAYLOAD];
        region.start += n.min(region.len());
    }

    /// True if the peer has ended its direction and all payload has been taken.
    pub(crate) fn is_ended(&self) -> bool {
        self.rx.end && self.rx.regions[PAYLOAD].is_empty()
    }

    /// True if the peer has ended its direction, whatever waits.
    pub(crate) fn has_ended(&self) -> bool {
        self.rx.end
    }

    /// True if nothing that was received waits.
    pub(crate) fn is_drained(&self) -> bool {
        self.rx.is_empty()
    }

    /// The peer has ended its direction: nothing is read any more.
    pub(crate) fn set_ended(&mut self) {
        self.rx.end = true;
    }

    /// True if [`Stream::open`] may find something that it has not seen.
    pub(crate) fn wants_open(&self) -> bool {
        self.rx.fresh
    }

    /// Opens what has arrived as far as it goes.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        self.rx.fresh = false;
        if self.rx.buf.is_none() {
            return Ok(());
        }
        match &mut self.tls {
            None => self.rx.pass(SOCKET),
            Some(tls) => {
                let out = self.rx.out(SOCKET);
                let input = self.rx.regions[SOCKET].clone();
                if let Some(buf) = &mut self.rx.buf {
                    let opened = tls.open(buf, out, input)?;
                    self.rx.moved(SOCKET, opened.consumed, opened.produced);
                    self.rx.end |= opened.end;
                    self.tx.out.append(&mut tls.reply);
                }
            }
        }
        match &mut self.ws {
            None => self.rx.pass(TLS),
            Some(ws) => {
                let out = self.rx.out(TLS);
                let input = self.rx.regions[TLS].clone();
                let mut reply = Vec::new();
                if let Some(buf) = &mut self.rx.buf {
                    let opened = ws.open(buf, out, input, &mut reply)?;
                    self.rx.moved(TLS, opened.consumed, opened.produced);
                    self.rx.end |= opened.end;
                }
                if !reply.is_empty() {
                    self.wrap_tls(&reply)?;
                }
            }
        }
        if let Some(opener) = &mut self.opener {
            let out = self.rx.out(WS);
            let input = self.rx.regions[WS].clone();
            if let Some(buf) = &mut self.rx.buf {
                let opened = opener.open(buf, out, input)?;
                self.rx.moved(WS, opened.consumed, opened.produced);
                self.rx.end |= opened.end;
                if opened.through {
                    self.opener = None;
                }
            }
        }
        if self.opener.is_none() {
            self.rx.pass(WS);
        }
        Ok(())
    }

    /// Reads what the socket has. `Ok(0)`: the stream has ended. Holds no buffer while pending with nothing unfinished.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        if self.rx.end {
            return Poll::Ready(Ok(0));
        }
        if self.sock.poll_read_ready(cx)?.is_pending() {
            self.rx.release_if_empty();
            return Poll::Pending;
        }
        let room = self.rx.make_room()?;
        let space = room.len();
        match self.sock.poll_read(cx, room) {
            Poll::Pending => {
                self.rx.release_if_empty();
                Poll::Pending
            }
            Poll::Ready(Ok(0)) => {
                self.rx.end = true;
                let unfinished = self.rx.regions[..PAYLOAD].iter().any(|r| !r.is_empty());
                let whole = self.opener.as_ref().is_none_or(|opener| opener.may_end());
                if unfinished || !whole {
                    return Poll::Ready(Err(Error::Io(io::ErrorKind::UnexpectedEof.into())));
                }
                self.rx.release_if_empty();
                Poll::Ready(Ok(0))
            }
            Poll::Ready(Ok(got)) => {
                self.rx.filled(got, space);
                self.traffic.received(got);
                Poll::Ready(Ok(got))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
        }
    }

    /// Waits until there is more payload than before. `Ok(false)`: the peer has ended its direction.
    pub(crate) async fn more(&mut self) -> Result<bool, Error> {
        let had = self.payload().len();
        loop {
            self.open()?;
            if self.payload().len() > had {
                return Ok(true);
            }
            if self.rx.end {
                return Ok(false);
            }
            if self.wants_flush() {
                self.flush().await?;
            }
            poll_fn(|cx| self.poll_fill(cx)).await?;
        }
    }

    /// Appends payload to what is to be sent, sealed by every layer.
    pub(crate) fn seal(&mut self, mut payload: &[u8]) -> Result<(), Error> {
        let prefix = std::mem::take(&mut self.tx.prefix);
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
            let ws_at = self.tx.out.len();
            let gap = self
                .ws
                .as_ref()
                .map_or(0, |ws| ws.header(prefix.len() + now.len() + body));
            self.tx.out.resize(ws_at + gap, 0);
            self.tx.out.append(&mut prefix);
            match &mut self.sealer {
                Some(sealer) if !now.is_empty() => sealer.seal(now, &mut self.tx.out)?,
                _ => self.tx.out.extend_from_slice(now),
            }
            if let Some(ws) = &mut self.ws {
                ws.seal(&mut self.tx.out, ws_at, gap)?;
            }
            if let Some(tls) = &mut self.tls {
                tls.seal(&mut self.tx.out, tls_at)?;
            }
        }
        Ok(())
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

    /// Most bytes under the WebSocket layer that one unit of the layers below can take.
    fn unit_room(&self) -> usize {
        let below_ws = if self.tls.is_some() { MAX_PLAIN } else { 1 << 20 };
        below_ws - self.ws.as_ref().map_or(0, |_| Frames::MAX_HEADER)
    }

    /// Makes room in the output for `payload` bytes and their framing.
    fn reserve(&mut self, payload: usize) {
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
    fn wrap(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let room = self.unit_room();
        self.reserve(bytes.len());
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(room));
            bytes = later;
            let tls_at = self.tx.out.len();
            let front = self.tls.as_ref().map_or(0, |tls| tls.front());
            self.tx.out.resize(tls_at + front, 0);
            let ws_at = self.tx.out.len();
            let gap = self.ws.as_ref().map_or(0, |ws| ws.header(now.len()));
            self.tx.out.resize(ws_at + gap, 0);
            self.tx.out.extend_from_slice(now);
            if let Some(ws) = &mut self.ws {
                ws.seal(&mut self.tx.out, ws_at, gap)?;
            }
            if let Some(tls) = &mut self.tls {
                tls.seal(&mut self.tx.out, tls_at)?;
            }
        }
        Ok(())
    }

    /// Appends bytes below the WebSocket layer.
    fn wrap_tls(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let Some(tls) = &mut self.tls else {
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

    /// Appends what closes the transport: a WebSocket close frame and `close_notify`.
    pub(crate) fn seal_close(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.tx.closed, true) {
            return Ok(());
        }
        if let Some(ws) = &mut self.ws {
            let mut close = Vec::new();
            ws.close(&mut close)?;
            self.wrap_tls(&close)?;
        }
        if let Some(tls) = &mut self.tls {
            tls.push_close(&mut self.tx.out)?;
        }
        Ok(())
    }

    /// True if something waits to be written.
    pub(crate) fn wants_flush(&self) -> bool {
        self.tx.sent < self.tx.out.len()
    }

    /// Writes what waits; when all is written the buffer is given back.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while self.wants_flush() {
            let wrote = ready!(self.sock.poll_write(cx, &self.tx.out[self.tx.sent..]))?;
            self.tx.sent += wrote;
            self.traffic.sent(wrote);
        }
        self.tx.sent = 0;
        if self.tx.out.capacity() > 0 {
            pool::give_out(std::mem::take(&mut self.tx.out));
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what waits.
    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// Seals and writes.
    pub(crate) async fn send(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.seal(payload)?;
        self.flush().await
    }

    /// Writes payload that needs no sealing straight from where it lies.
    pub(crate) fn poll_write_raw(&mut self, cx: &mut Context<'_>, payload: &[u8]) -> Poll<Result<usize, Error>> {
        let wrote = ready!(self.sock.poll_write(cx, payload))?;
        self.traffic.sent(wrote);
        Poll::Ready(Ok(wrote))
    }

    /// Counts bytes that moved without passing through memory.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}
