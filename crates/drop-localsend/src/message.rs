//! The messages of LocalSend as JSON (protocol document v2.1, and what its app 1.18 does as "2.2").
//!
//! Every reader is bounded: by the bytes it is given, by the number of files, and by the length of what is kept of a text. Unknown
//! keys are ignored, as every version of the app does.

use std::fmt;

use jiff::Timestamp;
use sealway_drop::names::Escaped;
use sealway_drop_transfer::entry::Time;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fingerprint::Fingerprint;

/// The version that this end says.
pub const VERSION: &str = "2.2";
/// The port of the app, for TCP and for UDP.
pub const PORT: u16 = 53317;
/// The longest datagram that is read or written.
pub const MAX_DATAGRAM: usize = 1200;
/// The longest JSON of an offer, or of the answer to one.
pub const MAX_OFFER: usize = 32 << 20;
/// The longest JSON of any other message.
pub const MAX_MESSAGE: usize = 16 << 10;
/// The most files of an offer.
pub const MAX_FILES: usize = 1 << 17;
/// The longest text message.
pub const MAX_TEXT: usize = 1 << 20;
/// The most characters that are kept of a name that a device gives itself.
const MAX_ALIAS: usize = 64;

/// Whether a device is spoken to in clear.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// In clear.
    Http,
    /// Over TLS.
    #[default]
    Https,
}

impl Protocol {
    /// As it goes over the wire.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Https => "https",
        }
    }
}

/// What a device says of itself. All of it is a claim.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// What it is called.
    #[serde(deserialize_with = "short")]
    pub alias: String,
    /// The version of the protocol.
    #[serde(default, deserialize_with = "short")]
    pub version: String,
    /// Such as `Pixel` or `Linux`.
    #[serde(default, deserialize_with = "short_if", skip_serializing_if = "Option::is_none")]
    pub device_model: Option<String>,
    /// `mobile`, `desktop`, `web`, `headless` or `server`.
    #[serde(default, deserialize_with = "short_if", skip_serializing_if = "Option::is_none")]
    pub device_type: Option<String>,
    /// The fingerprint of its certificate, or anything without TLS.
    #[serde(default, deserialize_with = "short")]
    pub fingerprint: String,
    /// Where it listens; none in an answer, 0 for a browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How it is spoken to; none in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Whether files can be fetched from it.
    #[serde(default, deserialize_with = "or_default")]
    pub download: bool,
    /// In a datagram: whether it wants to be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<bool>,
    /// The same, as version 1 called it; the app to 1.17 says both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announcement: Option<bool>,
}

impl Info {
    /// Reads one, of a datagram or of a body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Info, Malformed> {
        if bytes.len() > MAX_MESSAGE {
            return Err(Malformed("it is too long".into()));
        }
        Ok(serde_json::from_slice(bytes)?)
    }

    /// The form of the wire.
    pub fn write(&self) -> Vec<u8> {
        // Texts and numbers can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The fingerprint that it claims, if it is one of a certificate.
    pub fn claimed(&self) -> Option<Fingerprint> {
        Fingerprint::parse(&self.fingerprint)
    }

    /// The alias, with nothing in it that a terminal would obey.
    pub fn shown(&self) -> String {
        Escaped(self.alias.as_bytes()).to_string()
    }
}

/// A file of an offer.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// What the file is called in requests. It counts as the key of the map does; both ends write the same.
    #[serde(default)]
    pub id: String,
    /// Its path, with slashes.
    pub file_name: String,
    /// Bytes.
    pub size: u64,
    /// Its MIME type.
    #[serde(default, deserialize_with = "or_default")]
    pub file_type: String,
    /// Lower-case hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// A text message itself; thumbnails of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Its times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Times of a file, in RFC 3339.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Metadata {
    /// When its content last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

impl Metadata {
    /// Of a time; none where RFC 3339 cannot say it.
    pub fn of(time: Time) -> Option<Metadata> {
        let nanoseconds = i32::try_from(time.nanoseconds).ok()?;
        let time = Timestamp::new(time.seconds, nanoseconds).ok()?;
        Some(Metadata {
            modified: Some(time.to_string()),
        })
    }
}

impl File {
    /// When it last changed. A time without an offset from UTC says nothing.
    pub fn modified(&self) -> Option<Time> {
        let text = self.metadata.as_ref()?.modified.as_deref()?;
        let time: Timestamp = text.parse().ok()?;
        let nanoseconds = time.as_nanosecond();
        Some(Time {
            seconds: i64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?,
            nanoseconds: u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).ok()?,
        })
    }

    /// The hash that it is to have; `None` if none was said, or nothing that is one.
    pub fn hash(&self) -> Option<Fingerprint> {
        Fingerprint::parse(self.sha256.as_deref()?)
    }
}

/// Files by their ids, in the order in which they came.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Files<T>(pub Vec<(String, T)>);

/// What a sender offers, and what a device lists that can be pulled from.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Who it is.
    pub info: Info,
    /// In what can be pulled: what downloads are asked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What there is.
    pub files: Files<File>,
}

impl Offer {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Offer, Malformed> {
        bounded(bytes)
    }

    /// The text, if it is a text message: one file that is text and carries it with it.
    pub fn message(&self) -> Option<&str> {
        match self.files.0.as_slice() {
            [(_, file)] if file.file_type.starts_with("text/plain") => {
                file.preview.as_deref().filter(|text| text.len() <= MAX_TEXT)
            }
            _ => None,
        }
    }
}

/// What a receiver wants: those files that have tokens.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The session.
    pub session_id: String,
    /// Tokens by the ids of files.
    pub files: Files<String>,
}

impl Accepted {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Accepted, Malformed> {
        bounded(bytes)
    }
}

/// The text of an error, as the other end says it: escaped, and cut.
pub fn reason(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Reason {
        #[serde(deserialize_with = "short")]
        message: String,
    }
    serde_json::from_slice(body.get(..MAX_MESSAGE).unwrap_or(body))
        .map(|Reason { message }| Escaped(message.as_bytes()).to_string())
        .unwrap_or_default()
}

/// JSON that is not what it should be.
#[derive(Debug)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Malformed {
        Malformed(error.to_string())
    }
}

fn bounded<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    if bytes.len() > MAX_OFFER {
        return Err(Malformed("it is too long".into()));
    }
    Ok(serde_json::from_slice(bytes)?)
}

fn short<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(String::deserialize(from)?.chars().take(MAX_ALIAS).collect())
}

fn short_if<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.map(|text| text.chars().take(MAX_ALIAS).collect()))
}

/// `null` is what is missing.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl<T: Serialize> Serialize for Files<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(id, file)| (id, file)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Files<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Files<T>, D::Error> {
        struct Reader<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Files<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("files by their ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Files<T>, A::Error> {
                let (mut files, mut ids) = (Vec::new(), std::collections::HashSet::new());
                while let Some((id, file)) = map.next_entry::<String, T>()? {
                    if files.len() == MAX_FILES {
                        return Err(A::Error::custom(format!("there are more than {MAX_FILES} files")));
                    }
                    if !ids.insert(id.clone()) {
                        return Err(A::Error::custom("one id stands for two files"));
                    }
                    files.push((id, file));
                }
                Ok(Files(files))
            }
        }
        from.deserialize_map(Reader(std::marker::PhantomData))
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
