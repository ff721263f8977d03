//! VLESS and VMess over TCP and WebSocket, with and without TLS, by themselves and behind nginx; what has no proxy protocol, and SOCKS.

use super::claim::Want::{Int, Text};
use super::claim::{Claim, Figure, Who, claims, figure};
use super::ranking::Ranking;
use super::recipe::{Recipe, Source, Step};
use crate::result::Case;
use crate::route::Stack;
use crate::transports::{self, NAME};

const RATE: &str = "throughput";
const COST: &str = "cpu_per_gb";

/// One stream from the target to whoever connected: what was published.
macro_rules! stream {
    ($label:literal, $stack:literal) => {
        figure!($label, NAME, RATE, "stack": Text($stack), "streams": Int(1), "direction": Text("down"))
    };
}

const DOOR_TCP: Figure = stream!("no protocol, TCP", "dokodemo-tcp");
const DOOR_WS: Figure = stream!("no protocol, WebSocket", "dokodemo-ws");
const SOCKS: Figure = stream!("SOCKS, TCP", "socks");
const VLESS_TCP: Figure = stream!("VLESS, TCP", "vless-tcp");
const VLESS_TCP_TLS: Figure = stream!("VLESS, TLS", "vless-tcp-tls");
const VLESS_WS: Figure = stream!("VLESS, WebSocket", "vless-ws");
const VLESS_WS_TLS: Figure = stream!("VLESS, WebSocket, TLS", "vless-ws-tls");
const VMESS_TCP: Figure = stream!("VMess none, TCP", "vmess-none-tcp");
const VMESS_TCP_TLS: Figure = stream!("VMess none, TLS", "vmess-none-tcp-tls");
const VMESS_WS: Figure = stream!("VMess none, WebSocket", "vmess-none-ws");
const VMESS_WS_TLS: Figure = stream!("VMess none, WebSocket, TLS", "vmess-none-ws-tls");
const AES_WS: Figure = stream!("VMess AES, WebSocket", "vmess-aes-128-gcm-ws");
const AES_WS_TLS: Figure = stream!("VMess AES, WebSocket, TLS", "vmess-aes-128-gcm-ws-tls");
const CHACHA_WS: Figure = stream!("VMess ChaCha20, WebSocket", "vmess-chacha20-poly1305-ws");
const CHACHA_WS_TLS: Figure = stream!("VMess ChaCha20, WebSocket, TLS", "vmess-chacha20-poly1305-ws-tls");
const SNI_VLESS: Figure = stream!("nginx by name, VLESS, TLS", "front-sni");
const SNI_VMESS: Figure = stream!("nginx by name, VMess none, TLS", "front-sni-vmess-none");
const PATH_VMESS: Figure = stream!("nginx by path, VMess none, TLS", "front-path-vmess-none");
const PATH_AES: Figure = stream!("nginx by path, VMess AES", "front-path-vmess-aes-128-gcm");
const PATH_DOOR: Figure = stream!("nginx by path, no protocol, TLS", "front-path-dokodemo");
const FALLBACK_DOOR: Figure = stream!("fallback by path, no protocol, TLS", "fallback-path-dokodemo");

fn one_stream_down(case: &Case) -> bool {
    case.int("streams") == Some(1) && case.text("direction") == Some("down")
}

