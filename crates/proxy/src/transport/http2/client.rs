//! A client's connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};
use http::Request;
use tokio::time::{Instant, Sleep, sleep_until};

use super::body::{Body, Head, Trailers};
use super::tally::{Lease, Tally};
use super::wire::Wire;
use super::{FRAMES_BUDGET, IDLE, MAX_FRAME, MAX_UNSEEN_RESETS, Options, SEND_BUFFER, failure, io_error};
use crate::Error;
use crate::stream::Stream;

/// Most servers close connections that ping them more often than this while nothing else happens; three times are forgiven.
const RARE_PINGS: Duration = Duration::from_secs(300);

/// As [`RARE_PINGS`], while there is no stream.
const RAREST_PINGS: Duration = Duration::from_secs(7200);

/// A server that says nothing at all for this long after a stream was opened may have gone: it is pinged, and new streams are
/// opened elsewhere until something comes.
const DOUBT: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pings {
    /// After this much silence. `None`: never.
    pub(crate) idle: Option<Duration>,
    /// Time for the answer. Without one the connection is closed.
    pub(crate) answer: Duration,
    /// Also while there are no streams.
    pub(crate) without_streams: bool,
}

/// What the driver and those who open streams share.
struct Shared {
    tally: Arc<Tally>,
    /// Opens streams. When it is gone, and the last stream has ended, the connection is closed.
    send: Mutex<Option<SendRequest<Bytes>>>,
    /// Streams opened so far.
    opened: AtomicUsize,
    /// The server may have gone; see [`DOUBT`].
    doubted: AtomicBool,
}

impl Shared {
    fn send(&self) -> MutexGuard<'_, Option<SendRequest<Bytes>>> {
        self.send.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on no stream can be opened.
    fn end(&self) {
        let send = self.send().take();
        drop(send);
        self.tally.wake();
    }
}

/// A client's connection. When it is dropped, and the last stream has ended, the connection is closed.
pub(crate) struct Client {
    shared: Arc<Shared>,
}

impl Client {
    /// Shakes hands, and spawns the task that drives the connection.
    pub(crate) async fn open(stream: Stream, options: Options, pings: Pings) -> Result<Client, Error> {
        let wire = Wire::new(stream);
        wire.trust();
        let mut builder = Builder::new();
        builder
            .initial_window_size(options.window)
            .initial_connection_window_size(options.connection_window())
            .max_header_list_size(options.max_headers)
            .max_frame_size(MAX_FRAME)
            .max_send_buffer_size(SEND_BUFFER)
            .max_concurrent_reset_streams(MAX_UNSEEN_RESETS)
            .data_frame_budget(FRAMES_BUDGET)
            .enable_push(false);
        let mut handshake = Box::pin(builder.handshake(wire.clone()));
        let (send, connection) = poll_fn(|cx| match wire.turn(cx, |cx| handshake.as_mut().poll(cx)) {
            Ok(polled) => polled.map_err(failure),
            Err(error) => Poll::Ready(Err(error)),
        })
        .await?;
        let shared = Arc::new(Shared {
            tally: Arc::default(),
            send: Mutex::new(Some(send)),
            opened: AtomicUsize::new(0),
            doubted: AtomicBool::new(false),
        });
        let driver = Driver::new(connection, wire, Arc::clone(&shared), pings);
        tokio::spawn(driver.run());
        Ok(Client { shared })
    }

    /// Whether one more stream can be opened now, and the server is likely there.
    pub(crate) fn has_room(&self) -> bool {
        if self.shared.doubted.load(Ordering::Acquire) {
            return false;
        }
        let most = self
            .shared
            .send()
            .as_ref()
            .map_or(0, SendRequest::current_max_send_streams);
        self.shared.tally.live() < most
    }

    /// Streams that are open.
    pub(crate) fn streams(&self) -> usize {
        self.shared.tally.live()
    }

