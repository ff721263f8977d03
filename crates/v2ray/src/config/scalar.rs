//! Values without keys: numbers, texts, lists, ports, addresses.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use super::context::{Cx, quoted};
use super::schema::Kind;
use super::table::Decode;
use crate::json::{Data, Value};
use crate::problem::{At, Position};
use crate::{Address, UserId, text};

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
whole_numbers!(u8, u16, u32, u64, i16, i32, i64);

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

impl<T: Decode> Decode for At<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        T::decode(value, cx).map(|value| At { value, at })
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

/// Elements that fail are reported and the others still read; the list as a whole fails then.
impl<T: Decode> Decode for Vec<T> {
    fn kind() -> Kind {
        Listed::<T>::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let list = Listed::decode(value, cx)?;
        list.whole
            .then(|| list.read.into_iter().map(|(_, value)| value).collect())
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

/// The text itself, or the value of the variable that `env:NAME` names.
pub(crate) fn from_env(text: &str, at: Position, cx: &mut Cx<'_>) -> Option<String> {
    let Some(name) = text.strip_prefix("env:") else {
        return Some(text.to_owned());
    };
    let found = cx.variable(name.trim());
    if found.is_none() {
        let text = format!("the environment has no variable {}", quoted(name.trim()));
        cx.error(at, text, "set it, or write the value here");
    }
    found
}

/// Types that are read from a string.
macro_rules! texts {
    ($($Type:ty = $kind:literal, $parse:expr, $hint:literal;)*) => {$(
        impl $crate::config::table::Decode for $Type {
            fn kind() -> $crate::config::schema::Kind {
                $crate::config::schema::Kind::text($kind)
            }

            fn decode(
                value: $crate::json::Value,
                cx: &mut $crate::config::context::Cx<'_>,
            ) -> Option<Self> {
                let parse: fn(&str) -> Result<$Type, String> = $parse;
                $crate::config::scalar::decode_text(value, parse, $hint, cx)
            }
        }
    )*};
}
pub(crate) use texts;

/// Reads a string, or the variable of the environment that it names.
pub(crate) fn decode_text<T>(
    value: Value,
    parse: impl FnOnce(&str) -> Result<T, String>,
    hint: &str,
    cx: &mut Cx<'_>,
) -> Option<T> {
    let at = value.at;
    let text = String::decode(value, cx)?;
    let text = from_env(&text, at, cx)?;
    parse(text.trim()).map_err(|text| cx.error(at, text, hint)).ok()
}

texts! {
    Address = "IP address or domain name", |text| Address::parse(text).map_err(|e| e.to_string()), "";
    std::net::IpAddr = "IP address", |text| {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        bare.parse().map_err(|_| format!("{} is no IP address", quoted(text)))
    }, "";
    UserId = "UUID, or a name of 1 to 30 bytes", |text| UserId::parse(text).map_err(|e| e.to_string()), "";
}

/// A string, or a number as it was written.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScalarText(
    /// The text.
    pub String,
);

impl Decode for ScalarText {
    fn kind() -> Kind {
        Kind::text("string or number")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        match value.data {
            Data::String(text) => Some(ScalarText(text)),
            Data::Number(text) => Some(ScalarText(text.into())),
            _ => {
                cx.wrong_type(&value, "a string or a number");
                None
            }
        }
    }
}

/// Names and their texts. Numbers are taken as texts.
pub(crate) type ScalarMap = BTreeMap<String, ScalarText>;

/// Header names and values.
pub type Headers = BTreeMap<String, String>;

/// Whether a request may have this header (RFC 9110 section 5).
pub(crate) fn is_header(name: &str, value: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token) && !value.chars().any(char::is_control)
}
