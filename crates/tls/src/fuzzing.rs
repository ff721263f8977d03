//! One entry a parser, for the fuzz targets and for the test that replays their corpora. Not part of the public interface.
//!
//! Every entry checks more than that nothing panics: that cutting the input elsewhere changes nothing, that what is answered has the
//! length that it is to have, that no more comes out than went in, that nobody gets through a handshake without its keys.
#![allow(clippy::unwrap_used, reason = "the other end is ours and in order")]

pub(crate) mod client;
mod codec;
#[cfg(test)]
mod corpora;
pub(crate) mod ends;
mod reality;

use crate::group::{self, Group};

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[
    ("tls13_client", ends::client),
    ("tls13_group", group),
    ("tls13_hello", codec::hello),
    ("tls13_messages", codec::messages),
    ("tls13_records", ends::records),
    ("tls13_server_flight", client::server_flight),
    ("tls13_reality_certificate", client::reality_certificate),
    ("tls13_reality_hello", reality::hello),
    ("tls13_reality_flight", reality::flight),
];

/// Runs the entry of this name.
///
/// # Panics
/// If there is none, or if the entry finds a fault.
pub fn run(name: &str, data: &[u8]) {
    match ENTRIES.iter().find(|(entry, _)| *entry == name) {
        Some((_, entry)) => entry(data),
        None => panic!("there is no fuzz entry {name}"),
    }
}

/// A client's key share, as a stranger may send it.
fn group(data: &[u8]) {
    for group in Group::ALL {
        if let Ok((own, shared)) = group::answer(group, data, &mut |out| out.fill(7)) {
            assert_eq!(data.len(), group.client_len());
            assert_eq!(own.len(), group.server_len());
            let len = match group {
                Group::X25519 | Group::Secp256r1 => 32,
                Group::Secp384r1 => 48,
                Group::X25519MlKem768 => 64,
            };
            assert_eq!(shared.len(), len);
        }
    }
}
