//! Peers that ask and never read: in every state of a connection, over every transport that answers by itself.
//!
//! The clock stands still while anything can go on, so a write that times out is one that nobody will ever take.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use sealway_net::sock::Sock;
use sealway_v2ray::http::proxy::{Command, Forward, decode};
use sealway_v2ray::ws::frame::{self, Opcode, Role};
use sealway_v2ray::{Address, Destination, Step};
use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::net::{UdpSocket, UnixStream};
use tokio::time::timeout;

use super::{BEHIND, Stream};
use crate::dispatch::tarpit::Tarpit;
use crate::inbound::http::exchange::Exchange;
use crate::outbound::socks::relayed::Relayed;
use crate::people::Presence;
use crate::random;
use crate::relay::Relay;
use crate::settings::{SocketOptions, Timeouts};
use crate::stats::Traffic;
use crate::tls;
use crate::transport::ws::Frames;
use crate::udp::{self, Framed, PacketEnd, Wire};

thread_local! {
    static MOST_OWED: Cell<usize> = const { Cell::new(0) };
    static LAST_OWED: Cell<usize> = const { Cell::new(0) };
}

/// Notes how much waits to be written after something has been opened.
pub(super) fn note(owed: usize) {
    MOST_OWED.set(MOST_OWED.get().max(owed));
    LAST_OWED.set(owed);
}

/// More than sockets hold, and so many times what may wait that a leak shows.
const FLOOD: usize = 8 << 20;
/// What may wait, and what one read adds to it.
const MOST: usize = BEHIND + (2 << 10);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Transport {
    Ws,
    WsTls,
    Tls,
}

const ALL: [Transport; 3] = [Transport::Ws, Transport::WsTls, Transport::Tls];

/// One end that plays the server, one that plays the client, with little room between them.
async fn ends(transport: Transport) -> (Stream, Stream) {
    let (mut server, mut client) = match transport {
        Transport::Ws => {
            let (a, b) = UnixStream::pair().unwrap();
            let stream = |sock| Stream::new(Sock::Unix(sock), Traffic::default());
            (stream(a), stream(b))
        }
        Transport::WsTls | Transport::Tls => tls::tests::ends(tls::tests::suites()[0]).await,
    };
    for stream in [&server, &client] {
        let Some(Sock::Unix(sock)) = stream.carrier.sock() else {
            panic!("unix")
        };
        SockRef::from(sock).set_send_buffer_size(8 << 10).unwrap();
    }
    if transport != Transport::Tls {
        server.set_framing(Box::new(Frames::new(Role::Server)));
        client.set_framing(Box::new(Frames::new(Role::Client)));
    }
    (server, client)
}

/// Asks for answers, which it never reads, until nobody listens. Returns how much it has sent; at most [`FLOOD`].
async fn flood(peer: &mut Stream, role: Role) -> usize {
    let mut sent = 0;
    while sent < FLOOD {
        if peer.framing.is_some() {
            for _ in 0..8 {
                let ping = frame::control(Opcode::Ping, &[7; 125], role, random::bytes().unwrap()).unwrap();
                peer.wrap_tls(&ping).unwrap();
            }
        } else {
            // Something is carried between the records that carry nothing, or they would be too many in a row.
            peer.update_keys().unwrap();
            peer.seal(&[0]).unwrap();
        }
        sent += peer.tx.out.len();
        match timeout(Duration::from_secs(1), peer.flush()).await {
            Ok(Ok(())) => {}
            // Closed, or taken no more of.
            Ok(Err(_)) | Err(_) => return sent,
        }
        tokio::task::yield_now().await;
    }
    sent
}

/// Floods a state of a connection that has the first of these ends.
async fn withstands<F>(name: &str, role: Role, words: &[u8], state: impl Fn(Stream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    for transport in ALL {
        let (server, client) = ends(transport).await;
        let (ours, mut peer) = match role {
            Role::Client => (server, client),
            Role::Server => (client, server),
        };
        MOST_OWED.set(0);
        if !words.is_empty() {
            peer.send(words).await.unwrap();
        }
        let running = tokio::spawn(state(ours));
        let sent = flood(&mut peer, role).await;
        let owed = MOST_OWED.get();
        assert!(owed <= MOST, "{name}, {transport:?}: {owed} bytes wait to be written");
        // Where our end has been said no answer is owed, and who sends is read for as long as it sends.
        let read_on = sent >= FLOOD && LAST_OWED.get() > 0;
        assert!(
            !read_on,
            "{name}, {transport:?}: {sent} bytes were read of who does not read"
        );
        running.abort();
    }
}

/// The other end of a connection, which takes everything and says nothing.
fn sink() -> Stream {
    let (near, mut far) = UnixStream::pair().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok(1..) = far.read(&mut buffer).await {}
    });
    Stream::new(Sock::Unix(near), Traffic::default())
}

fn forward() -> Forward {
    let request = b"GET http://server.example/ HTTP/1.1\r\nHost: server.example\r\n\r\n";
    match decode(request, false) {
        Ok(Step::Done { value, .. }) => match value.command {
            Command::Forward(forward) => forward,
            Command::Connect(_) => panic!("a request to be sent on"),
        },
        _ => panic!("a whole request"),
    }
}

fn somewhere() -> Destination {
    Destination::udp(Address::from(std::net::IpAddr::from([127, 0, 0, 1])), 9)
}

