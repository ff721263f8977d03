//! The protocols: a file for each below this one, and a line for each side of it in the lists here.

mod blackhole;
mod dns;
mod dokodemo;
mod fallback;
mod freedom;
mod http;
pub(crate) mod server;
pub(crate) mod shadowsocks;
mod socks;
pub(crate) mod trojan;
mod user;
pub(crate) mod vless;
pub(crate) mod vmess;

use super::context::Cx;
use super::schema::Kind;
use super::stream::Stream;
use super::table::{Decode, words};
use crate::json::Value;
use crate::link::Link;
use crate::problem::Position;

pub use blackhole::{BlackholeAnswer, BlackholeResponse, BlackholeSettings};
pub use dns::{DnsAction, DnsRule, DnsSettings, NonIpQuery};
pub use dokodemo::DokodemoSettings;
pub use fallback::FallbackTarget;
pub use freedom::{FinalAction, FinalRule, Fragment, FreedomSettings, Noise, NoisePacket, NoiseTo, Packets, Redirect};
pub use http::{HttpSettings, ProxyOutbound};
pub use server::Server;
pub use shadowsocks::{ShadowsocksInbound, ShadowsocksOutbound, ShadowsocksUsers};
pub use socks::{SocksAuth, SocksSettings};
pub use trojan::{Password, TrojanInbound, TrojanOutbound};
pub use user::{Account, User};
pub use vless::{Vision, VlessInbound, VlessOutbound, VlessUser};
pub use vmess::{Experiments, VmessInbound, VmessOutbound, VmessSecurity};

/// One side of a protocol: what its settings say, and what follows from them. Its [`Decode`] reads the settings.
pub(crate) trait Side {
    /// Tells of what is wrong about the settings as a whole. `protocol` is the word for it.
    fn checked(self, protocol: &str, cx: &mut Cx<'_>) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = (protocol, cx);
        Some(self)
    }

    /// Whether it holds ids or passwords.
    fn has_secrets(&self) -> bool;

    /// Of an inbound: why anyone may use it who reaches its port, if so.
    fn open(&self) -> Option<Open> {
        None
    }

    /// Of an inbound or outbound at `at`: tells of what does not go with what carries it.
    fn check_stream(&self, stream: &Stream, at: Position, cx: &mut Cx<'_>) {
        let _ = (stream, at, cx);
    }

    /// Of an outbound: its share link, if there are such, without a name and a transport. Keys that no link can say are
    /// added to `left_out`.
    fn link(&self, left_out: &mut Vec<&'static str>) -> Option<Link> {
        let _ = left_out;
        None
    }
}

/// Why anyone may use an inbound who reaches its port.
pub(crate) struct Open {
    /// The key that says so, or lacks.
    pub(crate) key: &'static str,
    /// Where it stands. `None`: nowhere.
    pub(crate) at: Option<Position>,
    /// What to write.
    pub(crate) hint: &'static str,
}

