//! A running server: a listener, connections, an end.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use sealway_drop::address::reachable;
use sealway_drop::cancel::Cancel;
use sealway_drop::places::{Limits, Place, Places};
use sealway_drop_transfer::dest::{self, Destination};
use sealway_net::listen;
use sealway_net::{Alive, Drain};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use crate::answer::{Client, Web, answer};
use crate::certificate::Certificate;
use crate::error::Error;
use crate::secret::Secret;
use crate::shared::Shared;
use crate::telling::Telling;
use crate::upload::Inbox;
use crate::wire::{Layer, Patient, Pieces, Wire};

/// How long a TLS handshake may take, and the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// The longest head.
const MAX_HEAD: usize = 32 << 10;
/// What is read at once.
const BUFFER: usize = 64 << 10;
/// Most headers of a request.
const MAX_HEADERS: usize = 64;
/// Connections.
const CONNECTIONS: Limits = Limits { all: 512, each: 64 };
/// Files that come at once.
const UPLOADS: Limits = Limits { all: 64, each: 16 };
/// Archives that are made at once.
const ARCHIVES: usize = 8;
/// How long downloads and uploads may go on after the end was asked for.
const GRACE: Duration = Duration::from_secs(10);
/// What is said to a client that speaks HTTP where TLS is spoken.
const NOT_TLS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 45\r\n\r\n\
    This is an https server: begin with https://\n";

/// What is served.
#[derive(Clone, Debug)]
pub enum What {
    /// Files to read.
    Share {
        /// A folder, or files and folders.
        paths: Vec<PathBuf>,
        /// Whether names that begin with a dot are seen.
        hidden: bool,
        /// Whether files may also be sent into it, which must be one folder.
        uploads: Option<Uploads>,
    },
    /// A folder into which files are sent, and in which nothing is seen.
    Receive {
        /// The folder.
        folder: PathBuf,
        /// Which files.
        uploads: Uploads,
    },
}

/// Which files are taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uploads {
    /// The largest.
    pub max_size: Option<u64>,
    /// Names may begin with a dot.
    pub hidden: bool,
    /// How they are written. Nobody can be asked: of [`dest::Conflict`] not `Ask`.
    pub dest: dest::Options,
}

/// How it is served.
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// What.
    pub what: What,
    /// TLS; without it everybody on the way reads along.
    pub certificate: Option<Certificate>,
    /// A PIN beside the link.
    pub pin: Option<Secret>,
    /// Names under which the server is asked, beside its addresses and `localhost`.
    pub names: Vec<String>,
}

/// A server that listens.
///
/// A connection holds one descriptor, and one for each file that is sent or comes on it; the program that runs it sees to it that
/// it may have as many (`ulimit -n`).
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    web: Arc<Web>,
}

