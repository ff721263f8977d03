//! One HTTP request and its response, between a client that may send more and a server that is asked once.
//!
//! Bodies pass as they come and are only followed to their end. Both directions move at once: a server may answer before it
//! has the whole request, and a client may wait for `100 Continue` before it sends the rest.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll, ready};

use sealway_v2ray::Step;
use sealway_v2ray::http::body::Body;
use sealway_v2ray::http::proxy::{Forward, UNAVAILABLE, decode_response};
use tokio::time::{Instant, sleep_until};

use crate::Error;
use crate::people::{Pass, Presence, Refused, Way};
use crate::settings::Timeouts;
use crate::stream::Stream;

/// Responses of the class 1xx that are passed on before the real one. A server that sends more is not serving.
const MAX_INTERIM: usize = 16;

/// What becomes of the client's connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kept {
    /// It may send another request.
    Open,
    /// It is over.
    Closed,
}

/// A request under way.
pub(crate) struct Exchange<'a> {
    near: &'a mut Stream,
    far: Stream,
    forward: &'a Forward,
    /// What of the request's body is to come.
    request: Body,
    /// What of the response's body is to come, once its head has been passed on.
    response: Option<Body>,
    interim: usize,
    keep_alive: bool,
    /// The server takes no more of the request.
    refused: bool,
    timeouts: Timeouts,
    user: Presence,
    /// What may be read of the request and of the response now, where the user is limited.
    passes: [Pass; 2],
}

impl<'a> Exchange<'a> {
    /// Begins an exchange over a connection to the server.
    pub(crate) fn new(
        near: &'a mut Stream,
        mut far: Stream,
        forward: &'a Forward,
        timeouts: Timeouts,
        user: Presence,
    ) -> Self {
        far.trust();
        Exchange {
            near,
            far,
            forward,
            request: forward.body,
            response: None,
            interim: 0,
            keep_alive: false,
            refused: false,
            timeouts,
            user,
            passes: [Way::Up, Way::Down].map(Pass::new),
        }
    }

    /// Runs it to its end. A client that has got nothing yet is told of a failure.
    pub(crate) async fn run(mut self) -> Result<Kept, Error> {
        let done = self.carry().await;
        if let Some(budget) = self.user.budget() {
            self.passes.iter_mut().for_each(|pass| pass.finish(budget));
        }
        match done {
            Ok(()) => {
                poll_fn(|cx| {
                    self.far.finish(cx);
                    Poll::Ready(())
                })
                .await;
                // A request that was answered before its end leaves the rest of its body in the way of the next.
                let kept = self.keep_alive && self.request.is_over() && !self.near.has_ended();
                Ok(if kept { Kept::Open } else { Kept::Closed })
            }
            Err(error) => {
                if self.response.is_some() {
                    // What was passed on is not the whole: an end in good order would say that it is.
                    self.near.carrier.reset_on_close();
                } else if !error.is_reset() {
                    self.near.leave(UNAVAILABLE).await;
                }
                Err(error)
            }
        }
    }

    async fn carry(&mut self) -> Result<(), Error> {
        self.far.seal(&self.forward.head)?;
        let Timeouts { idle, uplink_only, .. } = self.timeouts;
        let (mut answered, mut last) = (false, Instant::now());
        let mut timer = Box::pin(sleep_until(last + idle));
        poll_fn(|cx| {
            if self.user.poll_gone(cx).is_ready() {
                return Poll::Ready(Err(Refused::Removed.into()));
            }
            let mut moved = 0;
            let written = (self.near.written(), self.far.written());
            if let Poll::Ready(Err(error)) = self.poll_up(cx, &mut moved) {
                return Poll::Ready(if answered { Ok(()) } else { Err(error) });
            }
            if !answered && self.poll_down(cx, &mut moved)?.is_ready() {
                answered = true;
                last = Instant::now();
                timer.as_mut().reset(last + uplink_only);
            }
            // A server may have answered before it has the whole request, and go on taking it.
            if answered && (self.refused || self.request.is_over() && !self.far.wants_flush()) {
                return Poll::Ready(Ok(()));
            }
            if moved > 0 || written != (self.near.written(), self.far.written()) {
                last = Instant::now();
            }
            loop {
                ready!(timer.as_mut().poll(cx));
                let at = last + if answered { uplink_only } else { idle };
                if Instant::now() >= at {
                    return Poll::Ready(if answered {
                        Ok(())
                    } else {
                        Err(Error::TimedOut("HTTP response"))
                    });
                }
                timer.as_mut().reset(at);
            }
        })
        .await
    }

