//! DNS servers on the wire: datagrams, streams, TLS and HTTP/2.

mod https;
mod pipe;
mod pipes;
mod stream;
#[cfg(test)]
mod tests;
mod udp;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sealway_net::sock::Sock;
use sealway_v2ray::{Address, Destination, Network};
use tokio::net::UnixStream;

use crate::Error;
use crate::dial::{self, OwnSocket};
use crate::dns::hosts::Fixed;
use crate::dns::{Dns, Exchange};
use crate::loops::LoopGuard;
use crate::roads::Roads;
use crate::settings::{self, ClientTls, DnsAddress, DnsServer, DnsTransport, DomainStrategy, SocketOptions};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::stream::adapter::Io;
use crate::tls::{build, handshake};
use crate::udp::PacketEnd;

use https::Https;
use stream::Streams;
use udp::Udp;

/// How every server of the settings is asked. `mark` is what sockets of ours have that no outbound opens: the mark of the first
/// outbound with one, so that a firewall that lets the connections of this program by lets them by too.
///
/// # Errors
/// [`Error::Config`] for names that TLS cannot ask for, and where there is no authority to trust.
pub(crate) fn all(
    (settings, mark): (&settings::Dns, Option<u32>),
    dns: &Arc<Dns>,
    roads: &Arc<Roads>,
    loops: &Arc<LoopGuard>,
) -> Result<Vec<Option<Arc<dyn Exchange>>>, Error> {
    let around = Around {
        trusted: ClientTls::default(),
        socket: SocketOptions {
            mark,
            ..SocketOptions::default()
        },
        dns: Arc::downgrade(dns),
        roads: Arc::clone(roads),
        loops: Arc::clone(loops),
    };
    let one = |(at, server): (usize, &DnsServer)| wire(&format!("dns.servers[{at}]"), server, &around);
    settings.servers.iter().enumerate().map(one).collect()
}

/// What servers are reached with.
struct Around {
    trusted: ClientTls,
    socket: SocketOptions,
    dns: Weak<Dns>,
    roads: Arc<Roads>,
    loops: Arc<LoopGuard>,
}

fn wire(place: &str, server: &DnsServer, around: &Around) -> Result<Option<Arc<dyn Exchange>>, Error> {
    let DnsAddress::Server { transport, path, .. } = &server.address else {
        return Ok(None);
    };
    let Some(way) = Way::new(place, server, around)? else {
        return Ok(None);
    };
    let way = Arc::new(way);
    Ok(Some(match transport {
        DnsTransport::Udp => Arc::new(Udp::new(way)),
        DnsTransport::Tcp | DnsTransport::Tls => Arc::new(Streams::new(way)),
        DnsTransport::Https | DnsTransport::H2c => Arc::new(Https::new(way, path.clone())),
    }))
}

/// The way to a server.
struct Way {
    to: Destination,
    /// The inbound tag that the rules see. `None`: straight, not by the rules.
    inbound: Option<Arc<str>>,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// What sockets have that go straight.
    socket: SocketOptions,
    roads: Arc<Roads>,
    loops: Arc<LoopGuard>,
    dns: Weak<Dns>,
}

impl Way {
    /// The way to a server, unless it is none on the wire.
    fn new(place: &str, server: &DnsServer, around: &Around) -> Result<Option<Way>, Error> {
        let DnsAddress::Server {
            transport,
            local,
            host,
            port,
            ..
        } = &server.address
        else {
            return Ok(None);
        };
        let alpn: &[&str] = match transport {
            DnsTransport::Https => &["h2"],
            _ => &[],
        };
        let tls = match transport {
            DnsTransport::Tls | DnsTransport::Https => {
                let name = match host.ip() {
                    Some(ip) => ServerName::IpAddress(ip.into()),
                    None => build::server_name(place, &host.to_string())?,
                };
                let tls = ClientTls {
                    alpn: alpn.iter().map(|&one| one.to_owned()).collect(),
                    ..around.trusted.clone()
                };
                Some((build::client(place, &tls)?, name))
            }
            _ => None,
        };
        Ok(Some(Way {
            to: Destination {
                network: Network::Tcp,
                address: host.clone(),
                port: *port,
            },
            inbound: (!local).then(|| Arc::from(server.tag.as_str())),
            tls,
            socket: around.socket.clone(),
            roads: Arc::clone(&around.roads),
            loops: Arc::clone(&around.loops),
            dns: Weak::clone(&around.dns),
        }))
    }

