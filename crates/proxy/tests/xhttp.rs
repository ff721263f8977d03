//! What a server of XHTTP makes of single requests, and of strangers who make many. A program of its own, whose memory is
//! looked at.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::*;
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::xhttp::settings::{Mode, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn kind(change: impl FnOnce(&mut sealway_v2ray::xhttp::Settings)) -> TransportKind {
    let mut http = sealway_v2ray::xhttp::Settings {
        path: "/p".into(),
        ..Default::default()
    };
    change(&mut http);
    TransportKind::Xhttp(Box::new(Xhttp {
        http,
        ..Xhttp::default()
    }))
}

async fn server(change: impl FnOnce(&mut sealway_v2ray::xhttp::Settings)) -> Server {
    let transport = server_over(kind(change), None);
    start(server_settings(vless(), transport)).await
}

/// A request line and its body as it goes out.
fn request(line: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let padding = "X".repeat(200);
    let head = format!(
        "{line} HTTP/1.1\r\nHost: h\r\nReferer: http://h/p/?x_padding={padding}\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The head of the next answer, without what may follow it.
async fn head(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\n") {
        said.push(within("answer", stream.read_u8()).await.unwrap());
    }
    String::from_utf8(said).unwrap()
}

async fn status(stream: &mut TcpStream, bytes: &[u8]) -> u16 {
    stream.write_all(bytes).await.unwrap();
    head(stream).await[9..12].parse().unwrap()
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(at(server, "in")).await.unwrap()
}

/// One chunk of what comes down.
async fn chunk(stream: &mut TcpStream) -> Vec<u8> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(within("chunk", stream.read_u8()).await.unwrap());
    }
    let len = usize::from_str_radix(std::str::from_utf8(&line[..line.len() - 2]).unwrap(), 16).unwrap();
    let mut chunk = vec![0; len + 2];
    within("chunk", stream.read_exact(&mut chunk)).await.unwrap();
    chunk.truncate(len);
    chunk
}

