//! Connections that are made before somebody asks for one.

use super::inner::Tap;
use super::*;

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
    // Whether the server was the first to end it, and how much later the client did.
    let (ends, mut ended) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, ends) = (TlsAcceptor::from(Arc::clone(&config)), ends.clone());
            tokio::spawn(async move {
                let mut tls = acceptor.accept(tcp).await.unwrap();
                match timeout(WAITS, tls.read(&mut [0; 512])).await {
                    Ok(Ok(1..)) => tokio::time::sleep(Duration::from_secs(60)).await,
                    Ok(_) => ends.send((false, Duration::ZERO)).unwrap(),
                    Err(_) => {
                        let _ = tls.shutdown().await;
                        let since = std::time::Instant::now();
                        let _ = timeout(Duration::from_secs(10), tls.read(&mut [0; 512])).await;
                        ends.send((true, since.elapsed())).unwrap();
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
    for by_server in [true, false] {
        let mut program = TcpStream::connect(at(&near, "door")).await.unwrap();
        program.write_all(b"hello").await.unwrap();
        for number in 0..2 {
            let (first, later) = within("end", ended.recv()).await.unwrap();
            // The age at which the first was ended is held against the second.
            assert!(first == by_server || by_server && number == 1);
            assert!(later < Duration::from_secs(3), "{later:?}");
        }
    }
}
