//! The way of a client's requests to a server: the connections that it keeps, and the requests on them.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use sealway_v2ray::xhttp::request::Length;
use sealway_v2ray::xhttp::settings::Settings;
use sealway_v2ray::xhttp::xmux::Budget;
use sealway_v2ray::xhttp::{Asked, Outgoing, request};
use sealway_v2ray::{Address, Protocol};
use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, timeout};

use super::answer::seed;
use super::half::Half;
use super::http1::{Http1, To};
use crate::carrier::Virtual;
use crate::error::Error;
use crate::random;
use crate::roads::Caller;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::http2::{self, Client, Options, Pings};
use crate::transport::{Line, Remote};

/// Time between pings of HTTP/2, unless the settings say otherwise.
const KEEP_ALIVE: Duration = Duration::from_secs(45);
/// Longest such time: no connection is older.
const MAX_KEEP_ALIVE: Duration = Duration::from_secs(365 * 86400);
/// Time for the answer to one.
const PING_ANSWER: Duration = Duration::from_secs(20);
/// Time for a new connection, with its handshakes.
const CONNECT: Duration = Duration::from_secs(20);
/// A connection of HTTP/1.1 is kept for the next numbered request for this long.
const KEPT: Duration = Duration::from_secs(60);
/// Connections of HTTP/1.1 that are kept.
const MAX_KEPT: usize = 64;

/// Where requests go, and how.
pub(super) struct Way {
    pub(super) settings: Arc<Settings>,
    http2: bool,
    begun: Instant,
    members: Turn<Vec<Member>>,
    kept: Mutex<Vec<Kept>>,
}

/// A connection of HTTP/2, and what it may still be used for.
struct Member {
    server: (Address, u16),
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    client: Client,
    budget: Mutex<Budget>,
    /// As many hold it as there are streams, and one more.
    users: Arc<()>,
}

/// A stream's share of a connection.
#[derive(Clone)]
pub(super) struct Share {
    shared: Arc<Shared>,
    _user: Arc<()>,
}

/// A connection of HTTP/1.1 without a request.
struct Kept {
    server: (Address, u16),
    http1: Box<Http1>,
    budget: Budget,
    since: Instant,
}

/// A server, and the way there.
#[derive(Clone)]
pub(super) struct Toward {
    pub(super) way: Arc<Way>,
    pub(super) line: Arc<Line>,
    pub(super) remote: Remote,
    pub(super) traffic: Traffic,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn draws() -> Result<[u32; 4], Error> {
    let bytes: [u8; 16] = random::bytes()?;
    Ok(std::array::from_fn(|at| {
        u32::from_be_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
    }))
}

/// What a response must be.
fn check(response: &Response<()>) -> io::Result<()> {
    match response.status().as_u16() {
        200 => Ok(()),
        code => {
            let protocol = Protocol::Xhttp;
            Err(io::Error::other(Error::Wire(sealway_v2ray::Error::Refused {
                protocol,
                code,
            })))
        }
    }
}

impl Way {
    pub(super) fn new(settings: &Settings, http2: bool) -> Arc<Self> {
        Arc::new(Way {
            settings: Arc::new(settings.clone()),
            http2,
            begun: Instant::now(),
            members: Turn::default(),
            kept: Mutex::default(),
        })
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    fn pings(&self) -> Pings {
        let idle = match self.settings.xmux.keep_alive_secs {
            0 => Some(KEEP_ALIVE),
            secs => u64::try_from(secs)
                .ok()
                .map(|secs| Duration::from_secs(secs).min(MAX_KEEP_ALIVE)),
        };
        Pings {
            idle,
            answer: PING_ANSWER,
            without_streams: false,
        }
    }
}

impl Toward {
    /// A share of a connection for a new stream; `None` in HTTP/1.1, where each request has a connection.
    pub(super) async fn share(&self) -> Result<Option<Share>, Error> {
        if !self.way.http2 {
            return Ok(None);
        }
        let xmux = &self.way.settings.xmux;
        let now = self.way.now();
        let random = draws()?;
        let mut members = self.way.members.lock().await;
        members.retain(|member| !member.shared.client.is_over() && lock(&member.shared.budget).is_usable(now));
        let ours = || members.iter().filter(|member| member.server == self.remote.name);
        if !xmux.wants_more(ours().count(), random[0]) {
            let free: Vec<&Arc<Shared>> = ours()
                .map(|member| &member.shared)
                .filter(|shared| {
                    let open = Arc::strong_count(&shared.users) - 1;
                    lock(&shared.budget).has_room(now, open) && shared.client.has_room()
                })
                .collect();
            if !free.is_empty() {
                let chosen = free[((u64::from(random[1]) * free.len() as u64) >> 32) as usize];
                return Ok(Some(chosen.take()));
            }
        }
        let dialling = async {
            let stream = self.dial().await?;
            Client::open(stream, Options::default(), self.way.pings()).await
        };
        let dialled = timeout(CONNECT, dialling).await;
        let client = dialled.unwrap_or(Err(Error::TimedOut("connecting to the XHTTP server")))?;
        let shared = Arc::new(Shared {
            client,
            budget: Mutex::new(xmux.budget(now, draws()?)),
            users: Arc::new(()),
        });
        let share = shared.take();
        members.push(Member {
            server: self.remote.name.clone(),
            shared,
        });
        Ok(Some(share))
    }

