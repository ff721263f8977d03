//! XTLS Vision with Xray in both roles, and with ourselves: what goes within it, what leaves the outer TLS, and what does not.

use std::net::SocketAddr;
use std::time::Duration;

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384,
    TLS13_CHACHA20_POLY1305_SHA256,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{exchange, target, udp_exchange_up_to, udp_target, within};
use crate::inner::{Inner, Tap, holds};
use crate::programs::{Place, Program, Running, there};
use crate::ways::{Files, VISION, Way, config, door, freedom, placed};

pub(crate) const PAIRS: [[Program; 2]; 3] = [
    [Program::Ours, Program::Ours],
    [Program::Ours, Program::Xray],
    [Program::Xray, Program::Ours],
];

/// Two programs with Vision between them, a tap there, and doors at the client.
pub(crate) struct Both {
    pub(crate) doors: Vec<SocketAddr>,
    udp: SocketAddr,
    tap: Tap,
    _running: [Running; 2],
    _places: [Place; 2],
    _files: Files,
}

pub(crate) async fn start([client, server]: [Program; 2], targets: &[SocketAddr]) -> Both {
    let (files, far, near) = (Files::new(), Place::new(), Place::new());
    let way = Way::new(VISION, "tcp", true);
    let at = far.at(far.port());
    let echo = udp_target().await;
    let (mut inbounds, mut doors) = (Vec::new(), Vec::new());
    for (number, target) in targets.iter().enumerate() {
        let at = near.at(near.port());
        inbounds.push(placed(door("tcp", *target), &format!("door{number}"), at));
        doors.push(at);
    }
    let udp = near.at(near.port());
    inbounds.push(placed(door("udp", echo), "udp", udp));
    let tap = Tap::default();
    let tapped = tap.in_front_of(at).await;
    far.let_go();
    let inbound = placed(way.inbound(&files), "in", at);
    let server = server.run(&far, &config(vec![inbound], vec![freedom()], vec![])).await;
    near.let_go();
    let client = client
        .run(&near, &config(inbounds, vec![way.outbound(tapped, &files)], vec![]))
        .await;
    Both {
        doors,
        udp,
        tap,
        _running: [client, server],
        _places: [near, far],
        _files: files,
    }
}

/// The suites of the inner TLS, and whether what is sealed with them leaves the outer one.
fn suites() -> [(SupportedCipherSuite, bool); 4] {
    [
        (TLS13_AES_128_GCM_SHA256, true),
        (TLS13_AES_256_GCM_SHA384, true),
        (TLS13_CHACHA20_POLY1305_SHA256, true),
        (TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, false),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inner_tls_leaves_the_outer_one_if_it_may() {
    for pair in PAIRS.into_iter().filter(|pair| there(*pair)) {
        for (suite, leaves) in suites() {
            let what = format!("{pair:?}, {:?}", suite.suite());
            let (inner, tapped) = (Inner::new(suite), Tap::default());
            let behind = tapped.in_front_of(inner.in_front_of(target().await).await).await;
            let both = start(pair, &[behind]).await;
            for (up, down) in [(1, 1), (300_000, 500_000)] {
                let stream = inner.connect(both.doors[0]).await.unwrap();
                within(&what, exchange(stream, up, down)).await;
            }
            // The last of what the target got, and said, is on the way between the proxies as it is, or not at all.
            for (name, sender, inside, outside) in [
                ("up", pair[0], &tapped.up, &both.tap.up),
                ("down", pair[1], &tapped.down, &both.tap.down),
            ] {
                let inside = inside.lock().unwrap();
                let late = inside.len() - 50_000;
                let found = holds(&outside.lock().unwrap(), &inside[late..late + 64]);
                // Xray leaves TLS where a read happens to end with a record, which it need not.
                if sender == Program::Ours || !leaves {
                    assert_eq!(found, leaves, "{what}, {name}");
                }
                // What is before the inner handshake's end never is.
                assert!(!holds(&outside.lock().unwrap(), &inside[..64]), "{what}, {name}");
            }
        }
    }
}

/// Long enough that the kernel moves it, both ways at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_goes_both_ways_at_once_and_arrives_whole() {
    const LONG: usize = 16 << 20;
    for pair in PAIRS.into_iter().filter(|pair| there(*pair)) {
        let plain = target().await;
        let mut kinds = Vec::new();
        for (suite, _) in suites() {
            let inner = Inner::new(suite);
            kinds.push((inner.in_front_of(plain).await, Some(inner)));
        }
        kinds.push((plain, None));
        let targets: Vec<SocketAddr> = kinds.iter().map(|(target, _)| *target).collect();
        let both = start(pair, &targets).await;
        for (&door, (_, inner)) in both.doors.iter().zip(&kinds) {
            let one = async {
                match inner {
                    Some(inner) => exchange(inner.connect(door).await.unwrap(), LONG, LONG).await,
                    None => exchange(TcpStream::connect(door).await.unwrap(), LONG, LONG).await,
                }
            };
            let done = tokio::time::timeout(Duration::from_secs(240), one).await;
            assert!(done.is_ok(), "{pair:?}: no end");
            // Nothing of the outer TLS has come between. Xray says its end in it though it has left it.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let faults = inner.as_ref().map(|inner| inner.faults.lock().unwrap().clone());
            let clean = faults.is_none_or(|faults| faults.is_empty());
            assert!(clean || pair[0] == Program::Xray, "{pair:?}");
        }
    }
}

/// What goes in is what comes out, to the end: we say nothing of our own where TLS was left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_added_to_what_has_left_tls() {
    for pair in PAIRS.into_iter().filter(|pair| there(*pair)) {
        let inner = Inner::new(TLS13_AES_128_GCM_SHA256);
        let (behind, before) = (Tap::default(), Tap::default());
        let target = behind.in_front_of(inner.in_front_of(target().await).await).await;
        let both = start(pair, &[target]).await;
        let door = before.in_front_of(both.doors[0]).await;
        let mut tls = inner.connect(door).await.unwrap();
        within("exchange", exchange(&mut tls, 300_000, 300_000)).await;
        let _ = tls.shutdown().await;
        let _ = within("end", tls.read_to_end(&mut Vec::new())).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        for (sender, [sent, came]) in [
            (pair[0], [&before.up, &behind.up]),
            (pair[1], [&behind.down, &before.down]),
        ] {
            let (sent, came) = (sent.lock().unwrap(), came.lock().unwrap());
            // Xray says its end in TLS though it has left it.
            assert!(
                sender == Program::Xray || *sent == *came,
                "{pair:?}: {} and {}",
                sent.len(),
                came.len()
            );
        }
    }
}

