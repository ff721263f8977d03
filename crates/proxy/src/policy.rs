//! Which addresses may be dialled: final rules of the outbound, then private networks closed to clients from outside.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sealway_v2ray::{Destination, Network};

use crate::Error;
use crate::lists::{Addresses, Lists};
use crate::loops::is_here;
use crate::settings::{FinalRule, IpMatch};

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

/// Private addresses that are open all the same, for the rule names them which led here. Whoever writes such a rule means
/// them.
pub(crate) type Exempt = Arc<[IpMatch]>;

/// The addresses that a rule with these conditions lets pass. A condition that fits any address, such as `0.0.0.0/0`, names
/// none in particular.
pub(crate) fn exempt(conditions: &[IpMatch]) -> Option<Exempt> {
    let private = conditions.iter().filter(|one| one.is_private_only()).cloned();
    let private: Exempt = private.collect();
    (!private.is_empty()).then_some(private)
}

/// A final rule whose addresses can be asked. Addresses that are not given are `None`.
#[derive(Debug)]
pub(crate) struct Final {
    rule: FinalRule,
    ips: Option<Addresses>,
}

impl Final {
    /// Whether the rule is for this port and network, leaving aside the address.
    fn covers(&self, port: u16, network: Network) -> bool {
        let rule = &self.rule;
        rule.network.is_none_or(|one| one == network)
            && (rule.ports.is_empty() || rule.ports.iter().any(|&(low, high)| (low..=high).contains(&port)))
    }
}

/// Makes sets of the addresses of final rules.
///
/// # Errors
/// [`Error::Config`] for a list of a geo file that cannot be had.
pub(crate) fn finals(rules: &[FinalRule], lists: &Lists) -> Result<Arc<[Final]>, Error> {
    let make = |rule: &FinalRule| {
        let ips = match rule.ips.as_slice() {
            [] => None,
            some => Some(lists.addresses(some)?),
        };
        Ok(Final {
            rule: rule.clone(),
            ips,
        })
    };
    rules.iter().map(make).collect()
}

/// What is checked just before dialling, after names have been resolved.
#[derive(Clone, Debug)]
pub(crate) struct DialPolicy {
    pub(crate) rules: Arc<[Final]>,
    /// The client is not on this machine, so it has no business on its networks.
    pub(crate) remote: bool,
    /// The firewall has led its packets here. This machine itself is closed to it, at every address that nothing names alone: what
    /// the machine has for others, they reach without the proxy.
    pub(crate) captured: bool,
    /// It is of a private network as well: private targets are open to it.
    pub(crate) neighbour: bool,
    /// Where it has business all the same.
    pub(crate) exempt: Option<Exempt>,
}

impl DialPolicy {
    /// Allows or refuses an address.
    ///
    /// # Errors
    /// [`Error::Forbidden`] with the name of the rule.
    pub(crate) fn check(&self, to: SocketAddr, network: Network) -> Result<(), Error> {
        let closed = self.captured && is_here(to);
        let names = |conditions: &[IpMatch]| conditions.iter().any(|one| names_alone(one, to.ip()));
        for one in self.rules.iter() {
            if one.covers(to.port(), network) && one.ips.as_ref().is_none_or(|set| set.matches(to.ip())) {
                if !one.rule.allow {
                    return Err(forbidden(&to, FINAL_RULE));
                }
                if !closed || names(&one.rule.ips) {
                    return Ok(());
                }
            }
        }
        let exempt = self.exempt.as_deref().unwrap_or_default();
        if closed && !names(exempt) {
            return Err(forbidden(
                &to,
                "the guard of private addresses (this machine is closed to clients that the firewall has led here; finalRules of the \
                 freedom outbound or a rule with this very ip allow it)",
            ));
        }
        let is_exempt = || exempt.iter().any(|one| one.matches(to.ip()));
        if self.remote && !self.neighbour && is_private(to.ip()) && !is_exempt() {
            return Err(forbidden(
                &to,
                "the guard of private addresses (clients from outside may not reach them; finalRules of the freedom outbound \
                 or a rule with this ip allow it)",
            ));
        }
        Ok(())
    }

    /// Allows or refuses a target whose name another outbound is to resolve. `Ok(false)`: that depends on its address.
    ///
    /// # Errors
    /// [`Error::Forbidden`] with the name of the rule.
    pub(crate) fn check_name(&self, to: &Destination) -> Result<bool, Error> {
        match self.rules.iter().find(|one| one.covers(to.port, to.network)) {
            None => Ok(true),
            Some(Final { ips: Some(_), .. }) => Ok(false),
            Some(one) if one.rule.allow => Ok(true),
            Some(_) => Err(forbidden(to, FINAL_RULE)),
        }
    }
}

