//! `inbounds`: where connections come in.

use std::net::IpAddr;

use super::context::{Cx, quoted};
use super::fallback::{FallbackTarget, ReadFallback, UnixName};
use super::json::{Data, Value};
use super::problem::{At, Position};
use super::scalar::{Name, Networks, Part, Port, Ports, Texts};
use super::stream::{Stream, check_side};
use super::table::{Decode, Kind, Loses, Object, object, words};
use super::user::{Account, FlowName, User, VlessUserSettings, VmessUserSettings};
use super::user::{check_alter_id, check_encryption, check_unique, is_old};
use crate::Address;
use crate::vless::fallback::Fallback;

words! {
    /// The protocols of inbounds.
    pub(crate) enum InboundProtocolName {
        /// Everything goes to one target.
        Dokodemo = "dokodemo-door" | "tunnel";
        /// SOCKS 4, 4a and 5, and HTTP on the same port.
        Socks = "socks" | "mixed";
        /// HTTP proxy.
        Http = "http";
        /// VLESS.
        Vless = "vless";
        /// VMess.
        Vmess = "vmess";
    }
    other {
        LaterError "trojan": "the protocol trojan";
        LaterError "shadowsocks": "the protocol shadowsocks";
        LaterError "hysteria": "the protocol hysteria";
        LaterError "wireguard": "the protocol wireguard";
        LaterError "tun": "the protocol tun";
    }
}

/// Where an inbound listens.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Listen {
    /// On one listener a port.
    Ip {
        /// The address. `None`: every address of IPv4 and IPv6.
        ip: Option<IpAddr>,
        /// The ports.
        ports: Ports,
    },
    /// On a unix socket.
    Unix {
        /// Its name.
        name: UnixName,
        /// The mode its file is given.
        mode: Option<u32>,
    },
}

impl Listen {
    /// Whether only this machine reaches it.
    pub fn is_this_machine(&self) -> bool {
        match self {
            Listen::Ip { ip, .. } => ip.is_some_and(|ip| ip.to_canonical().is_loopback()),
            Listen::Unix { .. } => true,
        }
    }
}

/// What `listen` says.
#[derive(Clone, Debug, PartialEq)]
enum ListenText {
    Ip(IpAddr),
    Unix(UnixName, Option<u32>),
}

impl Decode for ListenText {
    fn kind() -> Kind {
        Kind::text("IP address, path of a unix socket with its mode as in `/path,0666`, or `@` and an abstract name")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let Data::String(text) = &value.data else {
            cx.wrong_type(&value, "a string");
            return None;
        };
        let text = super::scalar::from_env(text, &value, cx)?;
        let (name, mode) = text
            .split_once(',')
            .map_or((text.as_str(), None), |(name, mode)| (name, Some(mode.trim())));
        let read = match UnixName::parse(name.trim()) {
            Some(Ok(name)) => match mode.map(|mode| u32::from_str_radix(mode, 8)) {
                None => Ok(ListenText::Unix(name, None)),
                Some(Ok(mode @ 0..=0o7777)) => Ok(ListenText::Unix(name, Some(mode))),
                Some(_) => Err(format!("{} is no mode of a file", quoted(mode.unwrap_or_default()))),
            },
            Some(Err(text)) => Err(text),
            None => {
                let bare = text
                    .strip_prefix('[')
                    .and_then(|t| t.strip_suffix(']'))
                    .unwrap_or(&text);
                let ip = bare.trim().parse().map(ListenText::Ip);
                ip.map_err(|_| format!("{} is no address to listen on", quoted(&text)))
            }
        };
        let hint = "write an IP address, /path/of/a/socket, /path,0666 or @abstract";
        read.map_err(|text| cx.error(value.at, text, hint)).ok()
    }
}