    /// A connection, of which streams of several callers may have a share.
    async fn dial(&self) -> Result<Stream, Error> {
        let nobody = Caller::default();
        self.line.dial(&self.remote, self.traffic.clone(), &nobody).await
    }

    /// The host that requests name where the settings name none.
    fn host(&self) -> String {
        let host = self.line.host(&self.remote.name);
        let bare = host
            .strip_suffix(&format!(":{}", self.remote.name.1))
            .map(str::to_owned);
        bare.unwrap_or(host)
    }

    fn outgoing(&self, asked: &Asked<'_>) -> Result<Outgoing, Error> {
        let tls = self.line.has_tls();
        Ok(request(&self.way.settings, tls, &self.host(), asked, seed()?))
    }

    /// Asks for something whose body, either way, has no end yet.
    pub(super) async fn open(&self, share: Option<&Share>, asked: &Asked<'_>) -> Result<Half, Error> {
        let made = self.outgoing(asked)?;
        let down = matches!(asked, Asked::Down { .. });
        let Some(share) = share else {
            let mut stream = self.dial().await?;
            let (length, to) = match down {
                true => (Length::None, To::Done),
                false => (Length::Chunked, To::Chunks),
            };
            stream.send(&made.head(length)?).await?;
            stream.trust();
            return Ok(Half::One(Box::new(Http1::client(stream, "GET", to))));
        };
        let mut body = share.request(self.head(made)?).await?;
        if down {
            poll_fn(|cx| body.poll_shutdown(cx)).await?;
        }
        Ok(Half::Two(Box::new(body)))
    }

    fn head(&self, made: Outgoing) -> Result<Request<()>, Error> {
        let wrong = |error: http::Error| Error::config("streamSettings.xhttpSettings", format!("no request: {error}"));
        let uri = Uri::builder()
            .scheme(if self.line.has_tls() { "https" } else { "http" })
            .authority(made.host.as_str())
            .path_and_query(made.target.as_str())
            .build();
        let mut request = Request::builder().method(made.method.as_str()).uri(uri.map_err(wrong)?);
        for (name, value) in &made.headers {
            request = request.header(name, value);
        }
        request.body(()).map_err(wrong)
    }

