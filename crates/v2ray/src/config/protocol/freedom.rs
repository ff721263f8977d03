//! Straight to the target.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Side;
use super::server::check_level;
use crate::Address;
use crate::config::context::{Cx, quoted};
use crate::config::dest::read_proxy_version;
use crate::config::endpoint::optional_host_port;
use crate::config::net::IpMatches;
use crate::config::ports::{Networks, Ports};
use crate::config::scalar::texts;
use crate::config::sockopt::DomainStrategy;
use crate::config::stream::Stream;
use crate::config::table::{FromKeys, object, words};
use crate::config::transport::{Range, Transport};
use crate::problem::{At, Position};
use crate::xhttp::settings::Span;

texts! {
    Redirect = "`host:port`, `host:` or `:port`", |text| {
        let (address, port) = optional_host_port(text)?;
        Ok(Redirect { address, port })
    }, "write host:port, :port to keep the host, or host: to keep the port";
}

/// Where connections go in place of their target.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Redirect {
    /// The host. `None`: the target's.
    pub address: Option<Address>,
    /// The port. `None`: the target's.
    pub port: Option<u16>,
}

impl Redirect {
    /// Whether everything goes to one place.
    fn is_whole(&self) -> bool {
        self.address.is_some() && self.port.is_some()
    }
}

words! {
    /// What a final rule does.
    pub enum FinalAction {
        /// Connect.
        Allow = "allow";
        /// Do not.
        Block = "block";
    }
}

object! {
    /// A rule on the address that is dialled. The first that fits decides. All conditions must hold.
    pub struct FinalRule: "freedom settings.finalRules[]" {
        /// What it does.
        action: FinalAction = "action", required;
        /// Kinds of traffic. Absent: all.
        networks: Option<Networks> = "network";
        /// Ports. Absent: all.
        ports: Option<Ports> = "port";
        /// Addresses. Empty: all.
        ips: IpMatches = "ip";
    }
    other {
        LaterWarning "blockDelay": "`blockDelay`; what is blocked is left waiting for 30 to 90 seconds";
    }
}

texts! {
    Packets = "`tlshello`, a number, or two of them as in \"1-3\"", |text| {
        if text.is_empty() {
            return Ok(Packets::All);
        }
        if text.eq_ignore_ascii_case("tlshello") {
            return Ok(Packets::TlsHello);
        }
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        match (from.trim().parse::<u32>(), to.trim().parse::<u32>()) {
            (Ok(from), Ok(to)) if from.min(to) > 0 => Ok(Packets::Writes(Span::new(from, to))),
            _ => Err(format!("{} names no packets", quoted(text))),
        }
    }, "write \"tlshello\", or which of the first writes, as in \"1-3\"";
}

/// What is cut into pieces.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Packets {
    /// Everything.
    #[default]
    All,
    /// The first record of TLS, into several records.
    TlsHello,
    /// What is written first, second and so on, counted from 1.
    Writes(Span),
}

object! {
    /// Cutting the first bytes of a connection into pieces.
    pub(crate) struct FragmentSettings: "freedom settings.fragment" {
        /// What is cut: `tlshello`, the first record of TLS into several records; or which of the first writes, counted from
        /// 1. Empty: everything.
        packets: Packets = "packets";
        /// Bytes of a piece, drawn anew for each.
        length: At<Range> = "length", required;
        /// Milliseconds behind each piece, drawn anew. For `tlshello`, 0 sends all records together.
        interval: Range = "interval", required;
        /// The most pieces; the last one has all the rest. 0: any number.
        max_split: Range = "maxSplit", default "0";
    }
}

/// Cutting the first bytes of a connection into pieces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fragment {
    /// What is cut.
    pub packets: Packets,
    /// Bytes of a piece, at least 1.
    pub length: Span,
    /// Milliseconds behind each piece.
    pub interval: Span,
    /// The most pieces. 0: any number.
    pub max_split: Span,
}

impl FromKeys for Fragment {
    type Keys = FragmentSettings;

    fn from_keys(s: FragmentSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let length = s.length.value.span();
        if length.from == 0 {
            cx.error_in(
                "length",
                s.length.at,
                "a piece has one byte at least",
                "write 1 or more, as in \"100-200\"",
            );
            return None;
        }
        Some(Fragment {
            packets: s.packets,
            length,
            interval: s.interval.span(),
            max_split: s.max_split.span(),
        })
    }
}

words! {
    /// What a datagram of noise is made of.
    pub(crate) enum NoiseType {
        /// Random bytes, as many as `packet` says.
        Rand = "rand";
        /// The text itself.
        Str = "str";
        /// Bytes in base64.
        Base64 = "base64";
        /// Bytes in hexadecimal digits.
        Hex = "hex";
    }
}

words! {
    /// Targets that noise is sent to.
    pub enum NoiseTo {
        /// All.
        Ip = "ip" | "";
        /// Those with an IPv4 address.
        Ipv4 = "ipv4";
        /// Those with an IPv6 address.
        Ipv6 = "ipv6";
    }
}

object! {
    /// A datagram that is sent ahead of the first one, for those who look at what a connection begins with.
    pub(crate) struct NoiseSettings: "freedom settings.noises[]" {
        /// What it is made of.
        kind: NoiseType = "type", required;
        /// Its bytes, or for `rand` how many, as in "10-20".
        packet: At<String> = "packet", default "\"\"";
        /// Milliseconds behind it.
        delay: Range = "delay", default "0";
        /// Targets that it is sent to.
        to: NoiseTo = "applyTo", default "\"ip\"";
    }
}

