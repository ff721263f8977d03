//! Two relays with Vision between them, as a client and a server have them: what leaves TLS, when, and what the kernel moves.

use std::time::Duration;

use sealway_net::sock::Sock;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use super::*;
use crate::people::Presence;
use crate::relay::Relay;
use crate::settings::Timeouts;
use crate::stats::Traffic;
use crate::tls;

const ID: UserId = UserId::from_bytes([7; 16]);

fn record(kind: u8, body: usize) -> Vec<u8> {
    let mut record = vec![kind, 3, 3];
    record.extend_from_slice(&(body as u16).to_be_bytes());
    record.resize(5 + body, 0x5a);
    record
}

fn client_hello() -> Vec<u8> {
    let mut hello = record(22, 512);
    (hello[2], hello[5]) = (1, 1);
    hello
}

/// The record of a ServerHello of TLS 1.3 with this suite.
fn server_hello(suite: u16) -> Vec<u8> {
    let mut hello = record(22, 90);
    (hello[5], hello[43]) = (2, 32);
    hello[76..78].copy_from_slice(&suite.to_be_bytes());
    hello[86..92].copy_from_slice(&[0, 0x2b, 0, 2, 3, 4]);
    hello
}

/// Two ends with Vision, and what one sends the other.
struct Ends {
    client: Stream,
    server: Stream,
}

impl Ends {
    async fn new() -> Ends {
        let tls13 = tls::tests::suites().into_iter().find(|suite| suite.tls13().is_some());
        let (mut server, mut client) = tls::tests::ends(tls13.unwrap()).await;
        for stream in [&mut server, &mut client] {
            stream.carries_vision().unwrap();
            stream.trust();
            stream.set_vision(ID, Seed::default(), true);
        }
        Ends { client, server }
    }

    async fn pass(&mut self, up: bool, payload: &[u8]) {
        let (from, to) = match up {
            true => (&mut self.client, &mut self.server),
            false => (&mut self.server, &mut self.client),
        };
        from.seal(payload).unwrap();
        let taking = async {
            let mut got = Vec::new();
            while got.len() < payload.len() {
                assert!(to.more().await.unwrap(), "ended early");
                got.extend_from_slice(to.payload());
                to.consume(to.payload().len());
            }
            got
        };
        let (sent, got) = tokio::join!(from.flush(), taking);
        sent.unwrap();
        assert!(got == payload, "{} bytes garbled", payload.len());
    }

    /// An inner handshake with this suite, up to the first data of the client.
    async fn shake_hands(&mut self, suite: u16) {
        self.pass(true, &client_hello()).await;
        let mut flight = server_hello(suite);
        flight.extend(record(23, 3000));
        self.pass(false, &flight).await;
        let mut finished = record(20, 1);
        finished.extend(record(23, 53));
        self.pass(true, &finished).await;
        assert!(self.client.pads() && self.server.pads() && self.client.seals());
    }
}

#[tokio::test]
async fn each_direction_leaves_tls_by_itself() {
    let mut ends = Ends::new().await;
    ends.shake_hands(0x1301).await;
    ends.pass(true, &record(23, 100)).await;
    assert!(ends.client.is_raw_tx() && !ends.client.is_raw_rx());
    assert!(ends.server.is_raw_rx() && !ends.server.is_raw_tx());
    ends.pass(true, b"whatever it is").await;
    ends.pass(false, &record(23, 40_000 % 16_401)).await;
    for stream in [&ends.client, &ends.server] {
        assert!(stream.is_raw_tx() && stream.is_raw_rx());
        assert!(stream.tls.is_none() && stream.vision.is_none());
    }
    let long = vec![9; 300_000];
    ends.pass(false, &long).await;
    ends.pass(true, &long).await;
}

#[tokio::test]
async fn what_needs_tls_stays_in_it() {
    // A suite that is not to leave it.
    let mut ends = Ends::new().await;
    ends.shake_hands(0x1305).await;
    for up in [true, false] {
        ends.pass(up, &record(23, 100)).await;
        ends.pass(up, &vec![5; 100_000]).await;
    }
    for stream in [&ends.client, &ends.server] {
        assert!(!stream.pads() && !stream.unpads() && stream.seals() && stream.unseals());
    }
    // Lines of text.
    let mut ends = Ends::new().await;
    for _ in 0..5 {
        ends.pass(false, b"220 speaks first\r\n").await;
        ends.pass(true, b"HELO\r\n").await;
    }
    assert!(!ends.client.pads() && !ends.server.pads());
    assert!(ends.client.seals() && ends.server.seals());
    // One who is told to stay.
    let mut ends = Ends::new().await;
    for stream in [&mut ends.client, &mut ends.server] {
        stream.set_vision(ID, Seed::default(), false);
    }
    ends.shake_hands(0x1301).await;
    ends.pass(true, &record(23, 100)).await;
    assert!(ends.client.seals() && !ends.client.pads());
}

/// The last block, its raw bytes behind it and records of TLS before it, in one read.
#[tokio::test]
async fn what_follows_the_last_block_at_once_is_not_opened() {
    let mut ends = Ends::new().await;
    ends.shake_hands(0x1302).await;
    let mut all = Vec::new();
    for payload in [record(23, 100), b"raw from here".to_vec(), record(23, 16_000)] {
        ends.client.seal(&payload).unwrap();
        all.extend(payload);
    }
    assert!(!ends.client.seals());
    ends.client.flush().await.unwrap();
    let mut got = Vec::new();
    while got.len() < all.len() {
        assert!(ends.server.more().await.unwrap());
        got.extend_from_slice(ends.server.payload());
        ends.server.consume(ends.server.payload().len());
    }
    assert!(got == all);
}

