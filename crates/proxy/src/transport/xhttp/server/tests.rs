//! Clients who go away at the worst moment.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Duration, timeout};

use sealway_net::sock::Sock;

use super::*;
use crate::stats::Traffic;
use crate::tls::handshake::Agreed;

fn shared() -> Arc<Shared> {
    let http = sealway_v2ray::xhttp::Settings {
        path: "/p".into(),
        ..Default::default()
    };
    Arc::new(Shared::new(settings::Xhttp {
        http,
        ..Default::default()
    }))
}

fn accepted(socket: UnixStream) -> Accepted {
    Accepted {
        stream: Stream::new(Sock::Unix(socket), Traffic::default()),
        source: None,
        local: None,
        forwarded: false,
        agreed: Agreed::default(),
    }
}

/// Serves a connection; each stream says back what it hears.
async fn serve(shared: Arc<Shared>, socket: UnixStream) {
    let Ok(Arrival::Many(mut many)) = shared.accept(accepted(socket)).await else {
        return;
    };
    while let Ok(Some(mut accepted)) = many.next().await {
        tokio::spawn(async move {
            accepted.stream.trust();
            while accepted.stream.more().await.unwrap_or(false) {
                let heard = accepted.stream.payload().to_vec();
                accepted.stream.consume(heard.len());
                if accepted.stream.send(&heard).await.is_err() {
                    break;
                }
            }
        });
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The head of a request in HTTP/2, with names and values as they are.
fn head(stream: u32, method: &str, path: &str, end: bool) -> Vec<u8> {
    let referer = format!("http://h/p/?x_padding={}", "X".repeat(200));
    let mut block = Vec::new();
    for (name, value) in [
        (":method", method),
        (":scheme", "http"),
        (":authority", "h"),
        (":path", path),
        ("referer", &referer),
    ] {
        block.push(0);
        for text in [name, value] {
            match text.len() {
                len @ ..127 => block.push(len as u8),
                len => block.extend([127, (len - 127) as u8]),
            }
            block.extend(text.as_bytes());
        }
    }
    frame(1, if end { 5 } else { 4 }, stream, &block)
}

fn begin() -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, b"")[..]].concat()
}

const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// Reads until this has come.
async fn expect(client: &mut UnixStream, what: &[u8]) {
    let mut heard: Vec<u8> = Vec::new();
    let reading = async {
        while !heard.windows(what.len()).any(|window| window == what) {
            let mut buffer = [0; 4096];
            let n = client.read(&mut buffer).await.unwrap();
            assert!(n > 0, "the connection has ended");
            heard.extend(&buffer[..n]);
        }
    };
    timeout(Duration::from_secs(5), reading).await.unwrap();
}

async fn is_empty(shared: &Shared) {
    for _ in 0..500 {
        if shared.table.counts() == (0, 0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("sessions are left: {:?}", shared.table.counts());
}

#[tokio::test]
async fn a_request_that_is_taken_back_ends_itself_alone() {
    let shared = shared();
    let (near, mut client) = UnixStream::pair().unwrap();
    tokio::spawn(serve(Arc::clone(&shared), near));
    client.write_all(&begin()).await.unwrap();
    let first = [head(1, "POST", "/p/", false), frame(0, 0, 1, b"first")].concat();
    client.write_all(&first).await.unwrap();
    expect(&mut client, b"first").await;
    // What comes down, all in one, and what goes up: each taken back before its answer.
    for (stream, method, path) in [(3, "GET", "/p/s"), (5, "POST", "/p/"), (7, "POST", "/p/t")] {
        let said = format!("after {stream}");
        let bytes = [
            head(stream, method, path, method == "GET"),
            frame(3, 0, stream, &CANCEL),
            frame(0, 0, 1, said.as_bytes()),
        ];
        client.write_all(&bytes.concat()).await.unwrap();
        expect(&mut client, said.as_bytes()).await;
    }
    is_empty(&shared).await;
    let bytes = [head(9, "GET", "/p/s", true), frame(0, 0, 1, b"last")].concat();
    client.write_all(&bytes).await.unwrap();
    expect(&mut client, b"last").await;
    assert_eq!(shared.table.counts().0, 1);
}

#[tokio::test]
async fn a_client_who_goes_away_leaves_no_session() {
    let shared = shared();
    let referer = format!("Referer: http://h/p/?x_padding={}", "X".repeat(200));
    for number in 0..20 {
        let (near, mut client) = UnixStream::pair().unwrap();
        let get = format!("GET /p/{number} HTTP/1.1\r\nHost: h\r\n{referer}\r\n\r\n");
        client.write_all(get.as_bytes()).await.unwrap();
        drop(client);
        serve(Arc::clone(&shared), near).await;
    }
    is_empty(&shared).await;
}

/// A client who takes no answer holds its session for a while only.
#[tokio::test(start_paused = true)]
async fn a_client_who_reads_nothing_is_given_up() {
    let shared = shared();
    let (near, mut client) = UnixStream::pair().unwrap();
    // Nothing more fits into the socket.
    near.writable().await.unwrap();
    while near.try_write(&[0; 65536]).is_ok() {}
    let referer = format!("Referer: http://h/p/?x_padding={}", "X".repeat(200));
    let get = format!("GET /p/s HTTP/1.1\r\nHost: h\r\n{referer}\r\n\r\n");
    client.write_all(get.as_bytes()).await.unwrap();
    timeout(Duration::from_secs(20), serve(Arc::clone(&shared), near))
        .await
        .unwrap();
    assert_eq!(shared.table.counts(), (0, 0));
}

/// A request of HTTP/1.1.
fn one(line: &str, body: &[u8]) -> Vec<u8> {
    let padding = "X".repeat(200);
    let head = format!(
        "{line} HTTP/1.1\r\nHost: h\r\nReferer: http://h/p/?x_padding={padding}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A client sends, hears that all has come, and closes. The target reads late.
#[tokio::test(start_paused = true)]
async fn what_was_answered_is_read_to_its_end() {
    for two in [false, true] {
        let shared = shared();
        let (near, mut get) = UnixStream::pair().unwrap();
        let asked = match two {
            false => one("GET /p/s", b""),
            true => [begin(), head(1, "GET", "/p/s", true)].concat(),
        };
        get.write_all(&asked).await.unwrap();
        let Ok(Arrival::Many(mut many)) = Arc::clone(&shared).accept(accepted(near)).await else {
            panic!("a connection");
        };
        let mut stream = many.next().await.unwrap().unwrap().stream;
        stream.trust();
        let driving = tokio::spawn(async move { many.next().await.is_ok() });
        let (near, mut post) = UnixStream::pair().unwrap();
        tokio::spawn(serve(Arc::clone(&shared), near));
        for seq in 0..4 {
            post.write_all(&one(&format!("POST /p/s/{seq}"), &[7; 50 << 10]))
                .await
                .unwrap();
            expect(&mut post, b"HTTP/1.1 200").await;
        }
        match two {
            false => {
                expect(&mut get, b"\r\n\r\n").await;
                drop(get);
            }
            true => get.write_all(&frame(3, 0, 1, &CANCEL)).await.unwrap(),
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let mut read = 0;
        while stream.more().await.unwrap() {
            read += stream.payload().len();
            stream.consume(stream.payload().len());
        }
        assert_eq!(read, 200 << 10, "HTTP/2: {two}");
        driving.abort();
    }
}
