//! The first bytes of a connection, cut into pieces: for those who look at what a connection begins with.
//!
//! What is written is one thing, and what a piece holds another: each piece is a write of its own, with a pause behind it.

use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{future::Future, pin::Pin};

use tokio::time::{Sleep, sleep};

use crate::carrier::{Carrier, Virtual};
use crate::random;
use crate::settings::{Fragment, Packets, Span};
use crate::stream::adapter::io_error;

/// A record of TLS: its head, and the most that follows.
const HEAD: usize = 5;
const MAX_RECORD: usize = HEAD + (16 << 10) + 256;
/// The first byte of a record that holds a handshake.
const HANDSHAKE: u8 = 22;
/// How long the rest of the first record is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// Most bytes that are cut at once.
const MOST: usize = 8 << 10;

/// Random bits for numbers.
type Dice<'a> = &'a mut dyn FnMut() -> u32;

/// Cuts `bytes` into pieces of `length`, `max_split` of them at most.
fn cut<'a>(settings: &Fragment, mut bytes: &'a [u8], dice: Dice<'_>) -> Vec<&'a [u8]> {
    let most = settings.max_split.pick(dice());
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let len = settings.length.pick(dice()).max(1) as usize;
        let last = most > 0 && pieces.len() + 1 >= most as usize;
        let (piece, rest) = bytes.split_at(if last { bytes.len() } else { len.min(bytes.len()) });
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// Cuts the record that `bytes` begin with into several, and returns what follows it behind them.
fn cut_record(settings: &Fragment, bytes: &[u8], len: usize, dice: Dice<'_>) -> Vec<Vec<u8>> {
    let (head, rest) = (&bytes[..3], &bytes[len..]);
    let records = cut(settings, &bytes[HEAD..len], dice).into_iter().map(|piece| {
        let size = (piece.len() as u16).to_be_bytes();
        [head, &size, piece].concat()
    });
    let mut records: Vec<Vec<u8>> = records.collect();
    if settings.interval.to == 0 {
        records = vec![records.concat()];
    }
    if !rest.is_empty() {
        records.push(rest.to_vec());
    }
    records
}

/// The first record of TLS, as far as it has been written.
enum First {
    /// It is no record of a handshake.
    Other,
    /// More has to come.
    More,
    /// It has this many bytes.
    Whole(usize),
}

fn first(bytes: &[u8]) -> First {
    match bytes {
        [] => First::More,
        [HANDSHAKE, rest @ ..] => match rest {
            [_, _, high, low, ..] => match HEAD + usize::from(u16::from_be_bytes([*high, *low])) {
                HEAD | MAX_RECORD.. => First::Other,
                len if len > bytes.len() => First::More,
                len => First::Whole(len),
            },
            _ => First::More,
        },
        _ => First::Other,
    }
}

/// A connection whose first bytes are cut.
pub(super) struct Pieces {
    below: Carrier,
    settings: Fragment,
    /// Writes so far.
    count: u32,
    /// The beginning of the first record.
    held: Vec<u8>,
    /// The rest of it is not waited for longer.
    patience: Option<Pin<Box<Sleep>>>,
    /// What is to be written, each with a pause behind it if that is true.
    queue: VecDeque<(Vec<u8>, bool)>,
    written: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Pieces {
    pub(super) fn around(below: Carrier, settings: Fragment) -> Carrier {
        Carrier::from(Box::new(Pieces {
            below,
            settings,
            count: 0,
            held: Vec::new(),
            patience: None,
            queue: VecDeque::new(),
            written: 0,
            pause: None,
        }))
    }

    /// Whether nothing more is to be cut.
    fn is_through(&self) -> bool {
        match self.settings.packets {
            Packets::All => false,
            Packets::TlsHello => self.count > 0 && self.held.is_empty(),
            Packets::Writes(span) => self.count >= span.to,
        }
    }

    /// Takes what is written, cut where that is asked for.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.count = self.count.saturating_add(1);
        // A number for each piece that a write may be cut into would be more than it is worth drawing at once.
        let mut failed = None;
        let mut dice = || match random::bytes() {
            Ok(drawn) => u32::from_ne_bytes(drawn),
            Err(error) => {
                failed = Some(error);
                0
            }
        };
        let settings = &self.settings;
        match settings.packets {
            Packets::TlsHello if self.count == 1 || !self.held.is_empty() => {
                self.held.extend_from_slice(bytes);
                match first(&self.held) {
                    First::More => {
                        self.patience.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
                    }
                    First::Other => self.queue.push_back((std::mem::take(&mut self.held), false)),
                    First::Whole(len) => {
                        let held = std::mem::take(&mut self.held);
                        let cut = cut_record(settings, &held, len, &mut dice);
                        self.queue.extend(cut.into_iter().map(|piece| (piece, true)));
                    }
                }
            }
            Packets::Writes(span) if !(span.from..=span.to).contains(&self.count) => {
                self.queue.push_back((bytes.to_vec(), false));
            }
            Packets::TlsHello => self.queue.push_back((bytes.to_vec(), false)),
            Packets::All | Packets::Writes(_) => {
                let cut = cut(settings, bytes, &mut dice);
                self.queue.extend(cut.into_iter().map(|piece| (piece.to_vec(), true)));
            }
        }
        failed.map_or(Ok(()), |error| Err(io_error(error)))
    }

    /// Writes what waits, with its pauses.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(patience) = &mut self.patience
            && (self.held.is_empty() || patience.as_mut().poll(cx).is_ready())
        {
            self.patience = None;
            if !self.held.is_empty() {
                self.queue.push_back((std::mem::take(&mut self.held), false));
            }
        }
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            let Some((piece, pauses)) = self.queue.front() else {
                return Poll::Ready(Ok(()));
            };
            while self.written < piece.len() {
                self.written += ready!(self.below.poll_write(cx, &piece[self.written..]))?;
            }
            let pause = if *pauses {
                self.settings.interval
            } else {
                Span::default()
            };
            (self.written, _) = (0, self.queue.pop_front());
            if pause.to > 0 {
                let drawn = random::bytes().map_err(io_error)?;
                let ms = pause.pick(u32::from_ne_bytes(drawn));
                self.pause = Some(Box::pin(sleep(Duration::from_millis(ms.into()))));
            }
        }
    }
}

