//! What strangers may hold, and for how long.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_stranger_without_streams_is_left_soon_whatever_it_answers() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (near, mut far) = UnixStream::pair().unwrap();
    let serving = echo(near, false);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    // A request and its end; nothing else is ever said.
    let request = b"\0\0\x06\x01\x05\0\0\0\x01\x83\x86\x84\x41\x01a";
    far.write_all(&[&preface[..], request].concat()).await.unwrap();
    let began = tokio::time::Instant::now();
    far.read_to_end(&mut Vec::new()).await.unwrap();
    assert!(
        began.elapsed() <= 2 * STRANGERS_IDLE + Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(serving.await.unwrap().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stranger_takes_up_no_more_than_its_time() {
    let (near, far) = UnixStream::pair().unwrap();
    let serving = echo(near, false);
    let (send, driving) = foreign(far).await;
    let began = tokio::time::Instant::now();
    // One stream after the other, so that there is always one.
    let mut last = None;
    while let Ok(mut send) = send.clone().ready().await {
        let Ok((_, to)) = send.send_request(ask(), false) else {
            break;
        };
        last = Some(to);
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    drop((last, send));
    let _ = driving.await;
    serving.await.unwrap().unwrap();
    let most = STRANGERS_AGE + 2 * STRANGERS_IDLE;
    assert!(
        began.elapsed() >= STRANGERS_AGE && began.elapsed() < most,
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn streams_that_end_as_strangers_end_the_connection() {
    let (near, far) = UnixStream::pair().unwrap();
    let serving = echo(near, false);
    let (send, driving) = foreign(far).await;
    let mut opened = 0;
    while let Ok(mut send) = send.clone().ready().await {
        let Ok((answer, mut to)) = send.send_request(ask(), false) else {
            break;
        };
        to.send_data(Bytes::from_static(&[7; 40]), true).unwrap();
        opened += 1;
        if opened > 2 * MAX_RESETS || answer.await.is_err() {
            break;
        }
    }
    assert!((MAX_RESETS..2 * MAX_RESETS).contains(&opened), "{opened} streams");
    drop(send);
    let error = driving.await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM));
    assert!(serving.await.unwrap().is_err());
}

#[tokio::test]
async fn strangers_beside_a_friend_do_not_end_its_streams() {
    let (near, far) = UnixStream::pair().unwrap();
    let serving = tokio::spawn(async move {
        let mut server = Server::begin(stream(near), Options::default()).await.unwrap();
        let mut first = server.next().await.unwrap().unwrap().accept(Response::new(()), None);
        first.trust();
        first.begin().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 9];
            while let Ok(n @ 1..) = poll_fn(|cx| first.poll_read(cx, &mut buffer)).await {
                poll_fn(|cx| first.poll_write(cx, &buffer[..n])).await.unwrap();
            }
        });
        while let Some(exchange) = server.next().await.unwrap() {
            exchange.refuse(Response::new(()));
        }
    });
    let (mut send, driving) = foreign(far).await;
    send = send.ready().await.unwrap();
    let (answer, mut to) = send.send_request(ask(), false).unwrap();
    let mut from = answer.await.unwrap().into_body();
    for _ in 0..2 * MAX_RESETS {
        let Ok(mut send) = send.clone().ready().await else {
            break;
        };
        let Ok((answer, _)) = send.send_request(ask(), true) else {
            break;
        };
        if answer.await.is_err() {
            break;
        }
    }
    to.send_data(Bytes::from_static(b"still"), true).unwrap();
    assert_eq!(from.data().await.unwrap().unwrap(), "still");
    // The frame that says the end may be seen, empty.
    while let Some(rest) = from.data().await {
        assert_eq!(rest.unwrap(), "");
    }
    drop((send, to, from));
    timeout(Duration::from_secs(5), driving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    timeout(Duration::from_secs(5), serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn streams_that_nobody_reads_do_not_stop_the_others() {
    let (far, mut told) = accepting();
    let client = client(far).await;
    let mut held = Vec::new();
    for _ in 0..12 {
        let mut body = body(&client).await;
        let mut far = timeout(Duration::from_secs(5), told.recv()).await.unwrap().unwrap();
        far.trust();
        let piece = vec![0; 60_000];
        let mut sent = 0;
        while sent < STREAM_WINDOW as usize {
            let wrote = timeout(Duration::from_millis(500), poll_fn(|cx| body.poll_write(cx, &piece))).await;
            match wrote {
                Ok(wrote) => sent += wrote.unwrap(),
                Err(_) => break,
            }
        }
        assert!(sent >= STREAM_WINDOW as usize, "{sent} bytes on stream {}", held.len());
        held.push((body, far));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_streams_than_are_served_to_strangers_go_on_once_one_is_known() {
    let (near, far) = UnixStream::pair().unwrap();
    tokio::spawn(async move {
        let mut server = Server::begin(stream(near), Options::default()).await.unwrap();
        while let Ok(Some(exchange)) = server.next().await {
            tokio::spawn(async move {
                let mut body = exchange.accept(Response::new(()), None);
                let mut buffer = vec![0; 100_000];
                while let Ok(n @ 1..) = poll_fn(|cx| body.poll_read(cx, &mut buffer)).await {
                    // The first bytes say who it is.
                    body.trust();
                    let mut at = 0;
                    while at < n {
                        at += poll_fn(|cx| body.poll_write(cx, &buffer[at..n])).await.unwrap();
                    }
                }
            });
        }
    });
    let client = client(far).await;
    let mut rounds = tokio::task::JoinSet::new();
    for i in 0..STRANGERS as u8 + 8 {
        let body = body(&client).await;
        rounds.spawn(round(body, i, usize::from(i) * 20_000 + 1));
    }
    while let Some(done) = timeout(Duration::from_secs(20), rounds.join_next()).await.unwrap() {
        done.unwrap();
    }
}
