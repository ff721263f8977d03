//! What the first bytes of a connection say: which protocol it carries, and which host it is meant for.
//!
//! Nothing is changed and nothing is kept of what is looked at: [`stream`] sees all bytes so far each time, and the bytes go on
//! as they came. Only QUIC has to be remembered, for its hello comes in several datagrams: [`Quic`].
//!
//! | First byte | It may be |
//! |---|---|
//! | `16` | TLS: a ClientHello, over as many records and segments as it likes |
//! | a letter | HTTP/1, with `Host` and the other headers ([`attributes`]) |
//! | `13` | BitTorrent |
//!
//! Datagrams are QUIC ([`is_quic`]), BitTorrent's uTP or its DHT ([`datagram`]).
//!
//! An observer sees what a client shows. A name proves nothing: it says where a client claims to go.

mod bittorrent;
mod http;
mod quic;
mod tls;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use quic::seal as quic_for_fuzzing;

pub use http::attributes;
pub use quic::{MAX_HELD, Quic, is_initial as is_quic};

use crate::Domain;

/// Most bytes of a stream that are looked at.
pub const MAX_BYTES: usize = 32 << 10;

/// A protocol that is recognised.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// HTTP/1.
    Http,
    /// TLS.
    Tls,
    /// QUIC.
    Quic,
    /// BitTorrent, by whichever of its ways.
    Bittorrent,
}

impl Kind {
    /// The name that rules know it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Http => "http1",
            Kind::Tls => "tls",
            Kind::Quic => "quic",
            Kind::Bittorrent => "bittorrent",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    /// The protocol.
    pub kind: Kind,
    /// The host it is meant for, in lower case and without a dot at its end. Addresses are no names.
    pub domain: Option<Domain>,
}

/// What a look gives.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Look {
    /// This.
    Found(Found),
    /// Nothing yet: look again with at least this many more bytes. Never 0.
    More(usize),
    /// Nothing, whatever follows.
    Nothing,
}

impl Look {
    fn found(kind: Kind, domain: Option<Domain>) -> Look {
        Look::Found(Found { kind, domain })
    }
}

/// Looks at all that a stream has brought so far.
///
/// `last` says that nothing more will be waited for: what is whole enough to be used is then found, and [`Look::More`] means
/// the same as [`Look::Nothing`].
pub fn stream(bytes: &[u8], last: bool) -> Look {
    match bytes.first() {
        None => Look::More(1),
        Some(0x16) => tls::look(bytes),
        Some(0x13) => bittorrent::stream(bytes),
        Some(first) if first.is_ascii_alphabetic() => http::look(bytes, last),
        Some(_) => Look::Nothing,
    }
}

/// Looks at the first datagram to a target, by itself. [`Quic`] looks at more than one.
pub fn datagram(bytes: &[u8]) -> Option<Found> {
    bittorrent::datagram(bytes).then_some(Found {
        kind: Kind::Bittorrent,
        domain: None,
    })
}

/// The server name of a TLS stream in `wire`, if there is a whole ClientHello with one, in lower case.
pub fn server_name(wire: &[u8]) -> Option<Domain> {
    match tls::look(wire) {
        Look::Found(found) => found.domain,
        _ => None,
    }
}

/// A name out of a message, in lower case, if it is one that could be dialled.
fn name(text: &[u8]) -> Option<Domain> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_suffix('.').unwrap_or(text);
    // What ends in a number is an address, or is read as one by some (RFC 3696 section 2), and empty labels by nobody.
    let (mut letters, mut digits) = (0, 0);
    for byte in text.bytes() {
        match byte {
            b'.' if letters + digits == 0 => return None,
            b'.' => (letters, digits) = (0, 0),
            b'0'..=b'9' => digits += 1,
            _ => letters += 1,
        }
    }
    if letters == 0 {
        return None;
    }
    Domain::lower(text).ok()
}

#[cfg(test)]
mod tests;