/// What comes down, up to so many bytes.
async fn down(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < len {
        all.extend(chunk(stream).await);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statuses_and_headers() {
    let server = server(|_| {}).await;
    for (line, want) in [
        ("GET /q/s", 404),
        ("DELETE /p/s", 405),
        ("POST /p/s/x", 500),
        ("POST /p/s/99999999999999999999", 500),
        ("GET /p/", 405),
    ] {
        let mut stream = connect(&server).await;
        assert_eq!(status(&mut stream, &request(line, "", b"")).await, want, "{line}");
    }
    let mut stream = connect(&server).await;
    let plain = b"GET /p/s HTTP/1.1\r\nHost: h\r\nReferer: http://h/p/?x_padding=X\r\n\r\n";
    assert_eq!(status(&mut stream, plain).await, 400, "padding");
    let mut stream = connect(&server).await;
    assert_eq!(status(&mut stream, b"no request\r\n\r\n").await, 400);
    let mut stream = connect(&server).await;
    let long = request("GET /p/s", &format!("A: {}\r\n", "a".repeat(9000)), b"");
    assert_eq!(status(&mut stream, &long).await, 431);
    let mut stream = connect(&server).await;
    stream
        .write_all(
            b"OPTIONS /p/s HTTP/1.1\r\nHost: h\r\nOrigin: https://o\r\nAccess-Control-Request-Method: PUT\r\n\r\n",
        )
        .await
        .unwrap();
    let said = head(&mut stream).await;
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    for line in [
        "Access-Control-Allow-Origin: https://o\r\n",
        "Access-Control-Allow-Methods: PUT\r\n",
        "X-Padding: X",
    ] {
        assert!(said.contains(line), "{said}");
    }
    // The connection goes on.
    stream.write_all(&request("GET /p/s1", "", b"")).await.unwrap();
    let said = head(&mut stream).await;
    for line in [
        "HTTP/1.1 200 OK\r\n",
        "X-Accel-Buffering: no\r\n",
        "Cache-Control: no-store\r\n",
        "Content-Type: text/event-stream\r\n",
        "Access-Control-Allow-Origin: *\r\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let mut second = connect(&server).await;
    assert_eq!(status(&mut second, &request("GET /p/s1", "", b"")).await, 409);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbered_requests_in_any_order() {
    let (server, echo) = (
        server(|http| http.each_post_bytes = Span::just(1000)).await,
        echo().await,
    );
    let mut get = connect(&server).await;
    assert_eq!(status(&mut get, &request("GET /p/s", "", b"")).await, 200);
    // The last one first, each on a connection of its own; one of them twice.
    let mut later = Vec::new();
    for (seq, body) in [(3, b"dd"), (2, b"cc"), (2, b"xx")] {
        let mut stream = connect(&server).await;
        let line = format!("POST /p/s/{seq}");
        stream.write_all(&request(&line, "", body)).await.unwrap();
        assert!(
            head(&mut stream).await.starts_with("HTTP/1.1 200"),
            "{seq} is taken before its turn"
        );
        later.push(stream);
    }
    // On one connection, without waiting for answers: numbers that were there are dropped.
    let mut stream = connect(&server).await;
    let first = [&vless_request(echo)[..], b"aa"].concat();
    let bytes = [
        request("POST /p/s/0", "", &first),
        request("POST /p/s/1", "", b"bb"),
        request("POST /p/s/1", "", b"yy"),
        request("POST /p/s/0", "", b"zz"),
        request("POST /p/s/4", "", b"ee"),
    ];
    stream.write_all(&bytes.concat()).await.unwrap();
    for _ in 0..5 {
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(down(&mut get, 12).await, b"\0\0aabbccddee");
    // In chunks, and too long.
    let chunks = request("POST /p/s/5", "", b"");
    let chunks = String::from_utf8(chunks)
        .unwrap()
        .replace("Content-Length: 0", "Transfer-Encoding: chunked");
    assert_eq!(
        status(&mut stream, &[chunks.as_bytes(), b"2\r\nff\r\n0\r\n\r\n"].concat()).await,
        200
    );
    assert_eq!(down(&mut get, 2).await, b"ff");
    assert_eq!(
        status(&mut stream, &request("POST /p/s/6", "", &[b'g'; 1001])).await,
        413
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_that_came_too_early_end_the_session() {
    let server = server(|http| http.max_buffered_posts = 4).await;
    let mut get = connect(&server).await;
    assert_eq!(status(&mut get, &request("GET /p/s", "", b"")).await, 200);
    for (seq, want) in [(u64::MAX, 200), (7, 200), (8, 200), (9, 200), (10, 500)] {
        let mut stream = connect(&server).await;
        let line = format!("POST /p/s/{seq}");
        assert_eq!(status(&mut stream, &request(&line, "", b"x")).await, want, "{seq}");
    }
    let mut rest = Vec::new();
    let _ = within("end of the session", get.read_to_end(&mut rest)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_without_an_end() {
    let (server, echo) = (server(|_| {}).await, echo().await);
    let mut up = connect(&server).await;
    let head_of = |line: &str| {
        let head = String::from_utf8(request(line, "", b"")).unwrap();
        head.replace("Content-Length: 0", "Transfer-Encoding: chunked")
    };
    let first = [&vless_request(echo)[..], b"aa"].concat();
    let bytes = [
        head_of("POST /p/s").as_bytes(),
        format!("{:x}\r\n", first.len()).as_bytes(),
        &first,
        b"\r\n",
    ]
    .concat();
    assert_eq!(status(&mut up, &bytes).await, 200);
    // Padding for whoever stands between.
    assert!(chunk(&mut up).await.iter().all(|byte| *byte == b'X'));
    let mut second = connect(&server).await;
    assert_eq!(status(&mut second, head_of("POST /p/s").as_bytes()).await, 409);
    let mut get = connect(&server).await;
    assert_eq!(status(&mut get, &request("GET /p/s", "", b"")).await, 200);
    assert_eq!(down(&mut get, 4).await, b"\0\0aa");
    // The end of what goes up ends what the target hears, and what it says comes to its end.
    up.write_all(b"0\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    within("end", get.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, b"0\r\n\r\n");
    // Both directions in one request.
    let mut one = connect(&server).await;
    let bytes = [
        head_of("POST /p/").as_bytes(),
        format!("{:x}\r\n", first.len()).as_bytes(),
        &first,
        b"\r\n",
    ]
    .concat();
    assert_eq!(status(&mut one, &bytes).await, 200);
    assert_eq!(down(&mut one, 4).await, b"\0\0aa");
}

fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Ten thousand sessions of a stranger, each with as many bytes as he can get rid of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_strangers_are_bounded() {
    let server = server(|http| http.mode = Mode::PacketUp).await;
    let mut stream = connect(&server).await;
    let (before, since) = (memory(), std::time::Instant::now());
    let (mut taken, mut refused) = (0, 0);
    for number in 0..10_000 {
        let line = format!("POST /p/{number}/0");
        match status(&mut stream, &request(&line, "", &[0; 100])).await {
            200 => taken += 1,
            500 => {
                refused += 1;
                // A body that was not read takes its connection with it.
                stream = connect(&server).await;
            }
            other => panic!("{other}"),
        }
    }
    // After 30 s a session that nobody has asked for makes room for another.
    match since.elapsed() < Duration::from_secs(30) {
        true => assert_eq!((taken, refused), (4096, 10_000 - 4096)),
        false => assert!(taken >= 4096 && refused > 0, "{taken} taken, {refused} refused"),
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for 4096 sessions of 100 bytes");
}

/// One session of a stranger holds no more than its share, whatever is sent to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_a_stranger_holds_little() {
    let server = server(|_| {}).await;
    // The first of the bytes decide nothing: the session has no GET, so nobody reads them.
    let mut senders = Vec::new();
    for seq in [0, 2, 3] {
        let mut stream = connect(&server).await;
        let line = format!("POST /p/s/{seq}");
        let body = vec![0; 900_000];
        let sending = tokio::spawn(async move {
            stream.write_all(&request(&line, "", &body)).await.unwrap();
            head(&mut stream).await
        });
        senders.push(sending);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(
        senders.iter().all(|sender| !sender.is_finished()),
        "more was taken than a stranger may leave"
    );
    for sender in senders {
        sender.abort();
    }
}
