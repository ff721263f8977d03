//! Datagrams through two engines with a mux between them.

use std::time::Duration;

use sealway_proxy::settings::*;
use tokio::net::UdpSocket;

use super::{Far, eight, with};
use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_up_to_what_a_frame_may_hold() {
    let target = udp_target().await;
    let far = Far::start(vless()).await;
    let xudp = MuxOut {
        full_cone: true,
        ..MuxOut::default()
    };
    let own = MuxOut {
        streams: None,
        datagrams: MuxDatagrams::Own(16),
        ..eight()
    };
    for (name, mux) in [("shared", eight()), ("own", own), ("xudp", xudp)] {
        let client = start(door_settings(target, with(far.vless(), mux))).await;
        let socket = udp_to(udp_at(&client, "door")).await;
        let mut got = vec![0; 65_536];
        for len in [1, 1200, 1472, 9000, 8192, 9000, 1] {
            let sent = pattern(len as u64, len);
            socket.send(&sent).await.unwrap();
            if len > 8192 {
                // Too long for some peers: lost, and nothing else is.
                continue;
            }
            let n = within(&format!("{name}, {len}"), socket.recv(&mut got)).await.unwrap();
            got[..n].reverse();
            assert!(got[..n] == sent, "{name}: datagram of {len} garbled, {n}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_source_port_for_all_targets_and_answers_from_anywhere() {
    let far = Far::start(vless()).await;
    let xudp = MuxOut {
        full_cone: true,
        ..MuxOut::default()
    };
    for (name, mux) in [("mux", eight()), ("xudp", xudp)] {
        let mut settings = server_settings(socks(), ServerTransport::default());
        settings.outbounds = vec![with(far.vless(), mux)];
        let client = start(settings).await;
        let (_control, relay) = associate(at(&client, "in")).await;
        let own = udp_to(relay).await;
        let targets = [
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        ];
        let mut got = [0; 100];
        let mut sources = Vec::new();
        for target in &targets[..2] {
            own.send(&socks_packet(target.local_addr().unwrap(), b"hello"))
                .await
                .unwrap();
            let (len, from) = within(name, target.recv_from(&mut got)).await.unwrap();
            assert_eq!(&got[..len], b"hello");
            sources.push(from);
        }
        assert_eq!(sources[0], sources[1], "{name}: full cone has one port");
        // Whom the client never sent to may answer too, and is named.
        for target in &targets {
            target.send_to(b"answer", sources[0]).await.unwrap();
            let len = within(name, own.recv(&mut got)).await.unwrap();
            assert_eq!(
                got[..len],
                socks_packet(target.local_addr().unwrap(), b"answer"),
                "{name}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_is_refused_where_the_keys_say_so() {
    let far = Far::start(vless()).await;
    for (port_443, refused) in [
        (MuxPort443::Reject, true),
        (MuxPort443::Allow, false),
        (MuxPort443::Skip, false),
    ] {
        let mut settings = server_settings(socks(), ServerTransport::default());
        settings.outbounds = vec![with(far.vless(), MuxOut { port_443, ..eight() })];
        let client = start(settings).await;
        let (_control, relay) = associate(at(&client, "in")).await;
        let own = udp_to(relay).await;
        let before = far.carriers();
        own.send(&socks_packet("127.0.0.1:443".parse().unwrap(), b"quic?"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(far.carriers() == before, refused, "{port_443:?}");
        // Others are not concerned.
        let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        own.send(&socks_packet(target.local_addr().unwrap(), b"other"))
            .await
            .unwrap();
        within("other", target.recv_from(&mut [0; 10])).await.unwrap();
    }
}
