//! How connections begin.

use std::time::Duration;

use sealway_bip324::{Error, Fault, Magic, Options, Role};
use sealway_bip324_tokio::v1::{V1Receiver, V1Sender};
use sealway_bip324_tokio::{
    Accepted, HANDSHAKE_LIMIT, Messages, TransportError, accept, connect, draw_garbage, draw_key,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{Choppy, contents, key, pair_over};

/// Takes a message, and sends what is left to send.
async fn one<S: AsyncRead + AsyncWrite + Unpin>(end: &mut Messages<S>) -> Vec<u8> {
    let message = end.recv().await.unwrap().unwrap().to_vec();
    end.flush().await.unwrap();
    message
}

#[tokio::test]
async fn both_roles_meet_over_every_stream() {
    for most in [1, 3, 63, 64, 65, 5000] {
        for garbage in [0, 1, 4095] {
            let (a, b) = tokio::io::duplex(most);
            let mut options = Options::default();
            options.garbage = contents(1, garbage);
            options.decoys = vec![vec![0; 10], vec![]];
            let (a, b) = (Choppy::new(a, most, true), Choppy::new(b, most, true));
            let (mut a, mut b) = pair_over(a, b, options).await;
            assert_eq!(a.session_id(), b.session_id());
            assert_eq!((a.role(), b.role()), (Role::Initiator, Role::Responder));
            assert_eq!((a.sent().decoys, b.received().decoys), (2, 2));
            a.send(b"from a").await.unwrap();
            b.send(b"from b").await.unwrap();
            let (got_a, got_b) = tokio::join!(one(&mut a), one(&mut b));
            assert_eq!(
                (&got_a[..], &got_b[..]),
                (&b"from b"[..], &b"from a"[..]),
                "{most}, {garbage}"
            );
            // Both hand everything to the stream before they wait for its end.
            let (done_a, done_b) = tokio::join!(a.shutdown(), b.shutdown());
            assert!(done_a.is_ok() && done_b.is_ok());
            let (got_a, got_b) = tokio::join!(a.recv(), b.recv());
            assert_eq!((got_a.unwrap(), got_b.unwrap()), (None, None));
            // Every byte is counted at both ends.
            assert_eq!(a.sent().bytes, b.received().bytes);
            assert_eq!(b.sent().bytes, a.received().bytes);
        }
    }
}

#[tokio::test]
async fn what_follows_the_handshake_at_once_is_kept() {
    // A peer that sends messages with its version packet: in one read, or with a message cut in two.
    for cut in [0, 1, 3, 20, 40] {
        let (a, mut wire) = tokio::io::duplex(1 << 20);
        let mut peer =
            sealway_bip324::Connection::responder(Magic::REGTEST, key(Role::Responder), Options::default()).unwrap();
        let peer_side = async {
            let mut buffer = vec![0; 4096];
            while !peer.can_send() {
                let n = wire.read(&mut buffer).await.unwrap();
                peer.handle_input(&buffer[..n]).unwrap();
            }
            peer.send(b"first").unwrap();
            peer.send(b"second").unwrap();
            let out = peer.output().to_vec();
            let (first, rest) = out.split_at(out.len() - cut);
            wire.write_all(first).await.unwrap();
            tokio::task::yield_now().await;
            wire.write_all(rest).await.unwrap();
        };
        let connecting = connect(
            a,
            Magic::REGTEST,
            key(Role::Initiator),
            Options::default(),
            HANDSHAKE_LIMIT,
        );
        let (messages, ()) = tokio::join!(connecting, peer_side);
        let mut messages = messages.unwrap();
        assert_eq!(messages.recv().await.unwrap(), Some(&b"first"[..]), "{cut}");
        assert_eq!(messages.recv().await.unwrap(), Some(&b"second"[..]), "{cut}");
    }
}

#[tokio::test]
async fn a_v1_peer_is_given_back_with_its_first_bytes() {
    for most in [1, 15, 16, 17, 100] {
        let (a, b) = tokio::io::duplex(1 << 16);
        let mut peer = V1Sender::new(Choppy::new(a, most, true), Magic::REGTEST, 1 << 16);
        let version = sealway_bip324::message::Message {
            command: "version".parse().unwrap(),
            payload: b"not much of one",
        };
        peer.feed(&version).await.unwrap();
        peer.flush().await.unwrap();
        let accepting = accept(
            b,
            Magic::REGTEST,
            key(Role::Responder),
            Options::default(),
            HANDSHAKE_LIMIT,
        );
        let Accepted::V1 { io, received } = accepting.await.unwrap() else {
            panic!("taken for v2")
        };
        assert!(received.len() >= 16 && received.starts_with(&Magic::REGTEST.v1_prefix()));
        let mut receiver = V1Receiver::new(io, Magic::REGTEST, 1000, received);
        assert_eq!(receiver.recv().await.unwrap(), Some(version));
        peer.shutdown().await.unwrap();
        assert_eq!(receiver.recv().await.unwrap(), None);
    }
}

#[tokio::test]
async fn the_first_byte_that_is_not_of_v1_is_answered() {
    let (a, mut wire) = tokio::io::duplex(1 << 16);
    let accepting = accept(
        a,
        Magic::REGTEST,
        key(Role::Responder),
        Options::default(),
        HANDSHAKE_LIMIT,
    );
    let accepting = tokio::spawn(accepting);
    wire.write_all(&[0xfa, 0xbf, 0]).await.unwrap();
    let mut answer = [0; 64];
    wire.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, *key(Role::Responder).encoding());
    drop(wire);
    let error = accepting.await.unwrap().unwrap_err();
    assert!(matches!(error.error, TransportError::CutOff), "{error:?}");
    assert_eq!((error.peer_may_speak_v1_only, error.bytes_received), (false, 3));
}