    /// Whether no stream can be opened any more: the server said so, the connection broke, or nobody has used it for long.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.send().is_none()
    }

    /// Opens a stream. `head` is shown the head of the response before the first bytes are read, `check` what stands behind the
    /// last ones.
    ///
    /// # Errors
    /// [`Error::Io`] if the connection takes no more streams; another one may.
    pub(crate) async fn request(
        &self,
        request: Request<()>,
        head: Head,
        check: Option<Trailers>,
    ) -> Result<Body, Error> {
        let lease = Lease::new(&self.shared.tally);
        let send = self.shared.send().clone();
        let Some(mut send) = send else {
            return Err(Error::Io(io::ErrorKind::ConnectionAborted.into()));
        };
        let opened = async {
            poll_fn(|cx| send.poll_ready(cx)).await?;
            self.shared.opened.fetch_add(1, Ordering::AcqRel);
            send.send_request(request, false)
        };
        match opened.await {
            Ok((response, to)) => Ok(Body::ask(response, to, head, check, lease)),
            Err(error) => {
                self.shared.end();
                Err(Error::Io(io_error(error)))
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// What moves a connection.
struct Driver {
    connection: Connection<Wire, Bytes>,
    wire: Wire,
    shared: Arc<Shared>,
    pings: Pings,
    pinger: Option<PingPong>,
    /// A ping waits for its answer until then.
    asked: Option<Instant>,
    /// The last ping, and how much had been received by then.
    last: Option<(Instant, u64)>,
    /// Bytes received, and when that was noticed.
    heard: (u64, Instant),
    /// Streams that have been noticed, and when the first was opened after which nothing has come.
    noticed: usize,
    unanswered: Option<Instant>,
    idle_since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Driver {
    fn new(mut connection: Connection<Wire, Bytes>, wire: Wire, shared: Arc<Shared>, pings: Pings) -> Self {
        let now = Instant::now();
        Driver {
            pinger: connection.ping_pong(),
            connection,
            wire,
            shared,
            pings,
            asked: None,
            last: None,
            heard: (0, now),
            noticed: 0,
            unanswered: None,
            idle_since: now,
            timer: Box::pin(sleep_until(now)),
        }
    }

    /// Drives the connection to its end.
    async fn run(mut self) {
        let ended = poll_fn(|cx| self.poll(cx)).await;
        self.shared.end();
        if let Err(error) = ended {
            tracing::debug!("an HTTP/2 connection ended: {error}");
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.shared.tally.watch(cx.waker());
        let Driver { connection, wire, .. } = self;
        match wire.turn(cx, |cx| Pin::new(connection).poll(cx)) {
            Err(error) => return Poll::Ready(Err(error)),
            Ok(Poll::Ready(ended)) => return Poll::Ready(ended.map_err(failure)),
            Ok(Poll::Pending) => {}
        }
        let now = Instant::now();
        let received = self.wire.received();
        let opened = self.shared.opened.load(Ordering::Acquire);
        if received != self.heard.0 {
            self.heard = (received, now);
            self.unanswered = None;
            self.shared.doubted.store(false, Ordering::Release);
        } else if opened != self.noticed {
            self.unanswered.get_or_insert(now);
        }
        self.noticed = opened;
        if let Some(pinger) = &mut self.pinger
            && self.asked.is_some()
            && pinger.poll_pong(cx).is_ready()
        {
            self.asked = None;
        }
        loop {
            let wake = match self.look(now) {
                Ok(wake) => wake,
                Err(error) => {
                    self.wire.reset_on_close();
                    return Poll::Ready(Err(error));
                }
            };
            if self.timer.deadline() != wake {
                self.timer.as_mut().reset(wake);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if wake > now {
                // It became time while we looked.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    /// Does what it is time for. Returns when to look again, which is later than `now`.
    fn look(&mut self, now: Instant) -> Result<Instant, Error> {
        let streams = self.shared.tally.live();
        if streams > 0 {
            self.idle_since = now;
        }
        let mut wake = self.idle_since + IDLE;
        if wake <= now {
            self.shared.end();
            wake = now + IDLE;
        }
        if let Some(since) = self.unanswered {
            if since + DOUBT <= now {
                self.unanswered = None;
                self.shared.doubted.store(true, Ordering::Release);
                self.ping_in_doubt(now);
            } else {
                wake = wake.min(since + DOUBT);
            }
        }
        if let Some(until) = self.asked {
            return match until <= now {
                true => Err(Error::TimedOut("the answer to an HTTP/2 ping")),
                false => Ok(wake.min(until)),
            };
        }
        let Some(idle) = self.pings.idle.filter(|_| streams > 0 || self.pings.without_streams) else {
            return Ok(wake);
        };
        let (received, at) = self.heard;
        let mut due = at + idle;
        if let Some((last, before)) = self.last {
            let apart = match (streams, received > before + PING_ANSWER) {
                (0, _) => RAREST_PINGS,
                (_, false) => RARE_PINGS,
                (_, true) => Duration::ZERO,
            };
            due = due.max(last + apart);
        }
        if due > now {
            return Ok(wake.min(due));
        }
        match self.ping(now) {
            true => Ok(wake.min(now + self.pings.answer)),
            false => Ok(wake.min(now + idle)),
        }
    }

    fn ping(&mut self, now: Instant) -> bool {
        let pinger = self.pinger.as_mut();
        let sent = pinger.is_some_and(|pinger| pinger.send_ping(Ping::opaque()).is_ok());
        if sent {
            self.asked = Some(now + self.pings.answer);
            self.last = Some((now, self.heard.0));
        }
        sent
    }

    /// Pings, unless that would be more often than servers forgive.
    fn ping_in_doubt(&mut self, now: Instant) {
        let rare = self
            .last
            .is_none_or(|(last, before)| self.heard.0 > before + PING_ANSWER || last + RARE_PINGS <= now);
        if self.asked.is_none() && rare {
            self.ping(now);
        }
    }
}

/// Bytes that the answer to a ping has.
const PING_ANSWER: u64 = 17;