impl Server {
    /// Opens what is served, and listens.
    ///
    /// # Errors
    /// What cannot be opened or listened at.
    pub fn bind(options: Options, telling: Arc<dyn Telling>) -> Result<Server, sealway_drop::Error> {
        let inbox = |folder: &PathBuf, uploads: &Uploads| -> Result<Arc<Inbox>, sealway_drop::Error> {
            Ok(Arc::new(Inbox {
                destination: Destination::open(folder, uploads.dest)?,
                max_size: uploads.max_size,
                hidden: uploads.hidden,
            }))
        };
        let (shared, inbox) = match &options.what {
            What::Share { paths, hidden, uploads } => {
                let shared = Shared::open(paths, *hidden)?;
                let inbox = match (uploads, paths.as_slice()) {
                    (None, _) => None,
                    (Some(uploads), [folder]) if !shared.is_list() => Some(inbox(folder, uploads)?),
                    _ => return Err(Error::NoFolder.into()),
                };
                (Some(Arc::new(shared)), inbox)
            }
            What::Receive { folder, uploads } => (None, Some(inbox(folder, uploads)?)),
        };
        let config = options.certificate.as_ref().map(Certificate::config).transpose()?;
        let failed = |source| Error::Listen {
            doing: format!("listening on {}", options.address),
            source,
        };
        let listener = listen::bind(options.address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut names = options.names;
        names.push("localhost".to_owned());
        Ok(Server {
            listener,
            address,
            tls: config,
            web: Arc::new(Web {
                shared,
                inbox,
                token: Secret::token().map_err(Error::Random)?,
                pin: options.pin,
                names,
                scheme: if options.certificate.is_some() { "https" } else { "http" },
                telling,
                guesses: Default::default(),
                archives: Arc::new(Semaphore::new(ARCHIVES)),
                uploads: Places::new(UPLOADS),
            }),
        })
    }

    /// Where it listens, with the port that the system chose for port 0.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The links that lead to it, the likely ones first: by the names that were given, then by the addresses of this machine. Whoever has
    /// one may read or send.
    pub fn links(&self) -> Vec<String> {
        let web = &self.web;
        let port = self.address.port();
        // The last name is `localhost`, which leads nobody here from elsewhere.
        let named = web.names.split_last().map_or(&[][..], |(_, named)| named);
        let named = named.iter().map(|name| format!("{name}:{port}"));
        // A link-local address is another one for each who asks, and browsers take none.
        let usable = |ip: IpAddr| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let addresses = reachable(self.address)
            .into_iter()
            .filter(|address| usable(address.ip()));
        let hosts = named.chain(addresses.map(|address| sealway_net::sock::unmapped(address).to_string()));
        let mut links: Vec<_> = hosts
            .map(|host| format!("{}://{host}/{}/", web.scheme, web.token.reveal()))
            .collect();
        if links.is_empty() {
            // A machine without a network.
            links.push(format!("{}://localhost:{port}/{}/", web.scheme, web.token.reveal()));
        }
        links
    }

    /// Serves until `cancel`, on threads of its own. Then nobody is accepted, and what is under way has 10 seconds.
    ///
    /// # Errors
    /// The system gives no threads or no timers.
    pub fn run(self, cancel: &Cancel) -> Result<(), sealway_drop::Error> {
        let failed = |source| Error::Listen {
            doing: "starting the server".to_owned(),
            source,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("sealway-web")
            .enable_all()
            .build()
            .map_err(failed)?;
        let told = Arc::new(Notify::new());
        let tell = Arc::clone(&told);
        let _watch = cancel.on_cancel(move || tell.notify_one());
        runtime.block_on(self.serve(told.notified()))
    }

    /// The same within a tokio runtime with I/O and timers, until `shutdown` is over.
    ///
    /// # Errors
    /// The runtime cannot watch the listener.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), sealway_drop::Error> {
        let failed = |source| Error::Listen {
            doing: "starting the server".to_owned(),
            source,
        };
        let listener = TcpListener::from_std(self.listener).map_err(failed)?;
        let (drain, alive) = Drain::new();
        let telling = Arc::clone(&self.web.telling);
        let (tls, web, places) = (self.tls, self.web, Places::new(CONNECTIONS));
        let accept = listen::accept(
            || listener.accept(),
            |(tcp, from): (TcpStream, SocketAddr)| {
                // Whoever has too many is let go without a word.
                if let Some(place) = places.take(from.ip()) {
                    let (tls, web, alive) = (tls.clone(), Arc::clone(&web), alive.clone());
                    tokio::spawn(async move {
                        let cut = alive.clone();
                        cut.run(connection(tcp, from.ip(), tls, web, alive, place)).await;
                    });
                }
            },
        );
        tokio::select! {
            biased;
            () = shutdown => {}
            () = accept => {}
        }
        drop((listener, alive));
        telling.stopping(GRACE.as_secs());
        drain.finish(GRACE).await;
        Ok(())
    }
}

async fn connection(
    tcp: TcpStream,
    from: IpAddr,
    tls: Option<Arc<ServerConfig>>,
    web: Arc<Web>,
    alive: Alive,
    _place: Place,
) {
    let _ = tcp.set_nodelay(true);
    let layer = match tls {
        None => Layer::Plain(Patient::new(tcp)),
        Some(tls) => {
            // A record of TLS begins with its type, 22 for a handshake; a request of HTTP with a letter.
            let mut first = [0];
            let Ok(Ok(1)) = timeout(HEAD, tcp.peek(&mut first)).await else {
                return;
            };
            let mut socket = Patient::new(tcp);
            if first[0].is_ascii_alphabetic() {
                let _ = timeout(HEAD, socket.write_all(NOT_TLS)).await;
                let _ = timeout(HEAD, socket.shutdown()).await;
                return;
            }
            let Ok(Ok(stream)) = timeout(HEAD, sealway_tls_tokio::accept(tls, socket)).await else {
                return;
            };
            Layer::Tls(Box::new(stream))
        }
    };
    let client = Client {
        address: from.to_canonical(),
        pieces: Pieces::default(),
    };
    let wire = Wire::new(layer, client.pieces.clone());
    let service = service_fn(move |request| {
        let (web, client) = (Arc::clone(&web), client.clone());
        async move { Ok::<_, Infallible>(answer(web, client, request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD)
        .max_buf_size(BUFFER)
        // What stands for pieces of files must come out as it went in.
        .writev(true)
        .serve_connection(TokioIo::new(wire), service);
    let mut serving = pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => {}
        () = alive.draining() => {
            serving.as_mut().graceful_shutdown();
            // A client that breaks off is no error of ours.
            let _ = serving.await;
        }
    }
}
