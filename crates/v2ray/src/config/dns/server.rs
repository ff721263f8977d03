//! `dns.servers`: whom to ask.

use std::net::IpAddr;
use std::time::Duration;

use super::{CacheStrategy, QueryStrategy};
use crate::Address;
use crate::config::context::{Cx, quoted};
use crate::config::net::{DomainMatches, IpMatches};
use crate::config::ports::Port;
use crate::config::scalar::Name;
use crate::config::schema::Kind;
use crate::config::table::{Decode, object};
use crate::json::{Data, Value};
use crate::problem::At;

object! {
    /// A DNS server with conditions.
    pub(crate) struct DnsServerSettings: "dns.servers[]" {
        /// The server: `1.1.1.1`, `1.1.1.1:5353`, `tcp://host`, `tls://host`, `https://host/path`, `h2c://host/path`, the last four
        /// also with `+local` to go straight from here, not by the routing, with the `sockopt.mark` of the first outbound that has one;
        /// `localhost` for the system's resolver, or `fakedns`, behind which no other is asked.
        address: At<String> = "address", required;
        /// Its port, where `address` is a plain address.
        port: Port = "port", default "53";
        /// It is asked first for these names.
        domains: DomainMatches = "domains";
        /// Only addresses of these networks count. With `*` in the list they are only preferred.
        expected_ips: DnsIps = "expectedIPs" | "expectIPs";
        /// Addresses of these networks do not count. With `*` in the list others are only preferred.
        unexpected_ips: DnsIps = "unexpectedIPs";
        /// Do not ask it for other names.
        skip_fallback: bool = "skipFallback", default "false";
        /// Families of addresses to ask for.
        query_strategy: Option<QueryStrategy> = "queryStrategy";
        /// The address whose network (/24, /96) it is told as the client's.
        client_ip: Option<IpAddr> = "clientIp";
        /// The inbound tag its queries have in the routing.
        tag: Name = "tag";
        /// How long to wait for an answer, milliseconds. 0: 4000.
        timeout_ms: u32 = "timeoutMs", default "4000";
        /// Keep no answers of it.
        disable_cache: Option<bool> = "disableCache";
        /// Answer with what has expired, and ask anew at the same time.
        serve_stale: Option<bool> = "serveStale";
        /// How long after its end an answer may still be served, seconds. 0: for as long as it is kept.
        serve_expired_ttl: Option<u32> = "serveExpiredTTL";
        /// Ask no server behind it, whatever comes of the question.
        final_query: bool = "finalQuery", default "false";
        /// Whether answers of it are kept (V2Ray's word for `disableCache`).
        cache_strategy: Option<CacheStrategy> = "cacheStrategy";
    }
    other {
        LaterError "fakedns": "pools of fake addresses of one server (`fakedns`)";
        LaterError "fallbackStrategy": "`fallbackStrategy` of one server; write `skipFallback`";
        Accepted "domainMatcher": "";
    }
}

/// How long a server is waited for, milliseconds.
const TIMEOUT: u32 = 4000;

/// Networks of answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DnsIps {
    /// The networks.
    pub ips: IpMatches,
    /// They are preferred, not required.
    pub prefer: bool,
}

impl Decode for DnsIps {
    fn kind() -> Kind {
        Kind::text("list of IP conditions as in rules, and `*`")
    }

    fn decode(mut value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let star = |value: &Value| matches!(&value.data, Data::String(text) if text.trim() == "*");
        if star(&value) {
            return Some(DnsIps {
                ips: IpMatches::default(),
                prefer: true,
            });
        }
        let mut prefer = false;
        if let Data::Array(values) = &mut value.data {
            let all = values.len();
            values.retain(|value| !star(value));
            prefer = values.len() < all;
        }
        IpMatches::decode(value, cx).map(|ips| DnsIps { ips, prefer })
    }
}

/// How a server is asked.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DnsTransport {
    /// Datagrams; streams where an answer does not fit.
    Udp,
    /// Streams.
    Tcp,
    /// TLS (RFC 7858).
    Tls,
    /// HTTP/2 over TLS (RFC 8484).
    Https,
    /// HTTP/2 in the clear.
    H2c,
}

impl DnsTransport {
    fn port(self) -> u16 {
        match self {
            DnsTransport::Udp | DnsTransport::Tcp => 53,
            DnsTransport::Tls => 853,
            DnsTransport::Https => 443,
            DnsTransport::H2c => 80,
        }
    }
}

/// Where a server is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DnsAddress {
    /// `localhost`: the system's resolver.
    System,
    /// `fakedns`: addresses that stand for names.
    Fake,
    /// A server.
    Server {
        /// How it is asked.
        transport: DnsTransport,
        /// Straight from here, not by the routing.
        local: bool,
        /// Its host.
        host: Address,
        /// Its port.
        port: u16,
        /// The path of its requests; empty where there are none.
        path: String,
    },
}