#[tokio::test]
async fn another_network_is_refused() {
    let (a, mut wire) = tokio::io::duplex(1 << 16);
    wire.write_all(&Magic::MAINNET.v1_prefix()).await.unwrap();
    let accepting = accept(
        a,
        Magic::REGTEST,
        key(Role::Responder),
        Options::default(),
        HANDSHAKE_LIMIT,
    );
    let error = accepting.await.unwrap_err();
    let other = Error::OtherNetwork { magic: Magic::MAINNET };
    assert!(
        matches!(&error.error, TransportError::Protocol(error) if *error == other),
        "{error:?}"
    );
    assert_eq!(error.error.fault(), Fault::Peer);
}

#[tokio::test]
async fn v1_only_is_suspected_of_a_peer_that_says_nothing() {
    for (read, answer, suspected) in [(64, 0, true), (24, 0, true), (64, 1, false), (64, 64, false)] {
        let (a, mut wire) = tokio::io::duplex(read);
        let connecting = connect(
            a,
            Magic::REGTEST,
            key(Role::Initiator),
            Options::default(),
            HANDSHAKE_LIMIT,
        );
        let peer = async move {
            let mut buffer = vec![0; read.min(64)];
            wire.read_exact(&mut buffer).await.unwrap();
            wire.write_all(&vec![7; answer]).await.unwrap();
        };
        let (connected, ()) = tokio::join!(connecting, peer);
        let error = connected.unwrap_err();
        assert_eq!(error.peer_may_speak_v1_only, suspected, "{read}, {answer}: {error:?}");
        assert_eq!(error.bytes_received, answer as u64);
    }
    // A peer that is gone before it was sent a header's length may speak anything.
    let (a, wire) = tokio::io::duplex(23);
    let connecting = connect(
        a,
        Magic::REGTEST,
        key(Role::Initiator),
        Options::default(),
        HANDSHAKE_LIMIT,
    );
    let peer = async move {
        tokio::task::yield_now().await;
        drop(wire);
    };
    let (connected, ()) = tokio::join!(connecting, peer);
    assert!(!connected.unwrap_err().peer_may_speak_v1_only);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_ends_in_time_however_slow_the_peer() {
    let limit = Duration::from_secs(60);
    // Silent, and one byte every ten seconds.
    for slow in [false, true] {
        let (a, mut wire) = tokio::io::duplex(1 << 16);
        let peer = tokio::spawn(async move {
            while slow && wire.write_all(&[7]).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            // Held open until the other end closes.
            let _ = wire.read_to_end(&mut Vec::new()).await;
        });
        let began = tokio::time::Instant::now();
        let options = Options::default();
        let connected = connect(a, Magic::REGTEST, key(Role::Initiator), options, limit).await;
        let error = connected.unwrap_err();
        assert!(matches!(error.error, TransportError::HandshakeTime { .. }), "{error:?}");
        assert_eq!(began.elapsed().as_secs(), 60);
        assert_eq!(error.peer_may_speak_v1_only, !slow);
        peer.await.unwrap();
    }
}

#[test]
fn what_is_drawn_depends_on_the_generator() {
    let mut byte = 0;
    let mut random = |out: &mut [u8]| {
        byte += 1;
        out.fill(byte);
        Ok(())
    };
    let one = *draw_key(&mut random).unwrap().encoding();
    assert_ne!(one, *draw_key(&mut random).unwrap().encoding());
    let lengths: Vec<_> = (0..40).map(|_| draw_garbage(&mut random).unwrap().len()).collect();
    assert!(lengths.iter().all(|len| *len <= 4095) && lengths.iter().any(|len| *len > 2048));
    assert!(draw_key(&mut |_| Err(std::io::Error::other("empty"))).is_err());
    // Zero is no key; a generator that gives nothing else is broken.
    assert!(
        draw_key(&mut |out| {
            out.fill(0);
            Ok(())
        })
        .is_err()
    );
}
