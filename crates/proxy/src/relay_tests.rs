//! What a relay holds while nobody reads.

use sealway_v2ray::ws::frame::Role;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::*;
use crate::sock::Sock;
use crate::tls;
use crate::ws::Frames;

fn bare(sock: UnixStream) -> Stream {
    Stream::new(Sock::Unix(sock), Traffic::default())
}

/// What a direction of a connection may hold; the message about `bufferSize` says it.
const PROMISED: usize = 256 << 10;

#[tokio::test(start_paused = true)]
async fn a_stalled_direction_holds_what_is_promised() {
    for (name, with_tls, with_ws) in [("tls", true, false), ("ws", false, true), ("ws tls", true, true)] {
        for sealed_on_both_sides in [false, true] {
            let (mut near, _client) = match with_tls {
                true => tls::tests::ends(tls::tests::suites()[0]).await,
                false => {
                    let (a, b) = UnixStream::pair().unwrap();
                    (bare(a), bare(b))
                }
            };
            if with_ws {
                near.set_ws(Frames::new(Role::Server));
            }
            let (far, flooding) = if sealed_on_both_sides {
                let (far, mut peer) = tls::tests::ends(tls::tests::suites()[0]).await;
                let flooding = tokio::spawn(async move { while peer.send(&[7; 200_000]).await.is_ok() {} });
                (far, flooding)
            } else {
                let (a, mut peer) = UnixStream::pair().unwrap();
                let flooding = tokio::spawn(async move { while peer.write_all(&[7; 200_000]).await.is_ok() {} });
                (bare(a), flooding)
            };
            for stream in [&near, &far] {
                let Sock::Unix(sock) = &stream.sock else { panic!("unix") };
                // Reads that are as large as they may be.
                socket2::SockRef::from(sock).set_send_buffer_size(4 << 20).unwrap();
            }
            let mut relay = Relay::new(near, far, Timeouts::default(), Traffic::default());
            let stalled = timeout(Duration::from_secs(1), std::future::poll_fn(|cx| relay.poll(cx)));
            assert!(stalled.await.is_err(), "{name}: somebody reads");
            assert!(relay.near.wants_flush(), "{name}: nothing waits");
            let held = relay.near.held() + relay.far.held();
            assert!(held > 32 << 10, "{name}: {held} bytes is not what a download needs");
            assert!(held <= PROMISED, "{name}: {held} bytes are held");
            flooding.abort();
        }
    }
}
