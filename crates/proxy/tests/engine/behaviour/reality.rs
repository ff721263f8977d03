//! REALITY between whoever comes and a target that does as it is told.

mod handshakes;
mod loops;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::*;

const PRIVATE: [u8; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32,
];

fn settings(target: SocketAddr) -> ServerReality {
    ServerReality {
        target: FallbackDial::Tcp(target.ip().into(), target.port()),
        xver: 0,
        server_names: vec!["a.test".to_owned()],
        private_key: Secret(PRIVATE),
        short_ids: vec![[1; 8]],
        min_client_version: None,
        max_client_version: None,
        max_time_diff: Some(Duration::from_secs(120)),
        mldsa65_seed: None,
        limit_upload: None,
        limit_download: None,
        key_log: None,
    }
}

/// A server that waits two seconds for a hello.
async fn server(reality: ServerReality) -> Server {
    let transport = ServerTransport {
        reality: Some(Box::new(reality)),
        ..ServerTransport::default()
    };
    let mut settings = server_settings(vless(), transport);
    settings.levels = handshake_within(Duration::from_secs(2));
    start(settings).await
}

/// What a target does with each connection.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Says something before it is spoken to, and then how much it was told.
    SpeaksFirst,
    EndsFirst,
    ResetsFirst,
    /// Resets behind the first byte.
    ResetsThen,
    /// Takes everything, and says it again.
    Repeats,
    /// Ends its direction, and goes on to listen.
    EndsAndHears,
}

async fn act(mut tcp: TcpStream, act: Act, heard: Heard) -> std::io::Result<()> {
    let mut said = Vec::new();
    match act {
        Act::SpeaksFirst => {
            tcp.write_all(b"220 ready\r\n").await?;
            tcp.read_to_end(&mut said).await?;
            tcp.write_all(format!("{} bytes", said.len()).as_bytes()).await?;
        }
        Act::EndsFirst => {}
        Act::ResetsFirst => tcp.set_zero_linger()?,
        Act::ResetsThen => {
            tcp.read_u8().await?;
            tcp.set_zero_linger()?;
        }
        Act::Repeats => {
            tcp.read_to_end(&mut said).await?;
            tcp.write_all(&said).await?;
        }
        Act::EndsAndHears => {
            tcp.write_all(b"the end").await?;
            tcp.shutdown().await?;
            tcp.read_to_end(&mut said).await?;
        }
    }
    heard.lock().unwrap().push(said);
    Ok(())
}

/// What targets were told, each connection to its end.
type Heard = Arc<Mutex<Vec<Vec<u8>>>>;

/// A target.
async fn acts(what: Act) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, heard) = (listener.local_addr().unwrap(), Heard::default());
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(act(tcp, what, Arc::clone(&kept)));
        }
    });
    (at, heard)
}

/// What somebody does, and what he sees: bytes, and whether they end in good order.
async fn sees(at: SocketAddr, what: Act) -> (Vec<u8>, bool) {
    let Ok(mut stream) = TcpStream::connect(at).await else {
        // It may be reset before this end has heard that it is there.
        return (Vec::new(), false);
    };
    match what {
        // He waits to be spoken to.
        Act::SpeaksFirst => {
            let mut first = [0; 11];
            within("a greeting", stream.read_exact(&mut first)).await.unwrap();
            stream.write_all(b"QUIT\r\n").await.unwrap();
            stream.shutdown().await.unwrap();
        }
        Act::EndsFirst | Act::ResetsFirst => {}
        Act::ResetsThen => stream.write_all(b"x").await.unwrap(),
        // A hello that breaks off.
        Act::Repeats => {
            stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc").await.unwrap();
            stream.shutdown().await.unwrap();
        }
        Act::EndsAndHears => {
            let mut first = Vec::new();
            within("an end", stream.read_to_end(&mut first)).await.unwrap();
            assert_eq!(first, b"the end");
            stream.write_all(b"said behind it").await.unwrap();
            stream.shutdown().await.unwrap();
        }
    }
    to_the_end(&mut stream).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_target_does_is_done_to_who_comes() {
    let limit = ThrottledAfter {
        after: 0,
        rate: 1 << 20,
        burst: 1 << 20,
    };
    for what in [
        Act::SpeaksFirst,
        Act::EndsFirst,
        Act::ResetsFirst,
        Act::ResetsThen,
        Act::Repeats,
        Act::EndsAndHears,
    ] {
        let (target, heard) = acts(what).await;
        let direct = sees(target, what).await;
        // A server that is dropped ends what it carries.
        let mut servers = Vec::new();
        for limited in [None, Some(limit)] {
            let ours = server(ServerReality {
                limit_upload: limited,
                limit_download: limited,
                ..settings(target)
            })
            .await;
            assert_eq!(
                sees(at(&ours, "in"), what).await,
                direct,
                "{what:?}, limited: {}",
                limited.is_some()
            );
            servers.push(ours);
        }
        if let Act::EndsAndHears = what {
            let all = async {
                while heard
                    .lock()
                    .unwrap()
                    .iter()
                    .filter(|said| *said == b"said behind it")
                    .count()
                    < 3
                {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            within("what was said behind the end", all).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_may_be_told_who_comes() {
    for xver in [1, 2] {
        let (target, heard) = acts(Act::Repeats).await;
        let ours = server(ServerReality {
            xver,
            ..settings(target)
        })
        .await;
        let mut stream = TcpStream::connect(at(&ours, "in")).await.unwrap();
        let (from, to) = (stream.local_addr().unwrap().port(), at(&ours, "in").port());
        stream.write_all(b"hello").await.unwrap();
        stream.shutdown().await.unwrap();
        let (said, good) = to_the_end(&mut stream).await;
        assert!(good);
        let wanted = match xver {
            1 => format!("PROXY TCP4 127.0.0.1 127.0.0.1 {from} {to}\r\nhello").into_bytes(),
            _ => [
                &b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01"[..],
                &from.to_be_bytes(),
                &to.to_be_bytes(),
                b"hello",
            ]
            .concat(),
        };
        assert_eq!(said, wanted, "{xver}");
        assert!(heard.lock().unwrap().contains(&wanted));
    }
}

#[test]
fn short_ids_are_not_shown() {
    let at = SocketAddr::from(([192, 0, 2, 1], 443));
    let shown = format!("{:?}", settings(at));
    assert!(shown.contains("a.test") && !shown.contains("1, 1"), "{shown}");
    let shown = format!("{:?}", handshakes::of_a_client("b.test"));
    assert!(shown.contains("b.test") && !shown.contains("1, 1"), "{shown}");
}
