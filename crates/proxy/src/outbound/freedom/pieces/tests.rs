use std::future::poll_fn;
use std::time::Instant;

use sealway_net::sock::Sock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::stream::adapter::Io;

fn settings(packets: Packets, length: (u32, u32), interval: u32, max_split: u32) -> Fragment {
    let text = r#"{"outbounds":[{"protocol":"freedom","settings":{"fragment":{"length":1,"interval":0}}}]}"#;
    let file = sealway_v2ray::config::File {
        name: "c",
        text: text.as_bytes(),
    };
    let loaded = sealway_v2ray::config::load(&[file], &sealway_v2ray::config::Options::default());
    let sealway_v2ray::config::OutboundProtocol::Freedom(freedom) = &loaded.config.unwrap().outbounds[0].protocol
    else {
        panic!("freedom");
    };
    let mut fragment = freedom.fragment.clone().unwrap();
    fragment.packets = packets;
    fragment.length = Span::new(length.0, length.1);
    fragment.interval = Span::just(interval);
    fragment.max_split = Span::just(max_split);
    fragment
}

/// A record of a handshake with so many bytes.
fn hello(len: u16) -> Vec<u8> {
    let body: Vec<u8> = (0..len).map(|n| n as u8).collect();
    [&[22, 3, 1], &len.to_be_bytes()[..], &body].concat()
}

/// The contents of records that follow each other, and what is behind them.
fn records(mut bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut found = Vec::new();
    while let First::Whole(len) = first(bytes) {
        found.push(bytes[HEAD..len].to_vec());
        bytes = &bytes[len..];
    }
    (found, bytes.to_vec())
}

#[test]
fn a_record_becomes_several_with_the_same_content() {
    let mut dice = 0_u32;
    let mut roll = || {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        dice
    };
    for (max_split, interval) in [(0, 10), (3, 10), (0, 0), (1, 10)] {
        let settings = settings(Packets::TlsHello, (100, 200), interval, max_split);
        let whole = [&hello(1800)[..], b"behind"].concat();
        let cut = cut_record(&settings, &whole, HEAD + 1800, &mut roll);
        let joined = cut.concat();
        let (found, rest) = records(&joined);
        assert_eq!(found.concat(), &hello(1800)[HEAD..]);
        assert_eq!(rest, b"behind");
        match max_split {
            0 => assert!((9..=18).contains(&found.len()), "{}", found.len()),
            most => assert_eq!(found.len(), most as usize),
        }
        let sizes = found.iter().take(found.len() - 1).map(Vec::len);
        assert!(
            sizes.clone().all(|len| (100..=200).contains(&len)),
            "{:?}",
            sizes.collect::<Vec<_>>()
        );
        // Without a pause they leave together.
        assert_eq!(cut.len(), if interval == 0 { 2 } else { found.len() + 1 });
    }
}

#[test]
fn what_is_no_record_is_known_at_once() {
    for other in [&b"GET /"[..], &[22, 3, 1, 0xff, 0xff], &[22, 3, 1, 0, 0]] {
        assert!(matches!(first(other), First::Other), "{other:?}");
    }
    for more in [&b""[..], &[22], &[22, 3, 1, 0], &[22, 3, 1, 0, 2, 9]] {
        assert!(matches!(first(more), First::More), "{more:?}");
    }
    assert!(matches!(first(&hello(1)), First::Whole(6)));
}

/// A connection whose first bytes are cut, and its other end.
async fn ends(fragment: Fragment) -> (Io, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    near.set_nodelay(true).unwrap();
    let carrier = Pieces::around(Carrier::from(Sock::Tcp(near)), fragment);
    (
        Io(Stream::new(carrier, Traffic::default())),
        listener.accept().await.unwrap().0,
    )
}

