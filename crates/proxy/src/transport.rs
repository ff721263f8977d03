//! From a connected socket to a stream that the protocol can be spoken over: PROXY protocol, TLS, and a [`Transport`].

mod accepted;
mod front;
mod grpc;
mod http;
pub(crate) mod http2;
mod remote;
mod requests;
mod upgrade;
mod visit;
pub(crate) mod ws;
mod xhttp;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use sealway_net::sock::Sock;
use sealway_v2ray::{Address, Destination, Network};
use tokio::time::{Instant, timeout_at};

use crate::carrier::Carrier;
use crate::clock::unix_time;
use crate::dial;
use crate::error::{Error, Pending};
use crate::proxy_protocol;
use crate::random;
use crate::reality::{Met, Passing, Reality};
use crate::resolver::Resolver;
use crate::roads::{Caller, Roads, Through};
use crate::settings::{ClientTransport, SendThrough, ServerTransport, SocketOptions, TransportKind};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::tls::build;
use crate::tls::certs::Certificates;
use crate::tls::handshake::{self, Agreed};
use crate::tls::reality::{Answer, RealityClient};
use crate::udp::Wire;

use self::http::Http;
pub(crate) use accepted::Accepted;
use accepted::Ends;
use front::Front;
use grpc::Grpc;
use remote::Dial;
pub(crate) use remote::Remote;
use upgrade::{Kind, Upgrade};
use xhttp::Xhttp;

/// What lies between the socket, or TLS on it, and the protocol.
trait Transport: Send + Sync {
    /// The one application protocol that clients offer in TLS for it. Empty: those that the settings say.
    fn alpn(&self) -> &'static str;

    /// Whether a connection carries streams of several callers: it is nobody's, and the next outbound does not know who asks.
    fn is_shared(&self) -> bool {
        false
    }

    /// Begins as the server of a connection.
    fn accept<'a>(&'a self, accepted: Accepted) -> Pending<'a, Arrival>;

    /// A stream to a server, by a connection of its own or by one of those that the transport keeps. What of `first` went
    /// along with its making is said by the number returned.
    fn connect<'a>(&'a self, dial: Dial<'a>) -> Pending<'a, (Stream, usize)>;
}

/// The transport that the settings ask for. Without one the protocol is spoken over the socket or TLS itself. `download` is
/// where a client of XHTTP asks for what comes down, if not at the server.
fn transport(settings: &TransportKind, download: Option<Arc<Line>>) -> Option<Arc<dyn Transport>> {
    match settings.clone() {
        TransportKind::Grpc(grpc) => Some(Arc::new(Grpc::new(grpc))),
        TransportKind::Http(http) => Some(Arc::new(Http::new(http))),
        TransportKind::Raw => None,
        TransportKind::RawHttp(front) => Some(Arc::new(Front::new(front))),
        TransportKind::WebSocket(http) => Some(Arc::new(Upgrade::new(http, Kind::WebSocket))),
        TransportKind::HttpUpgrade(http) => Some(Arc::new(Upgrade::new(http, Kind::Plain))),
        TransportKind::Xhttp(http) => Some(Arc::new(Xhttp::new(*http, download))),
    }
}

/// An inbound's side, ready to accept.
pub(crate) struct Acceptor {
    transport: Option<Arc<dyn Transport>>,
    tls: Option<Arc<ServerConfig>>,
    pub(crate) reality: Option<Arc<Reality>>,
    pub(crate) certificates: Option<Arc<Certificates>>,
    proxy_protocol: bool,
}

/// What a connection turned out to be.
pub(crate) enum Arrival {
    /// One stream.
    One(Box<Accepted>),
    /// Many streams.
    Many(Box<dyn Many>),
    /// Somebody who is none of ours, and stays with the target of REALITY.
    Stranger(Box<Passing>),
    /// Nobody, by no fault of a client's.
    Gone(Error),
}

/// A connection that carries many streams.
pub(crate) trait Many: Send {
    /// Drives the connection until the client opens the next stream. `None`: there will be none, and those that are left need
    /// the connection no more. The caller asks again at once, and serves the streams meanwhile.
    fn next(&mut self) -> Pending<'_, Option<Accepted>>;
}

/// How long a transport, and a request behind it, may take on top of a handshake of REALITY that has used up its time.
pub(crate) const TRANSPORT: Duration = Duration::from_secs(4);

