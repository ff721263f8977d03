//! Streams through two engines with a mux between them.

use std::time::Duration;

use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::{Far, eight, with};
use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_every_size_through_every_protocol() {
    let target = target().await;
    for (name, protocol) in [("vless", vless()), ("vmess", vmess()), ("socks", socks())] {
        let far = Far::start(protocol).await;
        let protocol = match name {
            "vless" => far.vless(),
            "vmess" => vmess_out(far.at),
            // The name that stands for a mux works in any protocol.
            _ => socks_out(far.at, None),
        };
        let client = start(door_settings(target, with(protocol, eight()))).await;
        exchange_all(name, at(&client, "door")).await;
        assert_eq!(far.carriers(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_at_once() {
    let target = target().await;
    let far = Far::start(vless()).await;
    let client = start(door_settings(target, with(far.vless(), eight()))).await;
    let door = at(&client, "door");
    let all: Vec<_> = (0..200)
        .map(|_| {
            tokio::spawn(async move {
                let stream = TcpStream::connect(door).await.unwrap();
                within("one of 200", exchange(stream, 40_000, 60_000)).await;
            })
        })
        .collect();
    for one in all {
        one.await.unwrap();
    }
    assert!((25..=60).contains(&far.carriers()), "{}", far.carriers());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_has_128_sessions_in_its_life() {
    let target = target().await;
    let far = Far::start(vless()).await;
    let client = start(door_settings(target, with(far.vless(), eight()))).await;
    for number in 0..130 {
        let stream = TcpStream::connect(at(&client, "door")).await.unwrap();
        within(&format!("request {number}"), exchange(stream, 10, 10)).await;
        assert_eq!(far.carriers(), if number < 128 { 1 } else { 2 }, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_after_our_end_is_not_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = Far::start(vless()).await;
    let settings = door_settings(listener.local_addr().unwrap(), with(far.vless(), eight()));
    let client = start(settings).await;
    let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
    program.write_all(b"question").await.unwrap();
    let (mut target, _) = within("target", listener.accept()).await.unwrap();
    let mut got = [0; 8];
    target.read_exact(&mut got).await.unwrap();
    program.shutdown().await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = pattern(1, 10 << 20);
    let sending = async {
        target.write_all(&answer).await.unwrap();
        target.shutdown().await.unwrap();
    };
    let (_, (said, ended)) = tokio::join!(sending, to_the_end(&mut program));
    assert!(ended && said == answer, "{} bytes, end {ended}", said.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_and_resets_go_through() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = Far::start(vless()).await;
    let settings = door_settings(listener.local_addr().unwrap(), with(far.vless(), eight()));
    let client = start(settings).await;
    for reset in [false, true] {
        let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
        let (mut target, _) = within("target", listener.accept()).await.unwrap();
        target.write_all(b"first").await.unwrap();
        let mut got = [0; 5];
        within("first", program.read_exact(&mut got)).await.unwrap();
        if reset {
            socket2::SockRef::from(&target)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
        }
        let began = Instant::now();
        drop(target);
        let (said, ended) = to_the_end(&mut program).await;
        assert!(said.is_empty() && ended != reset, "{reset}");
        assert!(began.elapsed() < Duration::from_millis(900), "an end waits for nothing");
    }
    // The other way.
    for reset in [false, true] {
        let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
        program.write_all(b"bytes").await.unwrap();
        let (mut target, _) = within("target", listener.accept()).await.unwrap();
        let mut got = [0; 5];
        within("bytes", target.read_exact(&mut got)).await.unwrap();
        if reset {
            socket2::SockRef::from(&program)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
        }
        drop(program);
        let ended = within("end", target.read(&mut got)).await;
        assert_eq!(ended.is_err(), reset, "{ended:?}");
    }
    assert_eq!(far.carriers(), 1, "one session ends no other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_cannot_be_reached_ends_its_session_only() {
    let far = Far::start(vless()).await;
    let mut settings = server_settings(socks(), ServerTransport::default());
    settings.outbounds = vec![with(far.vless(), eight())];
    let client = start(settings).await;
    let target = target().await;
    let connect = async |port: u16| {
        let mut stream = TcpStream::connect(at(&client, "in")).await.unwrap();
        let mut request = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
        request.extend_from_slice(&port.to_be_bytes());
        stream.write_all(&request).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        stream
    };
    let good = connect(target.port()).await;
    let mut bad = connect(free_port()).await;
    let (said, ended) = to_the_end(&mut bad).await;
    assert!(said.is_empty() && !ended, "a session that was never connected breaks");
    within("its sibling", exchange(good, 70_000, 70_000)).await;
    assert_eq!(far.carriers(), 1);
}
