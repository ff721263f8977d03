//! What a route is made of.

use std::fmt;

use sealway_aead::Suite;

use super::kind::Kind;

/// What carries the bytes between the client and the server of a route.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Stack {
    name: &'static str,
    pub(super) protocol: Protocol,
    pub(super) network: Network,
    pub(super) tls: bool,
    /// What its TLS seals with.
    pub(super) cipher: Suite,
    pub(super) shape: Shape,
}

/// The proxy protocol.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Protocol {
    /// No program at all.
    None,
    /// One program that copies.
    Copy,
    /// Bytes as they are, from a freedom outbound to a dokodemo-door.
    Door,
    /// SOCKS 5, with a password.
    Socks,
    Vless,
    Vmess(Suite),
    /// VMess that seals nothing but its header.
    VmessNone,
    Trojan,
    /// Shadowsocks of 2017.
    Shadowsocks(Suite),
    /// Shadowsocks of 2022.
    Shadowsocks2022(Suite),
}

/// What the proxy protocol is carried by.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Network {
    Tcp,
    /// TCP behind one HTTP request and its answer.
    HttpHeader,
    /// TCP, eight streams to a connection.
    Mux,
    WebSocket,
    Grpc,
    /// XHTTP, both directions in one request.
    XhttpOne,
    /// XHTTP, a request for each piece that goes up.
    XhttpPackets,
}

/// Who stands where.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Shape {
    /// A client and a server.
    Pair,
    /// nginx ends TLS and hands a path to the server.
    NginxPath,
    /// nginx hands a server name to the server, TLS and all.
    NginxSni,
    /// The server's VLESS inbound hands a path to another inbound of its own.
    Fallback,
}

const fn pair(name: &'static str, protocol: Protocol, network: Network, tls: bool) -> Stack {
    Stack {
        name,
        protocol,
        network,
        tls,
        cipher: Suite::Aes128Gcm,
        shape: Shape::Pair,
    }
}

const fn vless(name: &'static str, network: Network, tls: bool) -> Stack {
    pair(name, Protocol::Vless, network, tls)
}

const fn aes(name: &'static str, network: Network, tls: bool) -> Stack {
    pair(name, Protocol::Vmess(Suite::Aes128Gcm), network, tls)
}

const fn unsealed(name: &'static str, network: Network, tls: bool) -> Stack {
    pair(name, Protocol::VmessNone, network, tls)
}

const fn chacha(name: &'static str, network: Network, tls: bool) -> Stack {
    pair(name, Protocol::Vmess(Suite::ChaCha20Poly1305), network, tls)
}

