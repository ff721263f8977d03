use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{advance, timeout};

use super::super::crowd::Crowd;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Two ends of a connection.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (near, listener.accept().await.unwrap().0)
}

fn place() -> Place {
    static CROWD: Crowd = Crowd::new(100, 100);
    CROWD.enter(None).unwrap()
}

/// A stranger, the target's end, and the task between them.
async fn through(limited: bool) -> (TcpStream, TcpStream, tokio::task::JoinHandle<Result<(), Error>>) {
    let ((client, ours), (our_far, target)) = (pair().await, pair().await);
    let limit = limited.then_some(ThrottledAfter {
        after: 0,
        rate: 1 << 20,
        burst: 1 << 20,
    });
    let ends = ((Sock::Tcp(ours), Vec::new()), (Sock::Tcp(our_far), Vec::new()));
    let passing = Passing::new(ends.0, ends.1, [limit, limit], Traffic::default(), place());
    (client, target, tokio::spawn(passing.run()))
}

/// How many single bytes behind the target's end it takes until the stranger is reset.
async fn bytes_until_reset(mut client: TcpStream, direct: bool) -> usize {
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "{direct}");
    for count in 1..5 {
        if client.write_all(b"x").await.is_err() {
            return count - 1;
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
        if client.take_error().unwrap().is_some() {
            return count;
        }
    }
    5
}

#[tokio::test]
async fn a_reset_behind_the_end_is_passed_on_at_the_same_byte() {
    let (client, target) = pair().await;
    drop(target);
    let direct = bytes_until_reset(client, true).await;
    assert_eq!(direct, 1);
    for limited in [false, true] {
        let (client, target, task) = through(limited).await;
        drop(target);
        assert_eq!(bytes_until_reset(client, false).await, direct, "limited: {limited}");
        assert!(timeout(5 * SECOND, task).await.unwrap().unwrap().is_err());
    }
}

#[tokio::test]
async fn a_client_that_is_gone_behind_its_end_breaks_the_way_to_the_target() {
    let (client, mut target, task) = through(false).await;
    drop(client);
    assert_eq!(target.read(&mut [0]).await.unwrap(), 0);
    target.write_all(b"to nobody").await.unwrap();
    assert!(timeout(5 * SECOND, task).await.unwrap().unwrap().is_err());
    let mut ended = Ok(0);
    for _ in 0..20 {
        ended = target.write(b"x").await;
        if ended.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(ended.is_err(), "the target was not told");
}

#[tokio::test]
async fn much_goes_both_ways_as_it_is_and_ends() {
    for limited in [false, true] {
        let (client, target, task) = through(limited).await;
        let len = if limited { 700_000 } else { 20 << 20 };
        let bytes: Arc<Vec<u8>> = Arc::new((0..len).map(|at: usize| (at * 31 / 7) as u8).collect());
        let mut sides = Vec::new();
        for side in [client, target] {
            let bytes = Arc::clone(&bytes);
            sides.push(tokio::spawn(async move {
                let (mut read, mut write) = side.into_split();
                let sent = Arc::clone(&bytes);
                let sending = tokio::spawn(async move {
                    write.write_all(&sent).await.unwrap();
                    write.shutdown().await.unwrap();
                    write
                });
                let mut got = Vec::new();
                read.read_to_end(&mut got).await.unwrap();
                assert!(got == *bytes, "other bytes");
                drop(sending.await);
            }));
        }
        for side in sides {
            timeout(30 * SECOND, side).await.unwrap().unwrap();
        }
        timeout(5 * SECOND, task).await.unwrap().unwrap().unwrap();
    }
}

/// Lets what is ready go on, without the clock.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test]
async fn who_does_not_end_behind_the_targets_end_is_waited_for_a_minute() {
    for limited in [false, true] {
        let (mut client, target, task) = through(limited).await;
        drop(target);
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        settle().await;
        tokio::time::pause();
        advance(PATIENCE_BEHIND_END - SECOND).await;
        settle().await;
        assert!(!task.is_finished());
        advance(2 * SECOND).await;
        settle().await;
        assert!(task.is_finished(), "limited: {limited}");
        tokio::time::resume();
        // What comes later draws a reset, as it does from the target.
        client.write_all(b"x").await.unwrap();
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert!(client.take_error().unwrap().is_some());
    }
}

#[tokio::test]
async fn silence_before_an_end_is_the_targets() {
    let (client, target, task) = through(false).await;
    settle().await;
    tokio::time::pause();
    advance(PATIENCE - SECOND).await;
    settle().await;
    assert!(!task.is_finished());
    advance(2 * SECOND).await;
    settle().await;
    assert!(task.is_finished());
    drop((client, target));
}