pub(super) static RECIPE: Recipe = Recipe {
    name: "vless-vmess",
    summary: "VLESS and VMess over TCP, WebSocket and TLS, behind nginx and by fallback",
    about: "A table of V2Ray 4.27.2, one iperf3 stream through every combination of VLESS and VMess with TCP, WebSocket and \
            TLS, and the two ways to share a port with a web server. Its conclusions are ratios between these transports.",
    sources: &[
        Source {
            name: "badO1a5A90/Performance, v2ray speed test v4.27.2",
            date: "2020-08",
            address: "https://github.com/badO1a5A90/Performance",
            method: "V2Ray 4.27.2 on two virtual machines (Xeon 2.6 GHz, 2 CPUs each, Debian 10, network card of 2.5 Gbit/s), \
                     iperf 3.6, one stream from client to server for 60 s (three \
                     rows 55 s), once; openresty 1.17.8.2 as nginx",
        },
        Source {
            name: "the same, a second pair of machines",
            date: "2020-08",
            address: "https://github.com/badO1a5A90/Performance",
            method: "Faster machines with network cards of 10 Gbit/s, four transports",
        },
        Source {
            name: "badO1a5A90/Performance, v2ray speed test v4.32.1, first comparison",
            date: "2020-11-07",
            address: "https://github.com/badO1a5A90/Performance",
            method: "V2Ray 4.32.1 on four virtual machines, of which the client's (one Skylake CPU) is busy all the time; iperf 3.6, one \
                     stream from server to client for 50 s, sealed by TLS outside the programs that are measured, mean of several",
        },
    ],
    differs: &[
        "Theirs ran on two machines over a network; here both ends, the generator and the sink share this machine over \
         loopback. A rate then depends on the cost of all four, so that differences between transports come out smaller: the ratio \
         of CPU time beside it leaves the generator out.",
        "Their fastest row stopped at the network card (2.47 of 2.5 Gbit/s), so no claim here rests on it; the second source \
         has four transports without that limit.",
        "Their streams went up, from the client's iperf to the server's; these go down, the way most bytes of a proxy go.",
        "Their figures are single runs without a spread; an interval of ours counts as agreeing if the published ratio lies \
         within 10 % of it, or within half of the published effect where that is less.",
        "TLS is 1.3 with AES-128-GCM at both ends; what theirs was is not said.",
        "Without a protocol, a freedom outbound dials a dokodemo-door, as through their fallback and their nginx. Over TCP only the third source has a \
         figure of it. Over WebSocket without TLS nobody has, nor of SOCKS, which they advise against: these rows stand at the end of the \
         order, and only their places here are known.",
    ],
    steps: &[Step {
        stacks: &[
            Stack::VLESS_TCP,
            Stack::VLESS_TCP_TLS,
            Stack::VLESS_WS,
            Stack::VLESS_WS_TLS,
            Stack::VMESS_NONE_TCP,
            Stack::VMESS_NONE_TCP_TLS,
            Stack::VMESS_NONE_WS,
            Stack::VMESS_NONE_WS_TLS,
            Stack::VMESS_AES_WS,
            Stack::VMESS_AES_WS_TLS,
            Stack::VMESS_CHACHA_WS,
            Stack::VMESS_CHACHA_WS_TLS,
            Stack::FRONT_SNI,
            Stack::FRONT_SNI_VMESS,
            Stack::FRONT_PATH_VMESS,
            Stack::FRONT_PATH_VMESS_AES,
            Stack::FRONT_PATH_DOKODEMO,
            Stack::FALLBACK_PATH_DOKODEMO,
            Stack::DOKODEMO_TCP,
            Stack::DOKODEMO_WS,
            Stack::SOCKS,
        ],
        cases: Some(one_stream_down),
        one_engine: true,
        ..Step::of(&transports::WORKLOAD)
    }],
    claims: claims! {
        also [COST];
        1 "VLESS is faster than VMess over TLS.": VLESS_TCP_TLS 828.0 / VMESS_TCP_TLS 704.0;
        1 "VLESS is faster than VMess over WebSocket and TLS.": VLESS_WS_TLS 654.0 / VMESS_WS_TLS 559.0;
        1 "VLESS is faster than VMess over bare WebSocket.": VLESS_WS 943.0 / VMESS_WS 789.0;
        2 "VLESS over bare TCP leaves VMess far behind.": VLESS_TCP 6.56 / VMESS_TCP 2.72;
        1 "TLS costs VLESS over WebSocket 30 %.": VLESS_WS_TLS 654.0 / VLESS_WS 943.0;
        1 "TLS costs VMess over WebSocket 30 %.": VMESS_WS_TLS 559.0 / VMESS_WS 789.0;
        1 "TLS costs VMess with AES over WebSocket 30 %.": AES_WS_TLS 502.0 / AES_WS 703.0;
        2 "WebSocket costs VLESS most of its rate.": VLESS_WS 1.41 / VLESS_TCP 6.56;
        2 "WebSocket costs VMess most of its rate.": VMESS_WS 1.07 / VMESS_TCP 2.72;
        1 "With TLS, WebSocket costs VLESS a fifth.": VLESS_WS_TLS 654.0 / VLESS_TCP_TLS 828.0;
        3 "VLESS over bare TCP costs 8 % beside no protocol at all.": VLESS_TCP 2673.0 / DOOR_TCP 2898.0,
            "published of a stream that was TLS already";
        1 "AES-128-GCM costs VMess 10 %.": AES_WS 703.0 / VMESS_WS 789.0;
        1 "ChaCha20-Poly1305 costs VMess 20 %.": CHACHA_WS 628.0 / VMESS_WS 789.0;
        1 "VMess is faster with AES than with ChaCha20.": AES_WS 703.0 / CHACHA_WS 628.0;
        1 "nginx by server name costs VLESS 7 %.": SNI_VLESS 772.0 / VLESS_TCP_TLS 828.0;
        1 "nginx by server name costs VMess 2 %.": SNI_VMESS 693.0 / VMESS_TCP_TLS 704.0;
        1 "nginx by path costs VMess over TLS 5 %.": PATH_VMESS 530.0 / VMESS_WS_TLS 559.0;
        1 "nginx by path costs VMess with AES 2 %.": PATH_AES 689.0 / AES_WS 703.0;
        1 "A fallback by path is 12 % faster than nginx by path.": FALLBACK_DOOR 709.0 / PATH_DOOR 635.0,
            "published of 30 s, with the stock nginx; openresty came to 661 Mbit/s";
        1 "VLESS over TLS moves half as much again as VMess over WebSocket behind nginx.":
            VLESS_TCP_TLS 828.0 / PATH_VMESS 530.0;
    },
    rankings: &[
        Ranking {
            title: "Every combination of the table",
            source: 1,
            unit: "Mbit/s",
            entries: &[
                (VLESS_TCP, 2470.0),
                (VMESS_TCP, 2160.0),
                (VLESS_WS, 943.0),
                (VLESS_TCP_TLS, 828.0),
                (VMESS_WS, 789.0),
                (SNI_VLESS, 772.0),
                (VMESS_TCP_TLS, 704.0),
                (AES_WS, 703.0),
                (SNI_VMESS, 693.0),
                (PATH_AES, 689.0),
                (VLESS_WS_TLS, 654.0),
                (CHACHA_WS, 628.0),
                (VMESS_WS_TLS, 559.0),
                (PATH_VMESS, 530.0),
                (AES_WS_TLS, 502.0),
                (CHACHA_WS_TLS, 449.0),
            ],
            unpublished: &[DOOR_TCP, DOOR_WS, SOCKS],
            metrics: &[RATE, COST],
        },
        Ranking {
            title: "A port shared with a web server, without a proxy protocol",
            source: 1,
            unit: "Mbit/s",
            entries: &[(FALLBACK_DOOR, 709.0), (PATH_DOOR, 635.0)],
            unpublished: &[],
            metrics: &[RATE, COST],
        },
    ],
    peers: &[
        ("v2ray", "scripts/install-peers gets it (Debian: apt-get install v2ray)"),
        (
            "xray",
            "scripts/install-peers gets it; --peers v2ray,xray measures it beside V2Ray",
        ),
    ],
};
