//! A connected byte-stream socket: TCP or unix.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// Most bytes that are taken from a peer after our end.
pub const MAX_LEFT: usize = 256 << 10;

/// A connected stream socket.
#[derive(Debug)]
pub enum Sock {
    /// TCP.
    Tcp(TcpStream),
    /// Unix domain.
    Unix(UnixStream),
}

/// Runs the same expression on whichever socket it is.
macro_rules! each {
    ($sock:expr, $it:ident => $do:expr) => {
        match $sock {
            Sock::Tcp($it) => $do,
            Sock::Unix($it) => $do,
        }
    };
}

impl Sock {
    /// Address of the peer, if it has an IP address.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Sock::Tcp(tcp) => tcp.peer_addr().ok().map(unmapped),
            Sock::Unix(_) => None,
        }
    }

    /// Our own address, if it is an IP address.
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Sock::Tcp(tcp) => tcp.local_addr().ok().map(unmapped),
            Sock::Unix(_) => None,
        }
    }

    /// Ready when a read may give something. Costs no system call while nothing has arrived.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, sock => sock.poll_read_ready(cx))
    }

    /// Reads; 0 is the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut into = ReadBuf::new(into);
        ready!(each!(self, sock => Pin::new(sock).poll_read(cx, &mut into)))?;
        Poll::Ready(Ok(into.filled().len()))
    }

    /// Writes some of `from`, at least one byte.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match ready!(each!(self, sock => Pin::new(sock).poll_write(cx, from))) {
            Ok(0) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            other => Poll::Ready(other),
        }
    }

    /// Ends our direction of the stream.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(each!(self, sock => Pin::new(sock).poll_shutdown(cx))) {
            // The peer has reset the connection meanwhile: there is nothing left to end.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            other => Poll::Ready(other),
        }
    }

    /// Runs a non-blocking system call when the socket is ready for it. `WouldBlock` means: not now, wait.
    pub fn poll_io<T>(
        &self,
        cx: &mut Context<'_>,
        interest: Interest,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            ready!(if interest.is_readable() {
                self.poll_read_ready(cx)
            } else {
                each!(self, sock => sock.poll_write_ready(cx))
            })?;
            let done = each!(self, sock => sock.try_io(interest, || call(sock.as_fd())));
            match done {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return Poll::Ready(other),
            }
        }
    }

    /// Reads what has arrived, whether or not the runtime has heard of it yet; `None` if that is nothing. 0 is the end of the
    /// stream. A socket that was made just now is spared a turn of the runtime; any other is read by [`Sock::poll_read`].
    ///
    /// # Errors
    /// What the system says.
    pub fn read_now(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        each!(self, sock => now(rustix::io::read(sock, into)))
    }

    /// Writes what fits now, whether or not the runtime has heard that something does; `None` if nothing does.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_now(&self, from: &[u8]) -> io::Result<Option<usize>> {
        each!(self, sock => now(rustix::io::write(sock, from)))
    }

    /// Waits until the connection is broken, by a reset for example; also after its end was read. What came before can still be read.
    pub async fn broken(&self) -> io::Result<()> {
        each!(self, sock => sock.ready(Interest::ERROR).await).map(drop)
    }

    /// Ends our direction of the stream, as [`Sock::poll_shutdown`] does.
    pub fn end(&self) -> io::Result<()> {
        let ended = each!(self, sock => socket2::SockRef::from(sock).shutdown(std::net::Shutdown::Write));
        match ended {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }

    /// Waits until a read may give something.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read_ready(cx)).await
    }

    /// Ends our direction and takes what is still on its way, up to a limit. A socket that is closed with something unread
    /// is reset, which overtakes what was said last and shows how much of what came was read.
    ///
    /// The caller limits the time.
    pub async fn leave(&mut self) {
        if poll_fn(|cx| self.poll_shutdown(cx)).await.is_err() {
            return;
        }
        let (mut taken, mut buffer) = (0, [0; 1024]);
        while taken < MAX_LEFT {
            match poll_fn(|cx| self.poll_read(cx, &mut buffer)).await {
                Ok(0) | Err(_) => return,
                Ok(got) => taken += got,
            }
        }
    }

    /// Makes a close say that the connection broke: RST instead of FIN, and nothing more is sent.
    pub fn reset_on_close(&self) {
        self.set_linger(Some(Duration::ZERO));
    }

    /// Makes a close say that this was the end, as it does unless told otherwise.
    pub fn end_on_close(&self) {
        self.set_linger(None);
    }

    fn set_linger(&self, time: Option<Duration>) {
        if let Sock::Tcp(tcp) = self {
            // A socket that cannot be told is closed in the ordinary way.
            let _ = socket2::SockRef::from(tcp).set_linger(time);
        }
    }
}

/// What a call without waiting has done; `None` is nothing yet.
fn now(done: rustix::io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(count) => Ok(Some(count)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What limits count as one host: an IPv4 address, mapped into IPv6 or not, or the /64 of IPv6 in which a host may have any address.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

/// An IPv4-mapped IPv6 address as the IPv4 address that it is.
pub fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
