//! Replays the kept fuzz corpus, and changed copies of it.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use super::ENTRIES;
use crate::testing::{entry, field, names, networks, varint};

replay::tests!(ENTRIES, usize::MAX, 1500, &["geo_"]);

#[test]
fn the_corpus_is_what_is_made_now() {
    let sites = [
        names("CN", &["example.cn", "full:www.example.cn @ads", "keyword:cn"]),
        names("OTHER", &["regexp:^a.+\\.example$ @!cn @x"]),
        names("EMPTY", &[]),
    ];
    let ips = [
        networks("CN", &["192.0.2.0/24", "2001:db8::/32"]),
        networks("PRIVATE", &["10.0.0.0/8"]),
    ];
    // What V2Ray 5 has more: a hash, a code once more and the path of a file; and what nobody has.
    let more = [
        field(4, b"hash"),
        field(5, b"CN"),
        field(68_000, b"geoip.dat"),
        vec![0x7d, 1, 2, 3, 4, 0x71],
    ];
    let newer = entry(
        "CN",
        &[
            networks("x", &[])[5..].to_vec(),
            more.concat(),
            vec![0; 8],
            vec![0x18, 1],
        ],
    );
    let lying = [varint(1 << 3 | 2), varint(u64::MAX), b"\x0a\x02CN".to_vec()].concat();
    let seeds = [
        ("names", [vec![0], sites.concat()].concat()),
        ("networks", [vec![1], ips.concat()].concat()),
        ("newer", [vec![1], newer].concat()),
        (
            "no_code",
            [vec![0], field(1, &field(2, &field(2, b"x"))), field(1, b"")].concat(),
        ),
        ("lying_length", [vec![0], lying].concat()),
        ("names_as_networks", [vec![1], sites.concat()].concat()),
    ];
    replay::seeds("geo_file", &seeds);
}
