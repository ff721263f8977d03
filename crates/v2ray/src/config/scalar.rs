//! Values without keys: numbers, texts, lists, ports, addresses.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::time::Duration;

use super::context::{Cx, quoted};
use super::json::{Data, Value};
use super::problem::At;
use super::table::{Decode, Kind};
use crate::{Address, UserId, text};

impl Decode for Value {
    fn kind() -> Kind {
        Kind::text("by protocol, see below")
    }

    fn decode(value: Value, _: &mut Cx<'_>) -> Option<Self> {
        Some(value)
    }
}

impl Decode for bool {
    fn kind() -> Kind {
        Kind::text("bool")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        match value.data {
            Data::Bool(b) => Some(b),
            _ => {
                cx.wrong_type(&value, "true or false");
                None
            }
        }
    }
}

impl Decode for String {
    fn kind() -> Kind {
        Kind::text("string")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        match value.data {
            Data::String(text) => Some(text),
            _ => {
                cx.wrong_type(&value, "a string");
                None
            }
        }
    }
}

/// A name that logs and counters show: a tag, an e-mail.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Name(pub(crate) String);

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Decode for Name {
    fn kind() -> Kind {
        String::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let name = String::decode(value, cx)?;
        match name.chars().find(|c| text::is_hidden(*c)) {
            None => Some(Name(name)),
            Some(c) => {
                let text = format!("{} holds the control character {}", quoted(&name), c.escape_unicode());
                cx.error(at, text, "names stand in logs, where it could forge lines: take it out");
                None
            }
        }
    }
}

macro_rules! whole_numbers {
    ($($Type:ident),*) => {$(
        impl Decode for $Type {
            fn kind() -> Kind {
                Kind::Text(format!("{} to {}", $Type::MIN, $Type::MAX))
            }

            fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
                let Data::Number(text) = &value.data else {
                    cx.wrong_type(&value, "a whole number");
                    return None;
                };
                match text.parse() {
                    Ok(number) => Some(number),
                    Err(_) => {
                        let text = format!("{} is not a whole number from {} to {}", shorten(text), $Type::MIN, $Type::MAX);
                        cx.error(value.at, text, "");
                        None
                    }
                }
            }
        }
    )*};
}
whole_numbers!(u8, u16, u32, i32, i64);

/// A text of the user's, not endlessly long.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whole seconds.
impl Decode for Duration {
    fn kind() -> Kind {
        Kind::text("seconds")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        u32::decode(value, cx).map(|seconds| Duration::from_secs(u64::from(seconds)))
    }
}

/// An empty string is the same as no key, as forms that write configurations leave them.
impl<T: Decode> Decode for Option<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        match &value.data {
            Data::String(text) if text.is_empty() => Some(None),
            _ => T::decode(value, cx).map(Some),
        }
    }
}

impl<T: Decode> Decode for Box<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        T::decode(value, cx).map(Box::new)
    }
}

impl<T: Decode> Decode for At<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        T::decode(value, cx).map(|value| At { value, at })
    }
}

/// Elements that fail are reported and the others still read; the list as a whole fails then.
impl<T: Decode> Decode for Vec<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let Data::Array(values) = value.data else {
            cx.wrong_type(&value, "an array");
            return None;
        };
        let wanted = values.len();
        let read: Vec<T> = values
            .into_iter()
            .enumerate()
            .filter_map(|(i, value)| cx.at_index(i, |cx| T::decode(value, cx)))
            .collect();
        (read.len() == wanted).then_some(read)
    }
}

/// A part of an object whose failure is reported and does not keep the rest from being read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part<T>(
    /// `None` if it failed.
    pub Option<T>,
);

impl<T: Default> Default for Part<T> {
    fn default() -> Self {
        Part(Some(T::default()))
    }
}

impl<T: Decode> Decode for Part<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        Some(Part(T::decode(value, cx)))
    }
}

/// A list of which those elements are kept that can be read, each with its place in the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed<T> {
    pub(crate) read: Vec<(usize, T)>,
    /// All of them could be read.
    pub(crate) whole: bool,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Listed {
            read: Vec::new(),
            whole: true,
        }
    }
}