impl Acceptor {
    /// Loads certificates. What is the same as with the settings of another acceptor is that one's: sessions that clients
    /// may resume, requests of XHTTP that belong together, what is known of the target of REALITY.
    pub(crate) fn new(
        place: &str,
        settings: &ServerTransport,
        before: Option<(&ServerTransport, &Acceptor)>,
    ) -> Result<Self, Error> {
        let same_tls = before.filter(|(before, _)| before.tls == settings.tls && !settings.has_client_files());
        let (tls, certificates) = match same_tls {
            Some((_, before)) => (before.tls.clone(), before.certificates.clone()),
            None => {
                let built = settings.tls.as_ref().map(|tls| build::server(place, tls)).transpose()?;
                built.unzip()
            }
        };
        let same_reality = |before: &ServerTransport| {
            (&before.reality, before.socket.mark) == (&settings.reality, settings.socket.mark)
        };
        let reality = match (&settings.reality, before.filter(|(before, _)| same_reality(before))) {
            (_, Some((_, before))) => before.reality.clone(),
            (None, None) => None,
            (Some(reality), None) => Some(Arc::new(Reality::new(place, reality, &settings.socket)?)),
        };
        let same_kind = before.filter(|(before, _)| before.kind == settings.kind);
        Ok(Acceptor {
            transport: match same_kind {
                Some((_, before)) => before.transport.clone(),
                None => transport(&settings.kind, None),
            },
            tls,
            reality,
            certificates,
            proxy_protocol: settings.accept_proxy_protocol,
        })
    }

    /// Goes up to the protocol, by the deadline. `listener` is the address that the connection came to.
    pub(crate) async fn accept(
        &self,
        sock: Sock,
        traffic: Traffic,
        listener: Option<SocketAddr>,
        deadline: Instant,
    ) -> Result<Arrival, Error> {
        let late = |_| Error::TimedOut("TLS and transport handshake");
        let Some(reality) = &self.reality else {
            let (ends, sock, read) = timeout_at(deadline, self.ends(sock)).await.map_err(late)??;
            let accepting = self.accept_tls(ends, sock, traffic, read);
            return timeout_at(deadline, accepting).await.map_err(late)?;
        };
        let (ends, sock, read) = timeout_at(deadline, self.ends(sock)).await.map_err(late)??;
        // Strangers are not to see how patient we are.
        let ends_of_it = (ends.reality(), listener);
        match reality.meet(sock, read, ends_of_it, &traffic, deadline).await {
            Met::Gone(error) => Ok(Arrival::Gone(error)),
            Met::Stranger(passing) => Ok(Arrival::Stranger(passing)),
            Met::Client(mut established) => {
                let agreed = std::mem::take(&mut established.agreed);
                let accepted = ends.accepted(Stream::over_tls(*established, traffic), agreed);
                let accepting = self.accept_transport(accepted);
                // The handshake may have waited for the target.
                let deadline = deadline.max(Instant::now() + TRANSPORT);
                timeout_at(deadline, accepting).await.map_err(late)?
            }
        }
    }

    /// Reads who a server in front says the client is, where it has to.
    async fn ends(&self, mut sock: Sock) -> Result<(Ends, Sock, Vec<u8>), Error> {
        let (mut source, mut local, mut forwarded) = (sock.peer(), sock.local(), false);
        let mut read = Vec::new();
        if self.proxy_protocol {
            let (told, rest) = proxy_protocol::read(&mut sock).await?;
            read = rest;
            if let Some((from, to)) = told {
                (source, local, forwarded) = (Some(from), Some(to), true);
            }
        }
        let ends = Ends {
            source,
            local,
            forwarded,
        };
        Ok((ends, sock, read))
    }

    async fn accept_tls(&self, ends: Ends, sock: Sock, traffic: Traffic, read: Vec<u8>) -> Result<Arrival, Error> {
        let (stream, agreed) = match &self.tls {
            Some(config) => {
                let mut established = handshake::accept(Arc::clone(config), sock, &traffic, &read).await?;
                let agreed = std::mem::take(&mut established.agreed);
                (Stream::over_tls(established, traffic), agreed)
            }
            None => {
                let mut stream = Stream::new(sock, traffic);
                if !read.is_empty() {
                    stream.unread(&read)?;
                }
                (stream, Agreed::default())
            }
        };
        self.accept_transport(ends.accepted(stream, agreed)).await
    }

