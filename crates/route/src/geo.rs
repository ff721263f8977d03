//! Geo files: `geosite.dat` with lists of names, `geoip.dat` with lists of networks, as V2Ray and Xray read them.
//!
//! A file is a protobuf message with one field for each entry. An entry has a code, such as `CN`, and items:
//!
//! ```text
//! GeoSiteList { 1: entry { 1: code, 2: domain { 1: kind, 2: text, 3: attribute { 1: name, 2: bool, 3: number } } … } … }
//! GeoIPList   { 1: entry { 1: code, 2: network { 1: address of 4 or 16 bytes, 2: length of the prefix } …, 3: inverse } … }
//! ```
//!
//! Unknown fields are passed over. [`Scanner`] reads a file through a window of it, and passes over entries that nobody asked
//! for without looking into them.

mod scanner;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;

use ipnet::IpNet;

pub use crate::names::Form;
use crate::names::NameSet;
pub use scanner::{Scanner, Step};
use wire::Fields;

/// Longest item of an entry, and longest code, in bytes. A window of [`WINDOW`] bytes holds any item.
pub const MAX_ITEM: usize = 16 << 10;

/// How many bytes of the file [`Scanner`] needs to see at most before it can go on.
pub const WINDOW: usize = MAX_ITEM + 2 * wire::MAX_VARINT;

/// What a file lists.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// Names: `geosite.dat`.
    Names,
    /// Networks: `geoip.dat`.
    Networks,
}

/// One thing in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// An entry begins: its code as it stands there, which is upper-case by custom.
    Entry(&'a str),
    /// A condition about names, of the entry that began last.
    Name(Name<'a>),
    /// A network, of the entry that began last.
    Network(IpNet),
    /// The entry that began last stands for all addresses outside of its networks.
    Inverse,
}

/// A condition about names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Name<'a> {
    /// How the text is compared.
    pub form: Form,
    /// The text.
    pub text: &'a str,
    message: &'a [u8],
}

impl<'a> Name<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut name = Name {
            form: Form::Keyword,
            text: "",
            message,
        };
        for field in Fields::new(message) {
            let field = field?;
            match (field.number, field.bytes) {
                (1, None) => {
                    name.form = match field.value {
                        0 => Form::Keyword,
                        1 => Form::Regex,
                        2 => Form::Domain,
                        3 => Form::Full,
                        _ => return None,
                    }
                }
                (2, Some(text)) => name.text = std::str::from_utf8(text).ok()?,
                (3, Some(attribute)) => {
                    attribute_name(attribute)?;
                }
                (1..=3, _) => return None,
                _ => {}
            }
        }
        Some(name)
    }

    /// Whether the condition holds for a name, which must be in lower case and without a dot at its end. One that is no
    /// regular expression, or without a text, holds for none. Whoever asks often makes a [`NameSet`], which says the same.
    pub fn matches(&self, name: &str) -> bool {
        if self.text.is_empty() {
            return false;
        }
        let lower = || self.text.to_lowercase();
        let dotless = || {
            let text = lower();
            text.strip_suffix('.').map(str::to_owned).unwrap_or(text)
        };
        match self.form {
            Form::Keyword => name.contains(&lower()),
            Form::Full => name == dotless(),
            Form::Domain => {
                let text = dotless();
                let above = name.strip_suffix(&text).filter(|_| !text.is_empty());
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            }
            Form::Regex => {
                let mut one = NameSet::builder();
                one.regex(self.text);
                one.build().is_ok_and(|set| set.matches(name))
            }
        }
    }

    /// The names of its attributes, as they stand there.
    pub fn attributes(&self) -> impl Iterator<Item = &'a str> {
        let fields = Fields::new(self.message).flatten();
        fields.filter_map(|field| attribute_name(field.bytes.filter(|_| field.number == 3)?))
    }
}

/// As configurations write it, with its attributes: `domain:example.org @ads`.
impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.form.word(), self.text)?;
        self.attributes().try_for_each(|attribute| write!(f, " @{attribute}"))
    }
}

fn attribute_name(message: &[u8]) -> Option<&str> {
    let mut name = "";
    for field in Fields::new(message) {
        let field = field?;
        if field.number == 1 {
            name = std::str::from_utf8(field.bytes?).ok()?;
        }
    }
    Some(name)
}

fn network(message: &[u8]) -> Option<IpNet> {
    let (mut address, mut prefix) = (None, 0);
    for field in Fields::new(message) {
        let field = field?;
        match (field.number, field.bytes) {
            (1, Some(bytes)) => address = Some(bytes),
            (2, None) => prefix = field.value,
            (1 | 2, _) => return None,
            _ => {}
        }
    }
    let address = match address? {
        bytes @ [_, _, _, _] => std::net::IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        bytes => std::net::IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    IpNet::new(address, u8::try_from(prefix).ok()?)
        .ok()
        .map(|net| net.trunc())
}

/// What is wrong with a file: the fault of who made it, or of who names it for what it is not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// At this byte stands something else than such a file has there.
    Malformed(u64),
    /// The file ends in the middle of an entry.
    Truncated,
    /// At this byte an item begins that is longer than [`MAX_ITEM`].
    TooLong(u64),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed(at) => write!(f, "it is no such file: byte {at} does not belong there"),
            Error::Truncated => f.write_str("it ends in the middle of an entry"),
            Error::TooLong(at) => write!(f, "the item at byte {at} is longer than {MAX_ITEM} bytes"),
        }
    }
}

impl std::error::Error for Error {}
