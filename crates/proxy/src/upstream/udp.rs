//! Questions in datagrams.
//!
//! Whoever wants to pass off an answer of his own must know the port, the id and the case of the letters: each question has
//! a port to itself while it is open, and ports are given up after a few. What comes from elsewhere is not looked at; what
//! comes from the server's address and answers something else is counted, and when there is much of it, the question goes out
//! over a stream.

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use sealway_v2ray::Destination;
use tokio::time::{Instant, timeout};

use super::Way;
use super::stream::Streams;
use crate::dial::OwnSocket;
use crate::dns::Exchange;
use crate::dns::message::{Answer, Form, Question, Reply};
use crate::error::Pending;
use crate::roads;
use crate::udp::{PacketEnd, Slot};
use crate::{Error, random};

/// Ports that are kept for the next questions.
pub(super) const MAX_PORTS: usize = 16;
/// Questions that go out of one port, one after another.
pub(super) const MAX_USES: u8 = 16;
/// How long a port is kept.
const MAX_AGE: Duration = Duration::from_secs(10);
/// How long an answer is waited for before the question is sent again; then twice as long.
const AGAIN: Duration = Duration::from_secs(1);
/// Wrong answers to one question, after which it goes out over a stream.
pub(super) const MAX_WRONG: usize = 100;
/// Ways to put one question, of which each is tried for what the answer to another one shows.
const MAX_FORMS: usize = 4;

/// Where datagrams go out and come in.
pub(super) enum Line {
    /// Straight; the system sees to it that they come from the server.
    Socket(OwnSocket),
    /// By the routing.
    Packets(Box<dyn PacketEnd>, Destination),
}

impl Line {
    async fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Line::Socket(socket) => Ok(socket.send(bytes).await.map(|_| ())?),
            Line::Packets(packets, to) => {
                poll_fn(|cx| packets.poll_send(cx, bytes, to)).await?;
                poll_fn(|cx| match packets.poll_flush(cx) {
                    Poll::Ready(flushed) => Poll::Ready(flushed),
                    // It is tried again with every look for an answer.
                    Poll::Pending => Poll::Ready(Ok(())),
                })
                .await
            }
        }
    }

    /// Receives a datagram. `false`: it does not come from the server.
    async fn receive(&mut self, into: &mut Vec<u8>) -> Result<bool, Error> {
        into.clear();
        match self {
            Line::Socket(socket) => {
                into.reserve(usize::from(u16::MAX));
                socket.recv_buf(into).await?;
                Ok(true)
            }
            Line::Packets(packets, to) => {
                let mut slot = Slot::default();
                let more = poll_fn(|cx| {
                    if let Poll::Ready(Err(error)) = packets.poll_flush(cx) {
                        return Poll::Ready(Err(error));
                    }
                    packets.poll_recv(cx, &mut slot)
                });
                if !more.await? {
                    return Err(Error::Closed);
                }
                let Some((from, bytes)) = slot.datagram() else {
                    return Ok(false);
                };
                into.extend_from_slice(bytes);
                Ok(is_from(&from, to))
            }
        }
    }
}

/// Whether a datagram comes from the server. The address of a server with a name is known only to who resolves it.
fn is_from(from: &Destination, server: &Destination) -> bool {
    let ip = |of: &Destination| of.address.ip().map(|ip| ip.to_canonical());
    let same = |one: Option<IpAddr>, other: Option<IpAddr>| one.is_none() || other.is_none() || one == other;
    from.port == server.port && same(ip(from), ip(server))
}

/// A port for one question at a time.
struct Port {
    line: Line,
    since: Instant,
    uses: u8,
}

/// A server that is asked by datagrams.
pub(super) struct Udp {
    /// For answers that do not fit, and for when somebody guesses.
    streams: Arc<Streams>,
    ports: Mutex<Vec<Port>>,
    /// It does not repeat the case of letters.
    loses_case: AtomicBool,
}

impl Udp {
    pub(super) fn new(way: Way) -> Udp {
        Udp {
            streams: Arc::new(Streams::new(way)),
            ports: Mutex::default(),
            loses_case: AtomicBool::new(false),
        }
    }

    fn ports(&self) -> MutexGuard<'_, Vec<Port>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of the ports that are kept, or a new one.
    async fn port(&self) -> Result<Port, Error> {
        let pick = usize::from(u16::from_be_bytes(random::bytes()?));
        let kept = {
            let mut ports = self.ports();
            let now = Instant::now();
            ports.retain(|port| now < port.since + MAX_AGE);
            // With few of them it would be known where the next question comes from.
            let at = pick % MAX_PORTS;
            (at < ports.len()).then(|| ports.swap_remove(at))
        };
        match kept {
            Some(port) => Ok(port),
            None => Ok(Port {
                line: self.streams.way.line().await?,
                since: Instant::now(),
                uses: 0,
            }),
        }
    }

    fn keep(&self, mut port: Port) {
        port.uses += 1;
        let mut ports = self.ports();
        if port.uses < MAX_USES && ports.len() < MAX_PORTS {
            ports.push(port);
        }
    }

    async fn exchange(&self, question: &Question) -> Result<Answer, Error> {
        let mut form = Form::default();
        let mut guessed = false;
        for _ in 0..MAX_FORMS {
            form.id = u16::from_be_bytes(random::bytes()?);
            form.case = match self.loses_case.load(Ordering::Relaxed) {
                true => 0,
                false => u64::from_be_bytes(random::bytes()?),
            };
            match self.once(question, form, guessed).await? {
                Reply::Answer(answer) => return Ok(answer),
                Reply::OtherCase => self.loses_case.store(true, Ordering::Relaxed),
                Reply::TooNew => form.plain = true,
                Reply::Truncated => return self.streams.exchange(question).await,
                Reply::Refused(_) => return Err(Error::protocol("DNS", "the server has no answer")),
                // A server that only knows datagrams is still asked by them: its answer may yet come.
                Reply::Foreign => match self.streams.exchange(question).await {
                    Ok(answer) => return Ok(answer),
                    Err(_) => guessed = true,
                },
            }
        }
        Err(Error::protocol("DNS", "no form of the question suits the server"))
    }

    /// Asks in one form. [`Reply::Foreign`]: somebody guesses, unless that is known.
    async fn once(&self, question: &Question, form: Form, guessed: bool) -> Result<Reply, Error> {
        let bytes = question.encode(form).ok_or(Error::protocol("DNS", "no such name"))?;
        let mut port = self.port().await?;
        let mut answer = Vec::new();
        let (mut pause, mut wrong) = (AGAIN, 0);
        loop {
            port.line.send(&bytes).await?;
            let again = Instant::now() + pause;
            pause *= 2;
            while let Ok(received) = timeout(again - Instant::now().min(again), port.line.receive(&mut answer)).await {
                if !received? {
                    continue;
                }
                match question.read(form, &answer) {
                    Reply::Foreign => wrong += 1,
                    reply => {
                        self.keep(port);
                        return Ok(reply);
                    }
                }
                if wrong >= MAX_WRONG && !guessed {
                    return Ok(Reply::Foreign);
                }
            }
        }
    }
}

impl Exchange for Udp {
    fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
        Box::pin(roads::inherit(async move { self.exchange(&question).await }))
    }
}
