//! Reaching a host: names, sockets, options, several tries.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::linux::net::SocketAddrExt;
use std::time::Duration;

use sealway_v2ray::Address;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use crate::Error;
use crate::settings::{DomainStrategy, Families, SocketOptions, UnixName};
use crate::sock::Sock;

/// Tries to reach a host, and the pause after the first; it doubles.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How long one connection attempt may take.
const ATTEMPT: Duration = Duration::from_secs(16);

/// All addresses of a host, best first.
pub(crate) async fn resolve(host: &Address, port: u16, strategy: DomainStrategy) -> Result<Vec<SocketAddr>, Error> {
    if let Some(ip) = host.ip() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let name = host.to_string();
    let found: Vec<SocketAddr> = match tokio::net::lookup_host((name.as_str(), port)).await {
        Ok(found) => found.collect(),
        Err(error) => {
            tracing::debug!("{name}: {error}");
            Vec::new()
        }
    };
    let chosen = choose(&found, strategy);
    if chosen.is_empty() {
        return Err(Error::Resolve { name });
    }
    Ok(chosen)
}

/// Orders addresses by strategy; without force, what remains if none fits is what was found.
pub(crate) fn choose(found: &[SocketAddr], strategy: DomainStrategy) -> Vec<SocketAddr> {
    let v4 = || found.iter().filter(|a| a.is_ipv4()).copied();
    let v6 = || found.iter().filter(|a| a.is_ipv6()).copied();
    let chosen: Vec<SocketAddr> = match strategy.families {
        Families::Any => found.to_vec(),
        Families::V4 => v4().collect(),
        Families::V6 => v6().collect(),
        Families::V4V6 => v4().chain(v6()).collect(),
        Families::V6V4 => v6().chain(v4()).collect(),
    };
    if chosen.is_empty() && !strategy.force {
        found.to_vec()
    } else {
        chosen
    }
}

/// A stream socket: of Multipath TCP if that is wanted and the kernel has it, else of TCP.
pub(crate) fn stream_socket(domain: Domain, options: &SocketOptions) -> io::Result<Socket> {
    if options.multipath
        && let Ok(socket) = Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP))
    {
        return Ok(socket);
    }
    Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
}

/// Sets what can be set on any socket, also one for datagrams.
pub(crate) fn set_common_options(socket: &SockRef<'_>, options: &SocketOptions) -> io::Result<()> {
    if let Some(mark) = options.mark {
        socket.set_mark(mark)?;
    }
    if let Some(interface) = &options.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    let bytes = |size: u32| usize::try_from(size).unwrap_or(usize::MAX);
    if let Some(size) = options.receive_buffer {
        socket.set_recv_buffer_size(bytes(size))?;
    }
    if let Some(size) = options.send_buffer {
        socket.set_send_buffer_size(bytes(size))?;
    }
    Ok(())
}

/// Sets what can be set on a stream socket before it connects or listens.
pub(crate) fn set_options(socket: SockRef<'_>, options: &SocketOptions) -> io::Result<()> {
    set_common_options(&socket, options)?;
    if options.keep_alive_idle.is_some() || options.keep_alive_interval.is_some() {
        let mut probes = TcpKeepalive::new();
        if let Some(idle) = options.keep_alive_idle {
            probes = probes.with_time(idle);
        }
        if let Some(interval) = options.keep_alive_interval {
            probes = probes.with_interval(interval);
        }
        socket.set_tcp_keepalive(&probes)?;
    }
    if options.user_timeout.is_some() {
        socket.set_tcp_user_timeout(options.user_timeout)?;
    }
    if let Some(name) = &options.congestion {
        socket.set_tcp_congestion(name.as_bytes())?;
    }
    if let Some(most) = options.max_segment {
        socket.set_tcp_mss(most)?;
    }
    Ok(())
}

/// Connects once to one address.
pub(crate) async fn connect_to(to: SocketAddr, options: &SocketOptions, source: Option<IpAddr>) -> Result<Sock, Error> {
    let attempt = async {
        let domain = if to.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = stream_socket(domain, options)?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        set_options(SockRef::from(&socket), options)?;
        if let Some(source) = source
            && source.is_ipv4() == to.is_ipv4()
        {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        TcpSocket::from_std_stream(socket.into()).connect(to).await
    };
    match tokio::time::timeout(ATTEMPT, attempt).await {
        Ok(Ok(tcp)) => Ok(Sock::Tcp(tcp)),
        Ok(Err(error)) => Err(Error::connect(to, error)),
        Err(_) => Err(Error::connect(to, io::ErrorKind::TimedOut.into())),
    }
}

/// Connects to the first of the addresses that answers, in several rounds.
pub(crate) async fn connect_any(
    addresses: &[SocketAddr],
    options: &SocketOptions,
    source: Option<IpAddr>,
) -> Result<Sock, Error> {
    let mut pause = FIRST_PAUSE;
    let mut last = Error::Closed;
    for round in 0..TRIES {
        if round > 0 {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        for &to in addresses {
            match connect_to(to, options, source).await {
                Ok(sock) => return Ok(sock),
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

/// Resolves and connects.
pub(crate) async fn connect(
    host: &Address,
    port: u16,
    strategy: DomainStrategy,
    options: &SocketOptions,
    source: Option<IpAddr>,
) -> Result<Sock, Error> {
    let addresses = resolve(host, port, strategy).await?;
    connect_any(&addresses, options, source).await
}

/// The address of a unix socket.
pub(crate) fn unix_address(name: &UnixName) -> io::Result<std::os::unix::net::SocketAddr> {
    match name {
        UnixName::Path(path, _) => std::os::unix::net::SocketAddr::from_pathname(path),
        UnixName::Abstract(name) => std::os::unix::net::SocketAddr::from_abstract_name(name),
    }
}

/// Connects to a unix socket. That either works at once or not at all, so it is not waited for.
pub(crate) fn connect_unix(name: &UnixName) -> Result<Sock, Error> {
    let attempt = || {
        let stream = std::os::unix::net::UnixStream::connect_addr(&unix_address(name)?)?;
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    };
    attempt().map(Sock::Unix).map_err(|source| Error::Connect {
        to: format!("{name:?}"),
        source,
    })
}

/// A TCP stream that was accepted.
pub(crate) fn accepted(tcp: TcpStream) -> io::Result<Sock> {
    tcp.set_nodelay(true)?;
    Ok(Sock::Tcp(tcp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strategy_orders_and_filters() {
        let v4: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let v6: SocketAddr = "[2001:db8::1]:1".parse().unwrap();
        let by = |families, force, found: &[SocketAddr]| choose(found, DomainStrategy { families, force });
        assert_eq!(by(Families::Any, false, &[v6, v4]), [v6, v4]);
        assert_eq!(by(Families::V4, false, &[v6, v4]), [v4]);
        assert_eq!(by(Families::V4V6, false, &[v6, v4]), [v4, v6]);
        assert_eq!(by(Families::V6V4, true, &[v4, v6]), [v6, v4]);
        assert_eq!(
            by(Families::V4, false, &[v6]),
            [v6],
            "without force the other family is better than none"
        );
        assert!(by(Families::V4, true, &[v6]).is_empty());
    }
}
