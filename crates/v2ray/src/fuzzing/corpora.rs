//! Replays the kept fuzz corpora, and changed copies of them.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use super::ENTRIES;

/// What the corpora of this crate begin with.
const OURS: [&str; 17] = [
    "trojan_",
    "vless_",
    "vmess_",
    "shadowsocks_",
    "sniff_",
    "socks_",
    "http_",
    "mux_",
    "packet_addr",
    "proxy_protocol",
    "ws_",
    "httpupgrade",
    "gun",
    "xhttp_",
    "user_id",
    "config",
    "link",
];

replay::tests!(ENTRIES, usize::MAX, 1500, &OURS);
