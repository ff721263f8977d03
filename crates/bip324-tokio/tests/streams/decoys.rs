//! Decoys by a policy: among messages, and while there are none.

use std::time::Duration;

use sealway_bip324::Options;
use sealway_bip324::decoy::{DecoyPolicy, Decoys};
use sealway_bip324_tokio::ByteStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use crate::{LENGTHS, contents, pair, pair_over};

fn decoys(percent: u8, max: usize) -> Option<Decoys> {
    let policy = DecoyPolicy::new(percent, 0, max).unwrap();
    Some(Decoys::new(policy, &[9; 32]))
}

#[tokio::test]
async fn messages_are_the_same_and_decoys_are_as_many_as_asked_for() {
    for (percent, wanted) in [(0, 0..=0), (5, 60..=140), (50, 900..=1100), (100, 2000..=2000)] {
        let (mut a, b) = pair(1 << 16).await;
        a.set_decoys(decoys(percent, 64));
        let (_, mut sender) = a.into_split();
        let (mut receiver, _writer) = b.into_split();
        let sending = async {
            for number in 0..2000 {
                sender.send(&contents(number, number % 97)).await.unwrap();
            }
            sender.shutdown().await.unwrap();
            sender.sent()
        };
        let receiving = async {
            for number in 0..2000 {
                let message = receiver.recv().await.unwrap().unwrap();
                assert!(message == contents(number, number % 97), "message {number}");
            }
            assert_eq!(receiver.recv().await.unwrap(), None);
            receiver.received()
        };
        let (sent, received) = tokio::join!(sending, receiving);
        assert_eq!((sent.messages, received.messages), (2000, 2000));
        assert_eq!((sent.decoys, sent.bytes), (received.decoys, received.bytes));
        assert!(wanted.contains(&sent.decoys), "{} of {percent} %", sent.decoys);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_gets_no_decoys_and_memory_stays_bounded() {
    let (a, b) = tokio::io::duplex(1000);
    let mut options = Options::default();
    options.output_limit = 5000;
    let (mut a, b) = pair_over(a, b, options).await;
    a.set_decoys(decoys(100, 300));
    let (_, mut sender) = a.into_split();
    let mut taken = 0;
    while timeout(Duration::from_secs(1), sender.send(&[7; 100])).await.is_ok() {
        taken += 1;
        assert!(sender.waiting() < 5000 + 120 + 320);
    }
    let decoys = sender.sent().decoys;
    for _ in 0..10 {
        assert!(timeout(Duration::from_secs(1), sender.send(&[7; 100])).await.is_err());
        let cover = sender.cover(Duration::from_millis(1));
        assert!(timeout(Duration::from_secs(1), cover).await.is_err());
    }
    assert_eq!(sender.sent().decoys, decoys);
    // What was taken comes, in its order.
    let (mut receiver, _writer) = b.into_split();
    let reading = async {
        for _ in 0..taken {
            assert_eq!(receiver.recv().await.unwrap(), Some(&[7; 100][..]));
        }
        receiver.recv().await.unwrap().is_none()
    };
    let (ended, done) = tokio::join!(reading, sender.shutdown());
    assert!(ended && done.is_ok());
}

#[tokio::test(start_paused = true)]
async fn cover_comes_at_its_rate_and_ends_when_it_is_dropped() {
    let (mut a, b) = pair(1 << 16).await;
    a.set_decoys(decoys(0, 50));
    let (_, mut sender) = a.into_split();
    let (mut receiver, _writer) = b.into_split();
    let mean = Duration::from_secs(2);
    let mut came = 0;
    // Begun anew more often than one comes: that changes nothing.
    for (length, times) in [(2000, 1), (1, 2000)] {
        for number in 0..times {
            let length = Duration::from_secs(length);
            let (cover, nothing) = tokio::join!(timeout(length, sender.cover(mean)), timeout(length, receiver.recv()));
            assert!(cover.is_err() && nothing.is_err(), "something ended, or was no decoy");
            if times > 1 {
                sender.send(&contents(number, 40)).await.unwrap();
                assert!(receiver.recv().await.unwrap() == Some(&contents(number, 40)[..]));
            }
        }
        let decoys = receiver.received().decoys - came;
        assert!((850..1150).contains(&decoys), "{decoys}");
        came += decoys;
    }
    let before = Instant::now();
    sender.shutdown().await.unwrap();
    assert_eq!(receiver.recv().await.unwrap(), None);
    assert_eq!((receiver.received().decoys, before.elapsed()), (came, Duration::ZERO));
    assert!(sender.cover(mean).await.is_err(), "the direction is over");
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_there_is_no_cover() {
    let (a, _b) = pair(1000).await;
    let (_, mut sender) = a.into_split();
    let cover = sender.cover(Duration::from_millis(1));
    assert!(timeout(Duration::from_secs(1000), cover).await.is_err());
    assert_eq!(sender.sent().decoys, 0);
}

#[tokio::test]
async fn bytes_are_the_same_with_decoys_among_them() {
    let (mut a, b) = pair(1 << 16).await;
    a.set_decoys(decoys(100, 1000));
    let (mut a, mut b) = (ByteStream::new(a), ByteStream::new(b));
    let bytes: Vec<u8> = LENGTHS.iter().flat_map(|len| contents(*len, *len)).collect();
    let sending = async {
        a.write_all(&bytes).await.unwrap();
        a.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let ((), read) = tokio::join!(sending, b.read_to_end(&mut got));
    read.unwrap();
    assert!(got == bytes && b.messages().received().decoys > 100);
}

#[tokio::test]
async fn no_decoy_follows_the_end_of_bytes() {
    let (mut a, b) = pair(1 << 16).await;
    a.set_decoys(decoys(100, 10));
    let (mut a, mut b) = (ByteStream::new(a), ByteStream::new(b));
    for byte in 0..3 {
        a.write_all(&[byte]).await.unwrap();
    }
    a.shutdown().await.unwrap();
    let sent = a.messages().sent();
    assert_eq!((sent.messages, sent.decoys), (4, 3));
    let mut got = Vec::new();
    b.read_to_end(&mut got).await.unwrap();
    assert_eq!((&got[..], b.messages().received().decoys), (&[0, 1, 2][..], 3));
}