/// Says something first, then repeats what it hears in capitals.
async fn speaks_first() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut line = [0; 64];
                tcp.write_all(b"220 speaks first\r\n").await.unwrap();
                while let Ok(got @ 1..) = tcp.read(&mut line).await {
                    line.make_ascii_uppercase();
                    tcp.write_all(&line[..got]).await.unwrap();
                }
            });
        }
    });
    at
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_the_server_hears_it() {
    for pair in PAIRS.into_iter().filter(|pair| there(*pair)) {
        let both = start(pair, &[speaks_first().await]).await;
        let mut tcp = TcpStream::connect(both.doors[0]).await.unwrap();
        let mut greeting = [0; 18];
        within("greeting", tcp.read_exact(&mut greeting)).await.unwrap();
        assert_eq!(greeting, *b"220 speaks first\r\n");
        for number in 0..20 {
            let line = format!("line {number:4}\r\n");
            tcp.write_all(line.as_bytes()).await.unwrap();
            let mut answer = vec![0; line.len()];
            within("answer", tcp.read_exact(&mut answer)).await.unwrap();
            assert_eq!(answer, line.to_uppercase().as_bytes(), "{pair:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_go_padded() {
    for pair in PAIRS.into_iter().filter(|pair| there(*pair)) {
        // A client with a door for streams is waited for.
        let both = start(pair, &[target().await]).await;
        udp_exchange_up_to(&format!("{pair:?}"), both.udp, 1400).await;
    }
}

/// Nothing is known of the length of what a header and a short payload are: each has a record of about a thousand bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_records_are_long() {
    let inner = Inner::new(TLS13_AES_128_GCM_SHA256);
    let both = start(
        [Program::Ours, Program::Ours],
        &[inner.in_front_of(target().await).await],
    )
    .await;
    within("exchange", exchange(inner.connect(both.doors[0]).await.unwrap(), 1, 1)).await;
    let sealed = |all: &[u8]| {
        let (mut lengths, mut at) = (Vec::new(), 0);
        while let Some([kind, 3, _, high, low]) = all.get(at..at + 5) {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if *kind == 23 {
                lengths.push(length);
            }
            at += 5 + length;
        }
        lengths
    };
    let (up, down) = (
        sealed(&both.tap.up.lock().unwrap()),
        sealed(&both.tap.down.lock().unwrap()),
    );
    // Behind the client's Finished: what the program said, in two turns.
    assert!(up.len() >= 3 && up[1..3].iter().all(|&length| length > 900), "{up:?}");
    assert!(down.iter().filter(|&&length| length > 900).count() >= 2, "{down:?}");
}