/// What one read gives, and when.
async fn reads(far: &mut TcpStream, total: usize) -> Vec<Vec<u8>> {
    let (mut all, mut got) = (Vec::new(), 0);
    while got < total {
        let mut bytes = vec![0; 65_536];
        let n = far.read(&mut bytes).await.unwrap();
        assert!(n > 0, "{got} of {total}");
        bytes.truncate(n);
        got += n;
        all.push(bytes);
    }
    all
}

#[tokio::test]
async fn a_hello_in_several_writes_is_cut_as_one() {
    for at in [1, 3, 5, 6, 1400] {
        let (mut near, mut far) = ends(settings(Packets::TlsHello, (600, 600), 30, 0)).await;
        let whole = hello(1800);
        let expected = whole.len() + 2 * HEAD;
        let reading = tokio::spawn(async move { (reads(&mut far, expected).await, far) });
        let began = Instant::now();
        near.write_all(&whole[..at]).await.unwrap();
        // As a relay does it, which reads on meanwhile.
        poll_fn(|cx| near.0.poll_flush(cx)).await.unwrap();
        assert!(near.0.wants_flush());
        near.write_all(&whole[at..]).await.unwrap();
        near.flush().await.unwrap();
        let (got, mut far) = reading.await.unwrap();
        let (found, rest) = records(&got.concat());
        assert_eq!(found.concat(), &whole[HEAD..], "{at}");
        assert_eq!(found.len(), 3);
        assert!(
            rest.is_empty() && began.elapsed() >= Duration::from_millis(60),
            "{:?}",
            began.elapsed()
        );
        // From here on the socket is written to as it is.
        near.write_all(b"more").await.unwrap();
        near.flush().await.unwrap();
        assert!(near.0.carrier.is_sock());
        let mut more = [0; 4];
        far.read_exact(&mut more).await.unwrap();
        assert_eq!(&more, b"more");
    }
}

async fn first_hundred(far: &mut TcpStream) -> Vec<u8> {
    let read = tokio::time::timeout(Duration::from_secs(10), reads(far, 100));
    read.await.unwrap().concat()
}

#[tokio::test]
async fn the_rest_of_a_hello_is_not_waited_for_without_end() {
    let (mut near, mut far) = ends(settings(Packets::TlsHello, (600, 600), 30, 0)).await;
    near.write_all(&hello(1800)[..100]).await.unwrap();
    // Whoever waits for that, or only for an answer, hears of it.
    let flushed = tokio::spawn(async move { near.flush().await.map(|()| near) });
    assert_eq!(first_hundred(&mut far).await, &hello(1800)[..100]);
    flushed.await.unwrap().unwrap();

    let (mut near, mut far) = ends(settings(Packets::TlsHello, (600, 600), 30, 0)).await;
    near.write_all(&hello(1800)[..100]).await.unwrap();
    let reading = tokio::spawn(async move {
        let mut answer = [0; 2];
        near.read_exact(&mut answer).await.unwrap();
    });
    assert_eq!(first_hundred(&mut far).await, &hello(1800)[..100]);
    far.write_all(b"ok").await.unwrap();
    reading.await.unwrap();
}

#[tokio::test]
async fn so_many_writes_are_cut_and_no_more() {
    let (mut near, mut far) = ends(settings(Packets::Writes(Span::new(2, 3)), (2, 2), 40, 0)).await;
    let reading = tokio::spawn(async move { reads(&mut far, 24).await });
    for _ in 0..4 {
        near.write_all(b"abcdef").await.unwrap();
        near.flush().await.unwrap();
        sleep(Duration::from_millis(50)).await;
    }
    let got: Vec<usize> = reading.await.unwrap().iter().map(Vec::len).collect();
    assert_eq!(got, [6, 2, 2, 2, 2, 2, 2, 6]);
}

#[tokio::test]
async fn the_end_waits_for_what_was_held() {
    let (mut near, mut far) = ends(settings(Packets::TlsHello, (600, 600), 30, 0)).await;
    near.write_all(&hello(1800)[..100]).await.unwrap();
    near.shutdown().await.unwrap();
    let mut got = Vec::new();
    far.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, &hello(1800)[..100]);
}
