//! Streams of bytes in packets.

use std::io::ErrorKind;

use sealway_bip324::Options;
use sealway_bip324_tokio::{BYTES_PER_PACKET, ByteStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{Choppy, contents, pair, pair_over};

#[tokio::test]
async fn bytes_come_as_they_went_both_ways_at_once() {
    for most in [3, 1000, 100_000] {
        let (a, b) = tokio::io::duplex(most);
        let (a, b) = (Choppy::new(a, most, true), Choppy::new(b, most, true));
        let (a, b) = pair_over(a, b, Options::default()).await;
        let mut tasks = Vec::new();
        let len = 20 * most.max(1000);
        for (own, other, end) in [(1, 2, a), (2, 1, b)] {
            let (mut read, mut write) = tokio::io::split(ByteStream::new(end));
            tasks.push(tokio::spawn(async move {
                let bytes = contents(own, len);
                let (some, rest) = bytes.split_at(len / 3);
                write.write_all(some).await.unwrap();
                write.write_all(&[]).await.unwrap();
                write.flush().await.unwrap();
                write.write_all(rest).await.unwrap();
                write.shutdown().await.unwrap();
                let error = write.write_all(b"more").await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotConnected);
                write.shutdown().await.unwrap();
            }));
            tasks.push(tokio::spawn(async move {
                let mut got = Vec::new();
                read.read_to_end(&mut got).await.unwrap();
                assert!(got == contents(other, len), "{most}");
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_mapping_is_the_one_that_is_documented() {
    let (a, mut b) = pair(1 << 20).await;
    let mut a = ByteStream::new(a);
    a.write_all(b"abc").await.unwrap();
    a.write_all(&[7; BYTES_PER_PACKET + 1]).await.unwrap();
    a.shutdown().await.unwrap();
    assert_eq!(b.recv().await.unwrap(), Some(&b"abc"[..]));
    assert_eq!(b.recv().await.unwrap(), Some(&[7; BYTES_PER_PACKET][..]));
    assert_eq!(b.recv().await.unwrap(), Some(&[7][..]));
    assert_eq!(b.recv().await.unwrap(), Some(&[][..]));
    assert_eq!(b.recv().await.unwrap(), None);
    // The other way packets may have any length, and reads any room.
    b.send(&[1; 100_000]).await.unwrap();
    b.send(b"").await.unwrap();
    b.flush().await.unwrap();
    let mut got = vec![0; 99_999];
    a.read_exact(&mut got).await.unwrap();
    assert!(got.iter().all(|byte| *byte == 1));
    assert_eq!(a.read(&mut []).await.unwrap(), 0);
    assert_eq!(a.read(&mut got).await.unwrap(), 1);
    assert_eq!(a.read(&mut got).await.unwrap(), 0);
    assert_eq!(a.read(&mut got).await.unwrap(), 0);
}

#[tokio::test]
async fn an_end_that_is_not_authentic_is_an_error() {
    let (a, mut b) = pair(1 << 20).await;
    let mut a = ByteStream::new(a);
    b.send(b"abc").await.unwrap();
    b.shutdown().await.unwrap();
    let mut got = Vec::new();
    let error = a.read_to_end(&mut got).await.unwrap_err();
    assert_eq!((error.kind(), &got[..]), (ErrorKind::UnexpectedEof, &b"abc"[..]));

    let (a, mut b) = pair(1 << 20).await;
    let mut a = ByteStream::new(a);
    for message in [&b"abc"[..], b"", b"after the end"] {
        b.feed(message).await.unwrap();
    }
    b.flush().await.unwrap();
    // Asked again it is the same error, not the end that the bytes never had, and nothing of what follows is given.
    for _ in 0..3 {
        let mut got = Vec::new();
        let error = a.read_to_end(&mut got).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(got.is_empty() || got == b"abc", "{got:?}");
    }
}