    async fn accept_transport(&self, accepted: Accepted) -> Result<Arrival, Error> {
        match &self.transport {
            None => Ok(Arrival::One(Box::new(accepted))),
            Some(transport) => transport.accept(accepted).await,
        }
    }
}

/// An outbound's side, ready to dial.
pub(crate) struct Connector {
    transport: Option<Arc<dyn Transport>>,
    pub(crate) line: Arc<Line>,
}

impl Connector {
    /// Builds the TLS settings.
    pub(crate) fn new(
        place: &str,
        settings: &ClientTransport,
        source: Option<SendThrough>,
        (resolver, roads): (&Arc<Resolver>, &Arc<Roads>),
    ) -> Result<Self, Error> {
        let download = match &settings.kind {
            TransportKind::Xhttp(xhttp) => xhttp.download.as_ref(),
            _ => None,
        };
        let download = match download {
            None => None,
            Some(download) => {
                let place = format!("{place}.streamSettings.xhttpSettings.downloadSettings");
                let connector = Connector::new(&place, &download.transport, source, (resolver, roads))?;
                Some(connector.line)
            }
        };
        let transport = transport(&settings.kind, download);
        let mut tls = settings.tls.clone();
        if let (Some(tls), Some(transport)) = (&mut tls, &transport)
            && !transport.alpn().is_empty()
        {
            tls.alpn = vec![transport.alpn().to_owned()];
        }
        let tls = match tls {
            Some(tls) => Some((
                build::client(&format!("{place}.streamSettings"), &tls)?,
                tls.server_name,
            )),
            None => None,
        };
        let through = settings.through.as_ref();
        let through = through.map(|through| Through::new(place, through, roads)).transpose()?;
        let reality = settings.reality.as_ref();
        let reality = reality.map(|reality| RealityClient::new(&format!("{place}.streamSettings"), reality, unix_time));
        let line = Arc::new(Line {
            tls,
            reality: reality.transpose()?,
            socket: settings.socket.clone(),
            source,
            through,
            resolver: Arc::clone(resolver),
            place: format!("{place}.streamSettings.tlsSettings.serverName"),
        });
        Ok(Connector { transport, line })
    }

    /// A stream to there, ready for the protocol. What of `first` went along with its making is said by the number
    /// returned.
    pub(crate) async fn connect(
        &self,
        remote: &Remote,
        first: &[u8],
        traffic: Traffic,
        caller: &Caller,
    ) -> Result<(Stream, usize), Error> {
        match &self.transport {
            None => Ok((self.line.dial(remote, traffic, caller).await?, 0)),
            Some(transport) => {
                let line = &self.line;
                let dial = Dial {
                    line,
                    remote,
                    first,
                    traffic,
                    caller,
                };
                transport.connect(dial).await
            }
        }
    }

    /// Whether callers share connections.
    pub(crate) fn is_shared(&self) -> bool {
        self.transport.as_ref().is_some_and(|transport| transport.is_shared())
    }

    /// Whether nothing stands between its sockets and the protocol.
    pub(crate) fn is_bare(&self) -> bool {
        self.transport.is_none() && !self.line.has_tls()
    }
}

/// The way to a server below its transport: sockets or another outbound, and TLS or REALITY if that is asked for.
pub(crate) struct Line {
    tls: Option<(Arc<ClientConfig>, String)>,
    /// In place of TLS.
    reality: Option<RealityClient>,
    pub(crate) socket: SocketOptions,
    /// Source address of its connections.
    source: Option<SendThrough>,
    /// Another outbound in place of sockets.
    pub(crate) through: Option<Through>,
    pub(crate) resolver: Arc<Resolver>,
    place: String,
}