    /// The addresses of the server, of which the system's resolver is asked: it is the way to ask others.
    async fn addresses(&self, network: Network) -> Result<Vec<SocketAddr>, Error> {
        let Destination { address, port, .. } = &self.to;
        let name = address.to_string().trim_end_matches('.').to_ascii_lowercase();
        let fixed = match address.ip() {
            Some(_) => None,
            None => self.dns.upgrade().and_then(|dns| dns.fixed(&name)),
        };
        let addresses = match fixed {
            Some(Fixed::Ips(ips)) => ips.into_iter().map(|ip| SocketAddr::new(ip, *port)).collect(),
            Some(Fixed::Name(other)) => {
                let other = Address::parse(&other).map_err(|_| Error::Resolve { name })?;
                dial::resolve(&other, *port, DomainStrategy::default()).await?
            }
            Some(Fixed::Code(_) | Fixed::Circle) => return Err(Error::Resolve { name }),
            None => dial::resolve(address, *port, DomainStrategy::default()).await?,
        };
        for address in &addresses {
            self.loops.check(*address, network)?;
        }
        Ok(addresses)
    }

    /// A stream to the server, inside TLS if that is asked for.
    async fn stream(&self) -> Result<Stream, Error> {
        let traffic = Traffic::default();
        let routed = match &self.inbound {
            Some(inbound) => Some(self.roads.routed(inbound, &self.to).await?),
            None => None,
        };
        let Some((config, name)) = &self.tls else {
            return match routed {
                Some(stream) => Ok(stream),
                None => Ok(Stream::new(self.sock().await?, traffic)),
            };
        };
        let sock = match routed {
            Some(stream) => bridge(stream)?,
            None => self.sock().await?,
        };
        let established = handshake::connect(Arc::clone(config), name.clone(), sock, &traffic).await?;
        Ok(Stream::over_tls(established, traffic))
    }

    async fn sock(&self) -> Result<Sock, Error> {
        let addresses = self.addresses(Network::Tcp).await?;
        dial::connect_any(&addresses, &self.socket, None).await
    }

    /// Datagrams to the server by the routing.
    async fn packets(&self) -> Result<Box<dyn PacketEnd>, Error> {
        let inbound = self.inbound.clone().unwrap_or_default();
        self.roads.packets_routed(&inbound, &self.to).await
    }

    /// Datagrams straight to the server, from a port that nobody else has.
    async fn socket(&self) -> Result<OwnSocket, Error> {
        let mut failed = Error::Closed;
        for to in self.addresses(Network::Udp).await? {
            let any: IpAddr = match to {
                SocketAddr::V4(_) => [0, 0, 0, 0].into(),
                SocketAddr::V6(_) => [0u16; 8].into(),
            };
            // Known as ours, so that a firewall that leads it back makes no circle.
            let socket = dial::datagram_socket(any, &self.socket)?;
            match socket.connect(to).await {
                Ok(()) => return Ok(socket),
                // There may be a way to the next one.
                Err(error) => failed = Error::connect(to, error),
            }
        }
        Err(failed)
    }
}

/// A socket whose bytes go through a stream: TLS is spoken over sockets.
fn bridge(stream: Stream) -> Result<Sock, Error> {
    let (near, far) = UnixStream::pair()?;
    tokio::spawn(async move {
        let (mut from_server, mut to_server) = tokio::io::split(Io(stream));
        let (mut from_us, mut to_us) = far.into_split();
        // When one end goes, the other is of no use.
        tokio::select! {
            _ = tokio::io::copy(&mut from_server, &mut to_us) => {}
            _ = tokio::io::copy(&mut from_us, &mut to_server) => {}
        }
    });
    Ok(Sock::Unix(near))
}
