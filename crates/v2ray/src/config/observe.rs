//! `log`, `policy` and `dns`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::context::{Cx, quoted};
use super::json::{Data, Member, Value};
use super::net::DomainMatch;
use super::problem::{At, Severity};
use super::scalar::{Port, Texts, texts};
use super::table::{Decode, Kind, object, words};
use crate::Address;

words! {
    /// How much the error log says.
    pub enum LogLevel {
        /// Everything, for finding faults.
        Debug = "debug";
        /// Also what is normal.
        Info = "info";
        /// What may need attention.
        Warning = "warning" | "";
        /// What failed.
        Error = "error";
        /// Nothing.
        None = "none";
    }
}

/// Where a log goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogTarget {
    /// It is not written.
    Off,
    /// To standard output.
    Stdout,
    /// To the end of this file.
    File(String),
}

texts! {
    LogTarget = "path, `none`, or empty for standard output", |text| Ok(match text {
        "" => LogTarget::Stdout,
        word if word.eq_ignore_ascii_case("none") => LogTarget::Off,
        path => LogTarget::File(path.to_owned()),
    }), "";
}

/// How many bits of an address the logs show. The rest is written as zeros.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MaskAddress {
    /// Of IPv4 addresses, 0 to 32.
    pub ipv4: u8,
    /// Of IPv6 addresses, 0 to 128.
    pub ipv6: u8,
}

texts! {
    MaskAddress = "`quarter`, `half`, `full`, or bits to show as `/16+/32`", |text| {
        let shown = |ipv4, ipv6| Ok(MaskAddress { ipv4, ipv6 });
        match text.to_ascii_lowercase().as_str() {
            "" => shown(32, 128),
            "quarter" => shown(24, 96),
            "half" => shown(16, 64),
            "full" => shown(0, 0),
            bits => {
                let bits: Option<Vec<u8>> = bits.split('+').map(|part| part.strip_prefix('/')?.parse().ok()).collect();
                match bits.as_deref() {
                    Some([ipv4 @ 0..=32]) => shown(*ipv4, 128),
                    Some([ipv4 @ 0..=32, ipv6 @ 0..=128]) => shown(*ipv4, *ipv6),
                    _ => Err(format!("{} is no mask of addresses", quoted(text))),
                }
            }
        }
    }, "write quarter, half, full, or as /16+/32 the bits to show of IPv4 and IPv6 addresses";
}

object! {
    /// What is logged, and where to. Without this object there is no access log, and errors are logged from `warning` up.
    pub struct Log: "log" {
        /// The access log: one line a connection.
        access: LogTarget = "access", default "\"\"";
        /// The error log.
        error: LogTarget = "error", default "\"\"";
        /// The least severe messages of the error log.
        level: LogLevel = "loglevel", default "\"warning\"";
        /// Also log DNS queries.
        dns: bool = "dnsLog", default "false";
        /// How much of client addresses the logs hide.
        mask_address: MaskAddress = "maskAddress", default "\"\"";
    }
}

impl Default for Log {
    /// What holds without a `log` object.
    fn default() -> Self {
        Log {
            access: LogTarget::Off,
            error: LogTarget::Stdout,
            level: LogLevel::Warning,
            dns: false,
            mask_address: MaskAddress { ipv4: 32, ipv6: 128 },
        }
    }
}

/// How much may wait in memory for one direction of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BufferSize {
    /// At most this many bytes.
    Bytes(u64),
    /// The engine's own bound. It never is without one.
    Unlimited,
}

impl Decode for BufferSize {
    fn kind() -> Kind {
        Kind::text("KiB; -1: the engine's own bound")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        match i32::decode(value, cx)? {
            -1 => Some(BufferSize::Unlimited),
            kib if kib >= 0 => Some(BufferSize::Bytes(u64::from(kib.unsigned_abs()) * 1024)),
            other => {
                cx.error(at, format!("{other} is no size"), "write KiB, or -1");
                None
            }
        }
    }
}

