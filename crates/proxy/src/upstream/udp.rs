//! Questions in datagrams.
//!
//! Whoever wants to pass off an answer of his own must know the port, the id and the case of the letters: each question has
//! a port to itself while it is open, and ports are given up after a few. What comes from elsewhere is not looked at; what
//! comes from the server's address and answers something else is counted, and when there is much of it, the question goes out
//! over a stream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::Way;
use super::pipe::MAX_WRONG;
use super::pipes::{Kind, Pipes};
use super::stream::Streams;
use crate::dial::OwnSocket;
use crate::dns::Exchange;
use crate::dns::message::{Answer, Form, Question, Reply};
use crate::error::Pending;
use crate::{Error, random, roads};

/// Ports that are kept for the next questions.
pub(super) const MAX_PORTS: usize = 16;
/// Questions that go out of one port, one after another.
pub(super) const MAX_USES: u8 = 16;
/// How long a port is kept.
const MAX_AGE: Duration = Duration::from_secs(10);
/// How long an answer is waited for before the question is sent again; then twice as long.
const AGAIN: Duration = Duration::from_secs(1);
/// Wrong answers to one question of few letters, after which it goes out over a stream; with more letters it is [`MAX_WRONG`].
pub(super) const MAX_WRONG_SHORT: usize = 10;
/// Letters whose case cannot be guessed in as many tries.
const FEW_LETTERS: usize = 8;
/// Questions that have a port each at a time.
pub(super) const MAX_OPEN: usize = 512;
/// How long a server is asked with small letters once it has shown that it does not repeat their case.
const CASE_LOST: Duration = Duration::from_secs(3600);
/// How long a stream may take to show whether it repeats the case.
const JUDGED: Duration = Duration::from_secs(1);
/// Ways to put one question, of which each is tried for what the answer to another one shows.
const MAX_FORMS: usize = 4;

/// A port for one question at a time.
struct Port {
    socket: OwnSocket,
    since: Instant,
    uses: u8,
}

/// A server that is asked by datagrams.
pub(super) struct Udp {
    way: Arc<Way>,
    /// For answers that do not fit, and for when somebody guesses.
    streams: Arc<Streams>,
    /// For questions by the routing: the port is chosen where they leave it.
    lines: Pipes,
    ports: Mutex<Vec<Port>>,
    room: Semaphore,
    /// Until when it is taken to write letters as it likes.
    loses_case: Mutex<Option<Instant>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Udp {
    pub(super) fn new(way: Arc<Way>) -> Udp {
        Udp {
            streams: Arc::new(Streams::new(Arc::clone(&way))),
            lines: Pipes::new(Arc::clone(&way), Kind::Packets),
            way,
            ports: Mutex::default(),
            room: Semaphore::new(MAX_OPEN),
            loses_case: Mutex::default(),
        }
    }

    /// One of the ports that are kept, or a new one.
    async fn port(&self) -> Result<Port, Error> {
        let pick = usize::from(u16::from_be_bytes(random::bytes()?));
        let kept = {
            let mut ports = lock(&self.ports);
            let now = Instant::now();
            ports.retain(|port| now < port.since + MAX_AGE);
            // With few of them it would be known where the next question comes from.
            let at = pick % MAX_PORTS;
            (at < ports.len()).then(|| ports.swap_remove(at))
        };
        match kept {
            Some(port) => Ok(port),
            None => self.new_port().await,
        }
    }

    async fn new_port(&self) -> Result<Port, Error> {
        Ok(Port {
            socket: self.way.socket().await?,
            since: Instant::now(),
            uses: 0,
        })
    }

    fn keep(&self, mut port: Port) {
        port.uses += 1;
        let mut ports = lock(&self.ports);
        if port.uses < MAX_USES && ports.len() < MAX_PORTS {
            ports.push(port);
        }
    }

    async fn exchange(&self, question: &Question) -> Result<Answer, Error> {
        let mut form = Form::default();
        let mut guessed = false;
        for _ in 0..MAX_FORMS {
            let loses_case = *lock(&self.loses_case);
            form.case = match loses_case.is_some_and(|until| Instant::now() < until) {
                true => 0,
                false => u64::from_be_bytes(random::bytes()?),
            };
            let reply = match self.way.inbound {
                Some(_) => self.lines.ask(question, form, Some(AGAIN)).await?,
                None => self.once(question, form, guessed).await?,
            };
            match reply {
                Reply::Answer(answer) => return Ok(answer),
                // Somebody may have guessed all but the letters.
                Reply::OtherCase => match timeout(JUDGED, self.streams.once(question, form)).await {
                    Ok(Ok(Reply::Answer(answer))) => return Ok(answer),
                    _ => *lock(&self.loses_case) = Some(Instant::now() + CASE_LOST),
                },
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

    /// Asks in one form from a port of its own. [`Reply::Foreign`]: somebody guesses, unless that is known.
    async fn once(&self, question: &Question, mut form: Form, guessed: bool) -> Result<Reply, Error> {
        // What is needed for an answer that others wait for must not wait for them.
        let _room = match roads::is_needed() {
            true => None,
            false => self.room.acquire().await.ok(),
        };
        form.id = u16::from_be_bytes(random::bytes()?);
        let bytes = question.encode(form).ok_or(Error::protocol("DNS", "no such name"))?;
        let most = match question.letters() {
            _ if guessed => usize::MAX,
            0..FEW_LETTERS => MAX_WRONG_SHORT,
            _ => MAX_WRONG,
        };
        let mut port = self.port().await?;
        let mut reply = converse(&port.socket, &bytes, most, |answer| question.read(form, answer)).await;
        if reply.is_err() && port.uses > 0 {
            // What went wrong may have done so for the question before.
            port = self.new_port().await?;
            reply = converse(&port.socket, &bytes, most, |answer| question.read(form, answer)).await;
        }
        let reply = reply?;
        if reply != Reply::Foreign {
            self.keep(port);
        }
        Ok(reply)
    }
}

/// Sends a question, again and again, until something answers it, or `most` messages have come that do not.
async fn converse(
    socket: &OwnSocket,
    question: &[u8],
    most: usize,
    read: impl Fn(&[u8]) -> Reply,
) -> Result<Reply, Error> {
    let mut answer = Vec::new();
    let (mut pause, mut wrong) = (AGAIN, 0);
    loop {
        socket.send(question).await?;
        let again = Instant::now() + pause;
        pause *= 2;
        loop {
            answer.clear();
            answer.reserve(usize::from(u16::MAX));
            // The system sees to it that it comes from the server.
            let left = again - Instant::now().min(again);
            let Ok(received) = timeout(left, socket.recv_buf(&mut answer)).await else {
                break;
            };
            received?;
            match read(&answer) {
                Reply::Foreign => wrong += 1,
                reply => return Ok(reply),
            }
            if wrong >= most {
                return Ok(Reply::Foreign);
            }
        }
    }
}

impl Exchange for Udp {
    fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
        Box::pin(roads::inherit(async move { self.exchange(&question).await }))
    }
}