object! {
    /// Reading the target's name from the first bytes. Not supported yet.
    pub struct Sniffing: "inbounds[].sniffing" {
        /// Whether it is done.
        enabled: At<bool> = "enabled", default "false";
        /// Protocols whose names replace the target: `http`, `tls`, `quic`, `fakedns`.
        dest_override: Texts = "destOverride";
        /// Names that replace nothing.
        domains_excluded: Texts = "domainsExcluded";
        /// Addresses that are not replaced.
        ips_excluded: Texts = "ipsExcluded";
        /// Look at the addresses only, not at the bytes.
        metadata_only: bool = "metadataOnly", default "false";
        /// Use the name for routing only.
        route_only: bool = "routeOnly", default "false";
    }
}

words! {
    /// How listening ports are chosen.
    pub(crate) enum AllocateStrategy {
        /// All of them, always.
        Always = "always" | "";
    }
    other {
        LaterService "random": "ports chosen at random (`allocate`)";
        LaterService "external": "ports chosen from outside (`allocate`)";
    }
}

object! {
    /// How listening ports are chosen.
    pub(crate) struct Allocate: "inbounds[].allocate" {
        /// The strategy.
        strategy: AllocateStrategy = "strategy", default "\"always\"";
    }
    other {
        Accepted "refresh": "Only ports chosen at random have it.";
        Accepted "concurrency": "Only ports chosen at random have it.";
    }
}

object! {
    /// Where connections come in, and what is spoken there.
    struct InboundSettings: "inbounds[]" {
        /// The name for rules and counters. Two inbounds cannot have the same.
        tag: Part<At<Name>> = "tag", default "\"\"";
        /// The address. Absent: every address of IPv4 and IPv6.
        listen: Part<Option<At<ListenText>>> = "listen";
        /// The ports, with one listener for each. Unix sockets need none.
        port: Part<Option<Ports>> = "port";
        /// What is spoken.
        protocol: InboundProtocolName = "protocol", required;
        /// The settings of the protocol.
        settings: Option<Value> = "settings";
        /// What carries the protocol, and how it is protected.
        stream: Part<Stream> = "streamSettings", default "{}";
        /// Reading the target's name from the first bytes.
        sniffing: Part<Sniffing> = "sniffing", default "{}";
        /// How listening ports are chosen.
        allocate: Part<Allocate> = "allocate", default "{}";
    }
}

