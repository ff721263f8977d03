//! One end of a proxied connection: a socket or what stands for it, and what lies between its bytes and the payload.
//!
//! ```text
//!  socket ── TLS records ── frames of a transport ── body (VMess chunks, a response header) ── payload
//! ```
//!
//! What is read lies in one buffer, in regions that follow each other: payload, then what each layer has not opened yet,
//! then bytes of the socket. Each layer opens in place and closes the gap that its framing leaves. What is written is
//! built in one buffer too: one copy of the payload, every layer sealed around it where it lies.
//!
//! Some of what is read must be answered by the layers themselves: pings, and wishes for new keys. A peer that asks and does not
//! read could have as much memory as it likes that way. So nothing more is read from a peer that has not taken [`BEHIND`] bytes of
//! such answers, in no state of a connection: [`Stream::poll_fill`] is the one way to its bytes, and tries to write them first.

pub(crate) mod adapter;
mod again;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod flood;
mod nested;
mod rx;
mod seal;
mod tx;
pub(crate) mod vision;

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};

use sealway_tls::records::Records;
use sealway_v2ray::Step;
use tokio::time::Instant;

use crate::Error;
use crate::carrier::Carrier;
use crate::closing::{Paced, Pacer};
use crate::layer::{self, Framing, Seal};
use crate::meters::Open;
use crate::people::{Pass, Presence};
use crate::pool::{Buf, Class};
use crate::stats::Traffic;
use crate::tls::handshake::Established;

use again::Again;
use rx::Rx;
use tx::Tx;
use vision::{Vision, holds_record};

/// Regions of the buffer, by how many layers their bytes are through.
const SOCKET: usize = 0;
const TLS: usize = 1;
const FRAMES: usize = 2;
const PAYLOAD: usize = 3;

/// Bytes of our own answers that may wait to be written before the peer is read no further. What one read asks for comes
/// on top, which is little: of many pings in it some are answered, and of many wishes for a new key one.
const BEHIND: usize = 4 << 10;

/// One end of a connection.
pub(crate) struct Stream {
    pub(crate) carrier: Carrier,
    rx: Rx,
    tx: Tx,
    tls: Option<Box<Records>>,
    framing: Option<Box<dyn Framing>>,
    opener: Option<Box<dyn layer::Open>>,
    sealer: Option<Box<dyn Seal>>,
    vision: Option<Box<Vision>>,
    /// One record is opened at a time.
    one_by_one: bool,
    /// What takes its place if it ends without an answer.
    again: Option<Box<Again>>,
    traffic: Traffic,
    /// It is counted as open.
    open: Option<Open>,
    /// Bytes flushed so far.
    written: u64,
}

impl Stream {
    /// Bytes as they are. `traffic` counts them.
    pub(crate) fn new(carrier: impl Into<Carrier>, traffic: Traffic) -> Self {
        Stream {
            carrier: carrier.into(),
            rx: Rx::default(),
            tx: Tx::default(),
            tls: None,
            framing: None,
            opener: None,
            sealer: None,
            vision: None,
            one_by_one: false,
            again: None,
            traffic,
            open: None,
            written: 0,
        }
    }

    /// It is counted as open for as long as it is there.
    pub(crate) fn count(&mut self, open: Open) {
        self.open = Some(open);
    }

    /// Whether there is TLS around it.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// A connection whose TLS handshake is through. `traffic` counts its bytes.
    pub(crate) fn over_tls(established: Established, traffic: Traffic) -> Self {
        let Established {
            carrier,
            records,
            received,
            early,
            closed,
            ..
        } = established;
        let mut stream = Stream::new(carrier, traffic);
        stream.tls = Some(Box::new(records));
        stream.rx.end = closed;
        let held = received.len() + early.len();
        if held > 0
            && let Some(class) = Class::holding(held + 1)
        {
            let mut buf = Buf::take(class);
            buf[..early.len()].copy_from_slice(&early);
            buf[early.len()..held].copy_from_slice(&received);
            stream.rx.regions[TLS] = 0..early.len();
            stream.rx.regions[SOCKET] = early.len()..held;
            stream.rx.buf = Some(buf);
            stream.rx.fresh = true;
        }
        stream
    }

    /// Puts the frames of a transport between what is there and the payload.
    pub(crate) fn set_framing(&mut self, framing: Box<dyn Framing>) {
        self.rx.demote(TLS);
        self.framing = Some(framing);
    }

    /// Opens what arrives from here on.
    pub(crate) fn set_opener(&mut self, opener: Box<dyn layer::Open>) {
        self.rx.demote(FRAMES);
        self.opener = Some(opener);
    }

    /// Seals what is sent from here on.
    pub(crate) fn set_sealer(&mut self, sealer: Box<dyn Seal>) {
        self.sealer = Some(sealer);
    }

