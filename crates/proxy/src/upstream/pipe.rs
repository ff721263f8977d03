//! One line with many questions on it, told apart by their ids.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use sealway_v2ray::Destination;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use crate::dns::message::{Form, Question, Reply};
use crate::stream::Stream;
use crate::stream::adapter::Io;
use crate::udp::{PacketEnd, Slot};
use crate::{Error, random};

/// How long a line is kept for the next question.
const MAX_AGE: Duration = Duration::from_secs(10);
/// A line on which nothing has come for this long, while something is asked, may be held up by one question.
const SLOW: Duration = Duration::from_millis(500);
/// Whoever gives a question up after this long, or longer, while nothing at all has come, gives the line up.
const DOUBT: Duration = Duration::from_secs(1);
/// Messages that answer nothing, besides as many as there were questions. With more a line is given up.
pub(super) const MAX_WRONG: usize = 100;
/// Questions that are written at once, and datagrams that are read, before others get their turn.
const MAX_BATCH: usize = 64;

/// A line.
pub(super) struct Pipe {
    shared: Arc<Shared>,
    send: mpsc::UnboundedSender<Vec<u8>>,
}

/// What a line has to do.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Load {
    /// Nothing comes, although something is asked.
    pub(super) is_slow: bool,
    /// Questions without an answer.
    pub(super) open: usize,
}

struct Open {
    question: Question,
    form: Form,
    number: usize,
    answer: oneshot::Sender<Reply>,
}

struct State {
    open: HashMap<u16, Open>,
    /// Questions that it may yet be asked.
    left: usize,
    asked: usize,
    /// The number of the last one.
    number: usize,
    answered: usize,
    wrong: usize,
    /// When an answer came last, or a question after which it had one to wait for again.
    heard: Instant,
    over: bool,
    /// The other end has ended it, with several questions open.
    cut: bool,
}

struct Shared {
    state: Mutex<State>,
    /// Nobody but the server can answer.
    is_stream: bool,
    /// Wakes who moves the line when it is over.
    ended: Notify,
    /// Wakes who waits for it to be over.
    freed: Arc<Notify>,
}

/// What a message was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Took {
    Answer,
    Wrong,
    /// Too many have been wrong.
    Enough,
}

/// A question that somebody waits for.
struct Seat<'a> {
    shared: &'a Shared,
    id: u16,
    number: usize,
    since: Instant,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if state.open.get(&self.id).is_none_or(|open| open.number != self.number) {
            return;
        }
        state.open.remove(&self.id);
        let silent = state.heard <= self.since && self.since.elapsed() >= DOUBT;
        if silent || state.left == 0 && state.open.is_empty() {
            state.over = true;
            self.shared.ended.notify_one();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message to who waits for it.
    fn take(&self, bytes: &[u8]) -> Took {
        let mut state = self.state();
        let id = bytes.get(..2).map(|id| u16::from_be_bytes([id[0], id[1]]));
        let reply = id.and_then(|id| {
            let open = state.open.get(&id)?;
            let reply = open.question.read(open.form, bytes);
            // Of datagrams somebody may have guessed the id; in a stream it is the answer, such as it is.
            (self.is_stream || reply != Reply::Foreign).then_some((id, reply))
        });
        let Some((open, reply)) = reply.and_then(|(id, reply)| Some((state.open.remove(&id)?, reply))) else {
            state.wrong += 1;
            if state.wrong < MAX_WRONG + state.asked {
                return Took::Wrong;
            }
            state.over = true;
            for (_, open) in state.open.drain() {
                // Nobody may wait any more.
                let _ = open.answer.send(Reply::Foreign);
            }
            return Took::Enough;
        };
        state.answered += 1;
        state.heard = Instant::now();
        let _ = open.answer.send(reply);
        if state.left == 0 && state.open.is_empty() {
            state.over = true;
            self.ended.notify_one();
        }
        Took::Answer
    }

    /// Waits until the line is over, or nobody has used it for long.
    async fn idle(&self) {
        loop {
            let until = {
                let mut state = self.state();
                let since = if state.open.is_empty() {
                    state.heard
                } else {
                    Instant::now()
                };
                state.over |= since.elapsed() >= MAX_AGE;
                if state.over {
                    return;
                }
                since + MAX_AGE
            };
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.ended.notified() => {}
            }
        }
    }

    /// It is over. Whoever waits learns it.
    fn end(&self, by_peer: bool) {
        let mut state = self.state();
        state.over = true;
        state.cut = by_peer && state.open.len() > 1;
        state.open.clear();
        self.freed.notify_one();
    }
}

