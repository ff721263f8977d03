mod changes;
mod names;

use std::future::poll_fn;
use std::time::Duration;

use sealway_v2ray::{Address, Destination};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;
use crate::roads::Caller;
use crate::stream::adapter::Io;
use crate::udp::Slot;

/// An engine whose second outbound goes straight out, as do questions from `dns`.
fn engine() -> (Engine, Arc<Roads>) {
    let text = r#"{
        "inbounds": [{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "socks"}],
        "outbounds": [{"tag": "out", "protocol": "blackhole"}, {"tag": "direct", "protocol": "freedom"}],
        "routing": {"rules": [{"inboundTag": ["dns"], "outboundTag": "direct"}]}
    }"#;
    let settings = Settings::of_text(text);
    let engine = Engine::new(&settings, &Arc::default()).unwrap();
    let roads = engine.roads();
    (engine, roads)
}

fn to(address: SocketAddr) -> Destination {
    Destination::tcp(Address::from(address.ip()), address.port())
}

#[tokio::test]
async fn roads_lead_out_by_one_outbound_and_by_the_rules() {
    let (engine, roads) = engine();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = to(listener.local_addr().unwrap());
    let (direct, caller, dns) = (roads.find("", "direct").unwrap(), Caller::default(), Arc::from("dns"));
    for by_rules in [false, true] {
        let stream = match by_rules {
            true => roads.routed(&dns, &to).await,
            false => roads.through(&direct, &to, &caller).await,
        };
        let (mut near, (mut far, _)) = (Io(stream.unwrap()), listener.accept().await.unwrap());
        let mut got = [0; 4];
        near.write_all(b"ping").await.unwrap();
        near.flush().await.unwrap();
        far.read_exact(&mut got).await.unwrap();
        far.write_all(&got).await.unwrap();
        near.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"ping");
    }
    for nowhere in [
        roads.through(&"out".into(), &to, &caller).await,
        roads.routed(&"other".into(), &to).await,
    ] {
        assert!(matches!(nowhere, Err(Error::Forbidden { .. })));
    }
    drop(engine);
    assert!(matches!(roads.through(&direct, &to, &caller).await, Err(Error::Closed)));
}

#[tokio::test]
async fn roads_carry_datagrams() {
    let (_engine, roads) = engine();
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = to(target.local_addr().unwrap());
    let direct = roads.find("", "direct").unwrap();
    for by_rules in [false, true] {
        let end = match by_rules {
            true => roads.packets_routed(&"dns".into(), &to).await,
            false => roads.packets_through(&direct, &to, &Caller::default()).await,
        };
        let mut end = end.unwrap();
        poll_fn(|cx| end.poll_send(cx, b"ping", &to)).await.unwrap();
        let mut got = [0; 9];
        let (len, from) = target.recv_from(&mut got).await.unwrap();
        target.send_to(&got[..len], from).await.unwrap();
        let mut slot = Slot::default();
        let came = timeout(Duration::from_secs(5), poll_fn(|cx| end.poll_recv(cx, &mut slot))).await;
        assert!(came.unwrap().unwrap());
        assert_eq!(slot.datagram().unwrap().1, b"ping");
    }
}

/// An engine with these outbounds.
fn with_outbounds(outbounds: &str, hosts: &str) -> Engine {
    let text = format!(r#"{{"dns": {{"hosts": {{{hosts}}}}}, "outbounds": [{outbounds}]}}"#);
    Engine::new(&Settings::of_text(&text), &Arc::default()).unwrap()
}

/// Names that another outbound resolves are not looked up here for the sake of noise.
#[tokio::test]
async fn noise_asks_for_no_name_that_is_resolved_elsewhere() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = target.local_addr().unwrap();
    let engine = with_outbounds(
        &format!(
            r#"{{"tag": "out", "protocol": "freedom", "streamSettings": {{"sockopt": {{"dialerProxy": "hop"}}}},
                "settings": {{"noises": [{{"type": "str", "packet": "4", "applyTo": "ipv4"}},
                    {{"type": "str", "packet": "6", "applyTo": "ipv6"}}, {{"type": "str", "packet": "any"}}]}}}},
            {{"tag": "hop", "protocol": "freedom", "settings": {{"redirect": "{at}"}}}}"#
        ),
        "",
    );
    let to = Destination::udp(Address::parse("one.never.test").unwrap(), 443);
    let caller = Caller::default();
    let associated = timeout(
        Duration::from_secs(10),
        engine.roads().packets_through(&"out".into(), &to, &caller),
    )
    .await;
    let mut end = associated.expect("no look-up").unwrap();
    timeout(Duration::from_secs(10), poll_fn(|cx| end.poll_send(cx, b"first", &to)))
        .await
        .expect("sent")
        .unwrap();
    let mut got = Vec::new();
    for _ in 0..3 {
        let mut bytes = [0; 16];
        let len = target.recv(&mut bytes).await.unwrap();
        got.push(String::from_utf8_lossy(&bytes[..len]).into_owned());
    }
    assert_eq!(got, ["4", "any", "first"]);
}

/// Where the address of one family is not reached, that of the other is tried.
#[tokio::test]
async fn a_chain_tries_both_families() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for families in [["::1", "127.0.0.1"], ["127.0.0.1", "::1"]] {
        let engine = with_outbounds(
            r#"{"tag": "out", "protocol": "freedom", "settings": {"domainStrategy": "UseIP"},
                "streamSettings": {"sockopt": {"dialerProxy": "hop"}}}, {"tag": "hop", "protocol": "freedom"}"#,
            &format!(r#""two.test": ["{}", "{}"]"#, families[0], families[1]),
        );
        let to = Destination::tcp(Address::parse("two.test").unwrap(), port);
        let reached = engine.roads().through(&"out".into(), &to, &Caller::default()).await;
        assert!(reached.is_ok(), "{families:?}: {:?}", reached.err());
    }
}

#[test]
fn sockets_of_ours_have_the_mark_of_the_first_outbound_with_one() {
    let text = r#"{"outbounds": [{"protocol": "blackhole"},
        {"protocol": "freedom", "streamSettings": {"sockopt": {"mark": 255}}},
        {"protocol": "freedom", "tag": "b", "streamSettings": {"sockopt": {"mark": 7}}}]}"#;
    assert_eq!(Plan::of(Settings::of_text(text)).mark(), Some(255));
}
