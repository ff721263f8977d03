//! A server's connection.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use tokio::time::{Instant, Sleep, sleep_until};

use super::body::Body;
use super::tally::{Heads, Lease, Tally};
use super::wire::Wire;
use super::{
    FRAMES_BUDGET, IDLE, MAX_FRAME, MAX_STREAMS, MAX_UNSEEN_RESETS, Options, SEND_BUFFER, STRANGERS, STRANGERS_AGE,
    STRANGERS_IDLE, STRANGERS_WINDOW, failure,
};
use crate::Error;
use crate::stream::Stream;

/// A request, and the way to answer it.
pub(crate) struct Exchange {
    /// Its head.
    pub(crate) request: Parts,
    from: RecvStream,
    respond: SendResponse<Bytes>,
    lease: Lease,
}

impl Exchange {
    /// Answers with a body, behind which `trailers` stand. The head leaves with the first bytes, or with
    /// [`Body::begin`].
    pub(crate) fn accept(self, head: Response<()>, trailers: Option<HeaderMap>) -> Body {
        Body::answer(self.from, self.respond, head, trailers, self.lease)
    }

    /// Answers with a head alone.
    pub(crate) fn refuse(mut self, head: Response<()>) {
        if self.lease.is_known() {
            self.lease.strike();
        }
        // The client may have gone.
        let _ = self.respond.send_response(head, true);
    }
}

/// Bytes that the head of a request takes, about.
fn head_len(request: &Parts) -> usize {
    let headers = request.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| 128 + name.as_str().len() + value.len())
        .sum();
    512 + headers + request.uri.path().len()
}

/// A server's connection.
pub(crate) struct Server {
    connection: Connection<Wire, Bytes>,
    wire: Wire,
    tally: Arc<Tally>,
    options: Options,
    /// Requests that are not served yet, each with what it holds of `heads`.
    waiting: VecDeque<(Exchange, usize)>,
    heads: Heads,
    /// The peer has shown who it is, and the windows have been made larger: of the connection, of its streams.
    grown: (bool, bool),
    ended: bool,
    /// We have said good-bye.
    leaving: bool,
    /// New streams are refused.
    closed: bool,
    /// When the last stream ended, and the time that is allowed from then on.
    idle: Pin<Box<Sleep>>,
    /// The time that is allowed to those who do not show who they are.
    age: Option<Pin<Box<Sleep>>>,
    busy: bool,
}

