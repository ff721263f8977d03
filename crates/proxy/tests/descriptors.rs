//! A process that has run out of descriptors goes on when it has some again. Alone in its process, for the limit is everyone's.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_out_is_survived() {
    let target = target().await;
    let settings = door_settings(target, freedom());
    let server = start(settings).await;
    let door = at(&server, "door");
    let before = getrlimit(Resource::Nofile);
    let used = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let low = Rlimit {
        current: Some(used + 6),
        ..before
    };
    setrlimit(Resource::Nofile, low).unwrap();
    let mut held = Vec::new();
    for _ in 0..12 {
        match TcpStream::connect(door).await {
            Ok(stream) => held.push(stream),
            Err(_) => break,
        }
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(held);
    setrlimit(Resource::Nofile, before).unwrap();
    let stream = TcpStream::connect(door).await.unwrap();
    within("after running out", exchange(stream, 1000, 1000)).await;
    // Enough for a client and for accepting it, not for dialling its target: it is let go, and the next one is served. A
    // descriptor of the exchange before may be given back meanwhile, which lets the target be dialled after all: then again.
    let is_free = |n: &u64| !std::path::Path::new(&format!("/proc/self/fd/{n}")).exists();
    let end = within("a dial without descriptors", async {
        loop {
            // What the connection before had at the server is given back.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let last = (0..).filter(is_free).nth(1).unwrap();
            let low = Rlimit {
                current: Some(last + 1),
                ..before
            };
            setrlimit(Resource::Nofile, low).unwrap();
            let mut stream = TcpStream::connect(door).await.unwrap();
            let end = tokio::time::timeout(Duration::from_secs(3), stream.read(&mut [0])).await;
            setrlimit(Resource::Nofile, before).unwrap();
            if let Ok(end) = end {
                break end;
            }
        }
    });
    assert_eq!(end.await.unwrap_or(0), 0);
    let stream = TcpStream::connect(door).await.unwrap();
    within("after running out again", exchange(stream, 1000, 1000)).await;
}
