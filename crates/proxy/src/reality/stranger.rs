//! Strangers, who stay with the target until one of the two ends it.
//!
//! What the target does is done to the stranger at once: bytes, ends, and resets, those behind an end included.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::{read, write};
use sealway_net::sock::Sock;
use sealway_net::splice::{Pipe, is_unable};
use tokio::io::Interest;
use tokio::time::{Instant, Sleep, sleep_until};

use super::bucket::{Bucket, MOST};
use super::crowd::Place;
use crate::Error;
use crate::settings::ThrottledAfter;
use crate::stats::Traffic;

/// How long nothing may move. The target's own patience is to show, not ours.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long nothing may move once the target has ended its direction. A system keeps the end of a closed connection for so long;
/// what comes later draws a reset from it as from ours.
const PATIENCE_BEHIND_END: Duration = Duration::from_secs(60);

/// The connection of a stranger to the target.
pub(crate) struct Passing {
    client: Sock,
    target: Sock,
    up: Way,
    down: Way,
    traffic: Traffic,
    _place: Place,
}

impl Passing {
    /// Between a client and the target, each with what it has said already and the other has not been told.
    pub(super) fn new(
        (client, asked): (Sock, Vec<u8>),
        (target, answer): (Sock, Vec<u8>),
        [up, down]: [Option<ThrottledAfter>; 2],
        traffic: Traffic,
        place: Place,
    ) -> Self {
        Passing {
            client,
            target,
            up: Way::new(asked, up),
            down: Way::new(answer, down),
            traffic,
            _place: place,
        }
    }

    /// Goes on to the end. A side that breaks the connection breaks the other's, too.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let Passing {
            client,
            target,
            mut up,
            mut down,
            traffic,
            _place,
        } = self;
        let (mut client_breaks, mut target_breaks) = (pin!(client.broken()), pin!(target.broken()));
        let mut last = Instant::now();
        let mut timer = pin!(sleep_until(last + PATIENCE));
        let ended: io::Result<()> = poll_fn(|cx| {
            let (mut sent, mut received) = (0, 0);
            let was_ended = down.done;
            let up_done = up.poll(cx, &client, &target, &mut received);
            let down_done = down.poll(cx, &target, &client, &mut sent);
            traffic.received(received);
            traffic.sent(sent);
            match (up_done, down_done) {
                (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => return Poll::Ready(Err(error)),
                (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(Ok(())),
                _ => {}
            }
            // Nothing is read behind an end, so somebody has to look for a reset there.
            let broken = up.done && client_breaks.as_mut().poll(cx).is_ready()
                || down.done && target_breaks.as_mut().poll(cx).is_ready();
            if broken {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let patience = if down.done { PATIENCE_BEHIND_END } else { PATIENCE };
            if sent + received > 0 || was_ended != down.done {
                last = Instant::now();
            }
            if was_ended != down.done {
                timer.as_mut().reset(last + patience);
            }
            loop {
                ready!(timer.as_mut().poll(cx));
                if last.elapsed() >= patience {
                    return Poll::Ready(Ok(()));
                }
                timer.as_mut().reset(last + patience);
            }
        })
        .await;
        if ended.is_err() {
            client.reset_on_close();
            target.reset_on_close();
        }
        Ok(ended?)
    }
}

/// One direction.
struct Way {
    /// What was read and not written.
    held: Vec<u8>,
    written: usize,
    bucket: Option<Bucket>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Large reads follow each other: the kernel moves the bytes if it can.
    bulk: bool,
    unable: bool,
    pipe: Option<Pipe>,
    ended: bool,
    done: bool,
}

impl Way {
    fn new(held: Vec<u8>, limit: Option<ThrottledAfter>) -> Self {
        Way {
            held,
            written: 0,
            // Bytes of a direction with a limit are counted, and so go through our hands.
            unable: limit.is_some(),
            bucket: limit.map(|limit| Bucket::new(limit, Instant::now())),
            sleep: None,
            bulk: false,
            pipe: None,
            ended: false,
            done: false,
        }
    }

    /// Moves what may be moved. Ready when this direction is over.
    fn poll(&mut self, cx: &mut Context<'_>, from: &Sock, to: &Sock, moved: &mut usize) -> Poll<io::Result<()>> {
        loop {
            if self.done {
                return Poll::Ready(Ok(()));
            }
            if let Some(rest @ [_, ..]) = self.held.get(self.written..) {
                let wrote = ready!(to.poll_io(cx, Interest::WRITABLE, |fd| Ok(write(fd, rest)?)))?;
                self.written += wrote;
                *moved += wrote;
                continue;
            }
            (self.held, self.written) = (Vec::new(), 0);
            if let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.filled() > 0) {
                *moved += ready!(to.poll_io(cx, Interest::WRITABLE, |fd| pipe.drain(fd)))?;
                continue;
            }
            if self.ended {
                to.end()?;
                self.done = true;
                continue;
            }
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            // Nothing is held until there is something to move.
            ready!(from.poll_read_ready(cx))?;
            if self.bulk && !self.unable {
                ready!(self.poll_splice(cx, from))?;
                continue;
            }
            let granted = self.bucket.as_mut().map(|bucket| bucket.grant(Instant::now()));
            let most = match granted.unwrap_or(Ok(MOST)) {
                Ok(most) => most,
                Err(then) => {
                    self.sleep = Some(Box::pin(sleep_until(then)));
                    continue;
                }
            };
            let mut piece = vec![0; most];
            let got = ready!(from.poll_io(cx, Interest::READABLE, |fd| Ok(read(fd, &mut piece)?)))?;
            self.ended = got == 0;
            self.bulk = got >= MOST;
            if let Some(bucket) = &mut self.bucket {
                bucket.take(got);
            }
            piece.truncate(got);
            self.held = piece;
        }
    }

    /// Fills the pipe, or finds that there is nothing more for one.
    fn poll_splice(&mut self, cx: &mut Context<'_>, from: &Sock) -> Poll<io::Result<()>> {
        let Some(pipe) = &mut self.pipe else {
            match Pipe::take() {
                Ok(pipe) => self.pipe = Some(pipe),
                Err(_) => self.bulk = false,
            }
            return Poll::Ready(Ok(()));
        };
        let filled = from.poll_io(cx, Interest::READABLE, |fd| pipe.fill(fd));
        let more = match filled {
            Poll::Ready(Ok(1..)) => return Poll::Ready(Ok(())),
            Poll::Ready(Ok(_)) => {
                self.ended = true;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) if is_unable(&error) => {
                self.unable = true;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        self.bulk = false;
        if let Some(pipe) = self.pipe.take() {
            pipe.give_back();
        }
        more
    }
}

#[cfg(test)]
mod tests;
