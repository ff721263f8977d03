//! Sockets that take and send packets in the name of other hosts, for transparent proxying.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::libc::{sockaddr_in, sockaddr_in6};
use nix::sys::socket::sockopt::{Ipv4OrigDstAddr, Ipv6OrigDstAddr};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg, setsockopt};
use sealway_net::sock::{Sock, unmapped};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::settings::Transparent;

/// Lets a socket use addresses of others, as the settings ask for it.
pub(crate) fn set(socket: &SockRef<'_>, transparent: Transparent) -> io::Result<()> {
    // One flag for both families, whichever of the two options sets it.
    match transparent {
        Transparent::No => Ok(()),
        Transparent::IfAllowed => {
            let _ = socket.set_ip_transparent_v4(true);
            Ok(())
        }
        Transparent::Yes => socket.set_ip_transparent_v4(true),
    }
}

/// Has a socket for datagrams take those for others, and say for whom they were.
pub(crate) fn take_up(socket: &Socket) -> io::Result<()> {
    socket.set_ip_transparent_v4(true)?;
    // A socket of IPv6 takes datagrams of both families.
    setsockopt(socket, Ipv4OrigDstAddr, &true)?;
    if socket.local_addr()?.is_ipv6() {
        setsockopt(socket, Ipv6OrigDstAddr, &true)?;
    }
    Ok(())
}

/// A datagram as it came.
pub(crate) struct Came {
    /// Its length, bytes.
    pub(crate) len: usize,
    /// Who sent it.
    pub(crate) from: SocketAddr,
    /// Whom it was meant for, where the system says so.
    pub(crate) to: Option<SocketAddr>,
}

/// Receives one datagram.
///
/// # Errors
/// Those of the system, which concern one datagram each.
pub(crate) async fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
    let mut control = nix::cmsg_space!(sockaddr_in, sockaddr_in6);
    let once = || {
        let mut into = [IoSliceMut::new(buffer)];
        let got = recvmsg::<SockaddrStorage>(
            socket.as_raw_fd(),
            &mut into,
            Some(&mut control),
            MsgFlags::MSG_DONTWAIT,
        )?;
        let from = got.address.as_ref().and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
        });
        let from = from.ok_or_else(|| io::Error::other("a datagram of nobody"))?;
        let to = got.cmsgs()?.find_map(|one| match one {
            ControlMessageOwned::Ipv4OrigDstAddr(v4) => Some(SocketAddr::V4(SocketAddrV4::from(SockaddrIn::from(v4)))),
            ControlMessageOwned::Ipv6OrigDstAddr(v6) => Some(SocketAddr::V6(SocketAddrV6::from(SockaddrIn6::from(v6)))),
            _ => None,
        });
        Ok(Came {
            len: got.bytes,
            from: unmapped(from),
            to: to.map(unmapped),
        })
    };
    socket.async_io(Interest::READABLE, once).await
}

/// Where a connection was meant to go before a rule of the firewall changed that. `None` if none did, or none that the system
/// remembers.
pub(crate) fn meant_for(sock: &Sock) -> Option<SocketAddr> {
    let Sock::Tcp(tcp) = sock else { return None };
    let socket = SockRef::from(tcp);
    let meant = match sock.local()? {
        SocketAddr::V4(_) => socket.original_dst_v4(),
        SocketAddr::V6(_) => socket.original_dst_v6(),
    };
    meant.ok()?.as_socket().map(unmapped)
}

/// A socket that sends datagrams in the name of `from`.
///
/// # Errors
/// Those of the system: it takes root, or CAP_NET_ADMIN, and below port 1024 CAP_NET_BIND_SERVICE.
pub(crate) fn in_the_name_of(from: SocketAddr, mark: Option<u32>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(from), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // Others may answer for the same address: another inbound, or another program.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_ip_transparent_v4(true)?;
    if let Some(mark) = mark {
        socket.set_mark(mark)?;
    }
    if from.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // What comes to it is nobody's: those who send to the address are led to the inbound.
    socket.set_recv_buffer_size(0)?;
    socket.bind(&from.into())?;
    Ok(socket)
}