    /// Sends a numbered request and waits for its answer.
    pub(super) async fn post(&self, share: Option<Share>, asked: &Asked<'_>, body: Bytes) -> Result<(), Error> {
        let made = self.outgoing(asked)?;
        let Some(share) = share else {
            return self.post_one(&made, &body).await;
        };
        let mut stream = share.request(self.head(made)?).await?;
        let mut rest = body;
        while !rest.is_empty() {
            let n = poll_fn(|cx| stream.poll_room(cx, rest.len())).await?;
            stream.send(rest.split_to(n.min(rest.len())))?;
        }
        poll_fn(|cx| stream.poll_shutdown(cx)).await?;
        let mut half = Half::Two(Box::new(stream));
        while poll_fn(|cx| half.poll_take(cx, 4096, |_| ())).await?.is_some() {}
        Ok(())
    }

    /// The same in HTTP/1.1, on a connection that was kept if there is one.
    async fn post_one(&self, made: &Outgoing, body: &[u8]) -> Result<(), Error> {
        let head = made.head(Length::Bytes(body.len()))?;
        while let Some(kept) = self.kept() {
            let Kept { mut http1, budget, .. } = kept;
            match exchange(&mut http1, &head, body).await {
                Ok(()) => {
                    self.keep(http1, budget);
                    return Ok(());
                }
                // The server may have closed it meanwhile, and has then not looked at the request.
                Err(Error::Io(error)) if is_stale(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let stream = self.dial().await?;
        let mut http1 = Box::new(Http1::client(stream, "POST", To::Done));
        exchange(&mut http1, &head, body).await?;
        let budget = self.way.settings.xmux.budget(self.way.now(), draws()?);
        self.keep(http1, budget);
        Ok(())
    }

    fn kept(&self) -> Option<Kept> {
        let mut kept = lock(&self.way.kept);
        kept.retain(|one| one.since.elapsed() < KEPT);
        let at = kept.iter().rposition(|one| one.server == self.remote.name)?;
        Some(kept.swap_remove(at))
    }

    fn keep(&self, http1: Box<Http1>, mut budget: Budget) {
        budget.take_request();
        let mut kept = lock(&self.way.kept);
        if http1.is_reusable() && budget.is_usable(self.way.now()) && kept.len() < MAX_KEPT {
            kept.push(Kept {
                server: self.remote.name.clone(),
                http1,
                budget,
                since: Instant::now(),
            });
        }
    }
}

fn is_stale(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    )
}

/// A request whose body is at hand, and its answer, which is looked at while the request is written.
async fn exchange(http1: &mut Http1, head: &[u8], body: &[u8]) -> Result<(), Error> {
    http1.ask("POST");
    http1.stream.seal(head)?;
    http1.stream.seal(body)?;
    http1.stream.flush().await?;
    while poll_fn(|cx| http1.poll_take(cx, 4096, |_| ())).await?.is_some() {}
    Ok(())
}

impl Shared {
    fn take(self: &Arc<Self>) -> Share {
        lock(&self.budget).take_stream();
        Share {
            _user: Arc::clone(&self.users),
            shared: Arc::clone(self),
        }
    }
}

impl Share {
    /// Whether its connection takes more requests.
    pub(super) fn is_usable(&self, to: &Toward) -> bool {
        !self.shared.client.is_over() && lock(&self.shared.budget).has_requests(to.way.now())
    }

    async fn request(&self, request: Request<()>) -> Result<http2::Body, Error> {
        lock(&self.shared.budget).take_request();
        self.shared.client.request(request, Box::new(check), None).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_between_pings_can_be_added_to_now() {
        for (secs, idle) in [(0, Some(KEEP_ALIVE)), (-1, None), (i64::MAX, Some(MAX_KEEP_ALIVE))] {
            let mut settings = Settings::default();
            settings.xmux.keep_alive_secs = secs;
            assert_eq!(Way::new(&settings, true).pings().idle, idle);
        }
        assert!(Instant::now().checked_add(MAX_KEEP_ALIVE).is_some());
    }
}