/// Whether a condition names this address and no other.
fn names_alone(condition: &IpMatch, ip: IpAddr) -> bool {
    matches!(condition, IpMatch::Net(net) if net.prefix_len() == net.max_prefix_len()) && condition.matches(ip)
}

const FINAL_RULE: &str = "a finalRules entry";

fn forbidden(to: &dyn Display, rule: &'static str) -> Error {
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
    fn final_rules_go_before_private_networks() {
        let home: SocketAddr = "192.168.1.5:80".parse().unwrap();
        let policy = |remote, rules: Vec<FinalRule>| DialPolicy {
            rules: finals(&rules, &Lists::default()).unwrap(),
            remote,
            captured: false,
            neighbour: false,
            exempt: None,
        };
        assert!(policy(false, vec![]).check(home, Network::Tcp).is_ok());
        assert!(policy(true, vec![]).check(home, Network::Tcp).is_err());
        let rule = |allow, network| FinalRule {
            allow,
            network,
            ports: vec![(80, 80)],
            ips: vec![IpMatch::Private(true)],
        };
        let allow = policy(true, vec![rule(true, Some(Network::Tcp))]);
        assert!(allow.check(home, Network::Tcp).is_ok());
        assert!(allow.check(home, Network::Udp).is_err());
        assert!(
            policy(false, vec![rule(false, None)])
                .check(home, Network::Udp)
                .is_err()
        );
    }

    #[test]
    fn a_rule_lets_pass_the_private_addresses_that_it_names() {
        let net = |text: &str| IpMatch::Net(text.parse().unwrap());
        let passes = |conditions: &[IpMatch], to: &str| {
            let policy = DialPolicy {
                rules: [].into(),
                remote: true,
                captured: false,
                neighbour: false,
                exempt: exempt(conditions),
            };
            policy.check(to.parse().unwrap(), Network::Tcp).is_ok()
        };
        for named in [
            IpMatch::Private(true),
            net("192.168.0.0/16"),
            net("192.168.1.0/24"),
            net("192.168.1.5/32"),
        ] {
            assert!(passes(std::slice::from_ref(&named), "192.168.1.5:80"), "{named:?}");
            assert!(passes(&[net("1.1.1.0/24"), named], "192.168.1.5:80"));
        }
        for other in [
            net("0.0.0.0/0"),
            net("192.0.0.0/8"),
            net("192.168.2.0/24"),
            net("10.0.0.0/8"),
            net("::/0"),
            IpMatch::Private(false),
        ] {
            assert!(!passes(std::slice::from_ref(&other), "192.168.1.5:80"), "{other:?}");
        }
        assert!(!passes(&[], "192.168.1.5:80"));
        // What a translator makes of it is not what the rule names.
        assert!(!passes(&[net("10.0.0.0/8")], "[64:ff9b::10.0.0.1]:80"));
        assert!(passes(&[IpMatch::Private(true)], "[64:ff9b::10.0.0.1]:80"));
    }

    #[test]
    fn a_gateway_is_closed_to_whom_it_leads_unless_it_is_named_alone() {
        let net = |text: &str| IpMatch::Net(text.parse().unwrap());
        let rule = |ips: Vec<IpMatch>, allow| FinalRule {
            allow,
            network: None,
            ports: vec![],
            ips,
        };
        let passes = |finally: Vec<FinalRule>, conditions: &[IpMatch], to: &str| {
            let policy = DialPolicy {
                rules: finals(&finally, &Lists::default()).unwrap(),
                remote: true,
                captured: true,
                neighbour: true,
                exempt: exempt(conditions),
            };
            policy.check(to.parse().unwrap(), Network::Udp).is_ok()
        };
        for here in [
            "127.0.0.1:80",
            "[::1]:80",
            "0.0.0.0:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:0.0.0.0]:80",
        ] {
            for conditions in [&[][..], &[IpMatch::Private(true)], &[net("127.0.0.0/8"), net("::/127")]] {
                assert!(!passes(vec![], conditions, here), "{here} {conditions:?}");
            }
            assert!(!passes(vec![rule(vec![], true)], &[], here));
            assert!(!passes(vec![rule(vec![IpMatch::Private(true)], true)], &[], here));
        }
        assert!(passes(vec![], &[net("127.0.0.1/32")], "127.0.0.1:80"));
        assert!(!passes(vec![], &[net("127.0.0.1/32")], "127.0.0.2:80"));
        let named = rule(vec![net("127.0.0.1/32")], true);
        assert!(passes(vec![rule(vec![], true), named.clone()], &[], "127.0.0.1:80"));
        assert!(!passes(vec![rule(vec![], false), named], &[], "127.0.0.1:80"));
        // Hosts beside it are open to neighbours.
        assert!(passes(vec![], &[], "192.0.2.1:80"));
        assert!(passes(vec![], &[], "10.255.255.1:80"));
    }
}
