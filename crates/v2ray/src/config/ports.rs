//! Ports, and the kinds of traffic they are for.

use std::fmt;
use std::ops::RangeInclusive;

use super::context::{Cx, quoted};
use super::scalar::{Texts, from_env};
use super::schema::Kind;
use super::table::Decode;
use crate::json::{Data, Value};

/// A set of ports.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ports(Vec<RangeInclusive<u16>>);

impl Ports {
    /// One port.
    pub fn one(port: u16) -> Self {
        Ports(vec![port..=port])
    }

    /// The ranges in the order they were written.
    pub fn ranges(&self) -> &[RangeInclusive<u16>] {
        &self.0
    }

    /// Whether a port belongs to the set.
    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }

    /// Every port, in the order they were written.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        self.0.iter().flat_map(Clone::clone)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `80`, `1000-2000` or `53,443,1000-2000`.
    fn parse(text: &str) -> Result<Self, String> {
        let port = |text: &str| {
            let text = text.trim();
            // Not what `parse` takes for a number besides digits: a sign.
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let port = text.parse::<u16>().ok().filter(|_| digits);
            port.ok_or_else(|| format!("{} is no port; a port is a number from 0 to 65535", quoted(text)))
        };
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (port(from)?, port(to)?);
            if from > to {
                return Err(format!("the range {part} ends before it begins"));
            }
            ranges.push(from..=to);
        }
        if ranges.is_empty() {
            return Err("there is no port in this list".into());
        }
        Ok(Ports(ranges))
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match (range.start(), range.end()) {
                (from, to) if from == to => write!(f, "{from}")?,
                (from, to) => write!(f, "{from}-{to}")?,
            }
        }
        Ok(())
    }
}

impl Decode for Ports {
    fn kind() -> Kind {
        Kind::text("port: 443, \"443\", \"53,1000-2000\", \"env:NAME\"")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let text = match &value.data {
            Data::Number(text) => text.to_string(),
            Data::String(text) => from_env(text, value.at, cx)?,
            _ => {
                cx.wrong_type(&value, "a port");
                return None;
            }
        };
        Ports::parse(&text).map_err(|text| cx.error(value.at, text, "")).ok()
    }
}

/// One port.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Port(
    /// The port.
    pub u16,
);

impl Decode for Port {
    fn kind() -> Kind {
        Kind::text("port: 443, \"443\", \"env:NAME\"")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let ports = Ports::decode(value, cx)?;
        match ports.ranges() {
            [range] if range.start() == range.end() => Some(Port(*range.start())),
            _ => {
                cx.error(at, format!("one port is expected here, not {ports}"), "");
                None
            }
        }
    }
}

/// The kinds of traffic a listener or a rule is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Networks {
    /// Streams.
    pub tcp: bool,
    /// Datagrams.
    pub udp: bool,
}

impl Networks {
    /// Whether a kind of traffic is among them.
    pub fn contains(self, network: crate::Network) -> bool {
        match network {
            crate::Network::Tcp => self.tcp,
            crate::Network::Udp => self.udp,
        }
    }
}

impl Decode for Networks {
    fn kind() -> Kind {
        Kind::text("`tcp`, `udp`, `tcp,udp`, or a list of them")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let mut networks = Networks { tcp: false, udp: false };
        for word in &Texts::decode(value, cx)?.0 {
            match word.to_ascii_lowercase().as_str() {
                "tcp" => networks.tcp = true,
                "udp" => networks.udp = true,
                other => {
                    cx.error(
                        word.at,
                        format!("{} is no network", quoted(other)),
                        "write tcp, udp, or tcp,udp",
                    );
                    return None;
                }
            }
        }
        if !networks.tcp && !networks.udp {
            cx.error(at, "there is no network in this list", "write tcp, udp, or tcp,udp");
            return None;
        }
        Some(networks)
    }
}