object! {
    /// Limits and counters of the users of one level. Levels that are not listed have the defaults.
    pub struct LevelPolicy: "policy.levels" {
        /// How long TLS, the transport and the request header may take together.
        handshake: Duration = "handshake", default "60";
        /// How long a connection may carry nothing in either direction.
        conn_idle: Duration = "connIdle", default "300";
        /// How long the client's side may go on without data once the target has ended. 0 closes at once.
        uplink_only: Duration = "uplinkOnly", default "1";
        /// How long the target's side may go on without data once the client has ended. 0 closes at once.
        downlink_only: Duration = "downlinkOnly", default "1";
        /// Count what each user sends.
        stats_user_uplink: bool = "statsUserUplink", default "false";
        /// Count what each user receives.
        stats_user_downlink: bool = "statsUserDownlink", default "false";
        /// Keep the list of addresses each user is connected from.
        stats_user_online: bool = "statsUserOnline", default "false";
        /// How much may wait in memory for one direction of a connection.
        buffer_size: BufferSize = "bufferSize", default "-1";
    }
}

impl Default for LevelPolicy {
    fn default() -> Self {
        LevelPolicy {
            handshake: Duration::from_secs(60),
            conn_idle: Duration::from_secs(300),
            uplink_only: Duration::from_secs(1),
            downlink_only: Duration::from_secs(1),
            stats_user_uplink: false,
            stats_user_downlink: false,
            stats_user_online: false,
            buffer_size: BufferSize::Unlimited,
        }
    }
}

object! {
    /// Counters of inbounds and outbounds. They need `stats` as well.
    pub struct SystemPolicy: "policy.system" {
        /// Count what arrives at each inbound.
        stats_inbound_uplink: bool = "statsInboundUplink", default "false";
        /// Count what each inbound sends back.
        stats_inbound_downlink: bool = "statsInboundDownlink", default "false";
        /// Count what leaves by each outbound.
        stats_outbound_uplink: bool = "statsOutboundUplink", default "false";
        /// Count what comes back by each outbound.
        stats_outbound_downlink: bool = "statsOutboundDownlink", default "false";
    }
    other {
        LaterWarning "overrideAccessLogDest": "access log lines with the sniffed destination";
    }
}

/// The levels by their number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels(BTreeMap<u32, LevelPolicy>);

impl Decode for Levels {
    fn kind() -> Kind {
        BTreeMap::<String, LevelPolicy>::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let mut levels = BTreeMap::new();
        for (name, policy) in BTreeMap::<String, LevelPolicy>::decode(value, cx)? {
            match name.trim().parse() {
                Ok(level) => levels.insert(level, policy),
                Err(_) => {
                    cx.error(
                        at,
                        format!("{} is no level", quoted(&name)),
                        "levels are whole numbers in quotes: \"0\"",
                    );
                    return None;
                }
            };
        }
        Some(Levels(levels))
    }
}

object! {
    /// Timeouts, buffers and which counters are kept.
    pub struct Policy: "policy" {
        /// By level, a number in quotes. Users without a level have level 0.
        levels: Levels = "levels", default "{}";
        /// Counters of inbounds and outbounds.
        system: SystemPolicy = "system", default "{}";
    }
}

impl Policy {
    /// The policy of a level.
    pub fn level(&self, level: u32) -> LevelPolicy {
        self.levels.0.get(&level).cloned().unwrap_or_default()
    }
}

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

object! {
    /// Name resolution. The system's resolver answers what `hosts` does not.
    pub struct Dns: "dns" {
        /// Servers to ask. Only "localhost", the system's resolver, is supported yet.
        servers: Vec<DnsServer> = "servers";
        /// Fixed answers: a name, or a domain condition, and its address, addresses, or another name.
        hosts: Hosts = "hosts";
        /// Families of addresses to ask for.
        query_strategy: QueryStrategy = "queryStrategy", default "\"UseIP\"";
        /// Do not remember answers.
        disable_cache: bool = "disableCache", default "false";
    }
    other {
        LaterWarning "clientIp": "DNS queries with a client subnet";
        LaterWarning "tag": "DNS queries through the routing";
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

/// A DNS server. Only [`DnsServer::System`] is used yet; of others a warning tells.
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
        let address = match &value.data {
            Data::String(text) => At {
                value: text.clone(),
                at: value.at,
            },
            _ => DnsServerSettings::decode(value, cx)?.address,
        };
        if address.eq_ignore_ascii_case("localhost") {
            return Some(DnsServer::System);
        }
        let what = format!(
            "the DNS server {}; the system's resolver answers instead",
            quoted(&address)
        );
        cx.later(Severity::Warning, address.at, &what);
        Some(DnsServer::Other(address.value))
    }
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
