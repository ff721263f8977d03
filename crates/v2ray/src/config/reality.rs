//! `streamSettings.realitySettings`.

mod client;
mod server;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroize;

use super::context::{Cx, quoted};
use super::dest::Dest;
use super::scalar::Texts;
use super::schema::Kind;
use super::table::{Decode, FromKeys, object};
use crate::json::Value;
use crate::problem::{At, Position};

pub use client::ClientReality;
pub use server::{ServerReality, ThrottledAfter};

object! {
    /// From some byte on, how fast a connection that is passed on to the target may go in one direction.
    pub struct FallbackLimit: "realitySettings.limitFallback" {
        /// Bytes that pass before the limit holds.
        after_bytes: u64 = "afterBytes", default "0";
        /// Bytes a second from then on. 0: no limit.
        bytes_per_sec: u64 = "bytesPerSec", default "0";
        /// Bytes that may come at once after a pause. No less than those of a second.
        burst_bytes_per_sec: u64 = "burstBytesPerSec", default "0";
    }
}

object! {
    /// REALITY. An inbound needs `target`, `serverNames`, `privateKey` and `shortIds`, an outbound `publicKey`.
    pub(crate) struct RealitySettings: "streamSettings.realitySettings" {
        /// Inbound: the server whose handshake is borrowed, and which whoever has no key is passed on to.
        target: Option<At<Dest>> = "target" | "dest";
        /// Inbound: what kind of address `target` is: `tcp` or `unix`. Empty: as it looks.
        kind: At<String> = "type", default "\"\"";
        /// Inbound: the version of the PROXY protocol to announce clients to the target with. 0: none.
        xver: At<u8> = "xver", default "0";
        /// Inbound: the names that clients may ask for, exactly. An empty one is for clients that name none.
        server_names: At<Texts> = "serverNames", default "[]";
        /// Inbound: the X25519 private key, 32 bytes in base64 for URLs. `sealway x25519` makes one.
        private_key: Option<At<String>> = "privateKey";
        /// Inbound: what clients may identify themselves with: up to 16 hexadecimal digits, an even number of them.
        short_ids: At<Texts> = "shortIds", default "[]";
        /// Inbound: the lowest version that a client may say it has, as `x.y.z`.
        min_client_version: Option<At<String>> = "minClientVer";
        /// Inbound: the highest version that a client may say it has, as `x.y.z`.
        max_client_version: Option<At<String>> = "maxClientVer";
        /// Inbound: by how many milliseconds a client's clock may differ. 0: any number. Absent: 120000.
        max_time_diff: Option<At<u64>> = "maxTimeDiff";
        /// Inbound: the seed of an ML-DSA-65 key, 32 bytes in base64 for URLs. `sealway mldsa65` makes one.
        mldsa65_seed: Option<At<String>> = "mldsa65Seed";
        /// Inbound: the limit for what strangers send to the target.
        limit_upload: Option<At<FallbackLimit>> = "limitFallbackUpload";
        /// Inbound: the limit for what the target sends to strangers.
        limit_download: Option<At<FallbackLimit>> = "limitFallbackDownload";
        /// Outbound: the name to ask for. Empty: the address dialled.
        server_name: At<String> = "serverName", default "\"\"";
        /// Outbound: the browser whose hello to imitate. Chrome's stands in for those of the others.
        fingerprint: At<String> = "fingerprint", default "\"\"";
        /// Outbound: the server's X25519 public key, 32 bytes in base64 for URLs.
        public_key: Option<At<String>> = "password" | "publicKey";
        /// Outbound: which of the server's `shortIds` to identify with.
        short_id: At<String> = "shortId", default "\"\"";
        /// Outbound: the server's ML-DSA-65 public key, 1952 bytes in base64 for URLs. Then a server without it is refused.
        mldsa65_verify: Option<At<String>> = "mldsa65Verify";
        /// Outbound: the path to ask the site for, where it is the real one that has answered.
        spider_x: At<String> = "spiderX", default "\"\"";
        /// The file to add session secrets to, for reading captures.
        key_log: At<String> = "masterKeyLog", default "\"\"";
    }
    other {
        Accepted "show": "";
    }
}

