//! Whether an address is one of this machine.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, connect_unspec, getsockname, socket_with};
use sealway_net::sock::unmapped;

/// How long the last answer holds.
const HOLDS: Duration = Duration::from_secs(1);

/// One a family.
static PROBES: [Mutex<Option<Probe>>; 2] = [const { Mutex::new(None) }; 2];

/// A socket that asks the system, kept so that nobody who takes all descriptors has the question fail.
struct Probe {
    socket: OwnedFd,
    last: Option<(SocketAddr, bool, Instant)>,
}

/// True if the address is one of this machine, or nothing can be found out. Sends nothing: the system says which of our addresses
/// it would send from, and to itself it sends from the address itself.
pub(crate) fn is_here(to: SocketAddr) -> bool {
    // Whatever the port is.
    let mut to = unmapped(to);
    to.set_port(9);
    if to.ip().is_loopback() || to.ip().is_unspecified() {
        return true;
    }
    let probe = &PROBES[usize::from(to.is_ipv6())];
    let mut probe = probe.lock().unwrap_or_else(PoisonError::into_inner);
    asked(&mut probe, to).unwrap_or(true)
}

fn asked(kept: &mut Option<Probe>, to: SocketAddr) -> Result<bool, Errno> {
    let family = if to.is_ipv6() {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let probe = match kept {
        Some(probe) => probe,
        None => match socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None) {
            Ok(socket) => kept.insert(Probe { socket, last: None }),
            // A machine without the family has no address of it.
            Err(Errno::AFNOSUPPORT) => return Ok(false),
            Err(error) => return Err(error),
        },
    };
    let now = Instant::now();
    if let Some((last, here, at)) = probe.last
        && last == to
        && now.saturating_duration_since(at) < HOLDS
    {
        return Ok(here);
    }
    // It keeps the address that it would send from until it is connected no more.
    connect_unspec(&probe.socket)?;
    let here = match connect(&probe.socket, &to) {
        Ok(()) => {
            let from: SocketAddr = getsockname(&probe.socket)?.try_into()?;
            from.ip() == to.ip()
        }
        // There is no way there, so it is not here.
        Err(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::ACCESS | Errno::INVAL) => false,
        Err(error) => return Err(error),
    };
    probe.last = Some((to, here, now));
    Ok(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_here_also_after_others() {
        let here = |text: &str| is_here(text.parse().unwrap());
        for _ in 0..2 {
            for own in [
                "127.0.0.1:1",
                "127.9.9.9:1",
                "[::1]:1",
                "0.0.0.0:0",
                "[::ffff:127.0.0.1]:1",
            ] {
                assert!(here(own), "{own}");
            }
            assert!(!here("192.0.2.1:1") && !here("[2001:db8::1]:1"));
            // The machine's other address, where it has one.
            let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            if probe.connect("192.0.2.1:9").is_ok() {
                let ip = probe.local_addr().unwrap().ip();
                assert!(is_here(SocketAddr::new(ip, 1)), "{ip}");
            }
        }
    }

    #[test]
    fn what_cannot_be_found_out_is_here() {
        // A socket that is none stands for a system that does not answer.
        let (end, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut broken = Some(Probe {
            socket: end.into(),
            last: None,
        });
        let to = "192.0.2.1:9".parse().unwrap();
        assert!(asked(&mut broken, to).is_err());
    }
}
