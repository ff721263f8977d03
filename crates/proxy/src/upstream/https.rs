//! Questions in requests of HTTP/2 (RFC 8484).

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use tokio::time::Instant;

use super::Way;
use crate::Error;
use crate::carrier::Virtual;
use crate::dns::Exchange;
use crate::dns::message::{Answer, Form, Question, Reply};
use crate::error::Pending;
use crate::roads;
use crate::transport::http2::{Client, Options, Pings};

const MESSAGE: HeaderValue = HeaderValue::from_static("application/dns-message");
/// Longest answer, bytes.
const MAX_ANSWER: usize = 65_535;

/// A server that is asked by requests.
pub(super) struct Https {
    way: Arc<Way>,
    path: String,
    client: Mutex<Option<Arc<Client>>>,
    /// Held by who connects for everybody. What is itself needed to connect to some server never waits for it.
    connects: tokio::sync::Mutex<()>,
    /// Requests that were given up, one after another, with no answer to any in between.
    unheard: AtomicU32,
}

/// Requests given up after which a connection is: without an answer nobody knows whether there is a server at its end.
const MAX_UNHEARD: u32 = 2;
/// Whoever gives up earlier shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A request on its way.
struct Unheard<'a> {
    https: &'a Https,
    client: &'a Arc<Client>,
    since: Instant,
    answered: bool,
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        if self.answered {
            self.https.unheard.store(0, Ordering::Relaxed);
        } else if self.since.elapsed() >= PATIENCE
            && self.https.unheard.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_UNHEARD
        {
            self.https.forget(self.client);
        }
    }
}

impl Https {
    pub(super) fn new(way: Arc<Way>, path: String) -> Https {
        Https {
            way,
            path,
            client: Mutex::default(),
            connects: tokio::sync::Mutex::default(),
            unheard: AtomicU32::new(0),
        }
    }

    /// Asks no more on this connection.
    fn forget(&self, client: &Arc<Client>) {
        let mut kept = self.kept();
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, client)) {
            *kept = None;
        }
        self.unheard.store(0, Ordering::Relaxed);
    }

    fn kept(&self) -> MutexGuard<'_, Option<Arc<Client>>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usable(&self) -> Option<Arc<Client>> {
        let kept = self.kept();
        kept.as_ref()
            .filter(|client| !client.is_over() && client.has_room())
            .cloned()
    }

    /// The connection, and whether it is a new one. Who comes while it is being made waits for it, but for those that are
    /// needed to connect: they might be waited for themselves.
    async fn client(&self) -> Result<(Arc<Client>, bool), Error> {
        if let Some(client) = self.usable() {
            return Ok((client, false));
        }
        let _turn = match roads::is_needed() {
            true => None,
            false => Some(self.connects.lock().await),
        };
        if let Some(client) = self.usable() {
            return Ok((client, false));
        }
        let pings = Pings {
            idle: None,
            answer: Duration::from_secs(5),
            without_streams: false,
        };
        let client = Arc::new(Client::open(self.way.stream().await?, Options::default(), pings).await?);
        *self.kept() = Some(Arc::clone(&client));
        Ok((client, true))
    }

    fn request(&self, len: usize) -> Result<Request<()>, Error> {
        let (scheme, usual) = match self.way.tls {
            Some(_) => ("https", 443),
            None => ("http", 80),
        };
        let to = &self.way.to;
        let host = match to.address.ip() {
            Some(std::net::IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => to.address.to_string(),
        };
        let port = if to.port == usual {
            String::new()
        } else {
            format!(":{}", to.port)
        };
        Request::post(format!("{scheme}://{host}{port}{}", self.path))
            .header(ACCEPT, MESSAGE)
            .header(CONTENT_TYPE, MESSAGE)
            .header(CONTENT_LENGTH, len)
            .body(())
            .map_err(|_| Error::protocol("DNS over HTTPS", "no request can be made of the address"))
    }

    async fn exchange(&self, question: &Question) -> Result<Answer, Error> {
        // Requests tell answers apart, so the id can be the same for all and an answer of the cache in between fits (RFC 8484
        // section 4.1).
        let mut form = Form {
            padded: self.way.tls.is_some(),
            ..Form::default()
        };
        loop {
            let bytes = question.encode(form).ok_or(Error::protocol("DNS", "no such name"))?;
            match question.read(form, &self.post(&bytes).await?) {
                Reply::Answer(answer) => return Ok(answer),
                Reply::TooNew if !form.plain => form.plain = true,
                Reply::Refused(_) => return Err(Error::protocol("DNS", "the server has no answer")),
                _ => return Err(Error::protocol("DNS", "an answer to something else")),
            }
        }
    }

    /// Asks by one request; where a connection that was kept has ended meanwhile, by another one.
    async fn post(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let (client, new) = self.client().await?;
        match self.ask_on(&client, bytes).await {
            // Whatever else fails would fail again.
            Err(Error::Io(error)) if !new && is_broken(&error) => {}
            answer => return answer,
        }
        self.forget(&client);
        let (client, _) = self.client().await?;
        self.ask_on(&client, bytes).await
    }

    async fn ask_on(&self, client: &Arc<Client>, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let request = self.request(bytes.len())?;
        let mut unheard = Unheard {
            https: self,
            client,
            since: Instant::now(),
            answered: false,
        };
        let answer = self.ask_by(client, request, bytes).await;
        unheard.answered = true;
        answer
    }

    async fn ask_by(&self, client: &Client, request: Request<()>, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let mut body = client.request(request, Box::new(check_head), None).await?;
        let mut sent = 0;
        while sent < bytes.len() {
            sent += poll_fn(|cx| body.poll_write(cx, &bytes[sent..])).await?;
        }
        poll_fn(|cx| body.poll_shutdown(cx)).await?;
        let (mut answer, mut part) = (Vec::new(), [0; 2048]);
        loop {
            match poll_fn(|cx| body.poll_read(cx, &mut part)).await? {
                0 => return Ok(answer),
                n if answer.len() + n > MAX_ANSWER => {
                    return Err(Error::protocol("DNS over HTTPS", "an answer that is too long"));
                }
                n => answer.extend_from_slice(&part[..n]),
            }
        }
    }
}

/// Whether the connection has failed, or the request on it, and not what the server says.
fn is_broken(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, UnexpectedEof};
    let kind = error.kind();
    matches!(
        kind,
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut | UnexpectedEof
    )
}

fn check_head(head: &Response<()>) -> io::Result<()> {
    let kind = head.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    // Parameters may stand behind it.
    let kind = kind.and_then(|kind| kind.split(|byte| *byte == b';').next());
    let is_message = kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(MESSAGE.as_bytes()));
    if head.status() != StatusCode::OK || !is_message {
        let what = format!(
            "the server answers with HTTP status {} and no DNS",
            head.status().as_u16()
        );
        return Err(io::Error::other(what));
    }
    Ok(())
}

impl Exchange for Https {
    fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
        Box::pin(roads::inherit(async move { self.exchange(&question).await }))
    }
}
