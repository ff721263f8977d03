//! From a connected socket to a stream that the protocol can be spoken over.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use sealway_v2ray::Address;

use crate::Error;
use crate::dial;
use crate::names::Names;
use crate::proxy_protocol;
use crate::settings::{ClientTransport, DomainStrategy, HttpNetwork, Network, ServerTransport, SocketOptions};
use crate::sock::Sock;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::tls::build;
use crate::tls::certs::Certificates;
use crate::tls::handshake::{self, Agreed};
use crate::upgrade::{self, Upgrade};

/// An inbound's transport, ready to accept.
pub(crate) struct ServerSide {
    network: Network,
    tls: Option<Arc<ServerConfig>>,
    pub(crate) certificates: Option<Arc<Certificates>>,
    proxy_protocol: bool,
}

/// A connection that has been accepted and is ready for the protocol.
pub(crate) struct Accepted {
    pub(crate) stream: Stream,
    /// Who the client is.
    pub(crate) source: Option<SocketAddr>,
    /// Where it came in.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) agreed: Agreed,
}

impl ServerSide {
    /// Loads certificates.
    pub(crate) fn new(place: &str, settings: &ServerTransport) -> Result<Self, Error> {
        let built = settings.tls.as_ref().map(|tls| build::server(place, tls)).transpose()?;
        let (tls, certificates) = built.unzip();
        Ok(ServerSide {
            network: settings.network.clone(),
            tls,
            certificates,
            proxy_protocol: settings.accept_proxy_protocol,
        })
    }

    /// PROXY protocol, TLS, WebSocket or upgrade. The caller sets the deadline.
    pub(crate) async fn accept(&self, mut sock: Sock, traffic: Traffic) -> Result<Accepted, Error> {
        let (mut source, mut local) = (sock.peer(), sock.local());
        let mut read = Vec::new();
        if self.proxy_protocol {
            let (told, rest) = proxy_protocol::read(&mut sock).await?;
            read = rest;
            if let Some((from, to)) = told {
                (source, local) = (Some(from), Some(to));
            }
        }
        let (mut stream, agreed) = match &self.tls {
            Some(config) => handshake::accept(Arc::clone(config), sock, traffic, &read).await?,
            None => {
                let mut stream = Stream::new(sock, traffic);
                if !read.is_empty() {
                    stream.unread(&read)?;
                }
                (stream, Agreed::default())
            }
        };
        match &self.network {
            Network::Raw => {}
            Network::WebSocket(settings) | Network::HttpUpgrade(settings) => {
                let kind = match &self.network {
                    Network::WebSocket(_) => Upgrade::WebSocket,
                    _ => Upgrade::Plain,
                };
                if let Some(client) = upgrade::accept(&mut stream, settings, kind).await? {
                    // The server in front says who the client is, but not its port.
                    source = Some(SocketAddr::new(client, 0));
                }
            }
        }
        Ok(Accepted {
            stream,
            source,
            local,
            agreed,
        })
    }
}

/// An outbound's transport, ready to dial.
pub(crate) struct ClientSide {
    network: Network,
    tls: Option<(Arc<ClientConfig>, String)>,
    socket: SocketOptions,
    source: Option<IpAddr>,
    place: String,
    names: Arc<Names>,
}

impl ClientSide {
    /// Builds the TLS settings.
    pub(crate) fn new(
        place: &str,
        settings: &ClientTransport,
        source: Option<IpAddr>,
        names: Arc<Names>,
    ) -> Result<Self, Error> {
        let mut tls = settings.tls.clone();
        if let (Some(tls), Network::WebSocket(_) | Network::HttpUpgrade(_)) = (&mut tls, &settings.network) {
            tls.alpn = vec!["http/1.1".into()];
        }
        let tls = match tls {
            Some(tls) => Some((
                build::client(&format!("{place}.streamSettings"), &tls)?,
                tls.server_name,
            )),
            None => None,
        };
        Ok(ClientSide {
            network: settings.network.clone(),
            tls,
            socket: settings.socket.clone(),
            source,
            place: format!("{place}.streamSettings.tlsSettings.serverName"),
            names,
        })
    }

    /// What names are resolved by.
    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Options of the sockets it dials.
    pub(crate) fn socket(&self) -> &SocketOptions {
        &self.socket
    }

    /// Dials a server and speaks up to the protocol. What of `first` went along with that is said by the number returned.
    pub(crate) async fn connect(
        &self,
        host: &Address,
        port: u16,
        first: &[u8],
        traffic: Traffic,
    ) -> Result<(Stream, usize), Error> {
        let strategy: DomainStrategy = self.socket.domain_strategy;
        let addresses = self.names.resolve(host, port, strategy).await?;
        let sock = dial::connect_any(&addresses, &self.socket, self.source).await?;
        let mut stream = match &self.tls {
            None => Stream::new(sock, traffic),
            Some((config, name)) => {
                let name = self.server_name(name, host)?;
                handshake::connect(Arc::clone(config), name, sock, traffic).await?.0
            }
        };
        let mut sent = 0;
        match &self.network {
            Network::Raw => {}
            Network::WebSocket(settings) => {
                let host = self.host(settings, host, port);
                sent = upgrade::connect(&mut stream, settings, &host, Upgrade::WebSocket, first).await?;
            }
            Network::HttpUpgrade(settings) => {
                let host = self.host(settings, host, port);
                sent = upgrade::connect(&mut stream, settings, &host, Upgrade::Plain, first).await?;
            }
        }
        Ok((stream, sent))
    }

    fn server_name(&self, set: &str, host: &Address) -> Result<ServerName<'static>, Error> {
        match (set, host.ip()) {
            ("", Some(ip)) => Ok(ServerName::IpAddress(ip.into())),
            ("", None) => build::server_name(&self.place, &host.to_string()),
            (name, _) => build::server_name(&self.place, name),
        }
    }

    /// The Host header: as set, else the TLS server name, else where we dial.
    fn host(&self, settings: &HttpNetwork, host: &Address, port: u16) -> String {
        let usual = if self.tls.is_some() { 443 } else { 80 };
        let bare = match (&self.tls, settings.host.as_str()) {
            (_, set) if !set.is_empty() => return set.to_owned(),
            (Some((_, name)), _) if !name.is_empty() => name.clone(),
            _ => match host.ip() {
                Some(IpAddr::V6(ip)) => format!("[{ip}]"),
                _ => host.to_string(),
            },
        };
        if port == usual { bare } else { format!("{bare}:{port}") }
    }
}
