//! Sockets that are listened on.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use tokio::net::{TcpListener, UdpSocket, UnixListener};

use crate::dial::{set_common_options, set_options, stream_socket, unix_address, unix_name};
use crate::inherited::{self, Taken};
use crate::settings::{Listen, SocketOptions, UnixName};
use crate::transparent;

/// Connections that wait to be accepted, per listener.
const BACKLOG: i32 = 4096;

/// A bound socket.
pub(crate) enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener, Option<SocketFile>),
    Udp(UdpSocket),
}

/// What an address is called in messages.
pub(crate) fn name(listen: &Listen) -> String {
    match listen {
        Listen::Port(address) => address.to_string(),
        Listen::EveryAddress(port) => format!("port {port} of every address"),
        Listen::Unix(name, _) => unix_name(name),
    }
}

/// How a port is to be had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Listeners for streams, one a core.
    pub(crate) tasks: usize,
    /// Streams are taken.
    pub(crate) tcp: bool,
    /// Datagrams are taken.
    pub(crate) udp: bool,
    /// A listener of ours has it, which goes when this one has come.
    pub(crate) beside: bool,
}

/// Binds one `listen` of an inbound: a listener a core for streams, one socket for datagrams.
pub(crate) fn bind(listen: &Listen, options: &SocketOptions, wanted: Wanted) -> io::Result<Vec<Bound>> {
    let mut bound = Vec::new();
    let mut take = |asked: bool, stream| -> io::Result<bool> {
        let before = bound.len();
        if asked {
            bound.extend(
                inherited::take(listen, stream, wanted.tasks)?
                    .into_iter()
                    .map(Bound::from),
            );
        }
        // What is left to bind.
        Ok(asked && bound.len() == before)
    };
    // A unix socket takes streams also where datagrams are asked for beside them.
    let is_unix = matches!(listen, Listen::Unix(..));
    let tcp = take(wanted.tcp, true)?;
    let udp = match is_unix {
        true => wanted.udp,
        false => take(wanted.udp, false)?,
    };
    if !bound.is_empty() && (is_unix || !(tcp || udp)) {
        return Ok(bound);
    }
    bound.extend(bind_new(listen, options, Wanted { tcp, udp, ..wanted })?);
    Ok(bound)
}

impl From<Taken> for Bound {
    fn from(taken: Taken) -> Bound {
        match taken {
            Taken::Tcp(tcp) => Bound::Tcp(tcp),
            Taken::Unix(unix) => Bound::Unix(unix, None),
            Taken::Udp(udp) => Bound::Udp(udp),
        }
    }
}

fn bind_new(listen: &Listen, options: &SocketOptions, wanted: Wanted) -> io::Result<Vec<Bound>> {
    let Wanted { tcp, udp, .. } = wanted;
    let address = match listen {
        Listen::Unix(..) if udp && !tcp => {
            let what = "a unix socket takes no datagrams here: listen on a port, or for tcp";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Listen::Unix(name, mode) => return bind_unix(name, *mode).map(|(unix, file)| vec![Bound::Unix(unix, file)]),
        Listen::Port(address) => *address,
        Listen::EveryAddress(port) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port)),
    };
    match bind_ip(address, options, wanted) {
        // A system without IPv6 still has every IPv4 address. Any other error is one for the user: to listen on half of
        // what was asked for would not be noticed.
        Err(error) if matches!(listen, Listen::EveryAddress(_)) && lacks_ipv6(&error) && !options.v6_only => {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            bind_ip(address, options, wanted)
        }
        bound => bound,
    }
}

fn lacks_ipv6(error: &io::Error) -> bool {
    let none = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| none.contains(&code))
}

/// How often the system is asked for a port that is free for streams and for datagrams.
const MAX_DRAWS: usize = 16;

fn bind_ip(address: SocketAddr, options: &SocketOptions, wanted: Wanted) -> io::Result<Vec<Bound>> {
    for _ in 1..MAX_DRAWS {
        match bind_port(address, options, wanted) {
            // The system chose a port for streams that somebody else has for datagrams.
            Err(error) if address.port() == 0 && error.kind() == io::ErrorKind::AddrInUse => continue,
            bound => return bound,
        }
    }
    bind_port(address, options, wanted)
}