impl Virtual for Pieces {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Whoever waits to hear something has said what it had to say.
        if let Poll::Ready(Err(error)) = self.poll_out(cx) {
            return Poll::Ready(Err(error));
        }
        self.below.poll_read_ready(cx)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Err(error)) = self.poll_out(cx) {
            return Poll::Ready(Err(error));
        }
        self.below.poll_read(cx, into)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_out(cx))?;
        let len = from.len().min(MOST);
        self.take(&from[..len])?;
        match self.poll_out(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(len)),
        }
    }

    fn wants_flush(&self) -> bool {
        !self.held.is_empty() || !self.queue.is_empty() || self.pause.is_some() || self.below.wants_flush()
    }

    /// What is held is not waited for, since more of it may be written meanwhile; it goes out after a while if this is asked
    /// again.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        self.below.poll_flush(cx)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.held.is_empty() {
            self.queue.push_back((std::mem::take(&mut self.held), false));
        }
        ready!(self.poll_out(cx))?;
        self.below.poll_shutdown(cx)
    }

    fn reset_on_close(&mut self) {
        self.below.reset_on_close();
    }

    fn take_below(&mut self) -> Option<Carrier> {
        if !self.is_through() || self.wants_flush() {
            return None;
        }
        Some(std::mem::replace(&mut self.below, Carrier::from(Box::new(Gone))))
    }

    fn trust(&mut self) {
        self.below.trust();
    }

    fn can_half_close(&self) -> bool {
        self.below.can_half_close()
    }
}

/// What is left behind where a connection was taken from.
struct Gone;

impl Virtual for Gone {
    fn poll_read_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(0))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn reset_on_close(&mut self) {}
}

#[cfg(test)]
mod tests;
