//! `inbounds[].sniffing`: the target's name and protocol, out of the first bytes.

use super::context::Cx;
use super::net::{DomainMatches, IpMatches};
use super::ports::Ports;
use super::schema::Kind;
use super::table::{Decode, object, words};
use crate::json::{Data, Value};
use crate::problem::At;

words! {
    /// A protocol whose names replace targets.
    pub enum Override {
        /// HTTP/1.
        Http = "http";
        /// TLS.
        Tls = "tls" | "https" | "ssl";
        /// QUIC.
        Quic = "quic";
        /// Fake answers of our DNS.
        FakeDns = "fakedns" | "fakedns+others";
    }
}

/// Protocols whose names replace targets: a list, or one string with commas.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Overrides(pub Vec<Override>);

impl Decode for Overrides {
    fn kind() -> Kind {
        Kind::List(Box::new(Override::kind()))
    }

    fn decode(mut value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        if let Data::String(text) = &value.data {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            let one = |part: &str| Value {
                data: Data::String(part.to_owned()),
                at: value.at,
            };
            value.data = Data::Array(parts.map(one).collect());
        }
        Vec::decode(value, cx).map(Overrides)
    }
}

object! {
    /// The target's name and protocol, out of the first bytes of a connection: for 200 ms and 32 KiB at most. Rules see both; the
    /// bytes go on as they came. An address that our DNS made up is always replaced by the name that it stands for.
    pub struct Sniffing: "inbounds[].sniffing" {
        /// Whether it is done.
        enabled: At<bool> = "enabled", default "false";
        /// Protocols whose names replace the target.
        dest_override: Overrides = "destOverride";
        /// Names that replace nothing, as rules write them.
        domains_excluded: DomainMatches = "domainsExcluded";
        /// Addresses that are not replaced, as rules write them.
        ips_excluded: IpMatches = "ipsExcluded";
        /// Look at the addresses only, not at the bytes: for fake answers of our DNS.
        metadata_only: bool = "metadataOnly", default "false";
        /// Use the name for routing only, and dial what the client asked for.
        route_only: bool = "routeOnly", default "false";
        /// Ports where servers speak first: what a client has not sent when it connects to them is not waited for. `""`: none.
        /// Ours.
        server_first: Option<Ports> = "serverFirstPorts", default "\"21,22,25,110,143,587,3306\"";
    }
}