fn bind_port(mut address: SocketAddr, options: &SocketOptions, wanted: Wanted) -> io::Result<Vec<Bound>> {
    let mut bound = Vec::new();
    // One listener a core: the kernel spreads connections over them, and no core waits for another to accept.
    for _ in 0..if wanted.tcp { wanted.tasks } else { 0 } {
        let socket = stream_socket(Domain::for_address(address), options)?;
        socket.set_nonblocking(true)?;
        // The first one must have the port to itself: only then may our others share it. Otherwise a program that was started
        // twice would share it with itself, and the system could choose a port that is shared already.
        let first = bound.is_empty();
        socket.set_reuse_address(address.port() != 0)?;
        socket.set_reuse_port(!first || wanted.beside)?;
        if address.is_ipv6() {
            socket.set_only_v6(options.v6_only)?;
        }
        set_options(SockRef::from(&socket), options)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        if first {
            // What it accepts has this from it, so that the port can be had again while old connections come to their end.
            socket.set_reuse_address(true)?;
            // Another may stand beside it when the configuration is changed.
            socket.set_reuse_port(true)?;
        }
        let listener = TcpListener::from_std(socket.into())?;
        // The first one's port is the others' too, also when the system chose it.
        address = listener.local_addr()?;
        bound.push(Bound::Tcp(listener));
    }
    if wanted.udp {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(options.v6_only)?;
        }
        set_common_options(&SockRef::from(&socket), options)?;
        if options.takes_up_datagrams {
            transparent::take_up(&socket)?;
        }
        socket.set_reuse_port(wanted.beside)?;
        socket.bind(&address.into())?;
        socket.set_reuse_port(true)?;
        bound.push(Bound::Udp(UdpSocket::from_std(socket.into())?));
    }
    Ok(bound)
}

/// The file of a unix socket, and the lock that says whose it is. Both are removed when this is dropped.
pub(crate) struct SocketFile {
    path: PathBuf,
    lock: PathBuf,
    _locked: File,
}

impl SocketFile {
    /// Gives the socket these permissions.
    pub(crate) fn permit(&self, mode: u32) -> io::Result<()> {
        std::fs::set_permissions(&self.path, Permissions::from_mode(mode))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // In this order: whoever finds no lock may take the path, and must not lose its socket to us.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.lock);
    }
}

/// Takes the lock of a path, which a server holds for as long as it listens there and the system lets go of if it dies.
fn lock(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    loop {
        // A lock is no place for a link that somebody else has put there.
        let no_links = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(no_links)
            .open(&name)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let what = format!("another server listens here: it holds {}", name.display());
                return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
            }
            Err(error) => return Err(error.into()),
        }
        // Its last holder may have removed it between the two calls; then the lock is one of nothing.
        let ours = file.metadata()?;
        match std::fs::symlink_metadata(&name) {
            Ok(found) if found.ino() == ours.ino() && found.dev() == ours.dev() => return Ok((name, file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// True if nobody listens at the socket `path`. Does not wait: a program whose queue is full is there as well.
fn is_abandoned(path: &Path) -> io::Result<bool> {
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    let answer = probe.connect(&SockAddr::unix(path)?);
    // Anything else, such as a socket for datagrams or one that we may not use, is somebody's.
    Ok(answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused))
}

fn bind_unix(name: &UnixName, mode: Option<u32>) -> io::Result<(UnixListener, Option<SocketFile>)> {
    let UnixName::Path(path) = name else {
        return listen_unix(name).map(|listener| (listener, None));
    };
    let (lock, locked) = lock(path)?;
    // From here on an error removes the lock again, but not what somebody else has at the path.
    let taken = || {
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => {
                // Left behind by a server that is gone, unless a program without our lock answers.
                if !is_abandoned(path)? {
                    let what = "another program listens here";
                    return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
                }
                std::fs::remove_file(path)?;
            }
            Ok(_) => {
                let what = "there is a file of another kind; remove it or choose another path";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
            }
            Err(_) => {}
        }
        let listener = listen_unix(name)?;
        if let Some(mode) = mode {
            std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        Ok(listener)
    };
    match taken() {
        Ok(listener) => {
            let file = SocketFile {
                path: path.clone(),
                lock,
                _locked: locked,
            };
            Ok((listener, Some(file)))
        }
        Err(error) => {
            let _ = std::fs::remove_file(lock);
            Err(error)
        }
    }
}

fn listen_unix(name: &UnixName) -> io::Result<UnixListener> {
    let listener = std::os::unix::net::UnixListener::bind_addr(&unix_address(name)?)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}
