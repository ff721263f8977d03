//! Connections that are made before somebody asks for one.

use std::sync::atomic::{AtomicBool, Ordering};

use socket2::SockRef;

use super::*;
use crate::inner::Tap;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_ready_before_they_are_needed() {
    let (server, certificate) = serve(account()).await;
    let tap = Tap::default();
    let tapped = tap.in_front_of(at(&server, "in")).await;
    let vision = Vision {
        ready: 2,
        ..Vision::default()
    };
    let near = client(tapped, &certificate, echo().await, vision, MuxOut::default()).await;
    let count = || *tap.count.lock().unwrap();
    let comes_to = async |wanted: usize| {
        within("connections", async {
            while count() < wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        // And no further.
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(count(), wanted);
    };
    assert_eq!(count(), 0, "nobody has asked yet");
    let ask = async || {
        let mut tcp = TcpStream::connect(at(&near, "door")).await.unwrap();
        tcp.write_all(b"hello").await.unwrap();
        let mut got = [0; 5];
        within("echo", tcp.read_exact(&mut got)).await.unwrap();
        assert_eq!(got, *b"hello");
    };
    // One of its own, and two for those who come.
    ask().await;
    comes_to(3).await;
    // Each that is taken has another made in its place.
    ask().await;
    comes_to(4).await;
    ask().await;
    ask().await;
    comes_to(6).await;
}

/// A server waits for a request for two seconds: what it ends is closed at once, and what comes later is closed before that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_ready_is_given_up_before_the_server_ends_it() {
    const WAITS: Duration = Duration::from_secs(2);
    let (certificate, config) = of_one_version(&rustls::version::TLS13);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    // Whether the server was the first to end it, and whether the client ended it, too.
    let (ends, mut ended) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, ends) = (TlsAcceptor::from(Arc::clone(&config)), ends.clone());
            tokio::spawn(async move {
                let mut tls = acceptor.accept(tcp).await.unwrap();
                match timeout(WAITS, tls.read(&mut [0; 512])).await {
                    Ok(Ok(1..)) => tokio::time::sleep(Duration::from_secs(60)).await,
                    Ok(_) => ends.send((false, true)).unwrap(),
                    Err(_) => {
                        let _ = tls.shutdown().await;
                        let closed = timeout(Duration::from_secs(10), tls.read(&mut [0; 512])).await;
                        ends.send((true, closed.is_ok())).unwrap();
                    }
                }
            });
        }
    });
    let vision = Vision {
        ready: 2,
        ..Vision::default()
    };
    let near = client(server, &certificate, server, vision, MuxOut::default()).await;
    // Two are kept after each request: the server ends the first of all, the client those that come later. On a busy machine one of
    // those may be late once more.
    let mut late = 0;
    for turn in 0.. {
        let mut program = TcpStream::connect(at(&near, "door")).await.unwrap();
        program.write_all(b"hello").await.unwrap();
        let mut by_server = [true; 2];
        for first in &mut by_server {
            let closed;
            (*first, closed) = within("end", ended.recv()).await.unwrap();
            assert!(closed, "the client keeps what has ended");
        }
        match by_server {
            // The other of the two may be given up at once, and be heard of before.
            either if turn == 0 => assert!(either.contains(&true)),
            [false, false] => break,
            _ => late += 1,
        }
        assert!(late < 5, "the client waits for the server to end it");
    }
}

/// What becomes of connections once somebody was told to end those that wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// Those that have waited end at the first byte of a request.
    Closed,
    Reset,
    /// The same, and there are no new ones.
    Refused,
}

/// Passes connections on until it is told to end those that have waited by then, and counts them.
async fn ends_what_has_waited(to: SocketAddr, tap: &Tap, told: &Arc<AtomicBool>, end: End) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, tap, told) = (listener.local_addr().unwrap(), tap.clone(), Arc::clone(told));
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            *tap.count.lock().unwrap() += 1;
            let (told, is_new) = (Arc::clone(&told), told.load(Ordering::SeqCst));
            if is_new && end == End::Refused {
                continue;
            }
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                let (mut up, mut down) = ([0; 4096], [0; 4096]);
                loop {
                    tokio::select! {
                        got = near.read(&mut up) => match got {
                            Ok(1..) if told.load(Ordering::SeqCst) && !is_new => break,
                            Ok(got @ 1..) => far.write_all(&up[..got]).await.unwrap(),
                            _ => return,
                        },
                        got = far.read(&mut down) => match got {
                            Ok(got @ 1..) => near.write_all(&down[..got]).await.unwrap(),
                            _ => return,
                        },
                    }
                }
                if end == End::Reset {
                    SockRef::from(&near).set_linger(Some(Duration::ZERO)).unwrap();
                    return;
                }
                near.shutdown().await.unwrap();
                while let Ok(1..) = near.read(&mut up).await {}
            });
        }
    });
    at
}

/// The end of one that is kept may be on the way when it is taken: the request is said again, once, on another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_on_one_that_has_just_ended_is_said_again() {
    let (server, certificate) = serve(account()).await;
    let echo = echo().await;
    for end in [End::Closed, End::Reset, End::Refused] {
        let (tap, told) = (Tap::default(), Arc::new(AtomicBool::new(false)));
        let front = ends_what_has_waited(at(&server, "in"), &tap, &told, end).await;
        let vision = Vision {
            ready: 1,
            ..Vision::default()
        };
        let near = client(front, &certificate, echo, vision, MuxOut::default()).await;
        let ask = async |said: &[u8]| {
            let mut tcp = TcpStream::connect(at(&near, "door")).await.unwrap();
            tcp.write_all(said).await.unwrap();
            let mut got = vec![0; said.len()];
            let whole = within("echo", tcp.read_exact(&mut got)).await.is_ok();
            assert!(!whole || got == said);
            whole
        };
        assert!(ask(b"hello").await);
        within("one that is ready", async {
            while *tap.count.lock().unwrap() < 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        told.store(true, Ordering::SeqCst);
        assert_eq!(ask(&[b'x'; 9000]).await, end != End::Refused, "{end:?}");
        // One for the request, and one to be ready.
        within("the next one", async {
            while *tap.count.lock().unwrap() < 4 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(*tap.count.lock().unwrap(), 4, "{end:?}");
    }
}