    /// Puts `bytes` in front of what was received, as if they had arrived now: for data that a handshake carried.
    pub(crate) fn unread(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !self.rx.regions[PAYLOAD].is_empty() {
            self.rx.demote(FRAMES);
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
            *region = if level == FRAMES { 0..at + len } else { at..at + len };
            at += len;
        }
        self.rx.buf = Some(buf);
        self.rx.fresh = true;
        Ok(())
    }

    /// True if what the socket gives is payload as it is.
    pub(crate) fn is_raw_rx(&self) -> bool {
        !self.unseals() && self.framing.is_none() && self.opener.is_none() && !self.unpads()
    }

    /// True if payload can go to the socket as it is.
    pub(crate) fn is_raw_tx(&self) -> bool {
        let bare = !self.seals() && self.framing.is_none() && self.sealer.is_none();
        bare && self.tx.prefix.is_empty() && !self.pads()
    }

    /// True if the end of what we send can be said without closing the connection.
    pub(crate) fn can_half_close(&self) -> bool {
        self.carrier.can_half_close() && self.framing.as_ref().is_none_or(|framing| framing.can_half_close())
    }

    /// The peer has shown who it is: from here on, large reads are worth their memory.
    pub(crate) fn trust(&mut self) {
        self.welcome();
        self.rx.most = Class::LARGEST;
        self.carrier.trust();
        if let Some(tls) = &mut self.tls {
            tls.trust();
        }
    }

    /// Waits with as little memory as what was received and not opened yet needs.
    pub(crate) fn rest(&mut self) {
        self.rx.shrink();
    }