impl Stack {
    /// No program: from the generator straight to the sink. The control of a run.
    pub const DIRECT: Stack = pair("direct", Protocol::None, Network::Tcp, false);
    /// One program that copies bytes between two connections: a fixed-destination inbound and a freedom outbound.
    pub const RELAY: Stack = pair("relay", Protocol::Copy, Network::Tcp, false);
    /// No proxy protocol: a freedom outbound dials a dokodemo-door over TCP.
    pub const DOKODEMO_TCP: Stack = pair("dokodemo-tcp", Protocol::Door, Network::Tcp, false);
    /// No proxy protocol: a freedom outbound dials a dokodemo-door over WebSocket.
    pub const DOKODEMO_WS: Stack = pair("dokodemo-ws", Protocol::Door, Network::WebSocket, false);
    /// SOCKS over TCP.
    pub const SOCKS: Stack = pair("socks", Protocol::Socks, Network::Tcp, false);
    /// VLESS over TCP.
    pub const VLESS_TCP: Stack = vless("vless-tcp", Network::Tcp, false);
    /// VLESS over TLS.
    pub const VLESS_TCP_TLS: Stack = vless("vless-tcp-tls", Network::Tcp, true);
    /// VLESS over TLS with AES-256-GCM.
    pub const VLESS_TCP_TLS_AES_256: Stack = Stack {
        cipher: Suite::Aes256Gcm,
        ..vless("vless-tcp-tls-aes-256-gcm", Network::Tcp, true)
    };
    /// VLESS over TLS with ChaCha20-Poly1305.
    pub const VLESS_TCP_TLS_CHACHA: Stack = Stack {
        cipher: Suite::ChaCha20Poly1305,
        ..vless("vless-tcp-tls-chacha20-poly1305", Network::Tcp, true)
    };
    /// VLESS over WebSocket.
    pub const VLESS_WS: Stack = vless("vless-ws", Network::WebSocket, false);
    /// VLESS over WebSocket over TLS.
    pub const VLESS_WS_TLS: Stack = vless("vless-ws-tls", Network::WebSocket, true);
    /// VMess without a cipher over TCP.
    pub const VMESS_NONE_TCP: Stack = unsealed("vmess-none-tcp", Network::Tcp, false);
    /// VMess without a cipher over TLS.
    pub const VMESS_NONE_TCP_TLS: Stack = unsealed("vmess-none-tcp-tls", Network::Tcp, true);
    /// VMess without a cipher over WebSocket.
    pub const VMESS_NONE_WS: Stack = unsealed("vmess-none-ws", Network::WebSocket, false);
    /// VMess without a cipher over WebSocket over TLS.
    pub const VMESS_NONE_WS_TLS: Stack = unsealed("vmess-none-ws-tls", Network::WebSocket, true);
    /// VMess with AES-128-GCM over TCP.
    pub const VMESS_AES_TCP: Stack = aes("vmess-aes-128-gcm-tcp", Network::Tcp, false);
    /// VMess with AES-128-GCM over TLS.
    pub const VMESS_AES_TCP_TLS: Stack = aes("vmess-aes-128-gcm-tcp-tls", Network::Tcp, true);
    /// VMess with AES-128-GCM over WebSocket.
    pub const VMESS_AES_WS: Stack = aes("vmess-aes-128-gcm-ws", Network::WebSocket, false);
    /// VMess with AES-128-GCM over WebSocket over TLS.
    pub const VMESS_AES_WS_TLS: Stack = aes("vmess-aes-128-gcm-ws-tls", Network::WebSocket, true);
    /// VMess with ChaCha20-Poly1305 over TCP.
    pub const VMESS_CHACHA_TCP: Stack = chacha("vmess-chacha20-poly1305-tcp", Network::Tcp, false);
    /// VMess with ChaCha20-Poly1305 over TLS.
    pub const VMESS_CHACHA_TCP_TLS: Stack = chacha("vmess-chacha20-poly1305-tcp-tls", Network::Tcp, true);
    /// VMess with ChaCha20-Poly1305 over WebSocket.
    pub const VMESS_CHACHA_WS: Stack = chacha("vmess-chacha20-poly1305-ws", Network::WebSocket, false);
    /// VMess with ChaCha20-Poly1305 over WebSocket over TLS.
    pub const VMESS_CHACHA_WS_TLS: Stack = chacha("vmess-chacha20-poly1305-ws-tls", Network::WebSocket, true);
    /// VLESS over WebSocket over TLS, where nginx ends TLS and hands the path on.
    pub const FRONT_PATH: Stack = Stack {
        shape: Shape::NginxPath,
        ..vless("front-path", Network::WebSocket, true)
    };
    /// VLESS over TLS, where nginx hands the connection on by its server name.
    pub const FRONT_SNI: Stack = Stack {
        shape: Shape::NginxSni,
        ..vless("front-sni", Network::Tcp, true)
    };
    /// VLESS over WebSocket over TLS, where a VLESS inbound for TCP ends TLS and falls back by path to a WebSocket inbound
    /// of the same process.
    pub const FALLBACK_PATH: Stack = Stack {
        shape: Shape::Fallback,
        ..vless("fallback-path", Network::WebSocket, true)
    };

    /// No proxy protocol: a freedom outbound dials a dokodemo-door over WebSocket over TLS; nginx ends TLS and hands the path
    /// on.
    pub const FRONT_PATH_DOKODEMO: Stack = Stack {
        shape: Shape::NginxPath,
        ..pair("front-path-dokodemo", Protocol::Door, Network::WebSocket, true)
    };
    /// The same, where a VLESS inbound for TCP ends TLS and falls back by path to the dokodemo-door.
    pub const FALLBACK_PATH_DOKODEMO: Stack = Stack {
        shape: Shape::Fallback,
        ..pair("fallback-path-dokodemo", Protocol::Door, Network::WebSocket, true)
    };

    /// VMess without a cipher over WebSocket over TLS; nginx ends TLS and hands the path on.
    pub const FRONT_PATH_VMESS: Stack = Stack {
        shape: Shape::NginxPath,
        ..unsealed("front-path-vmess-none", Network::WebSocket, true)
    };
    /// VMess with AES-128-GCM over WebSocket; nginx hands the path on, and nothing has TLS.
    pub const FRONT_PATH_VMESS_AES: Stack = Stack {
        shape: Shape::NginxPath,
        ..aes("front-path-vmess-aes-128-gcm", Network::WebSocket, false)
    };
    /// VMess without a cipher over TLS; nginx hands the connection on by its server name.
    pub const FRONT_SNI_VMESS: Stack = Stack {
        shape: Shape::NginxSni,
        ..unsealed("front-sni-vmess-none", Network::Tcp, true)
    };

