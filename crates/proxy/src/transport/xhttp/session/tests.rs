use sealway_net::sock::Sock;
use sealway_v2ray::http::body::Body;
use sealway_v2ray::http::head::parse_request;
use sealway_v2ray::{Protocol, Step};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::super::http1::Http1;
use super::*;
use crate::stats::Traffic;
use crate::stream::Stream;

/// A request with a body of this length, and where its bytes are written.
fn request(len: usize) -> (Half, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let head = format!("POST / HTTP/1.1\r\nContent-Length: {len}\r\n\r\n");
    let Ok(Step::Done { value, .. }) = parse_request(head.as_bytes(), 1000, Protocol::Xhttp) else {
        panic!("a head")
    };
    let mut http1 = Http1::server(Stream::new(Sock::Unix(ours), Traffic::default()));
    http1.expect(Body::of_request(&value).unwrap());
    (Half::One(Box::new(http1)), theirs)
}

fn table() -> Arc<Table> {
    Table::new(1 << 20, 4)
}

async fn read(session: &Session, most: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; most];
    let n = poll_fn(|cx| session.poll_read(cx, &mut buffer)).await?;
    buffer.truncate(n);
    Ok(buffer)
}

/// Posts a body that is there already.
async fn post(session: &Session, seq: u64, bytes: &[u8]) -> Result<(), Failure> {
    let (mut half, mut theirs) = request(bytes.len());
    let writing = async {
        theirs.write_all(bytes).await.unwrap();
        std::future::pending().await
    };
    tokio::select! {
        biased;
        done = session.post(seq, Vec::new(), &mut half) => done,
        () = writing => Ok(()),
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asks_down_for_is_reaped() {
    let table = table();
    let orphan = table.find("a").unwrap();
    let kept = table.down("b").unwrap();
    assert_eq!(table.down("b").err(), Some(Failure::Conflict));
    assert_eq!(table.counts(), (2, 2));
    tokio::time::sleep(REAP - Duration::from_secs(1)).await;
    assert_eq!(table.counts(), (2, 2));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(table.counts(), (1, 1));
    assert_eq!(orphan.begin_up().and(orphan.room().await), Err(Failure::Broken));
    kept.end(io::ErrorKind::ConnectionReset);
    assert_eq!(table.counts(), (0, 0));
    // To end it twice takes nothing from others.
    table.find("b").unwrap();
    kept.end(io::ErrorKind::ConnectionReset);
    assert_eq!(table.counts(), (1, 1));
}

#[tokio::test]
async fn strangers_are_counted_and_those_we_know_are_not() {
    let table = table();
    for number in 0..MAX_STRANGERS {
        table.find(&number.to_string()).unwrap();
    }
    assert_eq!(table.find("more").err(), Some(Failure::Broken));
    let first = table.find("0").unwrap();
    first.trust();
    first.trust();
    table.find("more").unwrap();
    assert_eq!(table.counts(), (MAX_STRANGERS + 1, MAX_STRANGERS));
    first.end(io::ErrorKind::ConnectionReset);
    assert_eq!(table.counts(), (MAX_STRANGERS, MAX_STRANGERS));
}

#[tokio::test]
async fn a_stranger_has_little_room_and_somebody_known_more() {
    for known in [false, true] {
        let table = table();
        let session = table.down("s").unwrap();
        if known {
            session.trust();
        }
        let body = vec![7; 1 << 20];
        let posting = post(&session, 0, &body);
        let ahead = post(&session, 1, &body);
        let mut held = 0;
        let mut both = std::pin::pin!(async { tokio::join!(posting, ahead) });
        for _ in 0..2000 {
            tokio::select! {
                biased;
                _ = &mut both => panic!("all was taken"),
                () = tokio::task::yield_now() => {}
            }
            held = held.max(session.state().held());
        }
        let most = if known { MAX_READY + (1 << 20) } else { STRANGERS_BYTES };
        assert!(held <= most && held >= most / 2, "{known}: {held}");
        // What is read makes room, and all comes in its order.
        let reading = async {
            let mut got = 0;
            while got < 2 << 20 {
                got += read(&session, 50_000).await.unwrap().len();
            }
        };
        let (done, ()) = tokio::join!(both, reading);
        assert_eq!(done, (Ok(()), Ok(())));
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_breaks_the_session_only_if_it_was_passed_on() {
    let table = table();
    let session = table.down("s").unwrap();
    let (mut half, theirs) = request(10);
    drop(theirs);
    assert_eq!(session.post(0, Vec::new(), &mut half).await, Err(Failure::Gone));
    // It may come again.
    assert_eq!(post(&session, 0, b"ab").await, Ok(()));
    assert_eq!(read(&session, 9).await.unwrap(), b"ab");
    let (mut half, mut theirs) = request(10);
    theirs.write_all(b"cd").await.unwrap();
    drop(theirs);
    assert_eq!(session.post(1, Vec::new(), &mut half).await, Err(Failure::Gone));
    assert_eq!(read(&session, 9).await.unwrap(), b"cd");
    assert!(read(&session, 9).await.is_err());
}

#[tokio::test]
async fn a_request_without_an_end_and_numbered_ones_exclude_each_other() {
    let table = table();
    let session = table.down("s").unwrap();
    session.begin_up().unwrap();
    assert_eq!(session.begin_up(), Err(Failure::Conflict));
    assert_eq!(post(&session, 0, b"x").await, Err(Failure::Broken));
    let (mut half, mut theirs) = request(4);
    theirs.write_all(b"abcd").await.unwrap();
    session.up(&mut half, |_, _| {}).await.unwrap();
    assert_eq!(read(&session, 9).await.unwrap(), b"abcd");
    assert_eq!(read(&session, 9).await.unwrap(), b"");
    let session = table.down("t").unwrap();
    post(&session, 0, b"x").await.unwrap();
    assert_eq!(session.begin_up(), Err(Failure::Conflict));
}

#[tokio::test]
async fn who_is_known_too_late_is_not_counted_twice() {
    let table = table();
    let (late, _other) = (table.find("a").unwrap(), table.find("b").unwrap());
    late.end(io::ErrorKind::TimedOut);
    late.trust();
    assert_eq!(table.counts(), (1, 1));
}

/// A request comes again before it has come: the second is there when the first breaks off.
#[tokio::test]
async fn a_repeated_request_takes_the_place_of_one_that_breaks_off() {
    for seq in [0, 1] {
        let table = table();
        let session = Arc::new(table.down("s").unwrap());
        let (mut half, theirs) = request(10);
        let again = Arc::clone(&session);
        let first = tokio::spawn(async move { again.post(seq, Vec::new(), &mut half).await });
        tokio::task::yield_now().await;
        let again = Arc::clone(&session);
        let second = tokio::spawn(async move { post(&again, seq, b"ab").await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!second.is_finished(), "answered before it has come");
        drop(theirs);
        assert_eq!(first.await.unwrap(), Err(Failure::Gone));
        assert_eq!(second.await.unwrap(), Ok(()));
        if seq > 0 {
            post(&session, 0, b"").await.unwrap();
        }
        assert_eq!(read(&session, 9).await.unwrap(), b"ab");
    }
}
