//! The HTTP inbound: connections that are kept, headers, bodies that stream, and what is refused.

use std::net::SocketAddr;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::common::*;

const BAD_REQUEST: &str = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const UNAVAILABLE: &str =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\nProxy-Connection: close\r\n\r\n";

async fn proxy(settings: HttpProxy) -> Server {
    let settings = server_settings(InboundProtocol::Http(settings), ServerTransport::default());
    start(settings).await
}

async fn open() -> Server {
    proxy(HttpProxy::default()).await
}

async fn to(server: &Server) -> TcpStream {
    TcpStream::connect(at(server, "in")).await.unwrap()
}

/// A connection on which this has been asked.
async fn asked(server: &Server, request: &str) -> TcpStream {
    let mut stream = to(server).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads up to and with the empty line.
async fn head(stream: &mut TcpStream) -> String {
    let mut got = Vec::new();
    while !got.ends_with(b"\r\n\r\n") {
        got.push(within("head", stream.read_u8()).await.unwrap());
    }
    String::from_utf8(got).unwrap()
}

async fn exactly(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut got = vec![0; len];
    within("body", stream.read_exact(&mut got)).await.unwrap();
    got
}

/// Everything up to the end, which must not be a reset.
async fn rest(stream: &mut TcpStream) -> String {
    let mut got = String::new();
    within("end", stream.read_to_string(&mut got)).await.unwrap();
    got
}

/// A web server that answers every connection with the same bytes and closes. What it was asked is handed on.
async fn origin(answer: &'static str) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let asked = head(&mut tcp).await;
            let _ = tell.send(asked);
            let _ = tcp.write_all(answer.as_bytes()).await;
        }
    });
    (address, told)
}