/// Datagrams to nowhere.
async fn nowhere() -> Box<dyn PacketEnd> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = socket.local_addr().unwrap();
    let wire = Wire::connect(to, &SocketOptions::default(), None).await.unwrap();
    Box::new(Relayed::new(sink(), wire, Traffic::default()))
}

const IDLE: Duration = Duration::from_secs(300);

async fn take_all(stream: &mut Stream) {
    while let Ok(true) = stream.more().await {
        let len = stream.payload().len();
        stream.consume(len);
    }
}

#[tokio::test(start_paused = true)]
async fn before_a_header_and_while_a_refused_client_is_held() {
    withstands("header", Role::Client, b"", |mut stream| async move {
        take_all(&mut stream).await
    })
    .await;
    withstands("held", Role::Client, b"", |stream| async move {
        Tarpit::default().hold(stream).await
    })
    .await;
    withstands("answer", Role::Server, b"", |mut stream| async move {
        take_all(&mut stream).await
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn while_streams_are_carried() {
    let relay = |near, far| async move {
        let _ = Relay::new(near, far, Timeouts::default(), Presence::nobody())
            .run()
            .await;
    };
    withstands("client", Role::Client, b"", |near| relay(near, sink())).await;
    withstands("server", Role::Server, b"", |far| relay(sink(), far)).await;
}

#[tokio::test(start_paused = true)]
async fn when_one_direction_has_ended() {
    // The other end has nothing more to say, and what it is sent is over as well: control frames go on.
    let ended = || {
        let (near, far) = UnixStream::pair().unwrap();
        SockRef::from(&far).shutdown(std::net::Shutdown::Write).unwrap();
        tokio::spawn(async move {
            let (mut far, mut buffer) = (far, [0; 4096]);
            while let Ok(1..) = far.read(&mut buffer).await {}
        });
        Stream::new(Sock::Unix(near), Traffic::default())
    };
    let timeouts = Timeouts {
        uplink_only: IDLE,
        downlink_only: IDLE,
        ..Timeouts::default()
    };
    let relay = move |near, far| async move {
        let _ = Relay::new(near, far, timeouts, Presence::nobody()).run().await;
    };
    withstands("client", Role::Client, b"", |near| relay(near, ended())).await;
    withstands("server", Role::Server, b"", |far| relay(ended(), far)).await;
}

#[tokio::test(start_paused = true)]
async fn while_datagrams_are_carried() {
    let carry = |near: Box<dyn PacketEnd>, far: Box<dyn PacketEnd>| async move {
        let _ = udp::carry(near, far, IDLE, Presence::nobody()).await;
    };
    let framed = |stream| Framed::vless(stream, somewhere());
    withstands("client", Role::Client, b"", |near| async move {
        carry(framed(near), nowhere().await).await;
    })
    .await;
    withstands("server", Role::Server, b"", |far| async move {
        carry(framed(sink()), framed(far)).await;
    })
    .await;
    withstands("server of datagrams", Role::Server, b"", |control| async move {
        let to = "127.0.0.1:9".parse().unwrap();
        let wire = Wire::connect(to, &SocketOptions::default(), None).await.unwrap();
        let relayed = Relayed::new(control, wire, Traffic::default());
        carry(framed(sink()), Box::new(relayed)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn while_a_request_is_under_way() {
    withstands("client", Role::Client, b"", |mut near| async move {
        let _ = Exchange::new(&mut near, sink(), &forward(), Timeouts::default(), Presence::nobody())
            .run()
            .await;
    })
    .await;
    let words = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
    withstands("server", Role::Server, words, |far| async move {
        let mut near = sink();
        let _ = Exchange::new(&mut near, far, &forward(), Timeouts::default(), Presence::nobody())
            .run()
            .await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_reads_after_all_is_read_again() {
    // Over TLS alone the answers to the flood are more records without payload than this client takes.
    for transport in [Transport::Ws, Transport::WsTls] {
        let (server, mut client) = ends(transport).await;
        let (near, mut far) = UnixStream::pair().unwrap();
        let relay = Relay::new(
            server,
            Stream::new(Sock::Unix(near), Traffic::default()),
            Timeouts::default(),
            Presence::nobody(),
        );
        let running = tokio::spawn(relay.run());
        let reading = tokio::spawn(async move {
            let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
            while let Ok(got @ 1..) = far.read(&mut buffer).await {
                all.retain(|&byte| byte != 0);
                all.extend_from_slice(&buffer[..got]);
            }
            all
        });
        assert!(flood(&mut client, Role::Client).await < FLOOD);
        client.seal(b"and then").unwrap();
        client.seal_close().unwrap();
        // It takes the answers now, so that the rest of the questions is taken too.
        let both = std::future::poll_fn(|cx| {
            let taken = loop {
                let len = client.payload().len();
                client.consume(len);
                if client.open().is_err() {
                    break true;
                }
                match client.poll_fill(cx) {
                    std::task::Poll::Ready(Ok(1..)) => {}
                    std::task::Poll::Ready(_) => break true,
                    std::task::Poll::Pending => break false,
                }
            };
            let _ = client.poll_flush(cx).map(Result::unwrap);
            if taken {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        });
        timeout(Duration::from_secs(60), both).await.expect("it is woken");
        running.abort();
        let all = timeout(Duration::from_secs(60), reading).await.unwrap().unwrap();
        assert!(all.ends_with(b"and then"), "{transport:?}");
    }
}