/// Neither an end nor a wish for a new key is said in TLS by who has left it.
#[tokio::test]
async fn who_has_left_tls_says_nothing_in_it() {
    let mut ends = Ends::new().await;
    ends.shake_hands(0x1301).await;
    ends.pass(true, &record(23, 100)).await;
    // The server is still in TLS, and wants a new key.
    ends.server.update_keys().unwrap();
    ends.pass(false, b"still sealed, and not of TLS").await;
    ends.client.seal_end().unwrap();
    ends.client.seal_close().unwrap();
    assert!(!ends.client.wants_flush(), "something is said");
}

#[tokio::test]
async fn without_payload_the_header_is_padded_all_the_same() {
    let Ends { mut client, mut server } = Ends::new().await;
    client.set_prefix(b"header".to_vec());
    client.seal_prefix().unwrap();
    let sent = client.collected();
    assert!(sent > 6 + 21 + 900 && sent < 6 + 21 + 1400 + 30, "{sent}");
    // The header is no block: whoever expects none at the beginning finds the rest.
    client.flush().await.unwrap();
    server.vision = None;
    assert!(server.more().await.unwrap());
    assert_eq!(server.payload()[..6], *b"header");
    server.consume(6);
    server.set_vision(ID, Seed::default(), true);
    client.send(b"first").await.unwrap();
    assert!(server.more().await.unwrap());
    assert_eq!(server.payload(), b"first");
}

#[tokio::test]
async fn tls_of_old_and_none_do_not_carry_it() {
    let tls12 = tls::tests::suites().into_iter().find(|suite| suite.tls13().is_none());
    let (server, client) = tls::tests::ends(tls12.unwrap()).await;
    for stream in [&server, &client] {
        let refused = stream.carries_vision().unwrap_err();
        assert!(refused.to_string().contains("TLS 1.2"), "{refused}");
    }
    let (bare, _other) = tokio::net::UnixStream::pair().unwrap();
    assert!(
        Stream::new(Sock::Unix(bare), Traffic::default())
            .carries_vision()
            .is_err()
    );
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (near, listener.accept().await.unwrap().0)
}

fn bare(tcp: TcpStream) -> Stream {
    let mut stream = Stream::new(Sock::Tcp(tcp), Traffic::default());
    stream.trust();
    stream
}

/// A program, two relays and a target: what goes both ways at once is spliced in both, and whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kernel_moves_what_has_left_tls() {
    const LONG: usize = 24 << 20;
    for (suite, spliced) in [(0x1303, true), (0x1305, false)] {
        let Ends { client, server } = Ends::new().await;
        let ((program, near), (far, target)) = (pair().await, pair().await);
        let timeouts = Timeouts::default();
        let first = Relay::new(bare(near), client, timeouts, Presence::nobody());
        let second = Relay::new(server, bare(far), timeouts, Presence::nobody());
        let running = [first, second].map(|relay| tokio::spawn(relay.run_and_count()));
        // What each says in turn, then both at once.
        let (mut program, mut target) = (program, target);
        let mut finished = record(20, 1);
        finished.extend(record(23, 53));
        let turns = [
            (true, client_hello()),
            (false, server_hello(suite)),
            (true, finished),
            (false, record(23, 200)),
            (true, record(23, 300)),
        ];
        for (up, words) in &turns {
            let (from, to) = if *up {
                (&mut program, &mut target)
            } else {
                (&mut target, &mut program)
            };
            from.write_all(words).await.unwrap();
            let mut got = vec![0; words.len()];
            to.read_exact(&mut got).await.unwrap();
            assert!(got == *words);
        }
        let bulk: Vec<u8> = record(23, 16_000).repeat(LONG / 16_000);
        let both = [(program, bulk.clone()), (target, bulk.clone())].map(|(tcp, bulk)| {
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.into_split();
                let expected = bulk.len();
                let writing = tokio::spawn(async move {
                    write.write_all(&bulk).await.unwrap();
                    write.shutdown().await.unwrap();
                });
                let mut got = Vec::with_capacity(expected);
                read.read_to_end(&mut got).await.unwrap();
                writing.await.unwrap();
                got
            })
        });
        for one in both {
            let got = timeout(Duration::from_secs(120), one).await.unwrap().unwrap();
            assert!(got == bulk, "{} of {} bytes", got.len(), bulk.len());
        }
        for one in running {
            let (ended, [up, down]) = one.await.unwrap();
            ended.unwrap();
            let most = (bulk.len() / 2) as u64;
            assert_eq!(up > most && down > most, spliced, "{suite:x}: {up} up, {down} down");
            assert!(spliced || up + down == 0);
        }
    }
}

/// A target that speaks first, and a program that says nothing, have the header after half a second.
#[tokio::test(start_paused = true)]
async fn a_header_waits_half_a_second_for_a_first_payload() {
    let Ends { mut client, mut server } = Ends::new().await;
    client.set_prefix(b"header".to_vec());
    server.vision = None;
    let (_program, near) = tokio::net::UnixStream::pair().unwrap();
    SockRef::from(&near).set_nonblocking(true).unwrap();
    let near = Stream::new(Sock::Unix(near), Traffic::default());
    let began = Instant::now();
    let running = tokio::spawn(Relay::new(near, client, Timeouts::default(), Presence::nobody()).run());
    assert!(server.more().await.unwrap());
    let waited = began.elapsed();
    assert!(waited >= HOLD && waited < 2 * HOLD, "{waited:?}");
    running.abort();
}
