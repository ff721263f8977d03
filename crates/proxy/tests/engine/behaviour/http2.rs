//! What a server of V2Ray's HTTP/2 answers to single requests.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, Response, StatusCode};
use sealway_proxy::settings::*;
use tokio::net::TcpStream;

use crate::common::*;

async fn connected(server: SocketAddr) -> SendRequest<Bytes> {
    let tcp = TcpStream::connect(server).await.unwrap();
    let (send, connection) = h2::client::handshake(tcp).await.unwrap();
    tokio::spawn(connection);
    send
}

fn to(host: &str, path: &str) -> Request<()> {
    Request::put(format!("http://{host}{path}")).body(()).unwrap()
}

/// All of a body.
async fn whole(answer: Response<h2::RecvStream>) -> Vec<u8> {
    let (mut body, mut all) = (answer.into_body(), Vec::new());
    while let Some(piece) = within("answer", body.data()).await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        all.extend(piece);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_ours_is_not_found_and_disturbs_nobody() {
    let target = counting_target().await;
    let mut own = Http::default();
    own.http.settings.hosts = vec!["a.example".into()];
    own.http.settings.path = "/my way".into();
    own.http.settings.headers = vec![("Server".into(), "nginx".into())];
    let transport = server_over(TransportKind::Http(own), None);
    let server = start(server_settings(vless(), transport)).await;
    let mut send = connected(at(&server, "in")).await;
    // The head comes before anything is said, as other clients wait for it.
    let (answer, mut body) = send.send_request(to("a.example:80", "/my%20way/on"), false).unwrap();
    let answer = within("head", answer).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["cache-control"], "no-store");
    assert_eq!(answer.headers()["server"], "nginx");
    for (host, path) in [("b.example", "/my%20way"), ("a.example", "/my"), ("a.example", "/")] {
        send = send.ready().await.unwrap();
        let (refused, _body) = send.send_request(to(host, path), false).unwrap();
        let refused = within("refusal", refused).await.unwrap();
        assert_eq!(
            (refused.status(), refused.headers().len()),
            (StatusCode::NOT_FOUND, 0),
            "{host}{path}"
        );
        assert_eq!(whole(refused).await, b"", "{host}{path}");
    }
    body.send_data([&vless_request(target)[..], b"seven b"].concat().into(), true)
        .unwrap();
    assert_eq!(whole(answer).await, b"\0\x007 bytes");
}
