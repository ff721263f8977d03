//! Carrying a connection: payload from one end to the other, both ways, until both are done.
//!
//! One task carries both directions. They share each end's TLS state (a key update received on one is answered on the
//! other), one idle timer and one pair of sockets; as one task they need no lock, wake nobody but themselves, and a
//! waiting connection costs one future instead of two. What it gives up, the two directions of one connection on two
//! cores at once, matters only when a single connection moves more than one core can, in both directions.
//!
//! There is one timer a connection, set when it starts and looked at when it fires: reading and writing only note that
//! something moved.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_net::splice::{Pipe, is_unable};
use tokio::io::Interest;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::Error;
use crate::closing::{Paced, Pacer};
use crate::people::{Pass, Presence, Refused, Way};
use crate::settings::Timeouts;
use crate::stream::{Stream, vision};

/// How long a request header waits for the first payload, so that both leave together.
const HOLD: Duration = Duration::from_millis(20);

/// A read of at least this many bytes says that the kernel should move the rest by itself.
const SPLICE_FROM: usize = 16 << 10;

/// Why a connection ended without an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ended {
    /// Both directions were ended by their senders.
    Done,
    /// Nothing moved for as long as the policy allows.
    Idle,
}

/// Where a direction stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Open,
    /// The end has been sealed and is being written.
    Ending,
    Done,
}

struct Direction {
    phase: Phase,
    /// Large reads follow each other: let the kernel move the bytes if it can.
    bulk: bool,
    /// The kernel moves nothing between these two by itself.
    unable: bool,
    /// Bytes spliced since the source last had nothing.
    burst: usize,
    /// Bytes spliced in all.
    spliced: u64,
    pipe: Option<Pipe>,
    /// What it may read now, where the user is limited.
    pass: Pass,
}

impl Direction {
    fn new(way: Way) -> Self {
        Direction {
            pass: Pass::new(way),
            phase: Phase::Open,
            bulk: false,
            unable: false,
            burst: 0,
            spliced: 0,
            pipe: None,
        }
    }

    /// Moves what can be moved. Ready when this direction is done.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        user: &Presence,
        (from, to): (&mut Stream, &mut Stream),
        may_end: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
        moved: &mut usize,
    ) -> Poll<Result<(), Error>> {
        loop {
            if to.wants_flush() && to.poll_flush(cx)?.is_pending() {
                // What was read is sealed and waits there; it is not held twice.
                from.rest();
                return Poll::Pending;
            }
            match self.phase {
                Phase::Done => return Poll::Ready(Ok(())),
                Phase::Ending => {
                    if to.can_half_close() {
                        ready!(to.carrier.poll_shutdown(cx))?;
                    }
                    self.phase = Phase::Done;
                    continue;
                }
                Phase::Open => {}
            }
            let ready = from.payload().len();
            if ready > 0 {
                let done = if to.is_raw_tx() {
                    ready!(to.poll_write_raw(cx, from.payload()))?
                } else {
                    to.seal(from.payload())?;
                    ready
                };
                from.consume(done);
                user.count(self.pass.way(), done);
                *moved += done;
                continue;
            }
            if self.pipe.is_some() || self.bulk && from.is_raw_rx() && from.is_drained() && to.is_raw_tx() {
                ready!(self.poll_splice(cx, user, (from, to), moved))?;
                continue;
            }
            if from.wants_open() {
                from.open()?;
                continue;
            }
            if from.is_ended() {
                ready!(may_end(cx));
                to.seal_end()?;
                if to.can_half_close() {
                    to.seal_close()?;
                }
                self.phase = Phase::Ending;
                continue;
            }
            let got = ready!(from.poll_fill_for(cx, user, &mut self.pass))?;
            // Of a user with limits reads are no larger than his turns.
            let large = got >= SPLICE_FROM || user.budget().is_some() && got >= SPLICE_FROM / 4;
            self.bulk = large && !self.unable && from.carrier.is_sock() && to.carrier.is_sock();
        }
    }

    /// One round through the pipe. Ready when there is something else to look at.
    fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        user: &Presence,
        (from, to): (&mut Stream, &mut Stream),
        moved: &mut usize,
    ) -> Poll<Result<(), Error>> {
        let mut most = usize::MAX;
        if self.pipe.as_ref().is_none_or(|pipe| pipe.filled() == 0) {
            match from.poll_leave(cx, user, &mut self.pass)? {
                Poll::Ready(leave) => most = leave,
                Poll::Pending => {
                    // A pipe that waits for its turn is of use to others.
                    if let Some(pipe) = self.pipe.take() {
                        pipe.give_back();
                    }
                    return Poll::Pending;
                }
            }
        }
        if self.pipe.is_none() {
            if from.is_ended() {
                self.bulk = false;
                return Poll::Ready(Ok(()));
            }
            // Nothing is taken before there is something to move.
            ready!(from.carrier.poll_read_ready(cx))?;
            match Pipe::take() {
                Ok(pipe) => self.pipe = Some(pipe),
                Err(_) => {
                    self.bulk = false;
                    return Poll::Ready(Ok(()));
                }
            }
        }
        let Some(pipe) = &mut self.pipe else {
            return Poll::Ready(Ok(()));
        };
        if pipe.filled() == 0 {
            let filled = from
                .carrier
                .poll_io(cx, Interest::READABLE, |fd| pipe.fill_some(fd, most));
            match filled {
                Poll::Pending => {
                    if let Some(budget) = user.budget() {
                        self.pass.give_back(budget);
                    }
                    // The burst is over. After a small one, what comes next is likely small too and better copied.
                    self.bulk = self.burst >= SPLICE_FROM;
                    self.burst = 0;
                    if let Some(pipe) = self.pipe.take() {
                        pipe.give_back();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Err(error)) if is_unable(&error) => {
                    (self.bulk, self.unable, self.pipe) = (false, true, None);
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(0)) => {
                    if let Some(budget) = user.budget() {
                        self.pass.give_back(budget);
                    }
                    from.set_ended();
                    self.bulk = false;
                    if let Some(pipe) = self.pipe.take() {
                        pipe.give_back();
                    }
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Ok(n)) => {
                    self.burst += n;
                    self.spliced += n as u64;
                    from.traffic().received(n);
                    if let Some(budget) = user.budget() {
                        self.pass.spend(budget, n);
                    }
                }
            }
        }
        while pipe.filled() > 0 {
            let n = ready!(to.carrier.poll_io(cx, Interest::WRITABLE, |fd| pipe.drain(fd)))?;
            to.traffic().sent(n);
            user.count(self.pass.way(), n);
            *moved += n;
        }
        Poll::Ready(Ok(()))
    }
}