    /// VLESS over TCP behind an HTTP request.
    pub const VLESS_HTTP: Stack = vless("vless-tcp-http", Network::HttpHeader, false);
    /// VLESS over TCP, eight streams to a connection.
    pub const VLESS_MUX: Stack = vless("vless-mux", Network::Mux, false);
    /// VLESS over gRPC over TLS.
    pub const VLESS_GRPC_TLS: Stack = vless("vless-grpc-tls", Network::Grpc, true);
    /// VLESS over XHTTP over TLS, both directions in one request.
    pub const VLESS_XHTTP_ONE_TLS: Stack = vless("vless-xhttp-one-tls", Network::XhttpOne, true);
    /// VLESS over XHTTP over TLS, a request for each piece that goes up.
    pub const VLESS_XHTTP_PACKETS_TLS: Stack = vless("vless-xhttp-packets-tls", Network::XhttpPackets, true);
    /// Trojan over TLS.
    pub const TROJAN_TLS: Stack = pair("trojan-tls", Protocol::Trojan, Network::Tcp, true);
    /// Shadowsocks of 2017 with AES-256-GCM.
    pub const SS_AES: Stack = pair(
        "ss-aes-256-gcm",
        Protocol::Shadowsocks(Suite::Aes256Gcm),
        Network::Tcp,
        false,
    );
    /// Shadowsocks of 2022 with AES-256-GCM.
    pub const SS_2022_AES: Stack = pair(
        "ss-2022-aes-256-gcm",
        Protocol::Shadowsocks2022(Suite::Aes256Gcm),
        Network::Tcp,
        false,
    );
    /// Shadowsocks of 2022 with ChaCha20-Poly1305.
    pub const SS_2022_CHACHA: Stack = pair(
        "ss-2022-chacha20-poly1305",
        Protocol::Shadowsocks2022(Suite::ChaCha20Poly1305),
        Network::Tcp,
        false,
    );

    /// Every stack, the plainest first.
    pub const ALL: [Stack; 40] = [
        Stack::DIRECT,
        Stack::RELAY,
        Stack::DOKODEMO_TCP,
        Stack::DOKODEMO_WS,
        Stack::SOCKS,
        Stack::VLESS_TCP,
        Stack::VLESS_TCP_TLS,
        Stack::VLESS_TCP_TLS_AES_256,
        Stack::VLESS_TCP_TLS_CHACHA,
        Stack::VLESS_WS,
        Stack::VLESS_WS_TLS,
        Stack::VMESS_NONE_TCP,
        Stack::VMESS_NONE_TCP_TLS,
        Stack::VMESS_NONE_WS,
        Stack::VMESS_NONE_WS_TLS,
        Stack::VMESS_AES_TCP,
        Stack::VMESS_AES_TCP_TLS,
        Stack::VMESS_AES_WS,
        Stack::VMESS_AES_WS_TLS,
        Stack::VMESS_CHACHA_TCP,
        Stack::VMESS_CHACHA_TCP_TLS,
        Stack::VMESS_CHACHA_WS,
        Stack::VMESS_CHACHA_WS_TLS,
        Stack::VLESS_HTTP,
        Stack::VLESS_MUX,
        Stack::VLESS_GRPC_TLS,
        Stack::VLESS_XHTTP_ONE_TLS,
        Stack::VLESS_XHTTP_PACKETS_TLS,
        Stack::TROJAN_TLS,
        Stack::SS_AES,
        Stack::SS_2022_AES,
        Stack::SS_2022_CHACHA,
        Stack::FRONT_PATH,
        Stack::FRONT_SNI,
        Stack::FALLBACK_PATH,
        Stack::FRONT_PATH_VMESS,
        Stack::FRONT_PATH_VMESS_AES,
        Stack::FRONT_SNI_VMESS,
        Stack::FRONT_PATH_DOKODEMO,
        Stack::FALLBACK_PATH_DOKODEMO,
    ];

    /// The name on the command line and in result files.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The stack called `name`.
    pub fn named(name: &str) -> Option<Stack> {
        Stack::ALL.into_iter().find(|stack| stack.name == name)
    }

