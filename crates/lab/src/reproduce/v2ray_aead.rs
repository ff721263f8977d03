//! The ciphers of V2Ray through a proxy.

use super::claim::Want::{Int, Text};
use super::claim::{Claim, Figure, Who, claims, figure};
use super::ranking::Ranking;
use super::recipe::{Recipe, Source, Step};
use crate::result::Case;
use crate::route::Stack;
use crate::{flows, primitives, requests, transports};
use sealway_aead::Suite;

const COST: &str = "cpu_per_gb";

/// Four streams from the target to whoever connected.
macro_rules! streams {
    ($label:literal, $stack:literal) => {
        figure!($label, transports::NAME, "throughput", "stack": Text($stack), "streams": Int(4), "direction": Text("down"))
    };
}

const AES: Figure = streams!("VMess AES-128-GCM", "vmess-aes-128-gcm-tcp");
const CHACHA: Figure = streams!("VMess ChaCha20-Poly1305", "vmess-chacha20-poly1305-tcp");
const NONE_TLS: Figure = streams!("VMess none, TLS", "vmess-none-tcp-tls");
const VLESS_TLS: Figure = streams!("VLESS, TLS AES-128-GCM", "vless-tcp-tls");

const STACKS: [Stack; 9] = [
    Stack::VMESS_AES_TCP,
    Stack::VMESS_CHACHA_TCP,
    Stack::VMESS_NONE_TCP_TLS,
    Stack::VLESS_TCP_TLS,
    Stack::VLESS_TCP_TLS_AES_256,
    Stack::VLESS_TCP_TLS_CHACHA,
    Stack::SS_AES,
    Stack::SS_2022_AES,
    Stack::SS_2022_CHACHA,
];

/// For latencies: the two ciphers of VMess, TLS, and Shadowsocks as it was and as it is.
const FEW: [Stack; 5] = [
    Stack::VMESS_AES_TCP,
    Stack::VMESS_CHACHA_TCP,
    Stack::VLESS_TCP_TLS,
    Stack::SS_AES,
    Stack::SS_2022_AES,
];

fn four_streams_down(case: &Case) -> bool {
    case.int("streams") == Some(4) && case.text("direction") == Some("down")
}

fn closed(case: &Case) -> bool {
    case.text("load") == Some("closed") && matches!(case.text("mode"), Some("keep" | "flow"))
}

/// Set-up of keys, and opening in bulk: without sealing, for which a program would be asked that takes seconds.
fn key_setup(case: &Case) -> bool {
    match case.text("op") {
        Some("open") => case.int("bytes") == Some(16_384),
        op => op == Some("key-setup"),
    }
}

pub(super) static RECIPE: Recipe = Recipe {
    name: "v2ray-aead",
    summary: "the ciphers of VMess and TLS through a proxy: rate, CPU, latency, set-up",
    about: "What AES-128-GCM and ChaCha20-Poly1305 make of V2Ray's rate, by two tables of users. They have rates only: latencies, \
            set-up and short connections have no published figure beside them here and stand in the tables below.",
    sources: &[
        Source {
            name: "v2ray/discussion 513, a comment by alexyangjie",
            date: "2020-02-28",
            address: "https://github.com/v2ray/discussion/issues/513",
            method: "V2Ray's own test program over loopback of one virtual machine: VMess with ChaCha20-Poly1305 310 MB/s, with \
                     AES-128-GCM 330, without a cipher over TLS 173",
        },
        Source {
            name: "badO1a5A90/Performance, v2ray speed test v4.32.1, the second table",
            date: "2020-11-09",
            address: "https://github.com/badO1a5A90/Performance",
            method: "V2Ray 4.32.1 on four virtual machines (Skylake, Debian 10, 10 Gbit/s), the client held to half a CPU; one \
                     iperf stream down, 50 s, means of several; what is carried is TLS itself",
        },
    ],
    differs: &[
        "Four streams at once here, one there; programs, generator and sink share this machine, so the ratio of CPU time says \
         more than that of rates.",
        "Theirs was V2Ray 4.22 to 4.32; the V2Ray here is that of the distribution, and our own program stands beside it.",
        "In the second source the client had half a CPU: it alone decided the rate.",
        "Ciphers depend on the processor: those of the second source had AES instructions. On one without, the order of AES \
         and ChaCha20 turns round.",
        "In the second source VMess with AES or ChaCha20 over TCP has readV, which reads into several buffers at once; part of \
         the 2.4 times may be due to it, and not to TLS.",
        "The second source says \"vmess over TCP, with TLS\" and names no cipher of VMess; here it is none.",
        "V2Ray and Xray cannot be held to one suite of TLS 1.3; other suites than AES-128-GCM are measured of our program only.",
        "Shadowsocks, which neither source has, stands in the tables and in what to use; V2Ray has only that of 2017.",
        "Their figures have no spread; an interval of ours counts as agreeing if the published ratio lies within 10 % of it, \
         or within half of the published effect where that is less.",
    ],
    steps: &[
        Step {
            share: 4,
            stacks: &STACKS,
            cases: Some(four_streams_down),
            one_engine: true,
            ..Step::of(&transports::WORKLOAD)
        },
        Step {
            share: 2,
            stacks: &FEW,
            cases: Some(closed),
            one_engine: true,
            ..Step::of(&requests::WORKLOAD)
        },
        Step {
            share: 2,
            stacks: &FEW,
            cases: Some(closed),
            one_engine: true,
            ..Step::of(&flows::WORKLOAD)
        },
        Step {
            share: 1,
            suites: &[Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305],
            cases: Some(key_setup),
            ..Step::of(&primitives::WORKLOAD)
        },
    ],
    claims: claims! {
        also [COST];
        1 "VMess is 6 % faster with AES than with ChaCha20.": AES 330.0 / CHACHA 310.0;
        2 "Both ciphers carry the same: 795 and 797 Mbit/s.": AES 1.0 / CHACHA 1.0;
        1 "VMess with AES is 1.9 times as fast as over TLS.": AES 330.0 / NONE_TLS 173.0;
        2 "VMess with AES is 2.4 times as fast as over TLS.": AES 795.0 / NONE_TLS 328.0;
        2 "VMess with ChaCha20 is 2.4 times as fast as over TLS.": CHACHA 797.0 / NONE_TLS 328.0;
        2 "Over TLS, VLESS is 16 % faster than VMess.": VLESS_TLS 379.0 / NONE_TLS 328.0;
    },
    rankings: &[Ranking {
        title: "Four transports of the second table",
        source: 2,
        unit: "Mbit/s",
        entries: &[(CHACHA, 797.0), (AES, 795.0), (VLESS_TLS, 379.0), (NONE_TLS, 328.0)],
        unpublished: &[],
        metrics: &["throughput", COST],
    }],
    peers: &[("v2ray", "scripts/install-peers gets it (Debian: apt-get install v2ray)")],
};
