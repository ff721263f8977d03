//! What the peers of the versions we test with do not have, and that it is so.
//!
//! | | V2Ray 4.34 | Xray 26.3.27 | Sealway |
//! |---|---|---|---|
//! | HTTPUpgrade | no | yes | yes |
//! | VMess `none` | yes | yes | yes |
//! | VMess `zero` | taken for `auto` | yes | yes |
//! | `allowInsecure` | yes | refused | yes, with a warning |
//! | early data of WebSocket by `?ed=` | no | yes | yes |
//! | early data by `maxEarlyData` | no | no | yes |
//! | datagrams inside Mux.Cool (XUDP) | no | by default, but for ports 53 and 443 | the same with VLESS |
//! | a PROXY line of version 1 in pieces | no | no | yes |
//! | bytes that come together with the head of an HTTPUpgrade | | may be lost, in both roles | kept |
//! | Trojan: a first payload that fills a buffer | yes | breaks off, as the client | yes |
//! | VMess: program that is silent for 100 ms | waited for | taken for ended | waited for |
//! | sniffing: a hello of TLS in several records or without a name, QUIC 2, uTP | no | no | yes |
//! | dokodemo-door over TLS without a transport: answers sealed | yes | no, see `tunnels.rs` | yes |
//! | end of one direction | see `ends.rs` | see `ends.rs` | passed on |

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{pattern, target, try_exchange, udp_target, within};
use crate::programs::{Place, Program};
use crate::ways::{Files, PROTOCOLS, Pair, TROJAN, VLESS, Way, config, door, freedom, placed};

const ZERO: (&str, &str) = PROTOCOLS[5];
const NONE: (&str, &str) = PROTOCOLS[4];

/// True if the program can take this way.
pub(crate) fn has(program: Program, way: &Way) -> bool {
    !(program == Program::V2ray && way.network == "httpupgrade")
}

/// How often a stream may be begun anew. Xray's VMess client takes a program for ended that has not spoken after 100 ms, and
/// on a machine that is busy with something else that happens. Its Trojan client breaks off if it begins so late that the pause of
/// [`first_pause`] is over.
pub(crate) fn tries(client: Program, way: &Way) -> usize {
    if client == Program::Xray && matches!(way.protocol, "trojan" | "vmess") {
        5
    } else {
        1
    }
}

/// How long a program waits behind its first bytes. Xray's Trojan client puts its header and the first payload into one
/// buffer and breaks off if both do not fit there.
pub(crate) fn first_pause(client: Program, way: &Way) -> Duration {
    if client == Program::Xray && way.protocol == "trojan" {
        Duration::from_millis(200)
    } else {
        Duration::ZERO
    }
}

/// The longest datagram that surely goes both ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Largest {
    pub(crate) len: usize,
    /// One byte more surely does not.
    pub(crate) exact: bool,
}

pub(crate) fn largest_datagram(programs: [Program; 2], way: &Way) -> Largest {
    let sealed = way.protocol == "vmess" && !matches!(way.security, "none" | "zero");
    let inexact = |len| Largest { len, exact: false };
    let exact = |len| Largest { len, exact: true };
    if way.protocol == "trojan" {
        // Peers put the datagram and what stands before it into one buffer.
        let head = 1 + 4 + 2 + 2 + 2;
        return match programs {
            _ if programs.contains(&Program::V2ray) => inexact(2048 - head),
            _ if programs.contains(&Program::Xray) => inexact(8192 - head),
            _ => exact(8192),
        };
    }
    if programs[0] == Program::Ours && way.protocol == "vless" {
        // In frames of a mux (XUDP), which V2Ray reads into the same small buffers.
        return match programs[1] {
            Program::V2ray => inexact(1900),
            Program::Xray => inexact(7500),
            Program::Ours => exact(8192),
        };
    }
    if programs.contains(&Program::V2ray) {
        // Its buffers hold 2048 bytes, from which go lengths and, by chance, up to 63 bytes of padding.
        let sealed = sealed || way.security == "zero" && programs[0] == Program::V2ray;
        if sealed { inexact(1966) } else { exact(2046) }
    } else if programs.contains(&Program::Xray) {
        match way.security {
            // Datagrams are told apart by the reads they come in, which longer ones may need several of.
            "zero" if programs[0] == Program::Xray => inexact(1400),
            _ if sealed => inexact(8110),
            _ => exact(8190),
        }
    } else {
        inexact(65_000)
    }
}