/// A connection being carried. `near` is the client's end, `far` the target's.
pub(crate) struct Relay {
    near: Stream,
    far: Stream,
    up: Direction,
    down: Direction,
    timeouts: Timeouts,
    /// Of the user, who is counted what moves, and at whose removal it ends.
    user: Presence,
    last: Instant,
    paced: Paced,
    pacer: &'static Pacer,
    /// A request header waits for the first payload.
    holding: bool,
    /// It has not come to its end.
    cut: bool,
    timer: Pin<Box<Sleep>>,
}

impl Drop for Relay {
    /// Where the carrier of the near end is lost, nobody waits for the end: what was not said to the end must not look whole.
    fn drop(&mut self) {
        self.finish_passes();
        if self.cut && self.up.phase != Phase::Done && !self.near.carrier.is_sock() {
            self.far.carrier.reset_on_close();
        }
    }
}

impl Relay {
    /// Starts carrying. Whoever has said who it is has been trusted where that was read: a fallback carries strangers.
    pub(crate) fn new(near: Stream, mut far: Stream, timeouts: Timeouts, user: Presence) -> Self {
        far.trust();
        let now = Instant::now();
        let holding = far.holds_prefix();
        let first = match (holding, far.pads()) {
            (true, true) => vision::HOLD.min(timeouts.idle),
            (true, false) => HOLD.min(timeouts.idle),
            (false, _) => timeouts.idle,
        };
        Relay {
            near,
            far,
            up: Direction::new(Way::Up),
            down: Direction::new(Way::Down),
            timeouts,
            user,
            last: now,
            paced: Paced::default(),
            pacer: Pacer::shared(),
            holding,
            cut: true,
            timer: Box::pin(sleep_until(now + first)),
        }
    }

    /// What was taken of the user's rate and is not moved is for his other connections.
    fn finish_passes(&mut self) {
        if let Some(budget) = self.user.budget() {
            self.up.pass.finish(budget);
            self.down.pass.finish(budget);
        }
    }

    /// Time allowed from the last byte on, as things stand.
    fn allowed(&self) -> Duration {
        match (self.up.phase != Phase::Done, self.down.phase != Phase::Done) {
            (true, true) => self.timeouts.idle,
            (true, false) => self.timeouts.uplink_only,
            (false, true) => self.timeouts.downlink_only,
            (false, false) => Duration::ZERO,
        }
    }

