//! Peers that stall, cheat or do not listen.

use std::io::ErrorKind;
use std::time::Duration;

use sealway_bip324::message::Message;
use sealway_bip324::{Connection, Error, Magic, Options, Role};
use sealway_bip324_tokio::v1::{V1Receiver, V1Sender};
use sealway_bip324_tokio::{HANDSHAKE_LIMIT, Messages, Patience, TransportError, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, timeout};

use crate::{LENGTHS, contents, key, pair};

/// One end over tokio, the other by hand.
async fn by_hand() -> (Messages<DuplexStream>, DuplexStream, Connection) {
    let (a, mut wire) = tokio::io::duplex(1 << 24);
    let mut peer = Connection::responder(Magic::REGTEST, key(Role::Responder), Options::default()).unwrap();
    let hand = async {
        let mut buffer = vec![0; 4096];
        while !peer.is_established() {
            let n = wire.read(&mut buffer).await.unwrap();
            peer.handle_input(&buffer[..n]).unwrap();
            let out = peer.output().to_vec();
            wire.write_all(&out).await.unwrap();
            peer.advance_output(out.len());
        }
    };
    let connecting = connect(
        a,
        Magic::REGTEST,
        key(Role::Initiator),
        Options::default(),
        HANDSHAKE_LIMIT,
    );
    let (messages, ()) = tokio::join!(connecting, hand);
    (messages.unwrap(), wire, peer)
}

/// The wire form of a message of the peer.
fn sealed(peer: &mut Connection, contents: &[u8]) -> Vec<u8> {
    peer.send(contents).unwrap();
    let out = peer.output().to_vec();
    peer.advance_output(out.len());
    out
}