/// A web server that is played by the test.
async fn stage() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_serves_requests_to_many_hosts_and_then_a_tunnel() {
    let server = open().await;
    let (length, mut length_asked) =
        origin("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: X-Secret\r\nX-Secret: 1\r\n\r\none").await;
    let (chunks, mut chunks_asked) =
        origin("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\nTrailer: x\r\n\r\n").await;
    let (nothing, _asked) = origin("HTTP/1.1 204 No Content\r\n\r\n").await;
    let mut stream = to(&server).await;
    for _ in 0..2 {
        let request = format!(
            "GET http://{length}/a?b HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: keep-alive\r\nConnection: X-Mine\r\n\
             X-Mine: 1\r\nProxy-Authorization: Basic YTpi\r\nKeep-Alive: 5\r\nTE: trailers\r\nAccept: */*\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(
            head(&mut stream).await,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\nProxy-Connection: keep-alive\r\n\r\n"
        );
        assert_eq!(exactly(&mut stream, 3).await, b"one");
        assert_eq!(
            length_asked.recv().await.unwrap(),
            format!("GET /a?b HTTP/1.1\r\nHost: {length}\r\nAccept: */*\r\nConnection: close\r\n\r\n")
        );
        // HTTP/1.1 keeps connections without being asked to.
        let request = format!("GET http://{chunks}/ HTTP/1.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(head(&mut stream).await.contains("\r\nTransfer-Encoding: chunked\r\n"));
        assert_eq!(exactly(&mut stream, 25).await, b"3\r\ntwo\r\n0\r\nTrailer: x\r\n\r\n");
        assert!(chunks_asked.recv().await.unwrap().starts_with("GET / HTTP/1.1\r\n"));
        let request = format!("HEAD http://{length}/ HTTP/1.1\r\n\r\nGET http://{nothing}/ HTTP/1.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(
            head(&mut stream).await.contains("\r\nContent-Length: 3\r\n"),
            "a HEAD has no body"
        );
        assert!(length_asked.recv().await.unwrap().starts_with("HEAD "));
        assert!(
            head(&mut stream).await.starts_with("HTTP/1.1 204 "),
            "sent ahead, answered in order"
        );
    }
    let target = target().await;
    let request = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(head(&mut stream).await, "HTTP/1.1 200 Connection established\r\n\r\n");
    within("tunnel", exchange(stream, 100_000, 100_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_end_when_the_client_or_the_response_says_so() {
    let server = open().await;
    let (endless, _told) = origin("HTTP/1.1 200 OK\r\n\r\nuntil the end").await;
    let mut stream = asked(&server, &format!("GET http://{endless}/ HTTP/1.1\r\n\r\n")).await;
    assert_eq!(
        rest(&mut stream).await,
        "HTTP/1.1 200 OK\r\nConnection: close\r\nProxy-Connection: close\r\n\r\nuntil the end"
    );
    let (length, mut told) = origin("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await;
    for request in [
        format!("GET http://{length}/ HTTP/1.1\r\nConnection: close\r\n\r\n"),
        format!("GET http://{length}/ HTTP/1.0\r\n\r\n"),
    ] {
        let mut stream = asked(&server, &request).await;
        let said = rest(&mut stream).await;
        assert!(
            said.contains("\r\nConnection: close\r\n") && said.ends_with("\r\n\r\nx"),
            "{said}"
        );
    }
    told.recv().await.unwrap();
    // Who speaks HTTP/1.0 must not be sent what only HTTP/1.1 has.
    assert!(told.recv().await.unwrap().starts_with("GET / HTTP/1.0\r\n"));
    let (interim, _told) = origin("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let mut stream = asked(&server, &format!("GET http://{interim}/ HTTP/1.0\r\n\r\n")).await;
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_pass_and_bodies_stream_both_ways() {
    let server = open().await;
    let (listener, origin) = stage().await;
    let request =
        format!("POST http://{origin}/ HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut stream = asked(&server, &request).await;
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    assert!(head(&mut far).await.contains("\r\nExpect: 100-continue\r\n"));
    far.write_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(head(&mut stream).await, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(head(&mut stream).await, "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n");
    // Each piece arrives before the next is sent: nothing waits for the whole.
    for piece in [&b"5\r\nhe"[..], b"llo\r", b"\n3;x=y\r\nabc\r\n"] {
        stream.write_all(piece).await.unwrap();
        assert_eq!(exactly(&mut far, piece.len()).await, piece);
    }
    far.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
        .await
        .unwrap();
    assert!(
        head(&mut stream)
            .await
            .starts_with("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n")
    );
    assert_eq!(exactly(&mut stream, 5).await, b"01234");
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(exactly(&mut far, 5).await, b"0\r\n\r\n");
    far.write_all(b"56789").await.unwrap();
    assert_eq!(exactly(&mut stream, 5).await, b"56789");
    drop(far);
    // Large bodies, at once.
    let len = 6 << 20;
    let request = format!("PUT http://{origin}/ HTTP/1.1\r\nContent-Length: {len}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    head(&mut far).await;
    far.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    head(&mut stream).await;
    let both = async |stream: &mut TcpStream, seed| {
        let (mut read, mut write) = stream.split();
        let (sent, mut got) = (pattern(seed, len), vec![0; len]);
        let (a, b) = tokio::join!(write.write_all(&sent), read.read_exact(&mut got));
        a.and(b.map(drop)).unwrap();
        got
    };
    let (got, far_got) = within("bodies", async {
        tokio::join!(both(&mut stream, 1), both(&mut far, 2))
    })
    .await;
    assert!(got == pattern(2, len) && far_got == pattern(1, len), "garbled");
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_before_the_end_of_the_request_ends_the_connection() {
    let server = open().await;
    let (large, _told) = origin("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n").await;
    let request = format!("POST http://{large}/ HTTP/1.1\r\nContent-Length: 1000\r\n\r\nonly a part");
    let mut stream = asked(&server, &request).await;
    // What is left of the body must never be taken for a request.
    let said = rest(&mut stream).await;
    assert!(said.starts_with("HTTP/1.1 413 "), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_behind_the_proxy_are_503() {
    let server = open().await;
    let (listener, closed) = stage().await;
    drop(listener);
    let long: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(20_000)).into_boxed_str());
    let mut wrong = vec![closed];
    for answer in [
        "",
        "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        long,
    ] {
        wrong.push(origin(answer).await.0);
    }
    for origin in wrong {
        let mut stream = asked(&server, &format!("GET http://{origin}/ HTTP/1.1\r\n\r\n")).await;
        assert_eq!(rest(&mut stream).await, UNAVAILABLE);
    }
    // Once a part has been passed on, only a reset says that the rest is missing.
    let (cut, _told) = origin("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart").await;
    let mut stream = asked(&server, &format!("GET http://{cut}/ HTTP/1.1\r\n\r\n")).await;
    let mut got = Vec::new();
    assert!(within("reset", stream.read_to_end(&mut got)).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_be_read_in_two_ways_is_refused() {
    let server = open().await;
    let (origin, mut told) = origin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let get = |more: &str| format!("GET http://{origin}/ HTTP/1.1\r\n{more}\r\n");
    let long = format!("A: {}\r\n", "a".repeat(20_000));
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        format!("GET https://{origin}/ HTTP/1.1\r\n\r\n"),
        get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        get("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        get("Content-Length: 5\r\nContent-Length: 6\r\n"),
        get("Content-Length: 5, 6\r\n"),
        get("Content-Length: +5\r\n"),
        get("Transfer-Encoding: gzip, chunked\r\n"),
        get("Transfer-Encoding: chunked, identity\r\n"),
        get("Transfer-Encoding : chunked\r\n"),
        get("Host: a\r\nHost: b\r\n"),
        get("A: b\r\n folded\r\n"),
        get("A: b\nC: d\r\n"),
        get("A: b\rC: d\r\n"),
        get("A: \0\r\n"),
        format!("GET http://{origin}/ HTTP/1.1\nHost: a\n\n"),
        format!("GET  http://{origin}/ HTTP/1.1\r\n\r\n"),
        format!("GET http://{origin}/ HTTP/2.0\r\n\r\n"),
        get(&long),
        get(&"a: b\r\n".repeat(129)),
    ] {
        let mut stream = asked(&server, &request).await;
        assert_eq!(rest(&mut stream).await, BAD_REQUEST, "{request:.100}");
    }
    assert!(told.try_recv().is_err(), "a refused request was sent on");
    // A wrong chunk shows only under way: nothing of what follows it is sent on.
    let (listener, origin) = stage().await;
    let request = format!("POST http://{origin}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello");
    let mut stream = asked(&server, &request).await;
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    head(&mut far).await;
    exactly(&mut far, 8).await;
    stream
        .write_all(b"xx\r\nGET http://smuggled/ HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let mut got = Vec::new();
    let _ = within("end", far.read_to_end(&mut got)).await;
    assert_eq!(got, b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transparent_requests_pass_where_they_are_allowed() {
    let server = proxy(HttpProxy {
        allow_transparent: true,
        ..HttpProxy::default()
    })
    .await;
    let (origin, mut told) = origin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let mut stream = asked(&server, &format!("GET /x HTTP/1.1\r\nHost: {origin}\r\n\r\n")).await;
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(
        told.recv()
            .await
            .unwrap()
            .starts_with(&format!("GET /x HTTP/1.1\r\nHost: {origin}\r\n"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_is_told_so_in_one_way() {
    let account = Account {
        user: "someone".into(),
        pass: "secret".into(),
    };
    let http = InboundProtocol::Http(HttpProxy {
        accounts: vec![account.clone()],
        ..HttpProxy::default()
    });
    // A port for SOCKS serves HTTP clients too.
    let socks = InboundProtocol::Socks(Socks {
        accounts: vec![account],
        ..Socks::default()
    });
    let (origin, mut told) = origin("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    for protocol in [http, socks] {
        let server = serve(protocol).await;
        for login in [
            "",
            "Basic !",
            "Basic c29tZW9uZTpzZWNyZVQ=",
            "Basic c29tZW9uZTpzZWNyZXR4",
            "Bearer x",
        ] {
            let request = format!("GET http://{origin}/ HTTP/1.1\r\nProxy-Authorization: {login}\r\n\r\n");
            let mut stream = asked(&server, &request).await;
            assert_eq!(
                rest(&mut stream).await,
                "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"proxy\"\r\n\
                 Content-Length: 0\r\nConnection: close\r\n\r\n",
                "{login}"
            );
        }
        assert!(told.try_recv().is_err());
        let mut stream = to(&server).await;
        for _ in 0..2 {
            let right = "Basic c29tZW9uZTpzZWNyZXQ=";
            let request = format!("GET http://{origin}/ HTTP/1.1\r\nProxy-Authorization: {right}\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            assert!(head(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
            assert!(
                !told.recv().await.unwrap().contains("Authorization"),
                "the password was passed on"
            );
        }
    }
}
