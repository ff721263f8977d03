//! One entry a parser, for the fuzz targets and for the test that replays their corpora. Not part of the public interface.
//!
//! Every entry checks more than that nothing panics: that a message is the same whatever follows it, and that no shorter
//! beginning of it is taken for a message or for an error.

mod config;
#[cfg(test)]
mod corpora;
mod gun;
mod http;
mod mux;
mod packet_addr;
mod shadowsocks;
mod sniff;
mod socks;
mod trojan;
mod upgrade;
mod vless;
mod vmess;
mod xhttp;

use std::fmt::Debug;

use crate::{Error, Step, UserId, proxy_protocol};

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[
    ("trojan_packet", trojan::trojan_packet),
    ("trojan_request", trojan::trojan_request),
    ("vless_request", vless::vless_request),
    ("vless_response", vless::vless_response),
    ("vless_packet", vless::vless_packet),
    ("vless_fallback", vless::vless_fallback),
    ("vless_vision_read", vless::vision_read),
    ("vless_vision_write", vless::vision_write),
    ("vmess_header", vmess::vmess_header),
    ("vmess_wire", vmess::vmess_wire),
    ("vmess_response", vmess::vmess_response),
    ("vmess_body", vmess::vmess_body),
    ("shadowsocks_2022", shadowsocks::edition2022),
    ("shadowsocks_packet", shadowsocks::packet),
    ("shadowsocks_stream", shadowsocks::stream),
    ("socks_server", socks::socks_server),
    ("socks_client", socks::socks_client),
    ("socks_udp", socks::socks_udp),
    ("http_front", http::http_front),
    ("http_request", http::http_request),
    ("http_response", http::http_response),
    ("http_body", http::http_body),
    ("proxy_protocol", proxy_protocol),
    ("ws_accept", upgrade::ws_accept),
    ("ws_answer", upgrade::ws_answer),
    ("ws_frames", upgrade::ws_frames),
    ("httpupgrade", upgrade::httpupgrade),
    ("gun", gun::gun_messages),
    ("gun_names", gun::gun_names),
    ("mux_frames", mux::mux_frames),
    ("packet_addr", packet_addr::packet_addr),
    ("xhttp_request", xhttp::request),
    ("xhttp_queue", xhttp::queue),
    ("sniff_stream", sniff::sniff_stream),
    ("sniff_quic", sniff::sniff_quic),
    ("user_id", user_id),
    ("config", config::config),
    ("link", config::link),
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

/// Checks a parser of whole messages.
fn whole<T: Debug + PartialEq>(data: &[u8], parse: impl Fn(&[u8]) -> Result<Step<T>, Error>) {
    match parse(data) {
        Ok(Step::Done { value, used }) => {
            assert!(used <= data.len(), "more was used than there is");
            assert_eq!(
                parse(&data[..used]),
                Ok(Step::Done { value, used }),
                "what follows made a difference"
            );
            // All beginnings of short messages, some of long ones.
            for n in (0..used).step_by(1 + used / 64) {
                match parse(&data[..n]) {
                    Ok(Step::More(more)) => assert!(more > 0 && n + more <= used, "{more} more than {n} of {used}"),
                    other => panic!("{n} of {used} bytes gave {other:?}"),
                }
            }
        }
        Ok(Step::More(more)) => assert!(more > 0, "nothing more was asked for"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn proxy_protocol(data: &[u8]) {
    whole(data, proxy_protocol::decode);
}

fn user_id(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(id) = UserId::parse(&text) {
        assert_eq!(UserId::parse(&id.to_string()), Ok(id));
    }
}