/// REALITY, ready to be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Reality {
    /// Of an inbound.
    Server(Box<ServerReality>),
    /// Of an outbound.
    Client(Box<ClientReality>),
}

impl FromKeys for Reality {
    type Keys = RealitySettings;

    fn from_keys(settings: RealitySettings, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
        if !settings.key_log.is_empty() {
            let text = "session secrets are written to this file: whoever has it can read the captured connections";
            let hint = "take it out when you have what you need";
            cx.warn_in("masterKeyLog", settings.key_log.at, text, hint);
        }
        Some(if cx.listens {
            Reality::Server(Box::new(server::read(settings, at, cx)?))
        } else {
            Reality::Client(Box::new(client::read(settings, at, cx)?))
        })
    }
}

/// The settings of REALITY, which are read only where it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnreadReality(pub(crate) Value);

impl Decode for UnreadReality {
    fn kind() -> Kind {
        Reality::kind()
    }

    fn decode(value: Value, _: &mut Cx<'_>) -> Option<Self> {
        Some(UnreadReality(value))
    }
}

/// 32 secret bytes, which are wiped and never shown.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(pub [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Tells of keys that have no effect on this side.
fn no_effect(keys: &[(&str, Option<Position>)], cx: &mut Cx<'_>) {
    let (side, other) = match cx.listens {
        true => ("an inbound", "outbound"),
        false => ("an outbound", "inbound"),
    };
    for (key, at) in keys {
        if let Some(at) = at {
            let text = format!("`{key}` has no effect on {side}");
            cx.warn_in(key, *at, text, format!("it belongs to the {other} at the other end"));
        }
    }
}

/// Where a text stands that is not empty.
fn set(text: &At<String>) -> Option<Position> {
    (!text.is_empty()).then_some(text.at)
}

/// The bytes of a key, in base64 for URLs. Keys are not shown in messages.
fn key<const N: usize>(name: &str, text: &At<String>, hint: &str, cx: &mut Cx<'_>) -> Option<[u8; N]> {
    let read = URL_SAFE_NO_PAD.decode(text.trim());
    let wrong = match &read {
        Err(_) => format!("`{name}` is not base64 of the kind for URLs, without padding (letters, digits, - and _)"),
        Ok(bytes) => format!("`{name}` has {} bytes, and {N} are needed", bytes.len()),
    };
    let key = read.ok().and_then(|mut bytes| {
        let key = <[u8; N]>::try_from(bytes.as_slice()).ok();
        bytes.zeroize();
        key
    });
    if key.is_none() {
        cx.error_in(name, text.at, wrong, hint);
    }
    key
}

/// Reads a short id: up to 16 hexadecimal digits, an even number of them, with zeros behind.
fn short_id(text: &str) -> Result<[u8; 8], String> {
    let digits = text.trim();
    let mut id = [0; 8];
    if digits.len() > 16 {
        return Err(format!("{} has more than 16 hexadecimal digits", quoted(text)));
    }
    if !digits.len().is_multiple_of(2) {
        return Err(format!("{} has an odd number of digits", quoted(text)));
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    for (byte, pair) in id.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        match (digit(pair[0]), digit(pair[1])) {
            (Some(high), Some(low)) => *byte = high << 4 | low,
            _ => return Err(format!("{} is not hexadecimal", quoted(text))),
        }
    }
    Ok(id)
}

/// Tells of a site that is known not to work.
fn check_site(key: &str, name: &str, at: Position, cx: &mut Cx<'_>) {
    let lower = name.trim_end_matches('.').to_ascii_lowercase();
    let brands = ["apple", "icloud", "microsoft"];
    let ends = [".cn", ".ir", ".ru"];
    if brands.iter().any(|brand| lower.contains(brand)) || ends.iter().any(|end| lower.ends_with(end)) {
        let text = format!("{} is of those that are known not to work as a target", quoted(name));
        let hint = "name a site that is hosted near this server, abroad from its users, with TLS 1.3 and HTTP/2";
        cx.warn_in(key, at, text, hint);
    }
}

#[cfg(test)]
mod tests;
