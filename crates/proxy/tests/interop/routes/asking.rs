//! Xray's `RoutingService`: its messages, and how it is asked.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use sealway_proxy::routes::Traits;
use sealway_route::testing::{field, varint};
use sealway_v2ray::Network;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::programs::PATIENCE;

fn number(key: u64, value: u64) -> Vec<u8> {
    if value == 0 {
        Vec::new()
    } else {
        [varint(key << 3), varint(value)].concat()
    }
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// `TestRouteRequest`.
fn encoded(traits: &Traits) -> Vec<u8> {
    let text = |key, text: &str| {
        if text.is_empty() {
            Vec::new()
        } else {
            field(key, text.as_bytes())
        }
    };
    let ip = |key, ip: Option<IpAddr>| ip.map(|ip| field(key, &octets(ip))).unwrap_or_default();
    let port = |key, end: Option<SocketAddr>| number(key, end.map_or(0, |end| end.port().into()));
    let target = &traits.target;
    let domain = traits
        .name
        .as_deref()
        .or(target.address.domain().map(|name| name.as_str()));
    let network = if target.network == Network::Udp { 3 } else { 2 };
    let mut context = [
        text(1, &traits.inbound),
        number(2, network),
        ip(3, traits.source.map(|end| end.ip())),
        ip(4, target.address.ip()),
        port(5, traits.source),
        number(6, target.port.into()),
        text(7, domain.unwrap_or_default()),
        text(8, traits.protocol.as_deref().unwrap_or_default()),
        text(9, &traits.email),
    ]
    .concat();
    for (key, value) in &traits.attributes {
        context.extend(field(10, &[text(1, key), text(2, value)].concat()));
    }
    context.extend(ip(13, traits.local.map(|end| end.ip())));
    context.extend(port(14, traits.local));
    context.extend(number(15, traits.vless_route.unwrap_or(0).into()));
    field(1, &context)
}

/// The field `OutboundTag` of a `RoutingContext`.
fn outbound_tag(mut message: &[u8]) -> Option<String> {
    fn take(from: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = from.split_first().unwrap();
            *from = rest;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut found = None;
    while !message.is_empty() {
        let key = take(&mut message);
        let value = take(&mut message);
        if key & 7 == 2 {
            let (bytes, rest) = message.split_at(usize::try_from(value).unwrap());
            message = rest;
            if key >> 3 == 12 {
                found = Some(String::from_utf8(bytes.to_vec()).unwrap());
            }
        }
    }
    found
}

/// What Xray says: the tag of the outbound, or `None` if no rule fits.
pub(super) async fn ask(mut xray: SendRequest<Bytes>, traits: &Traits) -> Option<String> {
    let request = http::Request::post("http://api/xray.app.router.command.RoutingService/TestRoute")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let message = encoded(traits);
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let (response, mut body) = {
        xray = xray.ready().await.unwrap();
        xray.send_request(request, false).unwrap()
    };
    body.send_data([&[0], &length[..], &message].concat().into(), true)
        .unwrap();
    let response = response.await.unwrap();
    let early = response.headers().clone();
    let mut body = response.into_body();
    let mut answer = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        answer.extend_from_slice(&piece);
    }
    let trailers = body.trailers().await.unwrap().unwrap_or(early);
    if trailers["grpc-status"] != "0" {
        let said = trailers["grpc-message"].to_str().unwrap();
        assert!(said.contains("not enough information"), "{said}");
        return None;
    }
    outbound_tag(&answer[5..])
}

pub(super) async fn connect(to: SocketAddr) -> SendRequest<Bytes> {
    let end = Instant::now() + PATIENCE;
    let stream = loop {
        match TcpStream::connect(to).await {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < end, "{to}: {error}"),
        }
        sleep(Duration::from_millis(50)).await;
    };
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    sender
}
