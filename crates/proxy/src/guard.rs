//! Which addresses may be dialled.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sealway_v2ray::Network;

use crate::Error;
use crate::settings::{FinalRule, IpMatch};

/// True for addresses that mean nothing on the Internet: private, shared, loopback, link-local, multicast,
/// documentation, benchmarking and reserved ones (IANA special-purpose registries, RFC 6890 and its updates).
pub(crate) fn is_private(ip: IpAddr) -> bool {
    const V4: [(u32, u32); 15] = [
        (0x0000_0000, 8),
        (0x0a00_0000, 8),
        (0x6440_0000, 10),
        (0x7f00_0000, 8),
        (0xa9fe_0000, 16),
        (0xac10_0000, 12),
        (0xc000_0000, 24),
        (0xc000_0200, 24),
        (0xc058_6300, 24),
        (0xc0a8_0000, 16),
        (0xc612_0000, 15),
        (0xc633_6400, 24),
        (0xcb00_7100, 24),
        (0xe000_0000, 4),
        (0xf000_0000, 4),
    ];
    match ip.to_canonical() {
        IpAddr::V4(v4) => V4.iter().any(|&(net, len)| (u32::from(v4) ^ net) >> (32 - len) == 0),
        IpAddr::V6(v6) => {
            let [a, b, ..] = v6.segments();
            // NAT64 reaches IPv4 hosts; the address inside decides.
            if (a, b) == (0x64, 0xff9b) && v6.segments()[2..6] == [0; 4] {
                let [.., p, q, r, s] = v6.octets();
                return is_private(IpAddr::from([p, q, r, s]));
            }
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || a & 0xfe00 == 0xfc00
                || a & 0xffc0 == 0xfe80
                || (a, b) == (0x2001, 0xdb8)
        }
    }
}

/// True if the address is in the set.
pub(crate) fn fits(set: &IpMatch, ip: IpAddr) -> bool {
    match set {
        IpMatch::Private => is_private(ip),
        IpMatch::Not(set) => !fits(set, ip),
        IpMatch::Cidr(net, len) => match (net.to_canonical(), ip.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => {
                let keep = u32::MAX.checked_shl(32 - u32::from(*len).min(32)).unwrap_or(0);
                (u32::from(net) ^ u32::from(ip)) & keep == 0
            }
            (IpAddr::V6(net), IpAddr::V6(ip)) => {
                let keep = u128::MAX.checked_shl(128 - u32::from(*len).min(128)).unwrap_or(0);
                (u128::from(net) ^ u128::from(ip)) & keep == 0
            }
            _ => false,
        },
    }
}

/// What is checked just before dialling, after names have been resolved.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) rules: Arc<[FinalRule]>,
    /// The client is not on this machine's own network, so it has no business there.
    pub(crate) remote: bool,
}

impl Guard {
    /// Allows or refuses an address.
    ///
    /// # Errors
    /// [`Error::Forbidden`] with the name of the rule.
    pub(crate) fn check(&self, to: SocketAddr, network: Network) -> Result<(), Error> {
        for rule in self.rules.iter() {
            let here = rule.network.is_none_or(|n| n == network)
                && (rule.ports.is_empty() || rule.ports.iter().any(|&(low, high)| (low..=high).contains(&to.port())))
                && (rule.ips.is_empty() || rule.ips.iter().any(|set| fits(set, to.ip())));
            if here {
                return if rule.allow { Ok(()) } else { Err(forbidden(to, "a finalRules entry")) };
            }
        }
        if self.remote && is_private(to.ip()) {
            return Err(forbidden(
                to,
                "the guard of private addresses (remote clients may not reach them; allow it with finalRules)",
            ));
        }
        Ok(())
    }
}

fn forbidden(to: SocketAddr, rule: &'static str) -> Error {
    Error::Forbidden {
        target: to.to_string(),
        rule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_means_not_on_the_internet() {
        for private in [
            "10.1.2.3", "127.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
            "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1",
            "64:ff9b::10.0.0.1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::8.8.8.8", "192.1.0.1"] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn networks_fit_to_the_bit() {
        let cidr = |net: &str, len| IpMatch::Cidr(net.parse().unwrap(), len);
        let ip = |text: &str| text.parse().unwrap();
        assert!(fits(&cidr("192.0.2.0", 25), ip("192.0.2.127")));
        assert!(!fits(&cidr("192.0.2.0", 25), ip("192.0.2.128")));
        assert!(fits(&cidr("0.0.0.0", 0), ip("203.0.113.9")));
        assert!(!fits(&cidr("0.0.0.0", 0), ip("2001:db8::1")));
        assert!(fits(&cidr("2001:db8::", 33), ip("2001:db8:7fff::")));
        assert!(!fits(&cidr("2001:db8::", 33), ip("2001:db8:8000::")));
        assert!(fits(&cidr("192.0.2.7", 32), ip("::ffff:192.0.2.7")));
        assert!(fits(&IpMatch::Not(Box::new(IpMatch::Private)), ip("1.1.1.1")));
    }

    #[test]
    fn final_rules_go_before_the_guard() {
        let home: SocketAddr = "192.168.1.5:80".parse().unwrap();
        let guard = |remote, rules: Vec<FinalRule>| Guard { rules: rules.into(), remote };
        assert!(guard(false, vec![]).check(home, Network::Tcp).is_ok());
        assert!(guard(true, vec![]).check(home, Network::Tcp).is_err());
        let rule = |allow, network| FinalRule {
            allow,
            network,
            ports: vec![(80, 80)],
            ips: vec![IpMatch::Private],
        };
        let allow = guard(true, vec![rule(true, Some(Network::Tcp))]);
        assert!(allow.check(home, Network::Tcp).is_ok());
        assert!(allow.check(home, Network::Udp).is_err());
        assert!(guard(false, vec![rule(false, None)]).check(home, Network::Udp).is_err());
    }
}