object! {
    /// A tunnel: everything goes to one target.
    pub struct DokodemoSettings: "dokodemo-door settings" {
        /// The host. Absent: loopback, of the listener's family.
        address: Option<Address> = "address" | "rewriteAddress";
        /// The port. 0: the port listened on.
        port: Port = "port" | "rewritePort", default "0";
        /// What to accept.
        networks: Networks = "network" | "allowedNetwork", default "\"tcp\"";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "userLevel", default "0";
    }
    other {
        LaterError "followRedirect": "transparent proxying (`followRedirect`)";
        LaterError "portMap": "a target for each port (`portMap`)";
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

words! {
    /// Who may use a SOCKS inbound.
    pub enum SocksAuth {
        /// Anyone.
        NoAuth = "noauth" | "";
        /// Those with an account.
        Password = "password";
    }
}

object! {
    /// SOCKS 4, 4a and 5.
    pub struct SocksSettings: "socks settings" {
        /// Who may use it.
        auth: At<SocksAuth> = "auth", default "\"noauth\"";
        /// Accounts, for `password`.
        accounts: Vec<Account> = "accounts" | "users";
        /// Allow datagrams.
        udp: bool = "udp", default "false";
        /// The address to send datagrams to, as clients are told. Absent: that of their TCP connection.
        udp_address: Option<IpAddr> = "ip";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "userLevel", default "0";
    }
    other {
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

object! {
    /// HTTP proxy.
    pub struct HttpSettings: "http settings" {
        /// Who may use it. Empty: anyone.
        accounts: Vec<Account> = "accounts" | "users";
        /// Accept requests without an absolute address too.
        allow_transparent: bool = "allowTransparent", default "false";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "userLevel", default "0";
    }
    other {
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

object! {
    /// VLESS.
    pub(crate) struct VlessSettings: "vless settings" {
        /// The users.
        users: Part<Vec<VlessUserSettings>> = "clients" | "users";
        /// The encryption of VLESS itself: `none`. It must be there.
        decryption: Part<Option<At<String>>> = "decryption";
        /// Where everybody else is sent. An empty list closes their connections.
        fallbacks: Part<Vec<At<ReadFallback>>> = "fallbacks";
        /// The flow of users that name none.
        flow: Part<FlowName> = "flow", default "\"\"";
    }
    other {
        Gone "fallback": "write `fallbacks`, a list of objects";
        Accepted "testseed": "Only the flow xtls-rprx-vision has it.";
    }
}

object! {
    /// What users have who name nothing else.
    pub(crate) struct VmessDefault: "vmess settings.default" {
        /// The level.
        level: u32 = "level", default "0";
    }
    other {
        Accepted "alterId": "Only the AEAD header is spoken.";
    }
}

object! {
    /// VMess.
    pub(crate) struct VmessSettings: "vmess settings" {
        /// The users.
        users: Vec<VmessUserSettings> = "clients" | "users";
        /// What users have who name nothing else.
        default: VmessDefault = "default", default "{}";
        /// Refuse clients that ask for `none` or `zero`.
        secure_only: bool = "disableInsecureEncryption", default "false";
    }
    other {
        LaterService "detour": "dynamic ports (`detour`)";
    }
}

/// What a VLESS inbound knows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VlessInbound {
    /// The users. Ids and e-mails are unique.
    pub users: Vec<User>,
    /// Where everybody else is sent. [`Fallbacks::new`](crate::vless::fallback::Fallbacks::new) takes it.
    pub fallbacks: Vec<Fallback<FallbackTarget>>,
}

/// What a VMess inbound knows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VmessInbound {
    /// The users. Ids and e-mails are unique.
    pub users: Vec<User>,
    /// Refuse clients that ask for `none` or `zero`.
    pub secure_only: bool,
}

/// What is spoken at an inbound.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InboundProtocol {
    /// Everything goes to one target.
    Dokodemo(DokodemoSettings),
    /// SOCKS 4, 4a and 5, and HTTP on the same port. Accounts are empty unless they are asked for.
    Socks(SocksSettings),
    /// HTTP proxy.
    Http(HttpSettings),
    /// VLESS.
    Vless(VlessInbound),
    /// VMess.
    Vmess(VmessInbound),
}

impl InboundProtocol {
    /// Whether it holds ids or passwords.
    pub(crate) fn has_secrets(&self) -> bool {
        match self {
            InboundProtocol::Dokodemo(_) => false,
            InboundProtocol::Socks(socks) => !socks.accounts.is_empty(),
            InboundProtocol::Http(http) => !http.accounts.is_empty(),
            InboundProtocol::Vless(vless) => !vless.users.is_empty(),
            InboundProtocol::Vmess(vmess) => !vmess.users.is_empty(),
        }
    }

    /// The tables of all protocols' settings.
    pub(crate) const TABLES: [&'static Object; 5] = [
        DokodemoSettings::TABLE,
        SocksSettings::TABLE,
        HttpSettings::TABLE,
        VlessSettings::TABLE,
        VmessSettings::TABLE,
    ];
}

/// Where connections come in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inbound {
    /// The name for rules and counters. Empty: none. Otherwise no other inbound has it.
    pub tag: String,
    /// Where it listens.
    pub listen: Listen,
    /// What is spoken.
    pub protocol: InboundProtocol,
    /// What carries the protocol.
    pub stream: Stream,
    /// Reading the target's name from the first bytes. Nothing is sniffed yet.
    pub sniffing: Sniffing,
    /// Where it is configured.
    pub at: Position,
}

impl Decode for Inbound {
    fn kind() -> Kind {
        Kind::Object(InboundSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = InboundSettings::decode(value, cx)?;
        let listen = match (s.listen.0.map(|listen| listen.map(|listen| listen.value)), s.port.0) {
            (Some(Some(ListenText::Unix(name, mode))), _) => Some(Listen::Unix { name, mode }),
            (Some(Some(ListenText::Ip(ip))), Some(Some(ports))) => Some(Listen::Ip { ip: Some(ip), ports }),
            (Some(None), Some(Some(ports))) => Some(Listen::Ip { ip: None, ports }),
            (Some(_), Some(None)) => {
                let hint = "write the port to listen on, or the path of a unix socket as `listen`";
                cx.error(at, "`port` is missing", hint);
                None
            }
            _ => None,
        };
        let settings = s.settings.unwrap_or(Value {
            at,
            data: Data::Object(Vec::new()),
        });
        let protocol = cx.within("settings", |cx| read_protocol(s.protocol, settings, cx));
        if let Some(stream) = &s.stream.0 {
            check_side(stream, true, cx);
        }
        s.allocate.0?;
        Some(Inbound {
            tag: s.tag.0?.value.0,
            listen: listen?,
            protocol: protocol?,
            stream: s.stream.0?,
            sniffing: s.sniffing.0?,
            at,
        })
    }
}

fn read_protocol(name: InboundProtocolName, settings: Value, cx: &mut Cx<'_>) -> Option<InboundProtocol> {
    let at = settings.at;
    match name {
        InboundProtocolName::Dokodemo => DokodemoSettings::decode(settings, cx).map(InboundProtocol::Dokodemo),
        InboundProtocolName::Http => HttpSettings::decode(settings, cx).map(InboundProtocol::Http),
        InboundProtocolName::Socks => {
            let mut s = SocksSettings::decode(settings, cx)?;
            match s.auth.value {
                SocksAuth::Password if s.accounts.is_empty() => {
                    let text = "nobody could use it: `auth` is password and there are no accounts";
                    cx.error(s.auth.at, text, "list who may use it under `accounts`");
                    return None;
                }
                SocksAuth::NoAuth if !s.accounts.is_empty() => {
                    let text = "there are accounts, but `auth` is noauth: anyone may use it";
                    cx.warn(s.auth.at, text, "write \"auth\": \"password\"");
                    s.accounts.clear();
                }
                _ => {}
            }
            Some(InboundProtocol::Socks(s))
        }
        InboundProtocolName::Vless => {
            let s = VlessSettings::decode(settings, cx)?;
            if let Some(decryption) = s.decryption.0 {
                check_encryption("decryption", decryption.as_ref(), at, cx);
            }
            if let Some(fallbacks) = &s.fallbacks.0 {
                cx.within("fallbacks", |cx| super::fallback::check(fallbacks, cx));
            }
            let users = s.users.0?;
            let keys: Vec<_> = users.iter().map(|user| (user.id, user.email.clone())).collect();
            cx.within("clients", |cx| check_unique(&keys, cx));
            let users = users.into_iter().map(|user| User {
                id: user.id.value,
                email: user.email.value.0,
                level: user.level,
                at: user.id.at,
            });
            s.flow.0?;
            Some(InboundProtocol::Vless(VlessInbound {
                users: users.collect(),
                fallbacks: s.fallbacks.0?.into_iter().map(|fallback| fallback.value.0).collect(),
            }))
        }
        InboundProtocolName::Vmess => {
            let s = VmessSettings::decode(settings, cx)?;
            let keys: Vec<_> = s.users.iter().map(|user| (user.id, user.email.clone())).collect();
            cx.within("clients", |cx| {
                check_unique(&keys, cx);
                // Said once, of the first of them.
                let old = |user: &VmessUserSettings| user.alter_id.as_ref().is_some_and(is_old);
                if let Some(i) = s.users.iter().position(old) {
                    cx.at_index(i, |cx| check_alter_id(s.users[i].alter_id.as_ref(), cx));
                }
                let ends = |user: &VmessUserSettings| user.experiments.no_termination_signal;
                if let Some(i) = s.users.iter().position(ends) {
                    let what = "an inbound that ends streams without a last chunk (`NoTerminationSignal`)";
                    let at = s.users[i].experiments.at;
                    cx.at_index(i, |cx| cx.within("experiments", |cx| cx.later(Loses::Ease, at, what)));
                }
            });
            let users = s.users.into_iter().map(|user| User {
                id: user.id.value,
                email: user.email.value.0,
                level: user.level.unwrap_or(s.default.level),
                at: user.id.at,
            });
            Some(InboundProtocol::Vmess(VmessInbound {
                users: users.collect(),
                secure_only: s.secure_only,
            }))
        }
    }
}
