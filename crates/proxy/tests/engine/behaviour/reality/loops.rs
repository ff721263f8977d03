//! Targets that lead back.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpSocket;
use tokio::sync::watch;

use super::*;

/// A server in front of an address that is known later.
struct Front {
    at: SocketAddr,
    to: watch::Sender<Option<SocketAddr>>,
    dialled: Arc<AtomicUsize>,
}

impl Front {
    async fn new() -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (to, dialled) = (watch::Sender::new(None), Arc::<AtomicUsize>::default());
        let at = listener.local_addr().unwrap();
        let (mut known, count) = (to.subscribe(), Arc::clone(&dialled));
        tokio::spawn(async move {
            let to = *known.wait_for(Option::is_some).await.unwrap();
            while let Ok((mut near, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    // What strangers may do is counted by their addresses, and other tests have that of loopback.
                    let socket = TcpSocket::new_v4().unwrap();
                    socket.bind("127.9.9.1:0".parse().unwrap()).unwrap();
                    if let Ok(mut far) = socket.connect(to.unwrap()).await {
                        tokio::io::copy_bidirectional(&mut near, &mut far).await.ok();
                    }
                });
            }
        });
        Front { at, to, dialled }
    }
}

/// Says something that is no hello, and waits for the end.
async fn knocks(at: SocketAddr) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await;
    within("an end", stream.read_to_end(&mut Vec::new())).await.ok();
}

/// Each is the target of the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_lead_to_each_other_dial_no_more_than_they_are_dialled() {
    let fronts = [Front::new().await, Front::new().await];
    let reality = |tag: &str, target: SocketAddr| {
        let transport = ServerTransport {
            reality: Some(Box::new(settings(target))),
            ..ServerTransport::default()
        };
        inbound(tag, vless(), transport)
    };
    let mut settings = door_settings(target().await, freedom());
    settings.inbounds.push(reality("one", fronts[1].at));
    settings.inbounds.push(reality("two", fronts[0].at));
    let server = start(settings).await;
    let both = ["one", "two"].map(|tag| at(&server, tag));
    for (front, at) in fronts.iter().zip(both) {
        front.to.send_replace(Some(at));
    }
    let dialled = || {
        fronts
            .iter()
            .map(|front| front.dialled.load(Ordering::Relaxed))
            .sum::<usize>()
    };
    for at in both {
        knocks(at).await;
    }
    // The first of them may come before it is known.
    within("an end of the loop", async {
        loop {
            let before = dialled();
            for at in both {
                knocks(at).await;
            }
            if dialled() - before <= both.len() {
                break;
            }
        }
    })
    .await;
    let all = dialled();
    assert!(all < 3000, "{all}");
    // The rest of the server goes on.
    let beside = TcpStream::connect(at(&server, "door")).await.unwrap();
    within("a door beside them", exchange(beside, 1000, 1000)).await;
}
