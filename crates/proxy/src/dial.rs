//! Reaching a host: names, sockets, options, several tries.

pub(crate) mod fallback;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::os::linux::net::SocketAddrExt;
use std::time::Duration;

use rustix::io::Errno;
use sealway_net::dial::{alternate, race};
use sealway_net::sock::Sock;
use sealway_v2ray::Address;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpStream, UdpSocket, UnixStream};

use crate::loops::own::{self, OwnPort};
use crate::settings::{DomainStrategy, Families, SocketOptions, UnixName};
use crate::{Error, transparent};

/// Tries to reach a host, and the pause after the first; it doubles.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Without anything to carry, a TCP connection is asked whether its other end is still there after this time, and again each
/// time it passes; nine times without an answer end it. Xray has taken the numbers from Chrome, and so they show nothing.
const KEEP_ALIVE: Duration = Duration::from_secs(45);

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

/// Orders addresses by strategy, families by turns if it prefers none; without force, what remains if none fits is what was
/// found.
pub(crate) fn choose(found: &[SocketAddr], strategy: DomainStrategy) -> Vec<SocketAddr> {
    let v4 = || found.iter().filter(|a| a.is_ipv4()).copied();
    let v6 = || found.iter().filter(|a| a.is_ipv6()).copied();
    let chosen: Vec<SocketAddr> = match strategy.families {
        Families::Any => alternate(found),
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
    transparent::set(socket, options.transparent)?;
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

/// Sets what can be set on a stream socket before it connects or listens. What is accepted has it from its listener.
pub(crate) fn set_options(socket: SockRef<'_>, options: &SocketOptions) -> io::Result<()> {
    set_common_options(&socket, options)?;
    if !options.no_keep_alive {
        let probes = TcpKeepalive::new()
            .with_time(options.keep_alive_idle.unwrap_or(KEEP_ALIVE))
            .with_interval(options.keep_alive_interval.unwrap_or(KEEP_ALIVE));
        let set = socket.set_tcp_keepalive(&probes);
        // Kernels know them of Multipath TCP late. Nobody has asked for what is only the default.
        if options.keep_alive_idle.is_some() || options.keep_alive_interval.is_some() {
            set?;
        }
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

/// Begins to connect, and returns the address that the connection comes from.
fn begin(socket: &Socket, to: SocketAddr) -> io::Result<SocketAddr> {
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => return Err(error),
        _ => {}
    }
    let from = socket.local_addr()?.as_socket();
    from.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
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
        own::connecting(to, options.mark, || begin(&socket, to))?;
        // On this machine there is nothing to wait for.
        let connected = socket.peer_addr().is_ok();
        let tcp = TcpStream::from_std(socket.into())?;
        if connected {
            return Ok(tcp);
        }
        tcp.writable().await?;
        tcp.take_error()?.map_or(Ok(tcp), Err)
    };
    match tokio::time::timeout(ATTEMPT, attempt).await {
        Ok(Ok(tcp)) => Ok(Sock::Tcp(tcp)),
        Ok(Err(error)) => Err(Error::connect(to, error)),
        Err(_) => Err(Error::connect(to, io::ErrorKind::TimedOut.into())),
    }
}

/// Connects to whichever address answers first, in several rounds.
pub(crate) async fn connect_any(
    addresses: &[SocketAddr],
    options: &SocketOptions,
    source: Option<IpAddr>,
) -> Result<Sock, Error> {
    let addresses = from_source(addresses, source);
    let mut pauses = (0..TRIES - 1).map(|round| FIRST_PAUSE * 2u32.pow(round));
    loop {
        let connecting = race(addresses.iter().copied(), |to| connect_to(to, options, source));
        match (connecting.await, pauses.next()) {
            (Ok((sock, _)), _) => return Ok(sock),
            (Err(_), Some(pause)) => tokio::time::sleep(pause).await,
            (Err(error), None) => return Err(error.unwrap_or(Error::Closed)),
        }
    }
}

/// Those of the addresses that are of the family of the source, if there are any: others would be reached from elsewhere.
fn from_source(addresses: &[SocketAddr], source: Option<IpAddr>) -> Vec<SocketAddr> {
    let fits = |to: &&SocketAddr| source.is_none_or(|source| source.is_ipv4() == to.is_ipv4());
    let fitting: Vec<SocketAddr> = addresses.iter().filter(fits).copied().collect();
    if fitting.is_empty() {
        addresses.to_vec()
    } else {
        fitting
    }
}

/// A socket for datagrams that this process sends, which are known as its own while the socket is open.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    socket: UdpSocket,
    _port: OwnPort,
}

impl Deref for OwnSocket {
    type Target = UdpSocket;

    fn deref(&self) -> &UdpSocket {
        &self.socket
    }
}

/// A socket for datagrams that an outbound sends.
pub(crate) fn datagram_socket(from: IpAddr, options: &SocketOptions) -> io::Result<OwnSocket> {
    let domain = if from.is_ipv6() { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if from.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    set_common_options(&SockRef::from(&socket), options)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    let socket = UdpSocket::from_std(socket.into())?;
    let port = OwnPort::of(socket.local_addr()?, options.mark);
    Ok(OwnSocket { socket, _port: port })
}

pub(crate) fn unix_address(name: &UnixName) -> io::Result<std::os::unix::net::SocketAddr> {
    match name {
        UnixName::Path(path) => std::os::unix::net::SocketAddr::from_pathname(path),
        UnixName::Abstract(name) => std::os::unix::net::SocketAddr::from_abstract_name(name),
    }
}

/// What a unix socket is called in messages.
pub(crate) fn unix_name(name: &UnixName) -> String {
    match name {
        UnixName::Path(path) => path.display().to_string(),
        UnixName::Abstract(name) => format!("@{}", String::from_utf8_lossy(name).trim_end_matches('\0')),
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
        to: unix_name(name),
        source,
    })
}

pub(crate) fn accepted(tcp: TcpStream) -> io::Result<Sock> {
    tcp.set_nodelay(true)?;
    Ok(Sock::Tcp(tcp))
}

#[cfg(test)]
mod tests {
    use sealway_net::blocking::begin;

    use super::*;

    #[tokio::test]
    async fn a_dead_address_costs_a_quarter_of_a_second() {
        // A listener whose queue is full answers nobody, as a dead address does.
        let dead = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        dead.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        dead.listen(0).unwrap();
        let address = dead.local_addr().unwrap().as_socket().unwrap();
        let _fillers: Vec<Socket> = (0..4).map(|_| begin(address).unwrap()).collect();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let began = std::time::Instant::now();
        let sock = connect_any(&[address, open], &SocketOptions::default(), None)
            .await
            .unwrap();
        assert_eq!(sock.peer(), Some(open));
        // 250 ms on a calm machine; to wait for the first one takes 16 s.
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn connections_are_probed_at_both_ends_unless_that_is_switched_off() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let chosen = SocketOptions {
            keep_alive_idle: seconds(7),
            ..SocketOptions::default()
        };
        let off = SocketOptions {
            no_keep_alive: true,
            ..chosen.clone()
        };
        for (options, probed, idle, interval) in [
            (SocketOptions::default(), true, 45, 45),
            (chosen, true, 7, 45),
            (off, false, 0, 0),
        ] {
            let listen = crate::settings::Listen::Port("127.0.0.1:0".parse().unwrap());
            let bound = crate::listen::bind(
                &listen,
                &options,
                crate::listen::Wanted {
                    tasks: 1,
                    tcp: true,
                    udp: false,
                    beside: false,
                },
            )
            .unwrap();
            let [crate::listen::Bound::Tcp(listener)] = bound.as_slice() else {
                panic!("one listener");
            };
            let dialled = connect_to(listener.local_addr().unwrap(), &options, None)
                .await
                .unwrap();
            let accepted = accepted(listener.accept().await.unwrap().0).unwrap();
            for sock in [dialled, accepted] {
                let Sock::Tcp(tcp) = &sock else { panic!("TCP") };
                let socket = SockRef::from(tcp);
                assert_eq!(socket.keepalive().unwrap(), probed);
                if probed {
                    assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(idle));
                    assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(interval));
                }
            }
        }
    }

    #[test]
    fn a_source_is_not_left_while_an_address_of_its_family_is_there() {
        let found: Vec<SocketAddr> = ["192.0.2.1:1", "[2001:db8::1]:1", "192.0.2.2:1"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let from = |source: &str| from_source(&found, Some(source.parse().unwrap()));
        assert_eq!(from("127.0.0.1"), [found[0], found[2]]);
        assert_eq!(from("::1"), [found[1]]);
        assert_eq!(from_source(&found, None), found);
        assert_eq!(
            from_source(&found[1..2], Some("127.0.0.1".parse().unwrap())),
            found[1..2]
        );
    }

    #[test]
    fn families_take_turns_only_if_none_is_preferred() {
        let all: Vec<SocketAddr> = ["192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let by = |families| {
            choose(
                &all,
                DomainStrategy {
                    families,
                    ..DomainStrategy::default()
                },
            )
        };
        assert_eq!(by(Families::Any), [all[0], all[2], all[1]]);
        assert_eq!(by(Families::V4V6), all);
        assert_eq!(by(Families::V6V4), [all[2], all[0], all[1]]);
    }

    #[test]
    fn the_strategy_orders_and_filters() {
        let v4: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let v6: SocketAddr = "[2001:db8::1]:1".parse().unwrap();
        let by = |families, force, found: &[SocketAddr]| {
            choose(
                found,
                DomainStrategy {
                    families,
                    force,
                    ask: false,
                },
            )
        };
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
