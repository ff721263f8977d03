//! A server's connection of HTTP/1.1.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sealway_v2ray::http::body::Body;
use sealway_v2ray::http::head::{RequestHead, parse_request};
use sealway_v2ray::xhttp::serve::{Answered, client_address};
use sealway_v2ray::xhttp::{Ask, Incoming, Refusal, judge};
use sealway_v2ray::{Protocol, Step};
use tokio::time::timeout;

use super::super::answer::{Answer, Length};
use super::super::half::{Half, Whole};
use super::super::http1::{Http1, To};
use super::super::session::Failure;
use super::down::Down;
use super::{Like, Shared};
use crate::error::{Error, Pending};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::{Accepted, Many};

/// Time for the first head of a connection.
const HEAD: Duration = Duration::from_secs(4);
/// A connection without requests is closed after this time.
const IDLE: Duration = Duration::from_secs(300);

/// Time for a client to take the head of an answer.
const TAKEN: Duration = Duration::from_secs(10);

/// A connection of HTTP/1.1.
pub(super) struct One {
    shared: Arc<Shared>,
    /// `None`: it has become a stream, or has ended.
    half: Option<Box<Http1>>,
    like: Like,
    /// Time for the next head.
    time: Duration,
}

/// What a head of HTTP/1.1 says.
struct Judged {
    ask: Result<Ask, Refusal>,
    body: Body,
    /// The last request of its connection.
    last: bool,
    old: bool,
    /// The client waits for leave to send the body.
    expects: bool,
    client: Option<IpAddr>,
    other: Answer,
    down: Answer,
    up: Answer,
}

/// Sends the head of an answer to a client who takes it.
async fn send(one: &mut Http1, head: &[u8]) -> Result<(), Error> {
    let sent = timeout(TAKEN, one.stream.send(head)).await;
    sent.unwrap_or(Err(Error::TimedOut("taking the head of an answer")))
}

impl Shared {
    fn judge(&self, head: &RequestHead<'_>) -> Result<Judged, Error> {
        let request = Incoming {
            method: head.method,
            target: head.target,
            host: head.headers.get("host").unwrap_or_default(),
            headers: head.headers.iter().collect(),
        };
        let asked = judge(&self.settings.http, &request);
        let old = head.minor == 0;
        Ok(Judged {
            body: Body::of_request(head)?,
            last: old || head.headers.has_word("connection", "close"),
            old,
            expects: !old && head.headers.has_word("expect", "100-continue"),
            client: client_address(&request, &self.settings.trusted_forwarded_for),
            other: self.answer(
                Some(&request),
                asked.as_ref().map_or_else(|r| r.status, |_| 200),
                Answered::Other,
            )?,
            down: self.answer(Some(&request), 200, Answered::Down)?,
            up: self.answer(Some(&request), 200, Answered::Up)?,
            ask: asked,
        })
    }
}

impl One {
    pub(super) fn new(shared: Arc<Shared>, stream: Stream, like: Like) -> Self {
        One {
            shared,
            half: Some(Box::new(Http1::server(stream))),
            like,
            time: HEAD,
        }
    }

    /// The next request, or `None` at the end of the connection. What is none is answered.
    async fn head(&mut self, one: &mut Http1) -> Result<Option<Judged>, Error> {
        let limit = self.shared.settings.http.max_header_bytes as usize;
        let shared = &self.shared;
        let reading = one
            .stream
            .read(|bytes| match parse_request(bytes, limit, Protocol::Xhttp)? {
                Step::More(n) => Ok(Step::More(n)),
                Step::Done { value, used } => shared.judge(&value).map(|value| Step::Done { value, used }),
            });
        let read = match timeout(self.time, reading).await {
            Ok(read) => read,
            Err(_) if self.time == IDLE => return Ok(None),
            Err(_) => Err(Error::TimedOut("the head of a request")),
        };
        let first = std::mem::replace(&mut self.time, IDLE) == HEAD;
        match read {
            Ok(judged) => Ok(Some(judged)),
            Err(Error::Closed) if !first => Ok(None),
            Err(Error::Wire(error)) => {
                let status = match error {
                    sealway_v2ray::Error::TooLong { .. } => 431,
                    _ => 400,
                };
                let answer = self.shared.answer(None, status, Answered::Other)?;
                one.stream.leave(&answer.head(Length::Last)).await;
                Err(Error::Wire(error))
            }
            Err(error) => Err(error),
        }
    }

    /// Serves requests up to one that becomes a stream.
    async fn serve(&mut self) -> Result<Option<Accepted>, Error> {
        let Some(mut one) = self.half.take() else {
            return Ok(None);
        };
        loop {
            // Answers that wait leave before the next head is waited for.
            poll_fn(|cx| {
                let _ = one.poll_flush(cx);
                Poll::Ready(())
            })
            .await;
            let Some(mut judged) = self.head(&mut one).await? else {
                return Ok(None);
            };
            let (length, to) = match judged.old {
                true => (Length::Close, To::Close),
                false => (Length::Chunks, To::Chunks),
            };
            let table = &self.shared.table;
            one.expect(judged.body);
            if judged.expects && !matches!(judged.ask, Err(_) | Ok(Ask::Options)) {
                send(&mut one, b"HTTP/1.1 100 Continue\r\n\r\n").await?;
            }
            let failure = match judged.ask {
                Ok(Ask::Options) => None,
                Ok(Ask::One) => {
                    one.begin(to);
                    send(&mut one, &judged.down.head(length)).await?;
                    let whole = Whole::new(Half::One(one), ());
                    let stream = Stream::new(Box::new(whole), Traffic::default());
                    return Ok(Some((self.like)(stream, judged.client)));
                }
                Ok(Ask::Down { session }) => match table.down(&session) {
                    Ok(session) => {
                        one.begin(to);
                        send(&mut one, &judged.down.head(length)).await?;
                        let stream = Down::stream(session, Half::One(one));
                        return Ok(Some((self.like)(stream, judged.client)));
                    }
                    Err(failure) => Some(failure),
                },
                Ok(Ask::Up { session, padded }) => match table.up(&session) {
                    Ok(session) => {
                        one.begin(to);
                        if let Err(error) = send(&mut one, &judged.up.head(length)).await {
                            session.end(io::ErrorKind::ConnectionReset);
                            return Err(error);
                        }
                        self.shared.up(&session, Half::One(one), padded).await;
                        return Ok(None);
                    }
                    Err(failure) => Some(failure),
                },
                Ok(Ask::Post(post)) => {
                    let mut half = Half::One(one);
                    let posted = self.shared.post(post, &mut half).await;
                    let Half::One(back) = half else { return Ok(None) };
                    one = back;
                    match posted {
                        Ok(()) => None,
                        Err(Failure::Gone) => return Ok(None),
                        Err(failure) => Some(failure),
                    }
                }
                Err(refusal) => {
                    let head = judged.other.head(Length::Last);
                    one.stream.leave(&head).await;
                    return Err(Error::protocol("XHTTP", refusal.problem));
                }
            };
            if let Some(failure) = failure {
                judged.other.status = failure.status();
            }
            // What of a body was not read would be taken for the next request.
            if judged.last || !one.is_over() {
                one.stream.leave(&judged.other.head(Length::Last)).await;
                return Ok(None);
            }
            one.answer(&judged.other.head(Length::Zero)).await?;
        }
    }
}

impl Many for One {
    fn next(&mut self) -> Pending<'_, Option<Accepted>> {
        Box::pin(self.serve())
    }
}
