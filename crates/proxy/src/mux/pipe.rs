//! A stream in a carrier.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sealway_v2ray::mux;
use tokio::time::Instant;

use super::inbox::End;
use super::{Inbox, Link, QUANTUM, Turn};
use crate::carrier::Virtual;
use crate::closing::LINGER;
use crate::pool::Buf;

/// A stream in a carrier, at either end.
pub(crate) struct Pipe {
    link: Arc<Link>,
    inbox: Arc<Inbox>,
    id: u16,
    serial: u64,
    turn: Turn,
    /// It began here.
    ours: bool,
    /// The peer has been told of it.
    said: bool,
    /// We have said that it is over.
    ended: bool,
    /// Our direction is over.
    shut: bool,
    broken: bool,
    /// Since when what is written goes nowhere, for the peer has ended the session.
    unheard: Option<Instant>,
}

impl Pipe {
    /// A stream that the peer has begun.
    pub(crate) fn theirs(link: Arc<Link>, inbox: Arc<Inbox>, id: u16, serial: u64) -> Box<Pipe> {
        Pipe::new(link, inbox, id, serial, false)
    }

    /// A stream that begins here.
    pub(crate) fn ours(link: Arc<Link>, inbox: Arc<Inbox>, id: u16) -> Box<Pipe> {
        Pipe::new(link, inbox, id, 0, true)
    }

    fn new(link: Arc<Link>, inbox: Arc<Inbox>, id: u16, serial: u64, ours: bool) -> Box<Pipe> {
        Box::new(Pipe {
            link,
            inbox,
            id,
            serial,
            turn: Turn::default(),
            ours,
            said: !ours,
            ended: false,
            shut: false,
            broken: false,
            unheard: None,
        })
    }

    fn end(&mut self, error: bool) {
        if !std::mem::replace(&mut self.ended, true) {
            self.link.push_end(self.id, error);
        }
    }
}

impl Virtual for Pipe {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inbox.poll_ready(cx).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.inbox.poll_read(&self.link.meter, cx, into)
    }

    fn take(&mut self) -> Option<(Buf, Range<usize>)> {
        self.inbox.take(&self.link.meter)
    }

    /// What is written after the peer has ended the session goes nowhere. For a moment that is no error: what the peer sent
    /// before its end may still be on its way to our side's other end.
    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match self.inbox.end() {
            End::None => {}
            End::Ended if self.unheard.get_or_insert_with(Instant::now).elapsed() < LINGER => {
                return Poll::Ready(Ok(from.len()));
            }
            End::Ended => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            End::Broken => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
        let Pipe {
            link, turn, id, said, ..
        } = self;
        let wrote = ready!(link.poll_push(cx, turn, |out, unsaid, room| {
            let data = &from[..from.len().min(room)];
            let mut chunks = data.chunks(QUANTUM);
            if !std::mem::replace(said, true)
                && let Some(at) = unsaid.iter().position(|(other, ..)| other == id)
                && let Some((_, to, _)) = unsaid.remove(at)
            {
                // Chunks are shorter than what a frame can hold.
                let _ = mux::push_new(out, *id, &to, None, chunks.next());
            }
            for chunk in chunks {
                let _ = mux::push_keep(out, *id, chunk);
            }
            (data.len(), data.len())
        }))?;
        Poll::Ready(Ok(wrote))
    }

    /// An end is one of both directions. So a server says it at once, for the client waits for it; a client says it when the
    /// session is dropped, so that what is still to come is not lost.
    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut = true;
        if !self.ours {
            self.end(false);
        }
        Poll::Ready(Ok(()))
    }

    fn reset_on_close(&mut self) {
        self.broken = true;
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let peer = self.inbox.end();
        let unsaid = self.link.leave(self.id, self.serial, self.ours);
        // A session that neither end has ended was broken off. One that broke at the other end needs no answer.
        if !unsaid && peer != End::Broken {
            self.end(self.broken || !self.shut && peer == End::None);
        }
        self.inbox.clear(&self.link.meter);
    }
}
