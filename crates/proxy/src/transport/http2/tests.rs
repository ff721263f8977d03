mod breaks;
mod strangers;

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{Request, Response};
use sealway_net::sock::Sock;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::*;
use crate::carrier::Virtual;
use crate::stats::Traffic;
use crate::stream::Stream;

const NO_PINGS: Pings = Pings {
    idle: None,
    answer: Duration::from_secs(20),
    without_streams: false,
};

fn stream(socket: UnixStream) -> Stream {
    Stream::new(Sock::Unix(socket), Traffic::default())
}

fn ask() -> Request<()> {
    Request::post("http://a.example/x").body(()).unwrap()
}

/// A server that sends back what each stream sends, and trusts them if told so.
fn echo(socket: UnixStream, trust: bool) -> tokio::task::JoinHandle<Result<usize, Error>> {
    tokio::spawn(async move {
        let mut server = Server::begin(stream(socket), Options::default()).await?;
        let mut served = 0;
        while let Some(exchange) = server.next().await? {
            served += 1;
            tokio::spawn(async move {
                let mut body = exchange.accept(Response::new(()), None);
                if trust {
                    body.trust();
                }
                let mut buffer = vec![0; 100_000];
                loop {
                    let n = poll_fn(|cx| body.poll_read(cx, &mut buffer)).await.unwrap_or(0);
                    if n == 0 {
                        break;
                    }
                    let mut at = 0;
                    while at < n {
                        match poll_fn(|cx| body.poll_write(cx, &buffer[at..n])).await {
                            Ok(wrote) => at += wrote,
                            Err(_) => return,
                        }
                    }
                }
            });
        }
        Ok(served)
    })
}

/// A server that accepts every request: the socket that leads to it, and the requests.
fn accepting() -> (UnixStream, tokio::sync::mpsc::UnboundedReceiver<Body>) {
    let (near, far) = UnixStream::pair().unwrap();
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut server = Server::begin(stream(near), Options::default()).await.unwrap();
        while let Ok(Some(exchange)) = server.next().await {
            tell.send(exchange.accept(Response::new(()), None)).unwrap();
        }
    });
    (far, told)
}

async fn client(socket: UnixStream) -> Client {
    Client::open(stream(socket), Options::default(), NO_PINGS)
        .await
        .unwrap()
}

async fn body(client: &Client) -> Body {
    client.request(ask(), Box::new(|_| Ok(())), None).await.unwrap()
}