    /// Carries to the end. On return both sockets are closed; after a reset, with a reset.
    pub(crate) async fn run(mut self) -> Result<Ended, Error> {
        self.carry().await
    }

    /// The same, and how many bytes the kernel moved by itself, up and down.
    #[cfg(test)]
    pub(crate) async fn run_and_count(mut self) -> (Result<Ended, Error>, [u64; 2]) {
        (self.carry().await, [self.up.spliced, self.down.spliced])
    }

    async fn carry(&mut self) -> Result<Ended, Error> {
        let ended = std::future::poll_fn(|cx| self.poll(cx)).await;
        self.cut = false;
        self.near.flush_alert().await;
        self.far.flush_alert().await;
        if self.up.spliced + self.down.spliced > 0 {
            let (up, down) = (self.up.spliced, self.down.spliced);
            tracing::trace!("the kernel moved {up} bytes up and {down} down by itself");
        }
        // Somebody waits for the end of what belongs to a user who is gone.
        if !matches!(ended, Err(Error::Refused(_))) {
            self.paced.wait(self.pacer, self.last).await;
        }
        match &ended {
            Ok(Ended::Done | Ended::Idle) => {
                // Both transports are told that this was the end; nobody waits for them to hear it.
                for stream in [&mut self.near, &mut self.far] {
                    if stream.seal_close().is_ok() {
                        let _ = std::future::poll_fn(|cx| Poll::Ready(stream.poll_flush(cx))).await;
                    }
                }
            }
            Err(error) if error.is_reset() => {
                self.near.carrier.reset_on_close();
                self.far.carrier.reset_on_close();
            }
            Err(_) => {}
        }
        ended
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended, Error>> {
        if self.user.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Refused::Removed.into()));
        }
        if self.far.is_lost() {
            ready!(self.far.poll_again(cx))?;
            self.far.trust();
            self.finish_passes();
            (self.up, self.down) = (Direction::new(Way::Up), Direction::new(Way::Down));
        }
        let before = (self.up.phase, self.down.phase);
        let written = (self.near.written(), self.far.written());
        let (mut up, mut down) = (0, 0);
        let (pacer, last) = (self.pacer, self.last);
        let mut may_end = |cx: &mut Context<'_>| self.paced.poll(cx, pacer, last);
        let (near, far, user) = (&mut self.near, &mut self.far, &self.user);
        let up_done = self.up.poll(cx, user, (near, far), &mut may_end, &mut up);
        let down_done = self.down.poll(cx, user, (far, near), &mut may_end, &mut down);
        self.user.received(up);
        self.user.sent(down);
        if self.far.is_lost() {
            // The one that takes its place is not.
            return self.poll(cx);
        }
        // What was cut must not look whole to whoever it was for.
        for (done, to) in [(&up_done, &mut self.far), (&down_done, &mut self.near)] {
            if matches!(done, Poll::Ready(Err(error)) if error.is_cut()) {
                to.carrier.reset_on_close();
            }
        }
        let (up_done, down_done) = match (up_done, down_done) {
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => return Poll::Ready(Err(error)),
            (up_done, down_done) => (up_done.is_ready(), down_done.is_ready()),
        };
        // Replies that opening one direction made (a pong, a key update) leave now, not with the next payload or read.
        for stream in [&mut self.far, &mut self.near] {
            if stream.wants_flush()
                && let Poll::Ready(Err(error)) = stream.poll_flush(cx)
            {
                return Poll::Ready(Err(error));
            }
        }
        if up + down > 0 || written != (self.near.written(), self.far.written()) {
            self.last = Instant::now();
        }
        if up_done && down_done {
            return Poll::Ready(Ok(Ended::Done));
        }
        if before != (self.up.phase, self.down.phase) {
            // One direction has ended: a shorter time begins now.
            self.last = Instant::now();
            let at = self.last + self.allowed();
            self.timer.as_mut().reset(at);
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            if std::mem::take(&mut self.holding) && self.far.holds_prefix() {
                self.far.seal_prefix()?;
                if let Poll::Ready(Err(error)) = self.far.poll_flush(cx) {
                    return Poll::Ready(Err(error));
                }
            }
            let at = self.last + self.allowed();
            if now >= at {
                return Poll::Ready(Ok(Ended::Idle));
            }
            self.timer.as_mut().reset(at);
        }
    }
}

#[cfg(test)]
mod limited;
#[cfg(test)]
mod tests;
