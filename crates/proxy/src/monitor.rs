//! What a running server tells whoever watches it, over HTTP: `/metrics`, `/debug/vars`, `/healthz` and `/readyz`.
//!
//! It only tells: nothing can be changed here. Whoever asks is a stranger as far as limits go: few at a time, little to say,
//! little time.

#[cfg(test)]
mod pages;
mod places;
mod process;
mod series;
mod state;
mod table;
mod text;
mod vars;
mod view;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use crate::clock::unix_time;
use crate::engine::Engine;
use crate::listen::Bound;
use crate::settings;
use crate::stats::Stats;

use places::Places;
use process::Process;
pub(crate) use state::State;
use view::View;

/// Longest request, bytes.
const MAX_REQUEST: usize = 16 << 10;
/// Most headers of a request.
const MAX_HEADERS: usize = 64;
/// How long a request and its answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the request may take of it.
const HEAD: Duration = Duration::from_secs(5);

/// What is told of one server.
pub(crate) struct Monitor {
    /// Whether new connections are welcome.
    pub(crate) state: State,
    stats: Arc<Stats>,
    /// The running configuration.
    engine: OnceLock<Arc<Engine>>,
    began: i64,
    users: bool,
    places: Arc<Places>,
    /// Answers that take work are made one at a time.
    work: Arc<Semaphore>,
}

/// Who is asking, as far as that decides whether they are answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    /// At an address of this machine alone, or by an inbound.
    Inside,
    /// By an address of loopback.
    Loopback,
    /// At an address that others reach.
    Open,
}

impl Monitor {
    /// Of a server that starts.
    pub(crate) fn new(stats: &Arc<Stats>, settings: Option<&settings::Metrics>) -> Arc<Monitor> {
        let monitor = Arc::new(Monitor {
            state: State::default(),
            stats: Arc::clone(stats),
            engine: OnceLock::new(),
            began: unix_time(),
            users: settings.is_some_and(|metrics| metrics.users),
            places: Arc::default(),
            work: Arc::new(Semaphore::new(1)),
        });
        if let Some(metrics) = settings {
            stats.meters().answer(monitor.service(&metrics.tag));
        }
        monitor
    }

    /// The server runs, and this is what it does.
    pub(crate) fn serve(&self, engine: &Arc<Engine>) {
        // There is one.
        let _ = self.engine.set(Arc::clone(engine));
        self.state.serve();
    }

    /// Whether new connections are welcome, and the word for it.
    fn readiness(&self) -> (bool, &'static str) {
        let listens = self.engine.get().is_some_and(|engine| engine.listens());
        match self.state.is_ready() {
            true if !listens => (false, "listening nowhere"),
            ready => (ready, self.state.word()),
        }
    }

    /// Answers whoever comes to a socket, for as long as the future is polled.
    pub(crate) async fn listen(self: Arc<Self>, socket: Bound) {
        match socket {
            Bound::Tcp(listener) => {
                let local = listener.local_addr().ok().map(|address: SocketAddr| address.ip());
                let way = match local.is_some_and(|ip: IpAddr| ip.to_canonical().is_loopback()) {
                    true => Way::Loopback,
                    false => Way::Open,
                };
                let next = async || listener.accept().await;
                sealway_net::listen::accept(next, |(tcp, from)| self.begin(tcp, (way, Some(from.ip())))).await;
            }
            Bound::Unix(listener, _file) => {
                let next = async || listener.accept().await.map(|(unix, _)| unix);
                sealway_net::listen::accept(next, |unix| self.begin(unix, (Way::Inside, None))).await;
            }
            Bound::Udp(_) => {}
        }
    }

    /// The service behind the tag of the settings. What it is part of, the monitor knows: so it does not keep that.
    fn service(self: &Arc<Self>, tag: &str) -> settings::Service {
        let monitor = Arc::downgrade(self);
        settings::Service {
            tag: tag.to_owned(),
            connect: Arc::new(move |unix| {
                if let Some(monitor) = monitor.upgrade() {
                    monitor.begin(unix, (Way::Inside, None));
                }
            }),
        }
    }