impl DnsAddress {
    /// Reads an address as it is written. `port`: that of a plain address without one.
    fn read(text: &At<String>, port: u16, cx: &mut Cx<'_>) -> Option<DnsAddress> {
        let plain = text.trim();
        if plain.eq_ignore_ascii_case("localhost") {
            return Some(DnsAddress::System);
        }
        if plain.eq_ignore_ascii_case("fakedns") {
            return Some(DnsAddress::Fake);
        }
        let (scheme, rest) = plain.split_once("://").unwrap_or(("udp", plain));
        let scheme = scheme.to_ascii_lowercase();
        let (word, local) = match scheme.strip_suffix("+local") {
            Some(word) => (word, true),
            None => (scheme.as_str(), false),
        };
        let transport = match word {
            "udp" => DnsTransport::Udp,
            "tcp" => DnsTransport::Tcp,
            "tls" => DnsTransport::Tls,
            "https" => DnsTransport::Https,
            "h2c" => DnsTransport::H2c,
            "quic" => {
                let what = format!("DNS over QUIC, as {} needs", quoted(plain));
                cx.later_but(
                    text.at,
                    &what,
                    "most such servers answer over HTTPS too: write https+local://",
                );
                return None;
            }
            _ => {
                let hint = "write an address, or tcp://, tls://, https:// or h2c://, each also with +local";
                cx.error(
                    text.at,
                    format!("{} is no address of a DNS server", quoted(plain)),
                    hint,
                );
                return None;
            }
        };
        let (host, path) = match rest.find(['/', '?']) {
            Some(at) if rest[at..].starts_with('?') => (&rest[..at], format!("/{}", &rest[at..])),
            Some(at) => (&rest[..at], rest[at..].to_owned()),
            None => (rest, String::new()),
        };
        let web = matches!(transport, DnsTransport::Https | DnsTransport::H2c);
        let usual = if plain.contains("://") { transport.port() } else { port };
        let wrong = |cx: &mut Cx<'_>| {
            let hint = "write 1.1.1.1, 1.1.1.1:5353, tcp://host or https://host/dns-query";
            cx.error(
                text.at,
                format!("{} is no address of a DNS server", quoted(plain)),
                hint,
            );
            None
        };
        if !web && path.len() > 1 || !path.bytes().all(|b| b.is_ascii_graphic()) {
            return wrong(cx);
        }
        let bare = host.parse::<IpAddr>().is_ok() || host.starts_with('[') && host.ends_with(']');
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !bare => match port.parse() {
                Ok(port) if port > 0 => (name, port),
                _ => return wrong(cx),
            },
            _ => (host, usual),
        };
        let Ok(address) = Address::parse(name) else {
            return wrong(cx);
        };
        Some(DnsAddress::Server {
            transport,
            local,
            host: address,
            port,
            path: match (web, path.is_empty()) {
                (true, true) => "/".to_owned(),
                (true, false) => path,
                (false, _) => String::new(),
            },
        })
    }
}

/// A DNS server.
#[derive(Clone, Debug, PartialEq)]
pub struct DnsServer {
    /// Where it is.
    pub address: DnsAddress,
    /// It is asked first for these names.
    pub domains: DomainMatches,
    /// Only such addresses count, or are preferred.
    pub expected_ips: DnsIps,
    /// Such addresses do not count, or others are preferred.
    pub unexpected_ips: DnsIps,
    /// It is not asked for names that its condition does not fit.
    pub skip_fallback: bool,
    /// Families of addresses to ask for.
    pub query_strategy: Option<QueryStrategy>,
    /// The address whose network it is told as the client's.
    pub client_ip: Option<IpAddr>,
    /// The inbound tag its queries have in the routing.
    pub tag: String,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// Keep no answers of it.
    pub disable_cache: Option<bool>,
    /// Answer with what has expired, and ask anew at the same time.
    pub serve_stale: Option<bool>,
    /// How long after its end an answer may still be served, seconds. 0: for as long as it is kept.
    pub serve_expired_ttl: Option<u32>,
    /// No server behind it is asked.
    pub final_query: bool,
}

impl Decode for DnsServer {
    fn kind() -> Kind {
        Kind::Object(DnsServerSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        // A text is an object with nothing but an address.
        let value = match value.data {
            Data::String(_) => {
                let key = "address".into();
                let member = crate::json::Member { key, at, value };
                Value {
                    at,
                    data: Data::Object(vec![member]),
                }
            }
            _ => value,
        };
        let s = DnsServerSettings::decode(value, cx)?;
        Some(DnsServer {
            address: DnsAddress::read(&s.address, s.port.0, cx)?,
            domains: s.domains,
            expected_ips: s.expected_ips,
            unexpected_ips: s.unexpected_ips,
            skip_fallback: s.skip_fallback,
            query_strategy: s.query_strategy,
            client_ip: s.client_ip,
            tag: s.tag.0,
            timeout: Duration::from_millis(u64::from(if s.timeout_ms == 0 { TIMEOUT } else { s.timeout_ms })),
            disable_cache: s
                .disable_cache
                .or(s.cache_strategy.map(|word| word == CacheStrategy::Disabled)),
            serve_stale: s.serve_stale,
            serve_expired_ttl: s.serve_expired_ttl,
            final_query: s.final_query,
        })
    }
}
