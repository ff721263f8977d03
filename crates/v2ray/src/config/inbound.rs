//! `inbounds`: where connections come in.

use std::net::IpAddr;

use super::context::{Cx, quoted};
use super::endpoint::{UnixName, unix_with_mode};
use super::ports::Ports;
use super::protocol::{InboundProtocol, InboundProtocolName, UnreadInbound};
use super::scalar::{Name, Part, texts};
use super::schema::{Kind, Loses};
use super::sniffing::{Overrides, Sniffing};
use super::stream::{Stream, check_side};
use super::table::{Decode, object, words};
use crate::json::Value;
use crate::problem::{At, Position};

/// Where an inbound listens.
#[derive(Clone, Debug, PartialEq)]
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

texts! {
    ListenText = "IP address, path of a unix socket with its mode as in `/path,0666`, or `@` and an abstract name", |text| {
        if let Some(unix) = unix_with_mode(text) {
            return unix.map(|(name, mode)| ListenText::Unix(name, mode));
        }
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        let ip = bare.trim().parse().map(ListenText::Ip);
        ip.map_err(|_| format!("{} is no address to listen on", quoted(text)))
    }, "write an IP address, /path/of/a/socket, /path,0666 or @abstract";
}

words! {
    /// How listening ports are chosen.
    pub(crate) enum AllocateStrategy {
        /// All of them, always.
        Always = "always" | "";
        /// Some at a time, as V2Ray draws them. Not done: it is `always` here, as with Xray.
        Random = "random";
        /// Those that somebody else names. The same.
        External = "external";
    }
}

object! {
    /// How listening ports are chosen.
    pub(crate) struct Allocate: "inbounds[].allocate" {
        /// The strategy.
        strategy: At<AllocateStrategy> = "strategy", default "\"always\"";
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
        settings: Option<UnreadInbound> = "settings";
        /// What carries the protocol, and how it is protected.
        stream: Part<Stream> = "streamSettings", default "{}";
        /// Reading the target's name from the first bytes.
        sniffing: Part<Option<Sniffing>> = "sniffing";
        /// The older form of `sniffing`: the protocols of its `destOverride`. Where both stand, this one is not read.
        domain_override: Part<Overrides> = "domainOverride";
        /// How listening ports are chosen.
        allocate: Part<Allocate> = "allocate", default "{}";
    }
}

/// Where connections come in.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The name for rules and counters. Empty: none. Otherwise no other inbound has it.
    pub tag: String,
    /// Where it listens.
    pub listen: Listen,
    /// What is spoken.
    pub protocol: InboundProtocol,
    /// What carries the protocol.
    pub stream: Stream,
    /// Reading the target's name from the first bytes.
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
        cx.listens = true;
        let s = InboundSettings::decode(value, cx);
        cx.listens = false;
        let s = s?;
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
        let settings = s
            .settings
            .map_or_else(|| Value::empty_object(at), |UnreadInbound(given)| given);
        let protocol = cx.within("settings", |cx| InboundProtocol::read(s.protocol, settings, cx));
        if let Some(stream) = &s.stream.0 {
            check_side(stream, true, cx);
            if let Some(protocol) = &protocol {
                protocol.check_stream(stream, at, cx);
            }
        }
        if let (Some(Listen::Unix { .. }), Some(InboundProtocol::Dokodemo(door))) = (&listen, &protocol)
            && door.follow_redirect
        {
            let text = "the firewall leads nothing to a unix socket";
            cx.within("settings", |cx| {
                cx.error_in("followRedirect", at, text, "listen on a port")
            });
        }
        let strategy = s.allocate.0?.strategy;
        if strategy.value != AllocateStrategy::Always {
            let what = "ports chosen anew from time to time (`allocate`); every port is listened on all the time, as Xray does it";
            cx.within("allocate", |cx| {
                cx.within("strategy", |cx| cx.later(Loses::Ease, strategy.at, what));
            });
        }
        let overrides = s.domain_override.0?;
        let sniffing = match s.sniffing.0? {
            Some(sniffing) => sniffing,
            None => {
                let mut sniffing = Sniffing::decode(Value::empty_object(at), cx)?;
                sniffing.enabled.value = !overrides.0.is_empty();
                sniffing.dest_override = overrides;
                sniffing
            }
        };
        Some(Inbound {
            tag: s.tag.0?.value.0,
            listen: listen?,
            protocol: protocol?,
            stream: s.stream.0?,
            sniffing,
            at,
        })
    }
}
