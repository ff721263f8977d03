//! Frames by hand: what a server does with what no client of ours sends.

use std::time::Duration;

use sealway_proxy::settings::*;
use sealway_v2ray::mux::{self, Status};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::{Carrier, direct, echo};
use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_out_of_order_concern_their_session_only() {
    let (server, echo) = (direct().await, echo().await);
    let mut carrier = Carrier::open(at(&server, "in")).await;
    carrier.new_stream(7, echo, b"one").await;
    assert_eq!(
        carrier.frame().await.unwrap(),
        (7, Status::Keep { peer: None }, false, b"one".to_vec())
    );
    // Data of a session that is not there is answered with its end; an end is not.
    carrier.send(|out| mux::push_end(out, 9, false)).await;
    carrier.send(|out| mux::push_keep(out, 9, b"lost").unwrap()).await;
    assert_eq!(carrier.frame().await.unwrap(), (9, Status::End, false, vec![]));
    // Keep-alives are nothing, with data or without.
    carrier
        .send(|out| out.extend_from_slice(&[0, 4, 0, 7, 4, 1, 0, 2, 1, 1, 0, 4, 0, 0, 4, 0]))
        .await;
    // The id of a live session begins another one: the old one breaks first.
    carrier.new_stream(7, echo, b"two").await;
    assert_eq!(carrier.frame().await.unwrap(), (7, Status::End, true, vec![]));
    assert_eq!(
        carrier.frame().await.unwrap(),
        (7, Status::Keep { peer: None }, false, b"two".to_vec())
    );
    carrier.send(|out| mux::push_keep(out, 7, b"three").unwrap()).await;
    assert_eq!(carrier.frame().await.unwrap().3, b"three");
    // An end is answered with an end, once.
    carrier.send(|out| mux::push_end(out, 7, false)).await;
    assert_eq!(carrier.frame().await.unwrap(), (7, Status::End, false, vec![]));
    carrier.new_stream(7, echo, b"four").await;
    assert_eq!(carrier.frame().await.unwrap().3, b"four");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_frame_ends_the_carrier() {
    let (server, echo) = (direct().await, echo().await);
    for wrong in [
        &[0, 3, 0, 1, 3, 0][..],
        &[2, 1, 0, 1],
        &[0, 4, 0, 1, 9, 0],
        &[0, 6, 0, 1, 1, 0, 3, 0],
    ] {
        let mut carrier = Carrier::open(at(&server, "in")).await;
        carrier.new_stream(1, echo, b"one").await;
        assert_eq!(carrier.frame().await.unwrap().3, b"one");
        carrier.stream.write_all(wrong).await.unwrap();
        assert!(carrier.frame().await.is_none(), "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_256_sessions_at_once() {
    let (server, echo) = (direct().await, echo().await);
    let mut carrier = Carrier::open(at(&server, "in")).await;
    for id in 0..300 {
        carrier.new_stream(id, echo, b"x").await;
    }
    let (mut served, mut refused) = (0, 0);
    for _ in 0..300 {
        match carrier.frame().await.unwrap() {
            (_, Status::Keep { .. }, ..) => served += 1,
            (id, Status::End, true, _) => {
                assert!(id >= 256, "{id}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((served, refused), (256, 44));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_takes_nothing_stops_the_others_for_five_seconds_only() {
    let (server, echo) = (direct().await, echo().await);
    // A target that accepts and reads nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut carrier = Carrier::open(at(&server, "in")).await;
    carrier.new_stream(1, silent.local_addr().unwrap(), b"").await;
    carrier.new_stream(2, echo, b"before").await;
    assert_eq!(carrier.frame().await.unwrap().3, b"before");
    let began = Instant::now();
    let chunk = vec![0; 32 << 10];
    // More than the socket of the target and what may wait for it take.
    for _ in 0..600 {
        carrier.send(|out| mux::push_keep(out, 1, &chunk).unwrap()).await;
    }
    carrier.send(|out| mux::push_keep(out, 2, b"after").unwrap()).await;
    let (mut upload, _) = silent.accept().await.unwrap();
    let mut ended = false;
    loop {
        match carrier.frame().await.unwrap() {
            (1, Status::End, error, _) => {
                assert!(error || ended, "the first says that it broke");
                ended = true;
            }
            (2, Status::Keep { .. }, _, data) => {
                assert_eq!(data, b"after");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let took = began.elapsed();
    assert!(
        ended && took > Duration::from_secs(4) && took < Duration::from_secs(9),
        "{took:?}"
    );
    // What came only in part does not look whole.
    let (_, whole) = to_the_end(&mut upload).await;
    assert!(!whole, "the upload broke off");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_has_a_line_in_the_access_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let mut settings = server_settings(vless(), ServerTransport::default());
    settings.access_log = LogTarget::File(log.clone());
    let server = start(settings).await;
    let (echo, datagrams) = (echo().await, udp_target().await);
    let mut carrier = Carrier::open(at(&server, "in")).await;
    carrier.new_stream(1, echo, b"a").await;
    carrier.frame().await.unwrap();
    carrier.new_packets(2, datagrams, 1, b"b").await;
    carrier.frame().await.unwrap();
    let said = async {
        loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            if text.lines().count() >= 2 {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let text = within("lines", said).await;
    for target in [format!("tcp:{echo}"), format!("udp:{datagrams}")] {
        let line = text
            .lines()
            .find(|line| line.contains(&target))
            .unwrap_or_else(|| panic!("{text}"));
        assert!(
            line.contains("accepted") && line.ends_with("email: user@example"),
            "{line}"
        );
    }
    assert!(!text.contains("mux"), "a carrier is no connection: {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn associations_of_a_carrier_share_their_flows() {
    // An outbound that needs a connection for each target, to a server that says nothing.
    let next = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = server_settings(vless(), ServerTransport::default());
    let protocol = vless_out(next.local_addr().unwrap());
    settings.outbounds = vec![outbound(protocol, ClientTransport::default())];
    let server = start(settings).await;
    let mut carrier = Carrier::open(at(&server, "in")).await;
    for session in 0..200_u16 {
        let to = |port| sealway_v2ray::Destination::udp(loopback(), port);
        carrier
            .send(|out| {
                mux::push_new(out, session, &to(1), None, Some(b"x")).unwrap();
                for port in 2..6 {
                    mux::push_packet(out, session, &to(port), b"x").unwrap();
                }
            })
            .await;
    }
    let mut dialled = Vec::new();
    while let Ok(accepted) = tokio::time::timeout(Duration::from_secs(2), next.accept()).await {
        dialled.push(accepted.unwrap());
    }
    // 1,000 targets were named. A full backlog may hold some back for longer than we wait.
    assert!(dialled.len() <= 512 && dialled.len() > 256, "{}", dialled.len());
    drop((carrier, dialled));
}
