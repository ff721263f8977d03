//! Listening: connections within bounds, what each request is answered, and an end in good order.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sealway_drop::cancel::Cancel;
use sealway_drop::places::{Limits, Place, Places};
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::message::{Info, PORT, Protocol, VERSION};
use crate::node::Node;
use crate::receive::Receiver;
use crate::session::Who;
use crate::stream::accept;
use crate::tls::Tls;
use crate::{discover, routes};

/// Connections at a time.
const CONNECTIONS: Limits = Limits { all: 128, each: 32 };
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long answers that are under way may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How this end appears.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it is called.
    pub alias: String,
    /// Where it listens; without, at the usual port, or at any where that is taken.
    pub port: Option<u16>,
    /// Speaks in clear and to devices that do.
    pub clear: bool,
    /// Announces itself and answers those who do, on every network.
    pub discover: bool,
    /// The folder with its certificate.
    pub folder: Option<PathBuf>,
}

/// A node that runs.
pub struct Running {
    /// The node.
    pub node: Arc<Node>,
    server: Arc<Server>,
    accepting: JoinHandle<()>,
    discovering: Option<JoinHandle<()>>,
}

struct Server {
    node: Arc<Node>,
    receiver: Option<Arc<Receiver>>,
    quit: watch::Sender<bool>,
}

/// Starts to listen. `warnings` is told what goes wrong beside everything else, such as an interface that cannot be used.
///
/// # Errors
/// If the certificate cannot be made or read, or the port is taken.
pub async fn start(
    options: Options,
    receiver: Option<Receiver>,
    warnings: impl Fn(&str) + Send + Sync + 'static,
) -> Result<Running, sealway_drop::Error> {
    let tls = Tls::load_or_make(options.folder.as_deref())?;
    let listener = listen(options.port)?;
    let port = listener.local_addr().map_err(Error::network("listening"))?.port();
    let clear = options.clear;
    let mut random = [0; 32];
    let _ = getrandom::fill(&mut random);
    let info = Info {
        alias: options.alias,
        version: VERSION.into(),
        device_model: Some("Linux".into()),
        device_type: Some("headless".into()),
        fingerprint: match clear {
            true => Fingerprint::of(&random).to_string(),
            false => tls.fingerprint().to_string(),
        },
        port: Some(port),
        protocol: Some(if clear { Protocol::Http } else { Protocol::Https }),
        ..Info::default()
    };
    let node = Arc::new(Node::new(tls, info, Box::new(warnings)));
    let receiver = receiver.map(Arc::new);
    if let Some(receiver) = &receiver {
        tokio::spawn(Receiver::watch(Arc::downgrade(receiver), node.tls.clone()));
    }
    let server = Arc::new(Server {
        node: node.clone(),
        receiver,
        quit: watch::Sender::new(false),
    });
    let accepting = tokio::spawn(accept_all(server.clone(), listener));
    let discovering = options.discover.then(|| tokio::spawn(discover::run(node.clone())));
    Ok(Running {
        node,
        server,
        accepting,
        discovering,
    })
}

impl Running {
    /// Ends it in good order: sessions are cancelled at both ends, answers that are under way go out.
    pub async fn shut_down(self) {
        if let Some(receiver) = &self.server.receiver {
            receiver.stop(&self.node.tls).await;
        }
        if let Some(discovering) = &self.discovering {
            discovering.abort();
        }
        self.server.quit.send_replace(true);
        let _ = tokio::time::timeout(LAST_WORDS, self.accepting).await;
    }
}

/// A socket for both families, where there are both.
fn listen(port: Option<u16>) -> Result<TcpListener, Error> {
    match bind(port.unwrap_or(PORT)) {
        // The app may be running here.
        Err(_) if port.is_none() => bind(0),
        bound => bound,
    }
    .map_err(|source| Error::Listen {
        port: port.unwrap_or(0),
        source,
    })
}

fn bind(port: u16) -> io::Result<TcpListener> {
    let open = |address: SocketAddr| -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(128)?;
        TcpListener::from_std(socket.into())
    };
    match open((Ipv6Addr::UNSPECIFIED, port).into()) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => open((Ipv4Addr::UNSPECIFIED, port).into()),
        opened => opened,
    }
}

async fn accept_all(server: Arc<Server>, listener: TcpListener) {
    let mut quit = server.quit.subscribe();
    let places = Places::new(CONNECTIONS);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = async { drop(quit.wait_for(|quit| *quit).await) } => break,
            Some(_) = connections.join_next() => {}
            came = listener.accept() => match came {
                Ok((tcp, from)) => {
                    if let Some(place) = places.take(from.ip()) {
                        connections.spawn(serve(server.clone(), tcp, from, place));
                    }
                }
                // Too many descriptors, or a connection that is gone: the next one may fare better.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve(server: Arc<Server>, tcp: TcpStream, from: SocketAddr, _place: Place) {
    let mut quit = server.quit.subscribe();
    let node = &server.node;
    let tls = (!node.is_clear()).then_some(&*node.tls);
    let accepted = tokio::select! {
        accepted = accept(tcp, tls) => accepted,
        _ = quit.wait_for(|quit| *quit) => return,
    };
    let Ok((stream, certificate)) = accepted else {
        return;
    };
    let mut address = from;
    address.set_ip(from.ip().to_canonical());
    let who = Who {
        address: address.ip(),
        certificate,
    };
    // Whatever waits for somebody of this end is told when the connection is gone.
    let gone = Cancel::new();
    let service = service_fn(|request| routes::answer(node, server.receiver.as_ref(), request, who, address, &gone));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let is_over = tokio::select! {
        _ = connection.as_mut() => true,
        () = async { drop(quit.wait_for(|quit| *quit).await) } => false,
    };
    if !is_over {
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(LAST_WORDS, connection.as_mut()).await;
    }
    gone.cancel();
}