impl Server {
    /// Shakes hands and waits for the first request. The caller sets the deadline.
    pub(crate) async fn begin(stream: Stream, options: Options) -> Result<Server, Error> {
        let wire = Wire::new(stream);
        let mut builder = Builder::new();
        builder
            .initial_window_size(STRANGERS_WINDOW)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(options.max_headers)
            .max_frame_size(MAX_FRAME)
            .max_send_buffer_size(SEND_BUFFER)
            .max_pending_accept_reset_streams(MAX_UNSEEN_RESETS)
            .max_concurrent_reset_streams(MAX_UNSEEN_RESETS)
            .data_frame_budget(FRAMES_BUDGET);
        let mut handshake = Box::pin(builder.handshake(wire.clone()));
        let begun = poll_fn(|cx| match wire.turn(cx, |cx| handshake.as_mut().poll(cx)) {
            Ok(polled) => polled.map_err(failure),
            Err(error) => Poll::Ready(Err(error)),
        })
        .await;
        drop(handshake);
        let connection = match begun {
            Ok(connection) => connection,
            Err(error) => {
                wire.leave().await;
                return Err(error);
            }
        };
        let mut server = Server {
            connection,
            wire,
            tally: Arc::default(),
            options,
            waiting: VecDeque::new(),
            heads: Heads::default(),
            grown: (false, false),
            ended: false,
            leaving: false,
            closed: false,
            idle: Box::pin(sleep_until(Instant::now() + STRANGERS_IDLE)),
            age: Some(Box::pin(sleep_until(Instant::now() + STRANGERS_AGE))),
            busy: false,
        };
        poll_fn(|cx| match server.poll_drive(cx) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(()) if server.ended || !server.waiting.is_empty() => Poll::Ready(Ok(())),
            Ok(()) => Poll::Pending,
        })
        .await?;
        Ok(server)
    }

    /// The next request. `None`: there will be none, and all streams have ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Exchange>, Error> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// See [`Server::next`].
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Exchange>, Error>> {
        self.poll_drive(cx)?;
        let open = self.tally.is_trusted();
        // Those that wait are among the strange.
        let served = self.tally.strange().saturating_sub(self.waiting.len());
        if (open || served < STRANGERS)
            && let Some((next, held)) = self.waiting.pop_front()
        {
            self.heads.give_back(held);
            return Poll::Ready(Ok(Some(next)));
        }
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        Poll::Pending
    }

    /// Moves what can be moved.
    fn poll_drive(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        self.tally.watch(cx.waker());
        if self.tally.is_trusted() {
            self.grow();
        }
        while !self.ended {
            if self.tally.is_abused() {
                self.calm();
            }
            let Server { connection, wire, .. } = self;
            match wire.turn(cx, |cx| connection.poll_accept(cx)) {
                Ok(Poll::Ready(Some(Ok((request, respond))))) => self.take_in(request, respond),
                Ok(Poll::Ready(Some(Err(error)))) => self.end(Some(failure(error)))?,
                Ok(Poll::Ready(None)) => self.end(None)?,
                Ok(Poll::Pending) => break,
                Err(error) => self.end(Some(error))?,
            }
        }
        self.watch_idle(cx)
    }

    /// Ends the connection of a stranger who costs too much at once. One that carries somebody we know may carry others too (that
    /// of a server in front): it takes no new streams, and ends with those it has.
    fn calm(&mut self) {
        if !self.tally.is_trusted() {
            self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        } else if !self.closed {
            self.closed = true;
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.leaving = true;
        self.connection.graceful_shutdown();
    }

    /// The connection has ended. What strangers did wrong is an error; how somebody we know leaves is not.
    fn end(&mut self, error: Option<Error>) -> Result<(), Error> {
        self.ended = true;
        self.waiting.clear();
        let known = self.tally.is_trusted() || self.leaving;
        let error = match self.tally.is_abused() {
            true => Some(Error::protocol("HTTP/2", "streams taken back, one after the other")),
            false => error,
        };
        match error {
            Some(error) if known => tracing::debug!("an HTTP/2 connection ended: {error}"),
            Some(error) => return Err(error),
            None => {}
        }
        Ok(())
    }

    /// Lets a request wait for its turn, or refuses it.
    fn take_in(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let lease = match self.closed {
            true => None,
            false => Lease::of_stranger(&self.tally),
        };
        let (request, from) = request.into_parts();
        // What comes on a connection of somebody we know waits for nothing.
        let head = match self.tally.is_trusted() {
            true => 0,
            false => head_len(&request),
        };
        match lease {
            Some(lease) if self.heads.take(head) => {
                let exchange = Exchange {
                    request,
                    from,
                    respond,
                    lease,
                };
                self.waiting.push_back((exchange, head));
            }
            // It is safe to ask again after this.
            lease => {
                if let Some(mut lease) = lease {
                    lease.turn_away();
                }
                respond.send_reset(Reason::REFUSED_STREAM);
            }
        }
    }

    /// Says good-bye when there has been no stream for [`IDLE`], or [`STRANGERS_IDLE`]. Who does not answer that is left.
    fn watch_idle(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        let known = self.tally.is_trusted();
        let age = self.age.as_mut().filter(|_| !known);
        if age.is_some_and(|age| age.as_mut().poll(cx).is_ready()) {
            self.age = None;
            self.closed = true;
            // Those that are served have deadlines of their own.
            self.waiting.clear();
            self.heads = Heads::default();
            self.leave();
            cx.waker().wake_by_ref();
        }
        let busy = self.tally.live() > 0;
        let allowed = match known && !self.leaving {
            true => IDLE,
            false => STRANGERS_IDLE,
        };
        if self.busy && !busy {
            self.idle.as_mut().reset(Instant::now() + allowed);
        }
        self.busy = busy;
        if !busy && !self.ended && self.idle.as_mut().poll(cx).is_ready() {
            if self.leaving {
                return self.end(None);
            }
            self.idle.as_mut().reset(Instant::now() + STRANGERS_IDLE);
            self.leave();
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    /// Makes the windows those of somebody we know.
    fn grow(&mut self) {
        if !self.grown.0 {
            self.grown.0 = true;
            self.age = None;
            self.wire.trust();
            self.connection.set_target_window_size(self.options.connection_window());
        }
        if !self.grown.1 {
            // It fails until the client has confirmed our first settings; whatever it says next brings us here again.
            self.grown.1 = self.connection.set_initial_window_size(self.options.window).is_ok();
        }
    }
}
