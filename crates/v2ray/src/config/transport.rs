//! The transports: a file for each below this one, and a line for each in the list here.

mod finalmask;
mod grpc;
mod http;
mod httpupgrade;
mod raw;
mod upgrade;
mod ws;
mod xhttp;

use super::context::Cx;
use super::reality::UnreadReality;
use super::scalar::Part;
use super::sockopt::Sockopt;
use super::table::{Decode, object, words};
use super::tls::UnreadTls;
use crate::problem::At;
use finalmask::FinalMask;
use grpc::GrpcSettings;
use http::HttpSettings;
use httpupgrade::HttpUpgradeSettings;
use raw::RawSettings;
use ws::WsSettings;
use xhttp::XhttpSettings;

pub use grpc::Grpc;
pub use http::Http;
pub use raw::Front;
pub use upgrade::{EarlyData, Upgrade};
pub use xhttp::Xhttp;
pub(crate) use xhttp::{Range, UnreadDownload};

/// The settings of a transport.
pub(crate) trait Carrier: Decode {
    /// The transport, and whether each connection begins with the PROXY protocol. `None`: what is wrong has been reported.
    fn transport(self, cx: &mut Cx<'_>) -> Option<(Transport, bool)>;
}

words! {
    /// The security layers.
    pub(crate) enum SecurityName {
        /// None.
        None = "none" | "";
        /// TLS.
        Tls = "tls";
        /// REALITY.
        Reality = "reality";
    }
    other {
        Gone "xtls": "write tls, and \"xtls-rprx-vision\" as the users' `flow`";
    }
}

/// Declares the transports, and `streamSettings`, in which each has a key.
macro_rules! transports {
    ($(
        $(#[doc = $doc:literal])*
        $Variant:ident $(($Payload:ty))? = $word:literal $(| $alias:literal)*,
            $settings:literal $(| $older:literal)* as $field:ident: $Settings:ident, $about:literal;
    )*) => {
        words! {
            /// The transports.
            pub(crate) enum TransportName {
                $( $(#[doc = $doc])* $Variant = $word $(| $alias)*; )*
            }
            other {
                LaterError "kcp": "the transport mkcp; write ws, grpc or xhttp with tls on both ends";
                LaterError "mkcp": "the transport mkcp; write ws, grpc or xhttp with tls on both ends";
                LaterError "hysteria": "the transport hysteria; write grpc or xhttp with tls on both ends";
                LaterError "hysteria2": "the transport hysteria2; write grpc or xhttp with tls on both ends";
                Gone "quic": "write xhttp or raw on both ends, with tls, which quic always had";
                Gone "domainsocket": "write raw, and a path as the inbound's `listen`";
                Gone "ds": "write raw, and a path as the inbound's `listen`";
            }
        }

        /// A transport.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Transport {
            $( $(#[doc = $doc])* $Variant $(($Payload))?, )*
            /// Bytes as they are, behind a made-up HTTP request and response.
            RawHttp(Box<Front>),
        }

        object! {
            /// What carries the proxy protocol, and how it is protected.
            pub(crate) struct StreamSettings: "streamSettings" {
                /// The transport.
                network: Part<TransportName> = "network" | "method", default "\"raw\"";
                /// The security layer.
                security: Part<At<SecurityName>> = "security", default "\"none\"";
                /// For the security layer tls.
                tls: Option<UnreadTls> = "tlsSettings";
                /// For the security layer reality.
                reality: Option<UnreadReality> = "realitySettings";
                $( #[doc = $about] $field: Part<$Settings> = $settings $(| $older)*, default "{}"; )*
                /// Options of the sockets.
                sockopt: Part<Sockopt> = "sockopt", default "{}";
                /// Nothing yet: what makes the bytes of a connection look otherwise.
                final_mask: Part<FinalMask> = "finalmask", default "{}";
            }
            other {
                Accepted "kcpSettings": "Only the transport mkcp has them, which is not supported yet.";
                Accepted "hysteriaSettings": "Only the transport hysteria has them, which is not supported yet.";
                Accepted "hy2Settings": "Only the transport hysteria2 has them, which is not supported yet.";
                Accepted "quicSettings": "The transport quic is obsolete.";
                Accepted "dsSettings": "The transport domainsocket is obsolete.";
                Gone "xtlsSettings": "write `tlsSettings`, and \"xtls-rprx-vision\" as the users' `flow`";
            }
        }

        impl StreamSettings {
            /// The transport that `network` names, and whether each connection begins with the PROXY protocol.
            pub(crate) fn transport(&mut self, cx: &mut Cx<'_>) -> Option<(Transport, bool)> {
                match self.network.0? {
                    $( TransportName::$Variant => {
                        let settings = self.$field.0.take()?;
                        cx.within($settings, |cx| settings.transport(cx))
                    } )*
                }
            }
        }
    };
}

transports! {
    /// gRPC: streams of HTTP/2.
    Grpc(Grpc) = "grpc" | "gun",
        "grpcSettings" | "gunSettings" as grpc: GrpcSettings, " For the transport grpc.";
    /// HTTP/2 as V2Ray has it: a request for each stream.
    Http(Http) = "http" | "h2",
        "httpSettings" as http: HttpSettings, " For the transport http.";
    /// Bytes as they are.
    Raw = "raw" | "tcp" | "",
        "rawSettings" | "tcpSettings" as raw: RawSettings, " For the transport raw.";
    /// WebSocket (RFC 6455).
    WebSocket(Upgrade) = "ws" | "websocket",
        "wsSettings" as ws: WsSettings, " For the transport ws.";
    /// An HTTP upgrade, and bytes as they are after it.
    HttpUpgrade(Upgrade) = "httpupgrade",
        "httpupgradeSettings" as http_upgrade: HttpUpgradeSettings, " For the transport httpupgrade.";
    /// XHTTP: ordinary HTTP requests.
    Xhttp(Box<Xhttp>) = "xhttp" | "splithttp",
        "xhttpSettings" | "splithttpSettings" as xhttp: XhttpSettings, " For the transport xhttp.";
}