    /// Moves the request's body. Pending when it is through: what comes then is the response.
    fn poll_up(&mut self, cx: &mut Context<'_>, moved: &mut usize) -> Poll<Result<(), Error>> {
        loop {
            if self.refused {
                return Poll::Pending;
            }
            if self.far.wants_flush() {
                match self.far.poll_flush(cx) {
                    Poll::Pending => {
                        self.near.rest();
                        return Poll::Pending;
                    }
                    // A server that has answered and left does not want the rest; its answer is what counts.
                    Poll::Ready(Err(_)) => {
                        self.far.discard();
                        self.refused = true;
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(())) => {}
                }
            }
            let over = self.request.is_over();
            let have = self.near.payload();
            if !over && !have.is_empty() {
                let n = self.request.advance(have)?;
                self.far.seal(&have[..n])?;
                self.near.consume(n);
                self.user.received(n);
                self.user.count(Way::Up, n);
                *moved += n;
                continue;
            }
            if self.near.wants_open() {
                self.near.open()?;
                continue;
            }
            if self.near.has_ended() {
                if over {
                    return Poll::Pending;
                }
                return Poll::Ready(Err(Error::Closed));
            }
            // Of what follows the request one buffer may wait; it is read to see whether the client is still there.
            if over && !self.near.payload().is_empty() {
                return Poll::Pending;
            }
            ready!(self.near.poll_fill_for(cx, &self.user, &mut self.passes[0]))?;
        }
    }

    /// Moves the response. Ready when it is through and written.
    fn poll_down(&mut self, cx: &mut Context<'_>, moved: &mut usize) -> Poll<Result<(), Error>> {
        loop {
            if self.near.wants_flush() && self.near.poll_flush(cx)?.is_pending() {
                self.far.rest();
                return Poll::Pending;
            }
            let have = self.far.payload();
            match &mut self.response {
                None if !have.is_empty() => {
                    if let Step::Done { value, used } = decode_response(have, self.forward)? {
                        self.far.consume(used);
                        *moved += used;
                        if value.interim {
                            self.interim += 1;
                            if self.interim > MAX_INTERIM {
                                return Poll::Ready(Err(Error::protocol(
                                    "HTTP",
                                    "responses of the class 1xx without end",
                                )));
                            }
                            // HTTP/1.0 has no such thing (RFC 9110 section 15.2).
                            if self.forward.minor > 0 {
                                self.near.seal(&value.head)?;
                            }
                        } else {
                            self.near.seal(&value.head)?;
                            self.keep_alive = value.keep_alive;
                            self.response = Some(value.body);
                        }
                        continue;
                    }
                }
                Some(body) if body.is_over() => return Poll::Ready(Ok(())),
                Some(body) if !have.is_empty() => {
                    let n = body.advance(have)?;
                    self.near.seal(&have[..n])?;
                    self.far.consume(n);
                    self.user.sent(n);
                    self.user.count(Way::Down, n);
                    *moved += n;
                    continue;
                }
                _ => {}
            }
            if self.far.wants_open() {
                self.far.open()?;
                continue;
            }
            if self.far.has_ended() {
                return Poll::Ready(match &self.response {
                    Some(body) if body.is_until_close() => Ok(()),
                    _ => Err(Error::Closed),
                });
            }
            ready!(self.far.poll_fill_for(cx, &self.user, &mut self.passes[1]))?;
        }
    }
}