impl<T: Decode> Decode for Listed<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let Data::Array(values) = value.data else {
            cx.wrong_type(&value, "an array");
            return None;
        };
        let wanted = values.len();
        let read = values.into_iter().enumerate();
        let read: Vec<(usize, T)> = read
            .filter_map(|(i, value)| Some((i, cx.at_index(i, |cx| T::decode(value, cx))?)))
            .collect();
        Some(Listed {
            whole: read.len() == wanted,
            read,
        })
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn kind() -> Kind {
        Kind::Map(Box::new(T::kind()))
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let Data::Object(members) = value.data else {
            cx.wrong_type(&value, "an object");
            return None;
        };
        let mut map = BTreeMap::new();
        let mut whole = true;
        for member in members {
            match cx.within(&member.key, |cx| T::decode(member.value, cx)) {
                Some(value) if map.contains_key(&member.key) => {
                    let text = format!("{} stands here twice, and the last one counts", quoted(&member.key));
                    cx.warn(member.at, text, "remove one of them");
                    map.insert(member.key, value);
                }
                Some(value) => {
                    map.insert(member.key, value);
                }
                None => whole = false,
            }
        }
        whole.then_some(map)
    }
}

/// A list of texts, written as an array or as one string with commas.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Texts(pub Vec<At<String>>);

impl Texts {
    /// The texts.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|text| text.value.as_str())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Decode for Texts {
    fn kind() -> Kind {
        Kind::text("list of strings, or one string with commas")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        match value.data {
            Data::Array(_) => Vec::<At<String>>::decode(value, cx).map(Texts),
            Data::String(text) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Some(Texts(
                    parts
                        .map(|part| At {
                            value: part.to_owned(),
                            at: value.at,
                        })
                        .collect(),
                ))
            }
            _ => {
                cx.wrong_type(&value, "an array or a string");
                None
            }
        }
    }
}

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
            Data::String(text) => from_env(text, &value, cx)?,
            _ => {
                cx.wrong_type(&value, "a port");
                return None;
            }
        };
        Ports::parse(&text).map_err(|text| cx.error(value.at, text, "")).ok()
    }
}

/// The text itself, or the value of the variable that `env:NAME` names.
pub(crate) fn from_env(text: &str, value: &Value, cx: &mut Cx<'_>) -> Option<String> {
    let Some(name) = text.strip_prefix("env:") else {
        return Some(text.to_owned());
    };
    let found = cx.variable(name.trim());
    if found.is_none() {
        let text = format!("the environment has no variable {}", quoted(name.trim()));
        cx.error(value.at, text, "set it, or write the value here");
    }
    found
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

/// Types that are read from a string.
macro_rules! texts {
    ($($(#[$meta:meta])* $Type:ty = $kind:literal, $parse:expr, $hint:literal;)*) => {$(
        $(#[$meta])*
        impl Decode for $Type {
            fn kind() -> Kind {
                Kind::text($kind)
            }

            fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
                let Data::String(text) = &value.data else {
                    cx.wrong_type(&value, "a string");
                    return None;
                };
                let text = $crate::config::scalar::from_env(text, &value, cx)?;
                let parse: fn(&str) -> Result<$Type, String> = $parse;
                parse(text.trim()).map_err(|text| cx.error(value.at, text, $hint)).ok()
            }
        }
    )*};
}
pub(crate) use texts;

texts! {
    Address = "IP address or domain name", |text| Address::parse(text).map_err(|e| e.to_string()), "";
    std::net::IpAddr = "IP address", |text| {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        bare.parse().map_err(|_| format!("{} is no IP address", quoted(text)))
    }, "";
    UserId = "UUID, or a name of 1 to 30 bytes", |text| UserId::parse(text).map_err(|e| e.to_string()), "";
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

/// Names and their texts. Numbers are taken as texts.
pub(crate) type ScalarMap = BTreeMap<String, super::sockopt::ScalarText>;