#[test]
fn v2ray_has_no_http_upgrade() {
    if !Program::V2ray.there() {
        return;
    }
    let (files, place) = (Files::new(), Place::new());
    let outbound = Way::new(VLESS, "httpupgrade", false).outbound(place.at(1), &files);
    let (taken, said) = Program::V2ray.reads(&place, &config(vec![], vec![outbound], vec![]));
    assert!(
        !taken && said.contains("unknown transport protocol: httpupgrade"),
        "{said}"
    );
}

#[test]
fn xray_refuses_to_believe_any_certificate() {
    let (files, place) = (Files::new(), Place::new());
    let mut outbound = Way::new(VLESS, "tcp", true).outbound(place.at(1), &files);
    outbound["streamSettings"]["tlsSettings"] = json!({"allowInsecure": true});
    let config = config(vec![], vec![outbound], vec![]);
    if Program::Xray.there() {
        let (taken, said) = Program::Xray.reads(&place, &config);
        assert!(!taken && said.contains("allowInsecure"), "{said}");
    }
    if Program::V2ray.there() {
        let (taken, said) = Program::V2ray.reads(&place, &config);
        assert!(taken, "{said}");
    }
}

/// A server of ours that refuses what goes in the clear tells the words apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_takes_zero_for_auto() {
    for (client, word, sealed) in [
        (Program::V2ray, ZERO, true),
        (Program::V2ray, NONE, false),
        (Program::Xray, ZERO, false),
        (Program::Xray, NONE, false),
        (Program::Ours, ZERO, false),
        (Program::Ours, NONE, false),
    ] {
        if !client.there() {
            continue;
        }
        let (files, far, near) = (Files::new(), Place::new(), Place::new());
        let way = Way::new(word, "tcp", false);
        let at = far.at(far.port());
        let mut inbound = placed(way.inbound(&files), "in", at);
        inbound["settings"]["disableInsecureEncryption"] = json!(true);
        let own = near.at(near.port());
        let doors = vec![placed(door("tcp", target().await), "door", own)];
        far.let_go();
        near.let_go();
        let _server = Program::Ours
            .run(&far, &config(vec![inbound], vec![freedom()], vec![]))
            .await;
        let _client = client
            .run(&near, &config(doors, vec![way.outbound(at, &files)], vec![]))
            .await;
        let stream = TcpStream::connect(own).await.unwrap();
        let done = within("exchange", try_exchange(stream, &pattern(3, 5000), 5000)).await;
        assert_eq!(done.is_ok(), sealed, "{client:?} {word:?}: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_breaks_off_when_the_first_payload_of_trojan_fills_its_buffer() {
    if !Program::Xray.there() {
        return;
    }
    for (client, whole) in [(Program::Xray, false), (Program::Ours, true)] {
        let way = Way::new(TROJAN, "tcp", false);
        let pair = Pair::start([client, Program::Xray], &[way], (target().await, udp_target().await)).await;
        // Whether Xray's buffer is full depends on how it is woken.
        let tries = if whole { 5 } else { 200 };
        let mut done = 0;
        while done < tries {
            let stream = TcpStream::connect(pair.doors[0].0).await.unwrap();
            let exchanged = within("exchange", try_exchange(stream, &pattern(3, 65_536), 65_536)).await;
            if exchanged.is_err() {
                break;
            }
            done += 1;
        }
        assert_eq!(done == tries, whole, "{client:?}: {done} went well");
    }
}

/// The target sees an end that the program has not said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_takes_silence_for_the_end() {
    if !Program::Xray.there() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    let ways = [Way::new(PROTOCOLS[1], "tcp", false)];
    let pair = Pair::start([Program::Xray, Program::Ours], &ways, (target, target)).await;
    let _program = TcpStream::connect(pair.doors[0].0).await.unwrap();
    let (mut far, _) = within("target", listener.accept()).await.unwrap();
    assert_eq!(within("end", far.read(&mut [0])).await.unwrap(), 0);
    // Ours waits for a program that lets the other side speak first.
    let pair = Pair::start([Program::Ours, Program::Ours], &ways, (target, target)).await;
    let mut program = TcpStream::connect(pair.doors[0].0).await.unwrap();
    let (mut far, _) = within("target", listener.accept()).await.unwrap();
    far.write_all(b"welcome").await.unwrap();
    let mut said = [0; 7];
    within("welcome", program.read_exact(&mut said)).await.unwrap();
    program.write_all(b"thanks").await.unwrap();
    let mut said = [0; 6];
    within("thanks", far.read_exact(&mut said)).await.unwrap();
}
