//! No loops: a server does not dial the addresses that it listens on itself.
//!
//! A request that comes back to the inbound it came from goes out again, until no descriptors are left. What stands in a
//! configuration cannot tell: a client may name the address, or a name that leads to it.

mod here;
pub(crate) mod own;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use sealway_net::sock::unmapped;
use sealway_v2ray::Network;

use crate::Error;
use crate::settings::{Inbound, InboundProtocol};

pub(crate) use here::is_here;

/// An address with a listener behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) network: Network,
    /// It takes connections to IPv6 addresses only.
    pub(crate) v6_only: bool,
}

impl Listener {
    /// True if what is sent to this address comes here.
    pub(crate) fn is_at(&self, to: SocketAddr) -> bool {
        let (at, to) = (unmapped(self.address), unmapped(to));
        if at.port() != to.port() {
            return false;
        }
        if at.ip().is_unspecified() {
            let family = at.is_ipv4() == to.is_ipv4() || at.is_ipv6() && !self.v6_only;
            return family && is_here(to);
        }
        at.ip() == to.ip() || to.ip().is_unspecified() && at.ip().is_loopback()
    }
}

/// Listeners of this server that nothing is to be sent to.
#[derive(Debug, Default)]
pub(crate) struct LoopGuard(ArcSwap<Vec<Listener>>);

impl LoopGuard {
    /// True if what is sent to the inbound must not come from this server itself.
    ///
    /// A VLESS inbound with fallbacks is a web server to those who do not know better, and its users may want to see its page.
    pub(crate) fn is_closed_to_us(inbound: &Inbound) -> bool {
        !matches!(&inbound.protocol, InboundProtocol::Vless(vless) if !vless.fallbacks.is_empty())
    }

    /// Says what is listened on from now on.
    pub(crate) fn set(&self, listeners: Vec<Listener>) {
        // Asked now, it has what it needs later, when others may have taken every descriptor.
        for any in [
            IpAddr::from([192, 0, 2, 1]),
            IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
        ] {
            is_here(SocketAddr::new(any, 9));
        }
        self.0.store(Arc::new(listeners));
    }

    /// Refuses an address that leads back to this server.
    ///
    /// # Errors
    /// [`Error::Forbidden`].
    pub(crate) fn check(&self, to: SocketAddr, network: Network) -> Result<(), Error> {
        let listeners = self.0.load();
        match listeners
            .iter()
            .any(|listener| listener.network == network && listener.is_at(to))
        {
            false => Ok(()),
            true => Err(Error::forbidden(
                &to,
                "the guard against loops: this server listens there itself",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_leads_back_is_refused_and_nothing_else() {
        let guard = LoopGuard::default();
        let refused = |to: &str, network| guard.check(to.parse().unwrap(), network).is_err();
        assert!(!refused("127.0.0.1:1080", Network::Tcp), "nothing is listened on yet");
        let listener = |address: &str, network, v6_only| Listener {
            address: address.parse().unwrap(),
            network,
            v6_only,
        };
        guard.set(vec![
            listener("127.0.0.1:1080", Network::Tcp, false),
            listener("0.0.0.0:8080", Network::Tcp, false),
            listener("[::]:443", Network::Tcp, false),
            listener("[::]:444", Network::Tcp, true),
            listener("[::1]:53", Network::Udp, false),
        ]);
        for to in [
            "127.0.0.1:1080",
            "[::ffff:127.0.0.1]:1080",
            "0.0.0.0:1080",
            "127.0.0.1:8080",
            "127.1.2.3:8080",
            "127.0.0.1:443",
            "[::1]:443",
            "[::1]:444",
        ] {
            assert!(refused(to, Network::Tcp), "{to}");
        }
        assert!(refused("[::1]:53", Network::Udp));
        for to in [
            "127.0.0.1:1081",
            "127.0.0.2:1080",
            "[::1]:8080",
            "127.0.0.1:444",
            "[::1]:53",
            "192.0.2.1:8080",
            "192.0.2.1:443",
        ] {
            assert!(!refused(to, Network::Tcp), "{to}");
        }
        assert!(!refused("127.0.0.1:1080", Network::Udp));
        // The machine's other addresses, where it has any.
        let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
        if probe.connect("192.0.2.1:9").is_ok() {
            let ip = probe.local_addr().unwrap().ip();
            assert!(refused(&format!("{ip}:8080"), Network::Tcp), "{ip}");
            assert!(!refused(&format!("{ip}:1080"), Network::Tcp), "{ip}");
        }
    }
}