/// A datagram that is sent ahead of the first one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Noise {
    /// What it holds.
    pub packet: NoisePacket,
    /// Milliseconds behind it.
    pub delay: Span,
    /// Targets that it is sent to.
    pub to: NoiseTo,
}

/// What a datagram of noise holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NoisePacket {
    /// So many random bytes.
    Random(Span),
    /// These bytes.
    Fixed(Vec<u8>),
}

impl NoisePacket {
    fn read(kind: NoiseType, text: &str) -> Result<NoisePacket, &'static str> {
        Ok(NoisePacket::Fixed(match kind {
            NoiseType::Rand => {
                let (from, to) = text.split_once('-').unwrap_or((text, text));
                let (from, to) = (from.trim().parse::<u32>(), to.trim().parse::<u32>());
                return match (from, to) {
                    (Ok(from), Ok(to)) if from.min(to) > 0 => Ok(NoisePacket::Random(Span::new(from, to))),
                    _ => Err("is no number of bytes: write how many, as in \"10-20\""),
                };
            }
            NoiseType::Str => text.as_bytes().to_vec(),
            NoiseType::Base64 => {
                let bare = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
                URL_SAFE_NO_PAD.decode(bare).map_err(|_| "is no base64")?
            }
            NoiseType::Hex => {
                let digits: Option<Vec<u8>> = text.chars().map(|c| Some(c.to_digit(16)? as u8)).collect();
                let digits = digits.filter(|digits| digits.len().is_multiple_of(2));
                let digits = digits.ok_or("is not made of pairs of hexadecimal digits")?;
                digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
            }
        }))
    }

    fn most(&self) -> usize {
        match self {
            NoisePacket::Random(span) => span.to as usize,
            NoisePacket::Fixed(bytes) => bytes.len(),
        }
    }
}

/// The longest datagram of IPv4.
const MAX_DATAGRAM: usize = 65_507;

impl FromKeys for Noise {
    type Keys = NoiseSettings;

    fn from_keys(s: NoiseSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let read = NoisePacket::read(s.kind, s.packet.trim());
        let fits = read.and_then(|packet| match packet.most() <= MAX_DATAGRAM {
            true => Ok(packet),
            false => Err("does not fit into a datagram, which has 65507 bytes at most"),
        });
        match fits {
            Ok(packet) => Some(Noise {
                packet,
                delay: s.delay.span(),
                to: s.to,
            }),
            Err(wrong) => {
                let text = format!("{} {wrong}", quoted(&s.packet));
                cx.error_in("packet", s.packet.at, text, "");
                None
            }
        }
    }
}

object! {
    /// Straight to the target, or to where `redirect` says: over the transport and TLS of `streamSettings`, if there are any, to
    /// a server that speaks the same, such as a dokodemo-door. Datagrams go as they are all the same. grpc, http and xhttp need a
    /// `redirect` with host and port, and its name is found here, also where another outbound dials.
    pub struct FreedomSettings: "freedom settings" {
        /// How names become addresses.
        domain_strategy: DomainStrategy = "domainStrategy" | "targetStrategy", default "\"AsIs\"";
        /// Where to go in place of the target.
        redirect: Redirect = "redirect";
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "userLevel", default "0";
        /// The version of the PROXY protocol to announce the client with. 0: none.
        proxy_protocol: At<u8> = "proxyProtocol", default "0";
        /// Rules on the address that is dialled. One with `ip` has names resolved here, also where the outbound goes through another
        /// one, which is then asked for the address.
        final_rules: Vec<FinalRule> = "finalRules";
        /// Cutting the first bytes of a connection into pieces.
        fragment: Option<Fragment> = "fragment";
        /// Datagrams that are sent ahead of the first one of an association, unless that goes to port 53.
        noises: Vec<Noise> = "noises";
    }
    other {
        Gone "noise": "write `noises`, a list of objects";
        LaterError "ipsBlocked": "`ipsBlocked`; write `finalRules`";
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

impl Side for FreedomSettings {
    fn checked(self, _: &str, cx: &mut Cx<'_>) -> Option<Self> {
        read_proxy_version("proxyProtocol", self.proxy_protocol, cx)?;
        check_level("userLevel", self.level, cx);
        Some(self)
    }

    fn has_secrets(&self) -> bool {
        false
    }

    fn check_stream(&self, stream: &Stream, _: Position, cx: &mut Cx<'_>) {
        if stream.is_bare() || self.redirect.is_whole() {
            return;
        }
        let hint = "write host:port as `redirect`, or leave `network` and `security` out";
        cx.within("streamSettings", |cx| match stream.transport {
            Transport::Grpc(_) | Transport::Http(_) | Transport::Xhttp(_) => {
                let text = "grpc, http and xhttp keep connections to one server, and a freedom outbound without a `redirect` has many";
                cx.error(stream.at, text, hint);
            }
            _ if self.redirect.address.is_none() => {
                let text = "every target is spoken to by this transport and TLS, which few targets are";
                cx.warn(stream.at, text, hint);
            }
            _ => {}
        });
    }
}