    /// Bytes of memory that its buffers take.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.rx.buf.as_ref().map_or(0, |buf| buf.len()) + self.tx.out.capacity()
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
            Some(tls) if !tls.has_ended_opening() => {
                let out = self.rx.out(SOCKET);
                let input = self.rx.regions[SOCKET].clone();
                let most = if self.one_by_one { 1 } else { usize::MAX };
                if let Some(buf) = &mut self.rx.buf {
                    let opened = match tls.open_some(buf, out, input, most) {
                        Ok(opened) => opened,
                        Err(error) => {
                            self.lose();
                            self.push_alert(&error);
                            return Err(error.into());
                        }
                    };
                    self.rx.moved(SOCKET, opened.consumed, opened.produced);
                    self.rx.end |= opened.end;
                    let left = self.rx.regions[SOCKET].clone();
                    let buf = self.rx.buf.as_deref();
                    self.rx.fresh = opened.consumed > 0 && buf.is_some_and(|buf| holds_record(&buf[left]));
                    // Nobody waits for an answer to what was asked before our end was heard.
                    let mut reply = std::mem::take(&mut tls.reply);
                    if !self.tx.closed {
                        self.tx.replies += reply.len();
                        self.tx.out.append(&mut reply);
                    }
                }
            }
            _ => self.rx.pass(SOCKET),
        }
        let mut through = false;
        match &mut self.framing {
            None => self.rx.pass(TLS),
            Some(framing) => {
                let out = self.rx.out(TLS);
                let input = self.rx.regions[TLS].clone();
                let mut reply = Vec::new();
                if let Some(buf) = &mut self.rx.buf {
                    let opened = framing.open(buf, out, input, &mut reply)?;
                    self.rx.moved(TLS, opened.consumed, opened.produced);
                    self.rx.end |= opened.end;
                    through = opened.through;
                }
                if !reply.is_empty() && !self.tx.closed {
                    let before = self.tx.out.len();
                    self.wrap_tls(&reply)?;
                    self.tx.replies += self.tx.out.len() - before;
                }
            }
        }
        drop(self.framing.take_if(|_| through));
        if let Some(opener) = &mut self.opener {
            let out = self.rx.out(FRAMES);
            let input = self.rx.regions[FRAMES].clone();
            self.again.take_if(|_| !input.is_empty());
            if let Some(buf) = &mut self.rx.buf {
                let opened = opener.open(buf, out, input)?;
                self.rx.moved(FRAMES, opened.consumed, opened.produced);
                self.rx.end |= opened.end;
                if opened.through {
                    self.opener = None;
                }
            }
        }
        match self.opener {
            Some(_) => {}
            None if self.unpads() => self.open_blocks()?,
            None => self.pass_and_look(),
        }
        if self.rx.end {
            self.lose();
        }
        if self.rx.end && (self.is_lost() || !self.is_between_blocks()) {
            return Err(Error::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        #[cfg(test)]
        flood::note(self.tx.out.len() - self.tx.sent);
        Ok(())
    }

    /// Reads what the socket has. `Ok(0)`: the stream has ended. Holds no buffer while pending with nothing unfinished.
    ///
    /// Answers that wait are written first. While too many of them do, nothing is read, and the task is woken when the
    /// socket takes more of them.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        self.poll_fill_some(cx, usize::MAX)
    }

    /// The same with at most so many bytes, of which there is at least one; more only where the carrier hands over a buffer of its own.
    pub(crate) fn poll_fill_some(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<Result<usize, Error>> {
        if self.rx.end {
            return Poll::Ready(Ok(0));
        }
        if self.tx.replies > 0 && self.poll_flush(cx)?.is_pending() && self.tx.replies > BEHIND {
            self.rx.shrink();
            return Poll::Pending;
        }
        let ready = self.carrier.poll_read_ready(cx);
        if matches!(ready, Poll::Ready(Err(_))) {
            self.lose();
        }
        if ready?.is_pending() {
            self.rx.release_if_empty();
            return Poll::Pending;
        }
        if self.rx.is_empty()
            && let Some((buf, came)) = self.carrier.take()
        {
            let got = came.len();
            self.rx.adopt(buf, came);
            self.traffic.received(got);
            return Poll::Ready(Ok(got));
        }
        let room = self.rx.make_room()?;
        let space = room.len();
        let most = space.min(most.max(1));
        match self.carrier.poll_read(cx, &mut room[..most]) {
            Poll::Pending => {
                self.rx.release_if_empty();
                Poll::Pending
            }
            Poll::Ready(Ok(0)) => {
                self.rx.end = true;
                self.lose();
                let unfinished = self.rx.regions[..PAYLOAD].iter().any(|r| !r.is_empty());
                let whole = self.opener.as_ref().is_none_or(|opener| opener.may_end());
                if unfinished || !whole || !self.is_between_blocks() {
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
            Poll::Ready(Err(error)) => {
                self.lose();
                Poll::Ready(Err(error.into()))
            }
        }
    }

    /// How many bytes may be read now for a user. They are taken from what he may move only when there is something to read; `pass`
    /// knows of them until they are spent.
    pub(crate) fn poll_leave(
        &mut self,
        cx: &mut Context<'_>,
        user: &Presence,
        pass: &mut Pass,
    ) -> Poll<Result<usize, Error>> {
        let Some(budget) = user.budget() else {
            return Poll::Ready(Ok(usize::MAX));
        };
        if self.carrier.poll_read_ready(cx)?.is_pending() {
            pass.give_back(budget);
            return Poll::Ready(Ok(1));
        }
        pass.poll(cx, budget).map_err(Error::from)
    }

    /// As [`Stream::poll_fill`], as far as the user may move bytes.
    pub(crate) fn poll_fill_for(
        &mut self,
        cx: &mut Context<'_>,
        user: &Presence,
        pass: &mut Pass,
    ) -> Poll<Result<usize, Error>> {
        let most = ready!(self.poll_leave(cx, user, pass))?;
        let filled = self.poll_fill_some(cx, most)?;
        if let Some(budget) = user.budget() {
            pass.spend(budget, if let Poll::Ready(got) = filled { got } else { 0 });
        }
        filled.map(Ok)
    }

    /// Waits until there is more payload than before. `Ok(false)`: the peer has ended its direction.
    pub(crate) async fn more(&mut self) -> Result<bool, Error> {
        let (had, since) = (self.payload().len(), Instant::now());
        loop {
            if let Err(error) = self.open() {
                self.flush_alert().await;
                return Err(error);
            }
            if self.payload().len() > had {
                return Ok(true);
            }
            if self.rx.end {
                Paced::default().wait(Pacer::shared(), since).await;
                return Ok(false);
            }
            if self.wants_open() {
                continue;
            }
            if self.wants_flush() {
                self.flush().await?;
            }
            poll_fn(|cx| self.poll_fill(cx)).await?;
        }
    }

    /// Reads until `parse` has a whole message, and takes it off the payload.
    ///
    /// # Errors
    /// Those of `parse`, and [`Error::Closed`] if the peer ends before the message does.
    pub(crate) async fn read<T, E: Into<Error>>(
        &mut self,
        mut parse: impl FnMut(&[u8]) -> Result<Step<T>, E>,
    ) -> Result<T, Error> {
        loop {
            match parse(self.payload()).map_err(Into::into)? {
                Step::Done { value, used } => {
                    self.consume(used);
                    return Ok(value);
                }
                Step::More(_) => {
                    if !self.more().await? {
                        return Err(Error::Closed);
                    }
                }
            }
        }
    }

    /// Changes our sending key and asks the peer to change its own.
    #[cfg(test)]
    pub(crate) fn update_keys(&mut self) -> Result<(), Error> {
        match &mut self.tls {
            Some(tls) => Ok(tls.key_update(&mut self.tx.out, true)?),
            None => Ok(()),
        }
    }

    /// Counts bytes that moved without passing through memory.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}
