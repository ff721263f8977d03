//! Which addresses may be dialled.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sealway_v2ray::Network;

use crate::Error;
use crate::settings::FinalRule;

/// True for addresses that mean nothing on the Internet, or that a translator to IPv4 (RFC 6052) would take to such a one.
pub(crate) fn is_private(ip: IpAddr) -> bool {
    if let IpAddr::V6(v6) = ip
        && v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0]
    {
        let [.., a, b, c, d] = v6.octets();
        return is_private(IpAddr::from([a, b, c, d]));
    }
    sealway_v2ray::config::is_private(ip)
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
                && (rule.ips.is_empty() || rule.ips.iter().any(|set| set.matches(to.ip())));
            if here {
                return if rule.allow {
                    Ok(())
                } else {
                    Err(forbidden(to, "a finalRules entry"))
                };
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
    use crate::settings::IpMatch;

    #[test]
    fn private_means_not_on_the_internet() {
        for private in [
            "10.1.2.3",
            "127.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "64:ff9b::10.0.0.1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::8.8.8.8",
            "192.1.0.1",
        ] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn final_rules_go_before_the_guard() {
        let home: SocketAddr = "192.168.1.5:80".parse().unwrap();
        let guard = |remote, rules: Vec<FinalRule>| Guard {
            rules: rules.into(),
            remote,
        };
        assert!(guard(false, vec![]).check(home, Network::Tcp).is_ok());
        assert!(guard(true, vec![]).check(home, Network::Tcp).is_err());
        let rule = |allow, network| FinalRule {
            allow,
            network,
            ports: vec![(80, 80)],
            ips: vec![IpMatch::Private(true)],
        };
        let allow = guard(true, vec![rule(true, Some(Network::Tcp))]);
        assert!(allow.check(home, Network::Tcp).is_ok());
        assert!(allow.check(home, Network::Udp).is_err());
        assert!(guard(false, vec![rule(false, None)]).check(home, Network::Udp).is_err());
    }
}
