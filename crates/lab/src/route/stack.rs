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

/// A client and a server without TLS.
const fn pair(name: &'static str, protocol: Protocol, network: Network) -> Stack {
    Stack {
        name,
        protocol,
        network,
        tls: false,
        cipher: Suite::Aes128Gcm,
        shape: Shape::Pair,
    }
}

impl Stack {
    const fn over_tls(self) -> Stack {
        Stack { tls: true, ..self }
    }

    const fn over_tls_by(self, cipher: Suite) -> Stack {
        Stack {
            cipher,
            ..self.over_tls()
        }
    }

    const fn shaped(self, shape: Shape) -> Stack {
        Stack { shape, ..self }
    }
}

/// Makes a constant of each stack (its name, protocol and network, and what sets it apart from a pair without TLS), and the
/// list of all.
macro_rules! stacks {
    ($($(#[$doc:meta])* $constant:ident = $name:literal: $protocol:ident $(($suite:ident))?, $network:ident
        $(, $with:ident($($what:path)?))*;)+) => {
        impl Stack {
            $(
                $(#[$doc])*
                pub const $constant: Stack =
                    pair($name, Protocol::$protocol $((Suite::$suite))?, Network::$network)$(.$with($($what)?))*;
            )+

            /// Every stack, the plainest first.
            pub const ALL: [Stack; [$(Stack::$constant),+].len()] = [$(Stack::$constant),+];
        }
    };
}

stacks! {
    /// No program: from the generator straight to the sink. The control of a run.
    DIRECT = "direct": None, Tcp;
    /// One program that copies bytes between two connections: a fixed-destination inbound and a freedom outbound.
    RELAY = "relay": Copy, Tcp;
    /// No proxy protocol: a freedom outbound dials a dokodemo-door over TCP.
    DOKODEMO_TCP = "dokodemo-tcp": Door, Tcp;
    /// No proxy protocol: a freedom outbound dials a dokodemo-door over WebSocket.
    DOKODEMO_WS = "dokodemo-ws": Door, WebSocket;
    /// SOCKS over TCP.
    SOCKS = "socks": Socks, Tcp;
    /// VLESS over TCP.
    VLESS_TCP = "vless-tcp": Vless, Tcp;
    /// VLESS over TLS.
    VLESS_TCP_TLS = "vless-tcp-tls": Vless, Tcp, over_tls();
    /// VLESS over TLS with AES-256-GCM.
    VLESS_TCP_TLS_AES_256 = "vless-tcp-tls-aes-256-gcm": Vless, Tcp, over_tls_by(Suite::Aes256Gcm);
    /// VLESS over TLS with ChaCha20-Poly1305.
    VLESS_TCP_TLS_CHACHA = "vless-tcp-tls-chacha20-poly1305": Vless, Tcp, over_tls_by(Suite::ChaCha20Poly1305);
    /// VLESS over WebSocket.
    VLESS_WS = "vless-ws": Vless, WebSocket;
    /// VLESS over WebSocket over TLS.
    VLESS_WS_TLS = "vless-ws-tls": Vless, WebSocket, over_tls();
    /// VMess without a cipher over TCP.
    VMESS_NONE_TCP = "vmess-none-tcp": VmessNone, Tcp;
    /// VMess without a cipher over TLS.
    VMESS_NONE_TCP_TLS = "vmess-none-tcp-tls": VmessNone, Tcp, over_tls();
    /// VMess without a cipher over WebSocket.
    VMESS_NONE_WS = "vmess-none-ws": VmessNone, WebSocket;
    /// VMess without a cipher over WebSocket over TLS.
    VMESS_NONE_WS_TLS = "vmess-none-ws-tls": VmessNone, WebSocket, over_tls();
    /// VMess with AES-128-GCM over TCP.
    VMESS_AES_TCP = "vmess-aes-128-gcm-tcp": Vmess(Aes128Gcm), Tcp;
    /// VMess with AES-128-GCM over TLS.
    VMESS_AES_TCP_TLS = "vmess-aes-128-gcm-tcp-tls": Vmess(Aes128Gcm), Tcp, over_tls();
    /// VMess with AES-128-GCM over WebSocket.
    VMESS_AES_WS = "vmess-aes-128-gcm-ws": Vmess(Aes128Gcm), WebSocket;
    /// VMess with AES-128-GCM over WebSocket over TLS.
    VMESS_AES_WS_TLS = "vmess-aes-128-gcm-ws-tls": Vmess(Aes128Gcm), WebSocket, over_tls();
    /// VMess with ChaCha20-Poly1305 over TCP.
    VMESS_CHACHA_TCP = "vmess-chacha20-poly1305-tcp": Vmess(ChaCha20Poly1305), Tcp;
    /// VMess with ChaCha20-Poly1305 over TLS.
    VMESS_CHACHA_TCP_TLS = "vmess-chacha20-poly1305-tcp-tls": Vmess(ChaCha20Poly1305), Tcp, over_tls();
    /// VMess with ChaCha20-Poly1305 over WebSocket.
    VMESS_CHACHA_WS = "vmess-chacha20-poly1305-ws": Vmess(ChaCha20Poly1305), WebSocket;
    /// VMess with ChaCha20-Poly1305 over WebSocket over TLS.
    VMESS_CHACHA_WS_TLS = "vmess-chacha20-poly1305-ws-tls": Vmess(ChaCha20Poly1305), WebSocket, over_tls();
    /// VLESS over TCP behind an HTTP request.
    VLESS_HTTP = "vless-tcp-http": Vless, HttpHeader;
    /// VLESS over TCP, eight streams to a connection.
    VLESS_MUX = "vless-mux": Vless, Mux;
    /// VLESS over gRPC over TLS.
    VLESS_GRPC_TLS = "vless-grpc-tls": Vless, Grpc, over_tls();
    /// VLESS over XHTTP over TLS, both directions in one request.
    VLESS_XHTTP_ONE_TLS = "vless-xhttp-one-tls": Vless, XhttpOne, over_tls();
    /// VLESS over XHTTP over TLS, a request for each piece that goes up.
    VLESS_XHTTP_PACKETS_TLS = "vless-xhttp-packets-tls": Vless, XhttpPackets, over_tls();
    /// Trojan over TLS.
    TROJAN_TLS = "trojan-tls": Trojan, Tcp, over_tls();
    /// Shadowsocks of 2017 with AES-256-GCM.
    SS_AES = "ss-aes-256-gcm": Shadowsocks(Aes256Gcm), Tcp;
    /// Shadowsocks of 2022 with AES-256-GCM.
    SS_2022_AES = "ss-2022-aes-256-gcm": Shadowsocks2022(Aes256Gcm), Tcp;
    /// Shadowsocks of 2022 with ChaCha20-Poly1305.
    SS_2022_CHACHA = "ss-2022-chacha20-poly1305": Shadowsocks2022(ChaCha20Poly1305), Tcp;
    /// VLESS over WebSocket over TLS, where nginx ends TLS and hands the path on.
    FRONT_PATH = "front-path": Vless, WebSocket, over_tls(), shaped(Shape::NginxPath);
    /// VLESS over TLS, where nginx hands the connection on by its server name.
    FRONT_SNI = "front-sni": Vless, Tcp, over_tls(), shaped(Shape::NginxSni);
    /// VLESS over WebSocket over TLS, where a VLESS inbound for TCP ends TLS and falls back by path to a WebSocket inbound
    /// of the same process.
    FALLBACK_PATH = "fallback-path": Vless, WebSocket, over_tls(), shaped(Shape::Fallback);
    /// VMess without a cipher over WebSocket over TLS; nginx ends TLS and hands the path on.
    FRONT_PATH_VMESS = "front-path-vmess-none": VmessNone, WebSocket, over_tls(), shaped(Shape::NginxPath);
    /// VMess with AES-128-GCM over WebSocket; nginx hands the path on, and nothing has TLS.
    FRONT_PATH_VMESS_AES = "front-path-vmess-aes-128-gcm": Vmess(Aes128Gcm), WebSocket, shaped(Shape::NginxPath);
    /// VMess without a cipher over TLS; nginx hands the connection on by its server name.
    FRONT_SNI_VMESS = "front-sni-vmess-none": VmessNone, Tcp, over_tls(), shaped(Shape::NginxSni);
    /// No proxy protocol: a freedom outbound dials a dokodemo-door over WebSocket over TLS; nginx ends TLS and hands the path
    /// on.
    FRONT_PATH_DOKODEMO = "front-path-dokodemo": Door, WebSocket, over_tls(), shaped(Shape::NginxPath);
    /// The same, where a VLESS inbound for TCP ends TLS and falls back by path to the dokodemo-door.
    FALLBACK_PATH_DOKODEMO = "fallback-path-dokodemo": Door, WebSocket, over_tls(), shaped(Shape::Fallback);
}

impl Stack {
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

    /// What seals the payload, in plain words: `TLS`, `VMess and TLS`, `VMess, no TLS`; `None` for a stack that sends it as it is.
    pub(crate) fn sealed_by(&self) -> Option<String> {
        let protocol = match self.protocol {
            Protocol::Vmess(_) => Some("VMess"),
            Protocol::Shadowsocks(_) | Protocol::Shadowsocks2022(_) => Some("Shadowsocks"),
            _ => None,
        };
        match (protocol, self.tls) {
            (Some(protocol), true) => Some(format!("{protocol} and TLS")),
            (Some(protocol), false) => Some(format!("{protocol}, no TLS")),
            (None, true) => Some("TLS".to_owned()),
            (None, false) => None,
        }
    }

    /// A name as it stands among others: where TLS is missing and the protocol seals, that is said behind it.
    pub(crate) fn marked(name: &str) -> String {
        match Stack::named(name)
            .filter(|stack| !stack.tls)
            .and_then(|stack| stack.sealed_by())
        {
            Some(sealed) => format!("{name} (sealed by {sealed})"),
            None => name.to_owned(),
        }
    }

    /// What stands behind the title of a table of the stack called `name`: `; sealed by TLS`. Empty without a wire.
    pub(crate) fn seal_of(name: &str) -> String {
        let stack = Stack::named(name).filter(Stack::has_wire);
        stack.map_or_else(String::new, |stack| match stack.sealed_by() {
            Some(sealed) => format!("; sealed by {sealed}"),
            None => "; not sealed".to_owned(),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_seals_is_said_of_each() {
        for (stack, sealed, marked) in [
            (Stack::VLESS_TCP, "; not sealed", ""),
            (Stack::VLESS_WS_TLS, "; sealed by TLS", ""),
            (Stack::VMESS_NONE_TCP_TLS, "; sealed by TLS", ""),
            (Stack::VMESS_AES_TCP_TLS, "; sealed by VMess and TLS", ""),
            (
                Stack::VMESS_AES_WS,
                "; sealed by VMess, no TLS",
                " (sealed by VMess, no TLS)",
            ),
            (
                Stack::SS_2022_AES,
                "; sealed by Shadowsocks, no TLS",
                " (sealed by Shadowsocks, no TLS)",
            ),
            (Stack::DIRECT, "", ""),
        ] {
            assert_eq!(Stack::seal_of(stack.name()), sealed);
            assert_eq!(Stack::marked(stack.name()), format!("{stack}{marked}"));
        }
        assert_eq!(Stack::marked("no such"), "no such");
        let sealed = |stack: &Stack| stack.sealed_by().is_some();
        assert!(Stack::ALL.iter().all(|stack| sealed(stack) == stack.authenticated()));
    }
}
