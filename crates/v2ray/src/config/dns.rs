//! `dns`: name resolution.

use std::net::IpAddr;

use super::context::{Cx, quoted};
use super::net::DomainMatch;
use super::ports::Port;
use super::scalar::Texts;
use super::schema::{Kind, Loses};
use super::table::{Decode, object, words};
use crate::Address;
use crate::json::{Data, Member, Value};
use crate::problem::At;

words! {
    /// The families of addresses to ask DNS for.
    pub enum QueryStrategy {
        /// Both.
        UseIp = "UseIP" | "UseIPv4v6" | "UseIPv6v4" | "UseSystem" | "";
        /// IPv4 only.
        UseIpv4 = "UseIPv4";
        /// IPv6 only.
        UseIpv6 = "UseIPv6";
    }
}

#[allow(clippy::derivable_impls, reason = "a macro declares the enumeration")]
impl Default for QueryStrategy {
    fn default() -> Self {
        QueryStrategy::UseIp
    }
}

object! {
    /// Name resolution. The system's resolver answers what `hosts` does not.
    pub struct Dns: "dns" {
        /// Servers to ask. Only "localhost", the system's resolver, is supported yet; of plain servers a warning tells, and
        /// those that seal queries (`https://`, `quic+local://`) are an error.
        servers: Vec<DnsServer> = "servers";
        /// Fixed answers: a name, or a domain condition, and its address, addresses, or another name.
        hosts: Hosts = "hosts";
        /// Families of addresses to ask for.
        query_strategy: QueryStrategy = "queryStrategy", default "\"UseIP\"";
    }
    other {
        Accepted "disableCache": "No answers are kept anyway.";
        LaterWarning "clientIp": "DNS queries with a client subnet";
        LaterError "tag": "DNS queries through the routing (`tag`), which may lead them through a proxy";
        LaterWarning "disableFallback": "a choice among DNS servers";
        LaterWarning "disableFallbackIfMatch": "a choice among DNS servers";
        LaterWarning "useSystemHosts": "`useSystemHosts`; the system's resolver reads its hosts file anyway";
        LaterWarning "enableParallelQuery": "parallel DNS queries";
        LaterWarning "serveStale": "stale DNS answers";
        LaterWarning "serveExpiredTTL": "stale DNS answers";
    }
}

object! {
    /// A DNS server with conditions.
    pub(crate) struct DnsServerSettings: "dns.servers[]" {
        /// The server.
        address: At<String> = "address", required;
        /// Its port.
        port: Port = "port", default "53";
        /// Only for these names.
        domains: Texts = "domains";
        /// Only answers within these networks count.
        expected_ips: Texts = "expectedIPs" | "expectIPs";
        /// Do not ask it for other names.
        skip_fallback: bool = "skipFallback", default "false";
        /// Families of addresses to ask for.
        query_strategy: Option<QueryStrategy> = "queryStrategy";
        /// The client subnet to send.
        client_ip: Option<IpAddr> = "clientIp";
        /// The inbound tag its queries have in the routing.
        tag: String = "tag";
        /// How long to wait for an answer, milliseconds.
        timeout_ms: Option<u32> = "timeoutMs";
    }
}

/// A DNS server. Only [`DnsServer::System`] is used yet; of others a warning tells, or an error where they seal queries.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DnsServer {
    /// `localhost`: the system's resolver.
    System,
    /// Another server, as it was written.
    Other(String),
}

impl Decode for DnsServer {
    fn kind() -> Kind {
        Kind::Object(DnsServerSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let (address, conditions) = match value.data {
            Data::String(text) => (At { value: text, at }, false),
            _ => {
                let s = DnsServerSettings::decode(value, cx)?;
                let texts = !s.domains.is_empty() || !s.expected_ips.is_empty() || !s.tag.is_empty();
                let switches = s.skip_fallback || s.query_strategy.is_some() || s.client_ip.is_some();
                (s.address, texts || switches || s.timeout_ms.is_some() || s.port.0 != 53)
            }
        };
        if address.eq_ignore_ascii_case("localhost") {
            if conditions {
                let what = "conditions of the server \"localhost\"; the system's resolver is asked for every name";
                cx.later(Loses::Ease, at, what);
            }
            return Some(DnsServer::System);
        }
        // The system's resolver asks in the clear, so it cannot stand in for what is sealed.
        let what = format!("the DNS server {}", quoted(&address));
        if is_sealed(&address) {
            let hint =
                "the system's resolver would ask in the clear; have it ask a sealed server, and write \"localhost\"";
            cx.later_but(address.at, &what, hint);
        } else {
            let what = format!("{what}; the system's resolver answers instead");
            cx.later(Loses::Ease, address.at, &what);
        }
        Some(DnsServer::Other(address.value))
    }
}

/// Whether a server is asked through something sealed, as `https://`, `https+local://`, `h2c://` and `quic+local://` are, or
/// in a way that we do not know.
fn is_sealed(server: &str) -> bool {
    let scheme = server.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| !matches!(scheme.as_str(), "udp" | "tcp" | "tcp+local"))
}

/// Fixed answers by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hosts(Vec<(DomainMatch, HostAnswer)>);

impl Hosts {
    /// The answer for a name: that of the first condition that holds. Letter case and a dot at the end make no difference.
    pub fn answer(&self, name: &str) -> Option<&HostAnswer> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        self.0
            .iter()
            .find(|(condition, _)| condition.matches(&name))
            .map(|(_, answer)| answer)
    }
}

impl Decode for Hosts {
    fn kind() -> Kind {
        Kind::Map(Box::new(HostAnswer::kind()))
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let Data::Object(members) = value.data else {
            cx.wrong_type(&value, "an object");
            return None;
        };
        let wanted = members.len();
        let one = |member: Member| {
            // A bare name stands for itself here, not for a part of names as in rules.
            let text = if member.key.contains(':') {
                member.key.clone()
            } else {
                format!("full:{}", member.key)
            };
            cx.within(&member.key, |cx| {
                let condition = DomainMatch::read(
                    &At {
                        value: text,
                        at: member.at,
                    },
                    cx,
                );
                if let Some(DomainMatch::List(_)) = condition {
                    cx.later(Loses::Protection, member.at, "lists of geo files in `hosts`");
                    return None;
                }
                Some((condition?, HostAnswer::decode(member.value, cx)?))
            })
        };
        let hosts: Vec<_> = members.into_iter().filter_map(one).collect();
        (hosts.len() == wanted).then_some(Hosts(hosts))
    }
}

/// A fixed answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostAnswer(
    /// Addresses, or one other name to resolve instead.
    pub Vec<Address>,
);

impl Decode for HostAnswer {
    fn kind() -> Kind {
        Kind::text("address, name, or list of addresses")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        match value.data {
            Data::Array(_) => Vec::<Address>::decode(value, cx).map(HostAnswer),
            _ => Address::decode(value, cx).map(|address| HostAnswer(vec![address])),
        }
    }
}