#[tokio::test]
async fn halves_carry_every_length_both_ways_at_once() {
    let (a, b) = pair(1000).await;
    let mut tasks = Vec::new();
    for end in [a, b] {
        let (mut receiver, mut sender) = end.into_split();
        tasks.push(tokio::spawn(async move {
            for (number, len) in LENGTHS.into_iter().enumerate() {
                sender.send(&contents(number, len)).await.unwrap();
                sender.feed_decoy(&[0; 30]).await.unwrap();
            }
            sender.shutdown().await.unwrap();
        }));
        tasks.push(tokio::spawn(async move {
            for (number, len) in LENGTHS.into_iter().enumerate() {
                let message = receiver.recv().await.unwrap().unwrap();
                assert!(message == contents(number, len), "message {number}");
            }
            assert_eq!(receiver.recv().await.unwrap(), None);
            assert_eq!(receiver.recv().await.unwrap(), None);
            assert_eq!(receiver.received().decoys, LENGTHS.len() as u64);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn what_has_come_is_given_before_the_error_of_a_write() {
    for len in [10, 200_000] {
        let (mut a, mut b) = pair(1 << 20).await;
        for number in 0..3 {
            b.send(&contents(number, len)).await.unwrap();
        }
        b.flush().await.unwrap();
        a.feed(b"never read").await.unwrap();
        drop(b);
        for number in 0..3 {
            let message = a.recv().await.unwrap().unwrap();
            assert!(message == contents(number, len), "message {number}");
        }
        let error = a.recv().await.unwrap_err();
        assert!(
            matches!(&error, TransportError::Io(e) if e.kind() == ErrorKind::BrokenPipe),
            "{error:?}"
        );
        for _ in 0..2 {
            let error = a.recv().await.unwrap_err();
            assert!(matches!(error, TransportError::Protocol(Error::Closed)), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_wrong_tag_ends_it_and_what_came_before_is_given() {
    let (messages, mut wire, mut peer) = by_hand().await;
    let (mut receiver, _sender) = messages.into_split();
    let mut bytes = sealed(&mut peer, b"good");
    let mut bad = sealed(&mut peer, b"bad");
    *bad.last_mut().unwrap() ^= 1;
    bytes.extend(bad);
    bytes.extend(sealed(&mut peer, b"good again"));
    wire.write_all(&bytes).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap(), Some(&b"good"[..]));
    let error = receiver.recv().await.unwrap_err();
    assert!(
        matches!(error, TransportError::Protocol(Error::Unauthentic)),
        "{error:?}"
    );
    for _ in 0..2 {
        let error = receiver.recv().await.unwrap_err();
        assert!(matches!(error, TransportError::Protocol(Error::Closed)), "{error:?}");
    }
}

#[tokio::test]
async fn has_message_does_not_wait() {
    let (messages, mut wire, mut peer) = by_hand().await;
    let (mut receiver, _sender) = messages.into_split();
    assert!(!receiver.has_message().unwrap());
    let bytes = [sealed(&mut peer, b"one"), sealed(&mut peer, b"two")].concat();
    wire.write_all(&bytes).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap(), Some(&b"one"[..]));
    assert!(receiver.has_message().unwrap() && receiver.has_message().unwrap());
    assert_eq!(receiver.recv().await.unwrap(), Some(&b"two"[..]));
    assert!(!receiver.has_message().unwrap());
}

#[tokio::test]
async fn a_stream_that_ends_within_a_message_was_cut_off() {
    for keep in [1, 2, 3, 4, 22] {
        let (mut messages, mut wire, mut peer) = by_hand().await;
        wire.write_all(&sealed(&mut peer, b"abc")[..keep]).await.unwrap();
        drop(wire);
        let error = messages.recv().await.unwrap_err();
        assert!(matches!(error, TransportError::CutOff), "{keep}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_stalls_is_given_up_and_silence_between_messages_is_not() {
    let (mut messages, mut wire, mut peer) = by_hand().await;
    assert!(timeout(Duration::from_secs(100_000), messages.recv()).await.is_err());
    let bytes = sealed(&mut peer, &contents(1, 200_000));
    wire.write_all(&bytes[..100_000]).await.unwrap();
    let began = Instant::now();
    // Given up on the way and called again: the time goes on.
    assert!(timeout(Duration::from_secs(30), messages.recv()).await.is_err());
    let error = messages.recv().await.unwrap_err();
    assert!(matches!(error, TransportError::Stalled { .. }), "{error:?}");
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_trickles_has_its_own_limit() {
    let (mut messages, mut wire, mut peer) = by_hand().await;
    messages.set_patience(Patience {
        silence: Duration::from_secs(10),
        message: Duration::from_secs(100),
    });
    let bytes = sealed(&mut peer, &contents(1, 1000));
    let trickle = tokio::spawn(async move {
        for byte in bytes {
            if wire.write_all(&[byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(9)).await;
        }
    });
    let began = Instant::now();
    let error = messages.recv().await.unwrap_err();
    assert!(matches!(error, TransportError::Stalled { .. }), "{error:?}");
    assert_eq!(began.elapsed().as_secs(), 100);
    drop(messages);
    trickle.await.unwrap();
}

#[tokio::test]
async fn a_length_above_the_limit_is_refused_at_once() {
    let (a, b) = tokio::io::duplex(1 << 16);
    let generous = Options::default();
    let mut strict = Options::default();
    strict.contents_limit = 1000;
    let here = connect(a, Magic::REGTEST, key(Role::Initiator), generous, HANDSHAKE_LIMIT);
    let there = sealway_bip324_tokio::accept(b, Magic::REGTEST, key(Role::Responder), strict, HANDSHAKE_LIMIT);
    let (here, there) = tokio::join!(here, there);
    let sealway_bip324_tokio::Accepted::V2(mut there) = there.unwrap() else {
        panic!("taken for v1")
    };
    let mut here = here.unwrap();
    here.send(&[0; 1000]).await.unwrap();
    here.send(&[0; 1001]).await.unwrap();
    assert_eq!(there.recv().await.unwrap().map(<[u8]>::len), Some(1000));
    let error = there.recv().await.unwrap_err();
    let want = Error::PacketTooLong {
        claimed: 1001,
        limit: 1000,
    };
    assert!(
        matches!(&error, TransportError::Protocol(error) if *error == want),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_listen_holds_the_sender_back() {
    let (a, b) = pair(1000).await;
    let (_receiver, mut sender) = a.into_split();
    let mut taken = 0;
    while timeout(Duration::from_secs(1), sender.send(&[7; 10_000])).await.is_ok() {
        taken += 1;
        assert!(sender.waiting() < (1 << 20) + 10_100 && taken < 1000);
    }
    assert!(taken > 90, "{taken}");
    // What was taken comes, and nothing else.
    let (mut receiver, _sender) = b.into_split();
    let reading = async {
        for _ in 0..taken {
            assert_eq!(receiver.recv().await.unwrap().map(<[u8]>::len), Some(10_000));
        }
        receiver.recv().await.unwrap().is_none()
    };
    let (ended, done) = tokio::join!(reading, sender.shutdown());
    assert!(ended && done.is_ok());
}

#[tokio::test(start_paused = true)]
async fn v1_peers_have_the_same_limits() {
    let message = Message {
        command: "block".parse().unwrap(),
        payload: &[7; 1000],
    };
    let mut bytes = Vec::new();
    sealway_bip324::message::v1::encode(Magic::REGTEST, &message, &mut bytes).unwrap();
    let receiver = |limit| {
        let (a, wire) = tokio::io::duplex(1 << 16);
        (V1Receiver::new(a, Magic::REGTEST, limit, Vec::new()), wire)
    };
    let wrong = |error: TransportError| match error {
        TransportError::Protocol(error) => error,
        other => panic!("{other:?}"),
    };
    // A stall, an early end, another network, too long.
    let (mut stalled, mut wire) = receiver(1000);
    wire.write_all(&bytes[..500]).await.unwrap();
    assert!(matches!(
        stalled.recv().await.unwrap_err(),
        TransportError::Stalled { .. }
    ));
    let (mut cut, mut wire) = receiver(1000);
    wire.write_all(&bytes[..500]).await.unwrap();
    drop(wire);
    assert!(matches!(cut.recv().await.unwrap_err(), TransportError::CutOff));
    assert_eq!(wrong(cut.recv().await.unwrap_err()), Error::Closed);
    let (mut other, mut wire) = receiver(1000);
    wire.write_all(&Magic::MAINNET.v1_prefix()).await.unwrap();
    wire.write_all(&[0; 8]).await.unwrap();
    assert_eq!(
        wrong(other.recv().await.unwrap_err()),
        Error::V1Magic { got: Magic::MAINNET }
    );
    let (mut long, mut wire) = receiver(999);
    wire.write_all(&bytes).await.unwrap();
    assert!(matches!(wrong(long.recv().await.unwrap_err()), Error::V1TooLong { .. }));
    // A sender whose stream is gone says so, and then that it is closed.
    let (gone, wire) = tokio::io::duplex(10);
    drop(wire);
    let mut sender = V1Sender::new(gone, Magic::REGTEST, 1);
    sender.feed(&message).await.unwrap();
    assert!(matches!(sender.flush().await.unwrap_err(), TransportError::Io(_)));
    assert_eq!(wrong(sender.feed(&message).await.unwrap_err()), Error::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_garbled_message_of_v1_is_dropped_and_the_time_for_the_next_one_begins() {
    let message = Message {
        command: "block".parse().unwrap(),
        payload: &[7; 1000],
    };
    let mut good = Vec::new();
    sealway_bip324::message::v1::encode(Magic::REGTEST, &message, &mut good).unwrap();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    let (a, mut wire) = tokio::io::duplex(1 << 16);
    let mut receiver = V1Receiver::new(a, Magic::REGTEST, 1000, Vec::new());
    wire.write_all(&[&bad[..], &good, &bad].concat()).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap(), Some(message));
    assert!(!receiver.has_message().unwrap());
    assert_eq!(receiver.received().dropped, 2);
    // Nothing is due between messages, whatever the last one was.
    assert!(timeout(Duration::from_secs(100_000), receiver.recv()).await.is_err());
    wire.write_all(&good).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap(), Some(message));
    wire.write_all(&bad).await.unwrap();
    drop(wire);
    assert_eq!(receiver.recv().await.unwrap(), None);
    assert_eq!((receiver.received().messages, receiver.received().dropped), (2, 3));
}
