//! What a client of HTTP/2 may do to us: floods of frames, heads that grow, streams taken back, and words that are no HTTP/2.
//! A program of its own, whose memory is looked at.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::*;
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// One at a time: one of them looks at the memory of the process.
static TURN: Mutex<()> = Mutex::const_new(());

/// More than any socket holds.
const FLOOD: usize = 32 << 20;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const DATA: u8 = 0;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header as a literal, not to be remembered, as HPACK has it.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        let mut out = Vec::new();
        if text.len() < 127 {
            out.push(text.len() as u8);
        } else {
            out.push(127);
            let mut rest = text.len() - 127;
            while rest >= 128 {
                out.push(rest as u8 | 128);
                rest >>= 7;
            }
            out.push(rest as u8);
        }
        [&out[..], text.as_bytes()].concat()
    };
    [&[0][..], &text(name), &text(value)].concat()
}

/// The head of a call of our method, with more headers.
fn call(more: &[(&str, &str)]) -> Vec<u8> {
    let mut head = vec![0x83, 0x86];
    for (name, value) in [
        (":path", "/svc/Tun"),
        (":authority", "a"),
        ("content-type", "application/grpc"),
    ] {
        head.extend(literal(name, value));
    }
    for (name, value) in more {
        head.extend(literal(name, value));
    }
    head
}

async fn start() -> Server {
    start_with(vless()).await
}

async fn start_with(protocol: InboundProtocol) -> Server {
    let grpc = Grpc {
        service_name: "svc".into(),
        ..Grpc::default()
    };
    patient_server(protocol, TransportKind::Grpc(grpc)).await
}

/// A connection that has said its preface, with little room for answers.
async fn connected(server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut stream = socket.connect(at(server, "in")).await.unwrap();
    stream
        .write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat())
        .await
        .unwrap();
    stream
}