impl Pipe {
    /// A line that takes `most` questions, and one that is being asked.
    fn new(is_stream: bool, most: usize, freed: &Arc<Notify>) -> (Pipe, Arc<Shared>, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (send, questions) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                open: HashMap::new(),
                left: most.saturating_sub(1),
                asked: 1,
                number: 0,
                answered: 0,
                wrong: 0,
                heard: Instant::now(),
                over: false,
                cut: false,
            }),
            is_stream,
            ended: Notify::new(),
            freed: Arc::clone(freed),
        });
        let pipe = Pipe {
            shared: Arc::clone(&shared),
            send,
        };
        (pipe, shared, questions)
    }

    /// A line that is a stream, with two bytes for the length before each message (RFC 7766 section 8).
    pub(super) fn of_stream(stream: Stream, most: usize, freed: &Arc<Notify>) -> Pipe {
        let (pipe, shared, mut questions) = Pipe::new(true, most, freed);
        tokio::spawn(async move {
            let (mut read, mut write) = tokio::io::split(Io(stream));
            let reading = async {
                loop {
                    let mut answer = vec![0; read.read_u16().await?.into()];
                    read.read_exact(&mut answer).await?;
                    if shared.take(&answer) == Took::Enough {
                        return Ok::<(), io::Error>(());
                    }
                }
            };
            let writing = async {
                let mut batch = Vec::new();
                while questions.recv_many(&mut batch, MAX_BATCH).await > 0 {
                    let mut bytes = Vec::new();
                    for question in batch.drain(..) {
                        // No question is as long as 64 KiB.
                        bytes.extend_from_slice(&(question.len() as u16).to_be_bytes());
                        bytes.extend_from_slice(&question);
                    }
                    write.write_all(&bytes).await?;
                    write.flush().await?;
                }
                Ok::<(), io::Error>(())
            };
            let by_peer = tokio::select! {
                ended = reading => ended.is_err(),
                ended = writing => ended.is_err(),
                () = shared.idle() => false,
            };
            shared.end(by_peer);
        });
        pipe
    }

    /// A line of datagrams to the server.
    pub(super) fn of_packets(
        mut packets: Box<dyn PacketEnd>,
        to: Destination,
        most: usize,
        freed: &Arc<Notify>,
    ) -> Pipe {
        let (pipe, shared, mut questions) = Pipe::new(false, most, freed);
        tokio::spawn(async move {
            let (mut next, mut slot, mut from) = (None, Slot::default(), None);
            let moving = poll_fn(|cx| {
                let sent = poll_questions(cx, &mut *packets, &to, &mut questions, &mut next);
                if sent.is_ready() {
                    return sent;
                }
                poll_answers(cx, &mut *packets, &to, &mut slot, &mut from, &shared)
            });
            tokio::select! {
                ended = moving => if let Err(error) = ended {
                    tracing::debug!("questions to {to}: {error}");
                },
                () = shared.idle() => {}
            }
            shared.end(false);
        });
        pipe
    }

    /// Takes the place of one more question, if there is one.
    pub(super) fn reserve(&self) -> bool {
        let mut state = self.shared.state();
        let has = !state.over && state.left > 0;
        if has {
            state.left -= 1;
            state.asked += 1;
        }
        has
    }

    /// What it has to do. `None`: it takes no more questions.
    pub(super) fn load(&self) -> Option<Load> {
        let state = self.shared.state();
        (!state.over && state.left > 0).then(|| Load {
            is_slow: !state.open.is_empty() && state.heard.elapsed() >= SLOW,
            open: state.open.len(),
        })
    }

    /// Whether there is nothing to come of it.
    pub(super) fn is_over(&self) -> bool {
        self.shared.state().over
    }

    /// Questions that it has answered.
    pub(super) fn answered(&self) -> usize {
        self.shared.state().answered
    }

    /// Whether the other end has ended it while it was asked several things.
    pub(super) fn was_cut(&self) -> bool {
        self.shared.state().cut
    }

    /// Asks in the place that was reserved. The id is drawn here. `again`: after this long without an answer it is sent again, then
    /// after twice as long.
    ///
    /// # Errors
    /// [`Error::Closed`] if the line ends before there is an answer.
    pub(super) async fn ask(
        &self,
        question: &Question,
        mut form: Form,
        again: Option<Duration>,
    ) -> Result<Reply, Error> {
        let (answer, mut coming) = oneshot::channel();
        let (bytes, _seat) = {
            let mut state = self.shared.state();
            if state.over {
                return Err(Error::Closed);
            }
            form.id = loop {
                let id = u16::from_be_bytes(random::bytes()?);
                if !state.open.contains_key(&id) {
                    break id;
                }
            };
            let bytes = question.encode(form).ok_or(Error::protocol("DNS", "no such name"))?;
            state.number += 1;
            let (number, since) = (state.number, Instant::now());
            if state.open.is_empty() {
                state.heard = since;
            }
            let open = Open {
                question: question.clone(),
                form,
                number,
                answer,
            };
            state.open.insert(form.id, open);
            let seat = Seat {
                shared: &self.shared,
                id: form.id,
                number,
                since,
            };
            (bytes, seat)
        };
        let Some(mut pause) = again else {
            self.send.send(bytes).map_err(|_| Error::Closed)?;
            return coming.await.map_err(|_| Error::Closed);
        };
        loop {
            self.send.send(bytes.clone()).map_err(|_| Error::Closed)?;
            if let Ok(answer) = timeout(pause, &mut coming).await {
                return answer.map_err(|_| Error::Closed);
            }
            pause *= 2;
        }
    }
}

