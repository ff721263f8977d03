//! The addresses that a generator connects from.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsFd as _;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Socket, Type};

/// Addresses of loopback that connections come from, in turn: each has its own ports, of which a short connection keeps
/// one for a minute.
const ADDRESSES: u32 = 1024;

/// The first of them, clear of those that people use.
const FIRST: u32 = u32::from_be_bytes([127, 83, 0, 1]);

/// Opens connections to one address.
#[derive(Debug)]
pub(crate) struct Sources {
    target: SocketAddr,
    next: u32,
}

impl Sources {
    pub(crate) const fn new(target: SocketAddr) -> Sources {
        Sources { target, next: 0 }
    }

    /// Begins a connection. It may not be there yet, or be refused later: the first use tells.
    ///
    /// # Errors
    /// What this end lacks (files, ports, memory), and what the other end said at once.
    pub(crate) fn connect(&mut self) -> io::Result<TcpStream> {
        let domain = Domain::for_address(self.target);
        let socket = Socket::new(domain, Type::STREAM.nonblocking().cloexec(), None)?;
        socket.set_tcp_nodelay(true)?;
        if self.target.ip().is_loopback() && self.target.is_ipv4() {
            // Without the option a port is taken at once, for all targets; with it only for this one.
            setsockopt(&socket.as_fd(), sockopt::IpBindAddressNoPort, &true)?;
            let source = Ipv4Addr::from(FIRST + self.next % ADDRESSES);
            self.next = self.next.wrapping_add(1);
            socket.bind(&SocketAddr::V4(SocketAddrV4::new(source, 0)).into())?;
        }
        match socket.connect(&self.target.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        Ok(socket.into())
    }
}

/// Whether an error is the generator's own: it has run out of something, and says nothing about the subject.
pub(crate) fn our_own(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let own = [
        Errno::ADDRNOTAVAIL,
        Errno::ADDRINUSE,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
    ];
    own.iter().any(|own| error.raw_os_error() == Some(own.raw_os_error()))
}
