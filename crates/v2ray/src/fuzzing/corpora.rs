//! Replays the kept fuzz corpora, and changed copies of them.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use super::ENTRIES;

#[test]
fn every_kept_input_is_handled() {
    replay::kept(ENTRIES, usize::MAX);
}

#[test]
fn every_changed_input_is_handled() {
    replay::changed_copies(ENTRIES, 1500);
}

#[test]
fn every_corpus_of_ours_has_an_entry() {
    let ours = [
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
    replay::every_corpus_has_an_entry(ENTRIES, &ours);
}