impl Line {
    /// Whether there is TLS or REALITY around its connections.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some() || self.reality.is_some()
    }

    /// The name that servers are asked for by TLS or REALITY. Empty: none is set.
    fn asked_name(&self) -> &str {
        let tls = self.tls.as_ref().map(|(_, name)| name.as_str());
        tls.or(self.reality.as_ref().map(RealityClient::server_name))
            .unwrap_or_default()
    }

    /// Dials, and shakes hands for TLS.
    async fn dial(&self, remote: &Remote, traffic: Traffic, caller: &Caller) -> Result<Stream, Error> {
        let (host, port) = &remote.name;
        let carrier = match (&self.through, &remote.allowed) {
            (None, allowed) => {
                let addresses = match allowed {
                    Some(allowed) => allowed.clone(),
                    None => self.resolver.resolve(host, *port, self.socket.domain_strategy).await?,
                };
                let source = self.source(caller)?;
                Carrier::from(dial::connect_any(&addresses, &self.socket, source).await?)
            }
            (Some(through), None) => {
                let to = self.destination(through, Network::Tcp, host, *port).await?;
                through.stream(&to, &caller.onward()).await?.into_carrier()
            }
            // The client asks for it there too.
            (Some(through), Some(allowed)) => {
                let first = through.stream(&remote.onward(allowed.first()), caller).await;
                let reached = match (first, allowed.get(1)) {
                    (Err(_), second @ Some(_)) => through.stream(&remote.onward(second), caller).await,
                    (reached, _) => reached,
                };
                reached?.into_carrier()
            }
        };
        if let Some(reality) = &self.reality {
            return match reality.connect(host, carrier, &traffic).await? {
                Answer::Server(established) => Ok(Stream::over_tls(*established, traffic)),
                Answer::Site {
                    established,
                    host,
                    path,
                    error,
                } => {
                    let alpn = established.agreed.alpn.clone();
                    if reality.may_visit() {
                        visit::visit(Stream::over_tls(*established, traffic), alpn, host, path);
                    }
                    Err(error)
                }
            };
        }
        Ok(match &self.tls {
            None => Stream::new(carrier, traffic),
            Some((config, name)) => {
                let name = self.server_name(name, host)?;
                let established = handshake::connect(Arc::clone(config), name, carrier, &traffic).await?;
                Stream::over_tls(established, traffic)
            }
        })
    }

    /// Datagrams to a server: by a socket that is connected to it, or through another outbound.
    pub(crate) async fn datagrams(&self, (host, port): &(Address, u16), caller: &Caller) -> Result<Wire, Error> {
        if let Some(through) = &self.through {
            let to = self.destination(through, Network::Udp, host, *port).await?;
            let end = through.packets(&to, &caller.onward()).await?;
            return Ok(Wire::through(end, to));
        }
        let found = self.resolver.resolve(host, *port, self.socket.domain_strategy).await?;
        let server = found.first().ok_or(Error::Resolve { name: host.to_string() })?;
        Wire::connect(*server, &self.socket, self.source(caller)?).await
    }

    /// The source address of a connection for this caller.
    pub(crate) fn source(&self, caller: &Caller) -> Result<Option<IpAddr>, Error> {
        let usable = |address: &SocketAddr| !address.ip().is_unspecified();
        Ok(match self.source {
            Some(SendThrough::Address(ip)) => Some(ip),
            Some(SendThrough::Pool(net)) => Some(SendThrough::drawn(net, u128::from_ne_bytes(random::bytes()?))),
            Some(SendThrough::Origin) => caller.local.filter(usable).map(|local| local.ip().to_canonical()),
            Some(SendThrough::Client) => caller.source.filter(usable).map(|source| source.ip().to_canonical()),
            _ => None,
        })
    }

    /// Where the other outbound is asked to go.
    async fn destination(
        &self,
        through: &Through,
        network: Network,
        host: &Address,
        port: u16,
    ) -> Result<Destination, Error> {
        let mut address = host.clone();
        if through.resolves {
            let found = self.resolver.resolve(host, port, self.socket.domain_strategy).await?;
            let first = found.first().ok_or(Error::Resolve { name: host.to_string() })?;
            address = first.ip().into();
        }
        Ok(Destination { network, address, port })
    }

    fn server_name(&self, set: &str, host: &Address) -> Result<ServerName<'static>, Error> {
        match (set, host.ip()) {
            ("", Some(ip)) => Ok(ServerName::IpAddress(ip.into())),
            ("", None) => build::server_name(&self.place, &host.to_string()),
            (name, _) => build::server_name(&self.place, name),
        }
    }

    /// The host for requests: the TLS server name, else where we dial, with the port unless it is the usual one.
    fn host(&self, (host, port): &(Address, u16)) -> String {
        let usual = if self.has_tls() { 443 } else { 80 };
        let bare = match (self.asked_name(), host.ip()) {
            ("", Some(IpAddr::V6(ip))) => format!("[{ip}]"),
            ("", _) => host.to_string(),
            (name, _) => name.to_owned(),
        };
        if *port == usual { bare } else { format!("{bare}:{port}") }
    }
}