    /// The stack in plain words, such as `VLESS over WebSocket over TLS, behind nginx by path`.
    pub fn words(&self) -> String {
        let sealed = |name: &str, suite: Suite| format!("{name} ({suite})");
        let protocol = match self.protocol {
            Protocol::None => return "no proxy".to_owned(),
            Protocol::Copy => return "a plain relay".to_owned(),
            Protocol::Door => "a plain tunnel".to_owned(),
            Protocol::Socks => "SOCKS".to_owned(),
            Protocol::Vless => "VLESS".to_owned(),
            Protocol::Vmess(suite) => sealed("VMess", suite),
            Protocol::VmessNone => "VMess (unsealed)".to_owned(),
            Protocol::Trojan => "Trojan".to_owned(),
            Protocol::Shadowsocks(suite) => sealed("Shadowsocks", suite),
            Protocol::Shadowsocks2022(suite) => sealed("Shadowsocks 2022", suite),
        };
        let network = match self.network {
            Network::Tcp => None,
            Network::HttpHeader => Some("an HTTP header"),
            Network::Mux => Some("mux"),
            Network::WebSocket => Some("WebSocket"),
            Network::Grpc => Some("gRPC"),
            Network::XhttpOne => Some("XHTTP in one request"),
            Network::XhttpPackets => Some("XHTTP in pieces"),
        };
        let tls = match (self.tls, self.cipher) {
            (true, Suite::Aes128Gcm) => Some("TLS".to_owned()),
            (true, suite) => Some(sealed("TLS", suite)),
            (false, _) => network.is_none().then(|| "TCP".to_owned()),
        };
        let layers = [Some(protocol), network.map(str::to_owned), tls];
        let place = match self.shape {
            Shape::Pair => "",
            Shape::NginxPath => ", behind nginx by path",
            Shape::NginxSni => ", behind nginx by name",
            Shape::Fallback => ", by fallback",
        };
        layers.into_iter().flatten().collect::<Vec<_>>().join(" over ") + place
    }

    /// The same of the stack called `name`; the name itself where there is none.
    pub fn named_words(name: &str) -> String {
        Stack::named(name).map_or_else(|| name.to_owned(), |stack| stack.words())
    }

    /// The suite that seals the payload, innermost first; `None` for a stack that sends it as it is.
    pub const fn suite(&self) -> Option<Suite> {
        match (self.protocol, self.tls) {
            (Protocol::Vmess(suite) | Protocol::Shadowsocks(suite) | Protocol::Shadowsocks2022(suite), _) => {
                Some(suite)
            }
            (_, true) => Some(self.cipher),
            (_, false) => None,
        }
    }

    /// True if whoever changes bytes on the wire must be found out.
    pub const fn authenticated(&self) -> bool {
        self.suite().is_some()
    }

    /// True if nginx stands before the server.
    pub const fn needs_nginx(&self) -> bool {
        matches!(self.shape, Shape::NginxPath | Shape::NginxSni)
    }

    /// What of it a program of this kind does not have.
    pub(super) fn lacking(&self, kind: Kind) -> Option<&'static str> {
        use Kind::{OldV2Ray, Sealway, Shoes, SingBox, V2Ray};
        match (kind, self.network, self.protocol) {
            (V2Ray | OldV2Ray | SingBox | Shoes, Network::XhttpOne | Network::XhttpPackets, _) => Some("XHTTP"),
            (V2Ray | OldV2Ray, _, Protocol::Shadowsocks2022(_)) => Some("Shadowsocks of 2022"),
            (SingBox | Shoes, Network::HttpHeader, _) => Some("HTTP header for TCP"),
            (Shoes, Network::Grpc, _) => Some("gRPC"),
            (SingBox | Shoes, Network::Mux, _) => Some("mux of V2Ray's kind"),
            (SingBox | Shoes, _, Protocol::Door) => Some("redirect of a direct outbound"),
            (SingBox | Shoes, ..) if self.shape == Shape::Fallback => Some("fallback of VLESS"),
            (Shoes, ..) if self.cipher == Suite::Aes256Gcm => None,
            // Of our own it is known that they keep to it.
            (kind, ..) if kind != Sealway && self.cipher != Suite::Aes128Gcm => Some("choice of the suite of TLS 1.3"),
            _ => None,
        }
    }

    /// The application protocol of its TLS.
    pub(super) const fn alpn(&self) -> &'static str {
        match self.network {
            Network::Grpc | Network::XhttpOne | Network::XhttpPackets => "h2",
            _ => "http/1.1",
        }
    }

    /// True if a proxy protocol says where the bytes go: without one a route leads to one target only.
    pub const fn is_proxy(&self) -> bool {
        !matches!(self.protocol, Protocol::None | Protocol::Copy | Protocol::Door)
    }

    /// True if its headers hold a time, by which a server tells those that came before it started.
    pub(super) const fn is_timed(&self) -> bool {
        matches!(
            self.protocol,
            Protocol::Vmess(_) | Protocol::VmessNone | Protocol::Shadowsocks2022(_)
        )
    }

    /// True if programs stand between the generator and the sink.
    pub const fn has_programs(&self) -> bool {
        !matches!(self.protocol, Protocol::None)
    }

    /// True if there is a wire between a client and a server.
    pub const fn has_wire(&self) -> bool {
        !matches!(self.protocol, Protocol::None | Protocol::Copy)
    }

    /// True if the client shows the server a certificate's name.
    pub(super) const fn server_needs_certificate(&self) -> bool {
        self.tls && !matches!(self.shape, Shape::NginxPath)
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
