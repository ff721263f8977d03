//! Every protocol over every transport, two engines in one process.

use std::net::SocketAddr;

use sealway_proxy::settings::*;
use sealway_v2ray::shadowsocks::Method;

use crate::common::*;

/// A name, what the server speaks, and what the client speaks to a server at an address.
type Case = (&'static str, InboundProtocol, fn(SocketAddr) -> OutboundProtocol);

fn protocols() -> Vec<Case> {
    const AES: Method = Method::Aes256Gcm;
    const MODERN: Method = Method::Blake3Aes256Gcm;
    const CHACHA: Method = Method::Blake3ChaCha20Poly1305;
    vec![
        ("shadowsocks aes", shadowsocks(AES, true), |server| {
            shadowsocks_out(AES, true, server)
        }),
        ("shadowsocks 2022 aes", shadowsocks(MODERN, true), |server| {
            shadowsocks_out(MODERN, true, server)
        }),
        ("shadowsocks 2022 chacha", shadowsocks(CHACHA, false), |server| {
            shadowsocks_out(CHACHA, false, server)
        }),
        ("trojan", trojan(), trojan_out),
        ("vless", vless(), vless_out),
        ("vmess aes", vmess(), |server| {
            vmess_out_with(server, VmessSecurity::Aes128Gcm, false)
        }),
        ("vmess chacha", vmess(), |server| {
            vmess_out_with(server, VmessSecurity::ChaCha20Poly1305, false)
        }),
        ("vmess aes, sealed lengths", vmess(), |server| {
            vmess_out_with(server, VmessSecurity::Aes128Gcm, true)
        }),
        ("vmess auto", vmess(), vmess_out),
        ("vmess none", vmess(), |server| {
            vmess_out_with(server, VmessSecurity::None, false)
        }),
        ("vmess zero", vmess(), |server| {
            vmess_out_with(server, VmessSecurity::Zero, false)
        }),
    ]
}

async fn run(network: TransportKind, tls: bool) {
    let target = target().await;
    let udp_target = udp_target().await;
    let alone = matches!(network, TransportKind::Raw) && !tls;
    for (name, protocol, far) in protocols() {
        let (server_tls, certificate) = server_tls(&["server.example"]);
        let server_transport = server_over(network.clone(), tls.then_some(server_tls));
        let server = start(server_settings(protocol, server_transport)).await;
        let client_transport = client_over(network.clone(), tls.then_some(&*certificate));
        let start = async |target| {
            let settings = door_settings(target, outbound(far(at(&server, "in")), client_transport.clone()));
            start(settings).await
        };
        let client = start(target).await;
        // The longest goes by every protocol over TCP alone, and over every transport by one.
        let sizes = if alone || name == "vless" {
            &SIZES[..]
        } else {
            &SIZES[..3]
        };
        exchange_sizes(name, at(&client, "door"), sizes).await;
        let udp_client = start(udp_target).await;
        let udp_door = udp_at(&udp_client, "door");
        // Longer ones are lost, as the other programs take them for a fault.
        let longest = if name == "trojan" { 8192 } else { 65_507 };
        udp_exchange_up_to(name, udp_door, longest).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp() {
    run(TransportKind::Raw, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp_tls() {
    run(TransportKind::Raw, true).await;
}

fn front() -> TransportKind {
    let mut front = Front::default();
    front.request.paths = vec!["/a".into(), "/b?c".into()];
    TransportKind::RawHttp(front)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_header() {
    run(front(), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_header_tls() {
    run(front(), true).await;
}

fn http() -> Upgrade {
    Upgrade {
        path: "/way".into(),
        host: "front.example".into(),
        ..Upgrade::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websocket() {
    run(TransportKind::WebSocket(http()), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websocket_tls() {
    run(TransportKind::WebSocket(http()), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_upgrade() {
    run(TransportKind::HttpUpgrade(http()), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_upgrade_tls() {
    run(TransportKind::HttpUpgrade(http()), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_data() {
    for header in ["Sec-WebSocket-Protocol", "X-Early", ""] {
        let http = Upgrade {
            early_data: 2048,
            early_data_header: header.into(),
            ..http()
        };
        run(TransportKind::WebSocket(http.clone()), false).await;
        run(TransportKind::HttpUpgrade(http), true).await;
    }
}

fn grpc(multi_mode: bool) -> TransportKind {
    TransportKind::Grpc(Grpc {
        service_name: "/a b/c/Up|Many".into(),
        multi_mode,
        ..Grpc::default()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_plain() {
    run(grpc(true), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_tls() {
    run(grpc(false), true).await;
}

fn http2() -> TransportKind {
    let mut http = Http::default();
    http.http.settings.hosts = vec!["a.example".into(), "b.example:8443".into()];
    http.http.settings.path = "/my way".into();
    TransportKind::Http(http)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_plain() {
    run(http2(), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_tls() {
    run(http2(), true).await;
}

fn xhttp(mode: sealway_v2ray::xhttp::settings::Mode, http2: bool) -> TransportKind {
    let http = sealway_v2ray::xhttp::Settings {
        path: "/way".into(),
        mode,
        ..Default::default()
    };
    TransportKind::Xhttp(Box::new(Xhttp {
        http,
        http2,
        ..Xhttp::default()
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xhttp_stream_one() {
    use sealway_v2ray::xhttp::settings::Mode;
    run(xhttp(Mode::StreamOne, false), false).await;
    run(xhttp(Mode::StreamOne, true), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xhttp_stream_up() {
    use sealway_v2ray::xhttp::settings::Mode;
    run(xhttp(Mode::StreamUp, false), false).await;
    run(xhttp(Mode::StreamUp, true), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xhttp_packet_up() {
    use sealway_v2ray::xhttp::settings::Mode;
    run(xhttp(Mode::PacketUp, false), false).await;
    run(xhttp(Mode::PacketUp, true), true).await;
    // HTTP/2 without TLS, by prior knowledge; HTTP/1.1 inside TLS.
    run(xhttp(Mode::PacketUp, true), false).await;
    run(xhttp(Mode::PacketUp, false), true).await;
}