/// Declares the protocols of one side: the words for them, their settings before and after they are read.
macro_rules! protocols {
    (
        $(#[doc = $about:literal])*
        $Protocol:ident, $Name:ident, $Unread:ident {
            $( $(#[doc = $doc:literal])* $Variant:ident($Side:ty) = $word:literal $(| $alias:literal)*; )*
        }
        other { $($others:tt)* }
    ) => {
        words! {
            $(#[doc = $about])*
            pub(crate) enum $Name {
                $( $(#[doc = $doc])* $Variant = $word $(| $alias)*; )*
            }
            other { $($others)* }
        }

        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Protocol {
            $( $(#[doc = $doc])* $Variant($Side), )*
        }

        impl $Protocol {
            /// Reads the settings of the protocol that `name` names.
            pub(crate) fn read(name: $Name, settings: Value, cx: &mut Cx<'_>) -> Option<Self> {
                match name {
                    $( $Name::$Variant => {
                        <$Side>::decode(settings, cx)?.checked($word, cx).map($Protocol::$Variant)
                    } )*
                }
            }

            /// Does something with the side, whichever protocol's it is.
            fn with<T>(&self, run: impl FnOnce(&dyn Side, &'static str) -> T) -> T {
                match self { $( $Protocol::$Variant(side) => run(side, $word), )* }
            }

            /// Whether it holds ids or passwords.
            pub(crate) fn has_secrets(&self) -> bool {
                self.with(|side, _| side.has_secrets())
            }
        }

        /// Settings, before it is known of which protocol.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $Unread(pub(crate) Value);

        impl Decode for $Unread {
            fn kind() -> Kind {
                Kind::ByProtocol(vec![$( <$Side>::kind(), )*])
            }

            fn decode(value: Value, _: &mut Cx<'_>) -> Option<Self> {
                Some($Unread(value))
            }
        }
    };
}

protocols! {
    /// What is spoken at an inbound.
    InboundProtocol, InboundProtocolName, UnreadInbound {
        /// Everything goes to one target.
        Dokodemo(DokodemoSettings) = "dokodemo-door" | "tunnel";
        /// SOCKS 4, 4a and 5, and HTTP on the same port. Accounts are empty unless they are asked for.
        Socks(SocksSettings) = "socks" | "mixed";
        /// HTTP proxy.
        Http(HttpSettings) = "http";
        /// Shadowsocks.
        Shadowsocks(ShadowsocksInbound) = "shadowsocks";
        /// Trojan.
        Trojan(TrojanInbound) = "trojan";
        /// VLESS.
        Vless(VlessInbound) = "vless";
        /// VMess.
        Vmess(VmessInbound) = "vmess";
    }
    other {
        LaterError "hysteria": "the protocol hysteria; write vless or trojan, with tls, on both ends";
        LaterError "hysteria2": "the protocol hysteria2; write vless or trojan, with tls, on both ends";
        LaterError "wireguard": "the protocol wireguard; let the system's own WireGuard take its clients";
        LaterError "tun": "the protocol tun; a dokodemo-door with `followRedirect` takes what the firewall leads to it, and `sealway gateway` prints the rules";
    }
}

protocols! {
    /// What is spoken at an outbound.
    OutboundProtocol, OutboundProtocolName, UnreadOutbound {
        /// Straight to the target.
        Freedom(FreedomSettings) = "freedom" | "direct";
        /// Nowhere.
        Blackhole(BlackholeSettings) = "blackhole" | "block";
        /// Answers questions of DNS.
        Dns(DnsSettings) = "dns";
        /// Shadowsocks.
        Shadowsocks(ShadowsocksOutbound) = "shadowsocks";
        /// Trojan.
        Trojan(TrojanOutbound) = "trojan";
        /// VLESS.
        Vless(VlessOutbound) = "vless";
        /// VMess.
        Vmess(VmessOutbound) = "vmess";
        /// SOCKS5.
        Socks(ProxyOutbound) = "socks";
        /// HTTP proxy, by CONNECT.
        Http(ProxyOutbound) = "http";
    }
    other {
        LaterError "hysteria": "the protocol hysteria; write vless or trojan, with tls, on both ends";
        LaterError "hysteria2": "the protocol hysteria2; write vless or trojan, with tls, on both ends";
        LaterError "wireguard": "the protocol wireguard; let the system's own WireGuard make the tunnel, and name its interface in the `sockopt` of a freedom outbound";
        LaterError "loopback": "the protocol loopback";
    }
}

impl InboundProtocol {
    /// Why anyone may use it who reaches its port, if so.
    pub(crate) fn open(&self) -> Option<Open> {
        self.with(|side, _| side.open())
    }

    /// Tells of what does not go with what carries an inbound at `at`.
    pub(crate) fn check_stream(&self, stream: &Stream, at: Position, cx: &mut Cx<'_>) {
        self.with(|side, _| side.check_stream(stream, at, cx));
    }
}

impl OutboundProtocol {
    /// Tells of what does not go with what carries an outbound at `at`.
    pub(crate) fn check_stream(&self, stream: &Stream, at: Position, cx: &mut Cx<'_>) {
        self.with(|side, _| side.check_stream(stream, at, cx));
    }

    /// Its share link, without a name and a transport; or the word for a protocol that has none.
    pub(crate) fn link(&self, left_out: &mut Vec<&'static str>) -> Result<Link, &'static str> {
        self.with(|side, word| side.link(left_out).ok_or(word))
    }
}