    /// Answers one connection in a task of its own, if there is room.
    fn begin(
        self: &Arc<Self>,
        io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        (way, from): (Way, Option<IpAddr>),
    ) {
        // Those of this machine have nothing by which to be told apart.
        let from = from.filter(|_| way == Way::Open);
        let Some(place) = self.places.enter(from) else { return };
        let monitor = Arc::clone(self);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let monitor = Arc::clone(&monitor);
                async move { Ok::<_, Infallible>(monitor.answer(&request, way).await) }
            });
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(MAX_REQUEST)
                .max_headers(MAX_HEADERS)
                .keep_alive(false)
                .serve_connection(TokioIo::new(io), answer);
            // Whoever leaves early, or says what is no HTTP, has harmed nobody.
            let _ = tokio::time::timeout(PATIENCE, serving).await;
            drop(place);
        });
    }

    async fn answer(self: &Arc<Self>, request: &Request<Incoming>, way: Way) -> Response<String> {
        if way == Way::Loopback && !names_this_machine(request.headers().get(HOST)) {
            return plain(StatusCode::FORBIDDEN, "ask by address or as localhost");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
            refused
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match request.uri().path() {
            "/healthz" => plain(StatusCode::OK, "alive"),
            "/readyz" => {
                let (ready, word) = self.readiness();
                let status = match ready {
                    true => StatusCode::OK,
                    false => StatusCode::SERVICE_UNAVAILABLE,
                };
                plain(status, word)
            }
            "/metrics" => self.worked(text::TYPE, Monitor::metrics).await,
            "/debug/vars" => self.worked("application/json; charset=utf-8", Monitor::vars).await,
            _ => plain(
                StatusCode::NOT_FOUND,
                "there are /metrics, /debug/vars, /healthz and /readyz",
            ),
        }
    }

    /// An answer that may take its time.
    async fn worked(self: &Arc<Self>, kind: &'static str, write: fn(&Monitor) -> Option<String>) -> Response<String> {
        let Ok(turn) = Arc::clone(&self.work).acquire_owned().await else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "ending");
        };
        let monitor = Arc::clone(self);
        // The work goes on when whoever asked has left, and so does the turn.
        let working = move || {
            let _turn = turn;
            write(&monitor)
        };
        match tokio::task::spawn_blocking(working).await {
            Ok(Some(text)) => typed(StatusCode::OK, kind, text),
            _ => plain(StatusCode::SERVICE_UNAVAILABLE, "starting"),
        }
    }

    /// All numbers, as OpenMetrics text. `None`: there is no configuration yet.
    fn metrics(&self) -> Option<String> {
        let engine = self.engine.get()?;
        let view = View::of(&self.stats, engine, self.readiness().0, (self.began, self.users));
        Some(text::write(&view))
    }

    /// The numbers that panels read.
    fn vars(&self) -> Option<String> {
        Some(vars::write(&self.stats, &Process::read()))
    }
}

/// True if a request is for this machine by its own name. A page that a browser shows can have it ask addresses of its own
/// machine, but only by the name of the page (DNS rebinding).
fn names_this_machine(host: Option<&HeaderValue>) -> bool {
    let Some(host) = host else { return true };
    let Ok(host) = host.to_str() else { return false };
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => bare,
        _ => host,
    };
    let ip = bare
        .strip_prefix('[')
        .and_then(|bare| bare.strip_suffix(']'))
        .unwrap_or(bare);
    bare.eq_ignore_ascii_case("localhost") || ip.parse::<IpAddr>().is_ok()
}

fn plain(status: StatusCode, text: &str) -> Response<String> {
    typed(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

fn typed(status: StatusCode, kind: &'static str, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