/// Sends a pattern and expects it back, both at once.
async fn round(mut body: Body, seed: u8, len: usize) {
    let payload: Vec<u8> = (0..len)
        .map(|i| (i as u8).wrapping_mul(7) ^ seed ^ (i >> 8) as u8)
        .collect();
    let (mut sent, mut got, mut ended) = (0, Vec::new(), false);
    let mut buffer = vec![0; 50_000];
    poll_fn(|cx| {
        while !ended {
            if sent < payload.len() {
                match body.poll_write(cx, &payload[sent..]) {
                    std::task::Poll::Ready(n) => sent += n.unwrap(),
                    std::task::Poll::Pending => break,
                }
            } else {
                ended = true;
                let _ = body.poll_shutdown(cx).map(Result::unwrap);
            }
        }
        loop {
            match body.poll_read(cx, &mut buffer) {
                std::task::Poll::Ready(Ok(0)) => return std::task::Poll::Ready(()),
                std::task::Poll::Ready(n) => got.extend_from_slice(&buffer[..n.unwrap()]),
                std::task::Poll::Pending => return std::task::Poll::Pending,
            }
        }
    })
    .await;
    assert!(got == payload, "{} of {} bytes, or others", got.len(), payload.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_echo_whole() {
    for trust in [true, false] {
        let (near, far) = UnixStream::pair().unwrap();
        let serving = echo(near, trust);
        let client = client(far).await;
        let mut rounds = tokio::task::JoinSet::new();
        for i in 0..30u8 {
            let body = body(&client).await;
            rounds.spawn(round(body, i, usize::from(i) * 20_000 + 1));
        }
        while let Some(done) = rounds.join_next().await {
            done.unwrap();
        }
        drop(client);
        let served = timeout(Duration::from_secs(10), serving).await.unwrap().unwrap();
        assert_eq!(served.unwrap(), 30);
    }
}

#[tokio::test]
async fn a_reset_is_a_reset_and_an_end_is_an_end() {
    let (near, far) = UnixStream::pair().unwrap();
    tokio::spawn(async move {
        let mut server = Server::begin(stream(near), Options::default()).await.unwrap();
        let mut reset = true;
        while let Ok(Some(exchange)) = server.next().await {
            let mut body = exchange.accept(Response::new(()), None);
            poll_fn(|cx| body.poll_write(cx, b"first")).await.unwrap();
            if std::mem::take(&mut reset) {
                body.reset_on_close();
            }
        }
    });
    let client = client(far).await;
    let mut buffer = [0; 9];
    let mut broken = body(&client).await;
    let error = loop {
        match poll_fn(|cx| broken.poll_read(cx, &mut buffer)).await {
            Ok(n) => assert!(n > 0, "a reset was taken for an end"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    let mut whole = body(&client).await;
    assert_eq!(poll_fn(|cx| whole.poll_read(cx, &mut buffer)).await.unwrap(), 5);
    assert_eq!(poll_fn(|cx| whole.poll_read(cx, &mut buffer)).await.unwrap(), 0);
}

/// A foreign client, driven by the library alone.
async fn foreign(
    socket: UnixStream,
) -> (
    h2::client::SendRequest<Bytes>,
    tokio::task::JoinHandle<Result<(), h2::Error>>,
) {
    let (send, connection) = h2::client::handshake(socket).await.unwrap();
    (send, tokio::spawn(connection))
}

#[tokio::test]
async fn streams_that_are_taken_back_one_after_the_other_end_the_connection() {
    let (near, far) = UnixStream::pair().unwrap();
    let serving = echo(near, false);
    let (mut send, driving) = foreign(far).await;
    let mut opened = 0;
    for _ in 0..4 * MAX_RESETS {
        send = match send.ready().await {
            Ok(send) => send,
            Err(_) => break,
        };
        let Ok((_, mut stream)) = send.send_request(ask(), false) else {
            break;
        };
        opened += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
        stream.send_reset(Reason::CANCEL);
    }
    assert!((MAX_RESETS..2 * MAX_RESETS).contains(&opened), "{opened} streams");
    let error = driving.await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM));
    let ended = timeout(Duration::from_secs(5), serving).await.unwrap().unwrap();
    assert!(ended.unwrap_err().to_string().contains("taken back"));
}

#[tokio::test]
async fn strangers_are_served_a_few_at_a_time() {
    let (far, mut told) = accepting();
    let (mut send, _driving) = foreign(far).await;
    let mut streams = Vec::new();
    for _ in 0..STRANGERS + 50 {
        send = send.ready().await.unwrap();
        streams.push(send.send_request(ask(), false).unwrap());
        tokio::task::yield_now().await;
    }
    let mut served = Vec::new();
    while let Ok(body) = timeout(Duration::from_millis(300), told.recv()).await {
        served.push(body.unwrap());
    }
    assert_eq!(served.len(), STRANGERS);
    // One that ends makes room for one.
    served.pop();
    served.push(timeout(Duration::from_secs(5), told.recv()).await.unwrap().unwrap());
    assert!(timeout(Duration::from_millis(300), told.recv()).await.is_err());
    // One that shows who it is makes room for all.
    served[0].trust();
    for _ in 0..49 {
        served.push(timeout(Duration::from_secs(5), told.recv()).await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn a_stranger_has_little_on_its_way_and_a_friend_much() {
    let (far, mut told) = accepting();
    let (send, _driving) = foreign(far).await;
    let mut send = send.ready().await.unwrap();
    let (_, mut to) = send.send_request(ask(), false).unwrap();
    let mut body = told.recv().await.unwrap();
    let mut sent = 0;
    let mut fill = async |most: usize| {
        while sent < most {
            to.reserve_capacity(10_000);
            let room = match timeout(Duration::from_millis(300), poll_fn(|cx| to.poll_capacity(cx))).await {
                Ok(room) => room.unwrap().unwrap().min(10_000),
                Err(_) => break,
            };
            to.send_data(vec![0; room].into(), false).unwrap();
            sent += room;
        }
        sent
    };
    assert_eq!(fill(1 << 20).await, STRANGERS_WINDOW as usize);
    body.trust();
    assert_eq!(fill(2 << 20).await, STREAM_WINDOW as usize);
}

#[tokio::test]
async fn after_a_goaway_old_streams_run_on_and_new_ones_need_another_connection() {
    let (near, far) = UnixStream::pair().unwrap();
    let serving = tokio::spawn(async move {
        let mut connection = h2::server::handshake(near).await.unwrap();
        let (request, mut respond) = connection.accept().await.unwrap().unwrap();
        let mut to = respond.send_response(Response::new(()), false).unwrap();
        connection.graceful_shutdown();
        let answering = tokio::spawn(async move {
            let mut from = request.into_body();
            let got = from.data().await.unwrap().unwrap();
            to.send_data(got, true).unwrap();
        });
        // Those that were opened before the client heard of it are refused.
        while let Some(late) = connection.accept().await {
            drop(late.unwrap());
        }
        answering.await.unwrap();
    });
    let client = client(far).await;
    let mut old = body(&client).await;
    timeout(Duration::from_secs(5), async {
        while client.request(ask(), Box::new(|_| Ok(())), None).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    assert!(client.is_over() && !client.has_room());
    poll_fn(|cx| old.poll_write(cx, b"still here")).await.unwrap();
    let mut buffer = [0; 20];
    assert_eq!(poll_fn(|cx| old.poll_read(cx, &mut buffer)).await.unwrap(), 10);
    drop(old);
    timeout(Duration::from_secs(5), serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_is_no_http2_ends_at_once() {
    let (near, far) = UnixStream::pair().unwrap();
    let serving = echo(near, false);
    let mut far = far;
    tokio::io::AsyncWriteExt::write_all(&mut far, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let ended = timeout(Duration::from_secs(5), serving).await.unwrap().unwrap();
    assert!(ended.is_err());
}

/// A ping after ten seconds of silence, and only where there is a stream.
const RULES: Pings = Pings {
    idle: Some(Duration::from_secs(10)),
    answer: Duration::from_secs(20),
    without_streams: false,
};

/// A server by hand: confirms settings, answers pings if told so, and counts them.
async fn pinged(socket: UnixStream, answer: bool, pings: std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut socket = socket;
    socket.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    let mut preface = [0; 24];
    socket.read_exact(&mut preface).await.unwrap();
    let mut head = [0; 9];
    while socket.read_exact(&mut head).await.is_ok() {
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        socket.read_exact(&mut payload).await.unwrap();
        match (head[3], head[4]) {
            (4, 0) => socket.write_all(&[0, 0, 0, 4, 1, 0, 0, 0, 0]).await.unwrap(),
            (6, 0) => {
                pings.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                if answer {
                    let pong = [&[0, 0, 8, 6, 1, 0, 0, 0, 0], &payload[..]].concat();
                    socket.write_all(&pong).await.unwrap();
                }
            }
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pings_are_no_more_than_servers_forgive() {
    let pings = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (near, far) = UnixStream::pair().unwrap();
    tokio::spawn(pinged(near, true, pings.clone()));
    let client = Client::open(stream(far), Options::default(), RULES).await.unwrap();
    let count = || pings.load(std::sync::atomic::Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(count(), 0, "without a stream");
    let _body = body(&client).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(count(), 1);
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert!((4..=5).contains(&count()), "{} pings in 20 minutes of silence", count());
    assert!(!client.is_over());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_a_ping_is_given_up() {
    let pings = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (near, far) = UnixStream::pair().unwrap();
    tokio::spawn(pinged(near, false, pings));
    let client = Client::open(stream(far), Options::default(), RULES).await.unwrap();
    let mut body = body(&client).await;
    let began = tokio::time::Instant::now();
    let error = poll_fn(|cx| body.poll_read(cx, &mut [0; 9])).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(began.elapsed().as_secs(), 30);
    assert!(client.is_over());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_asked_for_no_more_streams() {
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for answer in [true, false] {
        let (near, far) = UnixStream::pair().unwrap();
        tokio::spawn(pinged(near, answer, count.clone()));
        let client = Client::open(stream(far), Options::default(), NO_PINGS).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(client.has_room(), "silence alone is no sign");
        let _body = body(&client).await;
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert!(client.has_room());
        tokio::time::sleep(Duration::from_secs(2)).await;
        // The answer to the ping says that it is there.
        assert_eq!(client.has_room(), answer);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(client.is_over(), !answer);
    }
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_streams_is_closed_by_either_side() {
    let (near, far) = UnixStream::pair().unwrap();
    let serving = echo(near, true);
    let (send, driving) = foreign(far).await;
    let mut send = send.ready().await.unwrap();
    let (answer, mut to) = send.send_request(ask(), false).unwrap();
    to.send_data(Bytes::new(), true).unwrap();
    drop(answer.await);
    let began = tokio::time::Instant::now();
    // The server may be gone before the last confirmation is written.
    let _ = driving.await.unwrap();
    assert!(
        began.elapsed().abs_diff(IDLE) < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(serving.await.unwrap().unwrap(), 1);

    let (near, far) = UnixStream::pair().unwrap();
    let serving = tokio::spawn(async move {
        let mut connection = h2::server::handshake(near).await.unwrap();
        connection.accept().await.is_none()
    });
    let client = client(far).await;
    let began = tokio::time::Instant::now();
    assert!(serving.await.unwrap());
    assert!(
        began.elapsed().abs_diff(IDLE) < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert!(client.is_over());
}

#[tokio::test]
async fn strangers_have_so_many_streams_and_no_more() {
    let (far, mut told) = accepting();
    let (client, connection) = h2::client::Builder::new()
        .initial_max_send_streams(2000)
        .handshake::<_, Bytes>(far)
        .await
        .unwrap();
    let _driving = tokio::spawn(connection);
    let (mut answers, mut bodies) = (Vec::new(), Vec::new());
    // Heads of 8 KiB: more than there is room for, of fewer streams than there may be.
    let all = 2 * HEADS_MOST / (8 << 10);
    let (name, value) = (http::HeaderName::from_static("x"), "x".repeat(7 << 10));
    let value = http::HeaderValue::from_str(&value).unwrap();
    for _ in 0..all {
        let mut send = client.clone().ready().await.unwrap();
        let mut ask = ask();
        ask.headers_mut().insert(name.clone(), value.clone());
        let (answer, body) = send.send_request(ask, false).unwrap();
        answers.push(tokio::spawn(answer));
        bodies.push(body);
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut refused = 0;
    for answer in answers {
        if answer.is_finished() {
            assert_eq!(
                answer.await.unwrap().unwrap_err().reason(),
                Some(Reason::REFUSED_STREAM)
            );
            refused += 1;
        }
    }
    let mut served = Vec::new();
    while let Ok(body) = told.try_recv() {
        served.push(body);
    }
    assert_eq!(served.len(), STRANGERS);
    assert!(refused > 0 && refused < all - STRANGERS, "{refused}");
}

#[tokio::test]
async fn who_was_known_may_leave_without_a_word() {
    for trust in [true, false] {
        let (near, far) = UnixStream::pair().unwrap();
        let serving = echo(near, trust);
        let (send, driving) = foreign(far).await;
        let mut send = send.ready().await.unwrap();
        let (answer, mut to) = send.send_request(ask(), false).unwrap();
        to.send_data(Bytes::from_static(b"x"), false).unwrap();
        answer.await.unwrap();
        driving.abort();
        let ended = timeout(Duration::from_secs(5), serving).await.unwrap().unwrap();
        assert!(ended.is_ok() || !trust, "{ended:?}");
    }
}
