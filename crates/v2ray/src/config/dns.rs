//! `dns`: name resolution.

mod fake;
mod hosts;
mod server;

use std::net::IpAddr;

use super::context::Cx;
use super::table::{FromKeys, object, words};
use crate::json::{Data, Value, members};
use crate::problem::Position;

pub(crate) use fake::FakeDns;
pub use fake::FakePool;
pub use hosts::{HostAnswer, Hosts};
pub use server::{DnsAddress, DnsIps, DnsServer, DnsTransport};

words! {
    /// The families of addresses to ask DNS for.
    pub enum QueryStrategy {
        /// Both.
        UseIp = "UseIP" | "UseIPv4v6" | "UseIPv6v4" | "use_ip" | "use-ip" | "";
        /// IPv4 only.
        UseIpv4 = "UseIPv4" | "UseIP4" | "use_ipv4" | "use_ip4" | "use_ip_v4" | "use-ipv4" | "use-ip4" | "use-ip-v4";
        /// IPv6 only.
        UseIpv6 = "UseIPv6" | "UseIP6" | "use_ipv6" | "use_ip6" | "use_ip_v6" | "use-ipv6" | "use-ip6" | "use-ip-v6";
        /// Those that the system has a route for.
        UseSystem = "UseSystem" | "UseSys" | "use_sys" | "use-sys" | "use_system" | "use-system";
    }
}

#[allow(clippy::derivable_impls, reason = "a macro declares the enumeration")]
impl Default for QueryStrategy {
    fn default() -> Self {
        QueryStrategy::UseIp
    }
}

words! {
    /// Whether answers are kept.
    pub(crate) enum CacheStrategy {
        /// They are.
        Enabled = "enabled" | "";
        /// They are not.
        Disabled = "disabled";
    }
}

words! {
    /// Whether servers are asked for names that none of their conditions is about.
    pub(crate) enum FallbackStrategy {
        /// They are, after those whose conditions fit.
        Enabled = "enabled" | "";
        /// They are not.
        Disabled = "disabled";
        /// They are, unless the condition of another server fits.
        DisabledIfAnyMatch = "disabledIfAnyMatch" | "disabled_if_any_match" | "disabled-if-any-match";
    }
}

object! {
    /// Name resolution. `hosts` is asked first, then the servers in their order. Without servers the system's resolver answers.
    pub(crate) struct DnsSettings: "dns" {
        /// Servers to ask.
        servers: Vec<DnsServer> = "servers";
        /// Fixed answers: a name, or a domain condition, and its address, addresses, another name, or `#` and a response code. Of a list
        /// with a name in it, the first name counts.
        hosts: Hosts = "hosts";
        /// Families of addresses to ask for.
        query_strategy: QueryStrategy = "queryStrategy", default "\"UseIP\"";
        /// The address whose network (/24, /96) servers are told as the client's.
        client_ip: Option<IpAddr> = "clientIp";
        /// The inbound tag that queries have in the routing.
        tag: super::scalar::Name = "tag";
        /// Keep no answers.
        disable_cache: bool = "disableCache", default "false";
        /// Answer with what has expired, and ask anew at the same time.
        serve_stale: bool = "serveStale", default "false";
        /// How long after its end an answer may still be served, seconds. 0: for as long as it is kept.
        serve_expired_ttl: u32 = "serveExpiredTTL", default "0";
        /// Ask only servers whose `domains` fit, if there are any.
        disable_fallback: bool = "disableFallback", default "false";
        /// The same, for names that the `domains` of a server fit.
        disable_fallback_if_match: bool = "disableFallbackIfMatch", default "false";
        /// Ask all servers at once. Their order still decides whose answer counts.
        parallel: bool = "enableParallelQuery", default "false";
        /// Answer from the system's hosts file too.
        use_system_hosts: bool = "useSystemHosts", default "false";
        /// Whether answers are kept (V2Ray's word for `disableCache`).
        cache_strategy: CacheStrategy = "cacheStrategy", default "\"enabled\"";
        /// Which servers are asked (V2Ray's word for `disableFallback`).
        fallback_strategy: FallbackStrategy = "fallbackStrategy", default "\"enabled\"";
    }
    other {
        Accepted "domainMatcher": "";
    }
}

/// Name resolution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dns {
    /// Servers to ask. Empty: the system's resolver.
    pub servers: Vec<DnsServer>,
    /// Fixed answers.
    pub hosts: Hosts,
    /// Families of addresses to ask for.
    pub query_strategy: QueryStrategy,
    /// Ask only servers whose conditions fit, if there are any.
    pub disable_fallback: bool,
    /// The same, for names that a condition fits.
    pub disable_fallback_if_match: bool,
    /// Ask all servers at once.
    pub parallel: bool,
    /// Answer from the system's hosts file too.
    pub use_system_hosts: bool,
    /// Keep no answers of the system's resolver, where no server is written.
    pub disable_cache: bool,
    /// The pools of fake addresses. Empty: those that are usual.
    pub fake: Vec<FakePool>,
}

impl FromKeys for Dns {
    type Keys = DnsSettings;

    fn from_keys(s: DnsSettings, _: Position, _: &mut Cx<'_>) -> Option<Self> {
        let mut servers = s.servers;
        let disable_cache = s.disable_cache || s.cache_strategy == CacheStrategy::Disabled;
        for server in &mut servers {
            server.client_ip = server.client_ip.or(s.client_ip);
            server.query_strategy = server.query_strategy.or(Some(s.query_strategy));
            server.disable_cache = server.disable_cache.or(Some(disable_cache));
            server.serve_stale = server.serve_stale.or(Some(s.serve_stale));
            server.serve_expired_ttl = server.serve_expired_ttl.or(Some(s.serve_expired_ttl));
            if server.tag.is_empty() {
                server.tag.clone_from(&s.tag.0);
            }
        }
        Some(Dns {
            servers,
            hosts: s.hosts,
            query_strategy: s.query_strategy,
            disable_fallback: s.disable_fallback || s.fallback_strategy == FallbackStrategy::Disabled,
            disable_fallback_if_match: s.disable_fallback_if_match
                || s.fallback_strategy == FallbackStrategy::DisabledIfAnyMatch,
            parallel: s.parallel,
            use_system_hosts: s.use_system_hosts,
            disable_cache,
            fake: Vec::new(),
        })
    }
}

/// The inbound tags that queries have, before the rest is read: rules may be about them.
pub(super) fn tags(root: &Value) -> Vec<String> {
    let member = |value: &Value, key: &str| {
        let found = members(value).iter().rfind(|m| m.key.eq_ignore_ascii_case(key));
        found.map(|m| m.value.clone())
    };
    let Some(dns) = member(root, "dns") else {
        return Vec::new();
    };
    let servers = match member(&dns, "servers").map(|servers| servers.data) {
        Some(Data::Array(servers)) => servers,
        _ => Vec::new(),
    };
    let tag = |value: &Value| match member(value, "tag")?.data {
        Data::String(tag) if !tag.is_empty() => Some(tag),
        _ => None,
    };
    tag(&dns).into_iter().chain(servers.iter().filter_map(tag)).collect()
}