fn poll_questions(
    cx: &mut Context<'_>,
    packets: &mut dyn PacketEnd,
    to: &Destination,
    questions: &mut mpsc::UnboundedReceiver<Vec<u8>>,
    next: &mut Option<Vec<u8>>,
) -> Poll<Result<(), Error>> {
    for _ in 0..MAX_BATCH {
        if next.is_none() {
            match questions.poll_recv(cx) {
                Poll::Ready(Some(question)) => *next = Some(question),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => return poll_flush(cx, packets),
            }
        }
        let Some(question) = next else { break };
        match packets.poll_send(cx, question, to) {
            Poll::Ready(Ok(())) => *next = None,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return poll_flush(cx, packets),
        }
    }
    cx.waker().wake_by_ref();
    poll_flush(cx, packets)
}

fn poll_flush(cx: &mut Context<'_>, packets: &mut dyn PacketEnd) -> Poll<Result<(), Error>> {
    match packets.poll_flush(cx) {
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        _ => Poll::Pending,
    }
}

fn poll_answers(
    cx: &mut Context<'_>,
    packets: &mut dyn PacketEnd,
    to: &Destination,
    slot: &mut Slot,
    known: &mut Option<IpAddr>,
    shared: &Shared,
) -> Poll<Result<(), Error>> {
    for _ in 0..MAX_BATCH {
        match packets.poll_recv(cx, slot) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Ready(Ok(false)) => return Poll::Ready(Err(Error::Closed)),
            Poll::Ready(Ok(true)) => {}
        }
        if let Some((from, bytes)) = slot.datagram()
            && is_from(packets, &from, to, *known)
        {
            match shared.take(bytes) {
                Took::Answer => *known = from.address.ip().or(*known),
                Took::Wrong => {}
                Took::Enough => return Poll::Ready(Ok(())),
            }
        }
        slot.clear();
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Whether a datagram comes from the server. The address of a server with a name is known to who resolves it: where that is not
/// said, the first that had a right answer keeps being asked. `known`: its address.
fn is_from(packets: &dyn PacketEnd, from: &Destination, server: &Destination, known: Option<IpAddr>) -> bool {
    if from.address == server.address || from.port != server.port {
        return from.port == server.port;
    }
    let ip = |of: &Destination| of.address.ip().map(|ip| ip.to_canonical());
    let (ip_from, ip_server) = (ip(from), ip(server));
    match (ip_from, ip_server.or(known.map(|ip| ip.to_canonical()))) {
        (Some(one), Some(other)) => one == other,
        _ => packets.is_address_of(from, server).unwrap_or(true),
    }
}