/// Sends what `next` makes until the server takes no more, or closes. Returns how many bytes it took.
async fn flood(stream: &mut TcpStream, mut next: impl FnMut() -> Vec<u8>) -> usize {
    let (mut sent, mut waiting) = (0, Vec::new());
    let mut last = Instant::now();
    while sent < FLOOD && last.elapsed() < Duration::from_secs(3) {
        while waiting.len() < 4096 {
            waiting.extend(next());
        }
        match stream.try_write(&waiting) {
            Ok(wrote) => {
                waiting.drain(..wrote);
                sent += wrote;
                last = Instant::now();
                tokio::task::yield_now().await;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(_) => break,
        }
    }
    sent
}

/// Takes everything until the connection ends. Returns the kinds of frames, and the code of a GOAWAY.
async fn frames(stream: &mut TcpStream) -> (Vec<u8>, Option<u32>) {
    let (mut kinds, mut code) = (Vec::new(), None);
    let taking = async {
        loop {
            let mut head = [0; 9];
            if stream.read_exact(&mut head).await.is_err() {
                break;
            }
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            if stream.read_exact(&mut payload).await.is_err() {
                break;
            }
            kinds.push(head[3]);
            if head[3] == GOAWAY {
                code = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
            }
        }
    };
    within("end", taking).await;
    (kinds, code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_and_does_not_read_is_read_no_further() {
    let _turn = TURN.lock().await;
    // All at once: each floods until nothing has been taken for seconds.
    let mut floods = JoinSet::new();
    for asked in [frame(PING, 0, 0, &[7; 8]), frame(SETTINGS, 0, 0, &[])] {
        for in_a_call in [false, true] {
            let asked = asked.clone();
            floods.spawn(async move {
                let server = start().await;
                let mut stream = connected(&server).await;
                if in_a_call {
                    stream.write_all(&frame(HEADERS, 4, 1, &call(&[]))).await.unwrap();
                }
                (asked[3], flood(&mut stream, || asked.clone()).await)
            });
        }
    }
    for (kind, sent) in floods.join_all().await {
        assert!(sent < FLOOD, "{sent} bytes of frames of kind {kind} were taken");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_taken_back_at_once_end_the_connection() {
    let _turn = TURN.lock().await;
    let server = start().await;
    let mut stream = connected(&server).await;
    let mut opened = 0;
    let (mut read, mut write) = stream.split();
    let sending = async {
        for id in (1..100_000).step_by(2) {
            let pair = [
                frame(HEADERS, 4, id, &call(&[])),
                frame(RST_STREAM, 0, id, &8u32.to_be_bytes()),
            ];
            if write.write_all(&pair.concat()).await.is_err() {
                break;
            }
            opened += 1;
        }
    };
    let taking = async {
        let mut said = Vec::new();
        let _ = read.read_to_end(&mut said).await;
        said
    };
    within("end", async { tokio::join!(sending, taking) }).await;
    assert!(opened < 40_000, "{opened} streams were opened and taken back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_without_end_end_the_connection() {
    let _turn = TURN.lock().await;
    let server = start().await;
    // Small frames that go on and on; and large ones.
    for piece in [1, 1000] {
        let mut stream = connected(&server).await;
        stream.write_all(&frame(HEADERS, 0, 1, &call(&[]))).await.unwrap();
        let more = literal("x", &"y".repeat(piece));
        let sent = flood(&mut stream, || frame(CONTINUATION, 0, 1, &more)).await;
        assert!(sent < FLOOD / 4, "{sent} bytes of CONTINUATION were taken");
        // A reset may overtake what was said last.
        let (_, code) = frames(&mut stream).await;
        assert!(matches!(code, None | Some(11 | 1)), "{code:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_too_long_is_refused() {
    let _turn = TURN.lock().await;
    let server = start().await;
    let mut stream = connected(&server).await;
    let long = "y".repeat(12_000);
    stream
        .write_all(&frame(HEADERS, 4, 1, &call(&[("x", &long), ("z", "1")])))
        .await
        .unwrap();
    // Above 16 KiB once it is read, though every part of it is short on the wire: one long header, then its number again.
    let mut bomb = call(&[]);
    bomb.extend([&[0x40][..], &literal("b", &"y".repeat(3000))[1..]].concat());
    bomb.extend([0xbe; 200]);
    stream.write_all(&frame(HEADERS, 5, 3, &bomb)).await.unwrap();
    // The connection goes on, or has ended in good order: either way without a call that was served.
    stream.write_all(&frame(GOAWAY, 0, 0, &[0; 8])).await.unwrap();
    let mut said = vec![0; 4096];
    let mut all = Vec::new();
    while let Ok(Ok(n @ 1..)) = tokio::time::timeout(Duration::from_secs(2), stream.read(&mut said)).await {
        all.extend_from_slice(&said[..n]);
    }
    // 431, as a literal of HPACK or from its Huffman code, or a reset of stream 3.
    let (mut at, mut refused) = (0, false);
    while let Some(head) = all.get(at..at + 9) {
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let id = u32::from_be_bytes(head[5..9].try_into().unwrap());
        refused |= id == 3 && matches!(head[3], HEADERS | RST_STREAM) || head[3] == GOAWAY;
        at += 9 + len;
    }
    assert!(refused, "{all:?}");
}

/// Bytes of memory that this process holds.
fn held() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_with_many_streams_hold_little() {
    let _turn = TURN.lock().await;
    let server = start().await;
    let head = call(&[("x", &"y".repeat(8000))]);
    let before = held();
    let mut connections = Vec::new();
    for _ in 0..20 {
        let mut stream = connected(&server).await;
        for id in (1..1200).step_by(2) {
            let mut open = frame(HEADERS, 4, id, &head);
            open.extend(frame(DATA, 0, id, &[0; 50]));
            // It may have been closed already: then it holds nothing.
            if tokio::time::timeout(Duration::from_secs(2), stream.write_all(&open))
                .await
                .is_err()
            {
                break;
            }
        }
        connections.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let each = held().saturating_sub(before) / connections.len();
    println!("{} KiB for a stranger's connection", each >> 10);
    // 600 heads alone would be 4.7 MiB a connection. All strangers share room for 16 MiB of them.
    assert!(each < 4 << 20, "{each} bytes for a stranger's connection");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_http2_is_left_in_good_order() {
    let _turn = TURN.lock().await;
    let server = start().await;
    for said in [
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        &pattern(1, 20_000),
        b"\x16\x03\x01\x02\x00",
    ] {
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        let _ = stream.write_all(said).await;
        if said.len() < 24 {
            stream.shutdown().await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let (answer, in_order) = to_the_end(&mut stream).await;
        // Our settings, which a server says first, and nothing else.
        assert!(in_order && answer.len() < 100 && answer[3] == SETTINGS, "{answer:?}");
    }
}

/// A gRPC message with one Hunk.
fn hunk(data: &[u8]) -> Vec<u8> {
    assert!(data.len() < 126);
    let head = [0, 0, 0, 0, data.len() as u8 + 2, 0x0a, data.len() as u8];
    [&head, data].concat()
}

/// Opens a stream whose first message holds `data`.
async fn open(stream: &mut TcpStream, id: u32, data: &[u8]) {
    let both = [frame(HEADERS, 4, id, &call(&[])), frame(DATA, 0, id, &hunk(data))];
    stream.write_all(&both.concat()).await.unwrap();
}

/// Reads until a frame of a kind comes on a stream.
async fn wait_for(stream: &mut TcpStream, kind: u8, id: u32) {
    let waiting = async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            stream.read_exact(&mut payload).await.unwrap();
            if head[3] == SETTINGS && head[4] == 0 {
                stream.write_all(&frame(SETTINGS, 1, 0, &[])).await.unwrap();
            }
            if head[3] == kind && head[5..9] == id.to_be_bytes() {
                break;
            }
        }
    };
    within(&format!("frame {kind} on stream {id}"), waiting).await;
}

/// Takes connections and says which bytes came, and how they ended.
async fn ends() -> (
    std::net::SocketAddr,
    tokio::sync::mpsc::UnboundedReceiver<std::io::Result<usize>>,
) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let _ = tell.send(tcp.read_to_end(&mut Vec::new()).await);
            });
        }
    });
    (address, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ends_inside_a_message_is_a_reset_for_the_target() {
    let _turn = TURN.lock().await;
    let server = start().await;
    let (target, mut told) = ends().await;
    let mut stream = connected(&server).await;
    open(&mut stream, 1, &vless_request(target)).await;
    let cut = hunk(&[7; 100]);
    stream.write_all(&frame(DATA, 1, 1, &cut[..50])).await.unwrap();
    wait_for(&mut stream, RST_STREAM, 1).await;
    let ended = within("the target's end", told.recv()).await.unwrap();
    assert!(ended.is_err(), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fallback_makes_no_friend_and_a_user_is_one_at_once() {
    let _turn = TURN.lock().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // A web server that takes connections and says nothing.
    let accepted = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = accepted.clone();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((tcp, _)) = listener.accept().await {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            held.push(tcp);
        }
    });
    let server = start_with(InboundProtocol::Vless(VlessIn {
        users: [user().into()].into_iter().collect(),
        fallbacks: vec![sealway_v2ray::vless::fallback::Fallback {
            name: String::new(),
            alpn: String::new(),
            path: String::new(),
            target: FallbackTarget {
                to: FallbackDial::Local(port),
                xver: 0,
            },
        }],
    }))
    .await;
    let mut stream = connected(&server).await;
    for id in 0..40 {
        open(&mut stream, 2 * id + 1, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    // As many as are served of strangers.
    assert_eq!(accepted.load(std::sync::atomic::Ordering::SeqCst), 32);

    // Users whose targets do not answer stop nobody.
    let (target, mut told) = ends().await;
    let silent = full().await;
    let mut stream = connected(&server).await;
    for id in 0..40 {
        open(&mut stream, 2 * id + 1, &vless_request(silent.0)).await;
    }
    open(&mut stream, 81, &vless_request(target)).await;
    stream.write_all(&frame(DATA, 1, 81, &hunk(b"hello"))).await.unwrap();
    assert_eq!(within("the live target", told.recv()).await.unwrap().unwrap(), 5);
}

/// A target that does not answer SYNs: its queue is full. The second part keeps it so.
async fn full() -> (std::net::SocketAddr, Vec<tokio::task::JoinHandle<()>>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let fill = (0..8).map(|_| {
        tokio::spawn(async move {
            let _kept = TcpStream::connect(address).await;
            std::future::pending::<()>().await;
        })
    });
    let mut fill: Vec<_> = fill.collect();
    fill.push(tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(listener);
    }));
    tokio::time::sleep(Duration::from_millis(200)).await;
    (address, fill)
}
