//! Records as a stream, and gRPC over them.

use std::io::ErrorKind;
use std::sync::Arc;

use sealway_aead::{Suite, choose::Offer};
use sealway_drop_mount::grpc::stream::{RECORD, SealedStream};
use sealway_drop_mount::grpc::{GrpcTree, ServeOptions, serve};
use sealway_drop_mount::tree::{MemoryTree, RemoteTree};
use sealway_session::handshake::{Auth, Config, Established, Handshake, Kem, Role};
use sealway_session::record::OVERHEAD;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::{bytes, runtime};
use crate::lines::{call, path};

fn established() -> (Established, Established) {
    let mut random = |out: &mut [u8]| getrandom::fill(out).unwrap();
    let config = |role| Config {
        role,
        auth: Auth::Code(b"one two three".to_vec().into()),
        offer: Offer::new(&[Suite::Aes256Gcm, Suite::ChaCha20Poly1305], true).unwrap(),
        kem: Kem::MlKem768,
        prologue: Vec::new(),
    };
    let mut here = Handshake::new(config(Role::Initiator), &mut random).unwrap();
    let mut there = Handshake::new(config(Role::Responder), &mut random).unwrap();
    while !(here.is_done() && there.is_done()) {
        if let Some(flight) = here.write() {
            there.read(&flight).unwrap();
        }
        if let Some(flight) = there.write() {
            here.read(&flight).unwrap();
        }
    }
    (here.finish().unwrap(), there.finish().unwrap())
}

fn sealed(room: usize) -> (SealedStream<DuplexStream>, SealedStream<DuplexStream>) {
    let (here, there) = tokio::io::duplex(room);
    let (one, other) = established();
    let here = SealedStream::new(here, one.send, one.recv, 3, 9);
    (here, SealedStream::new(there, other.send, other.recv, 3, 9))
}

#[test]
fn what_is_written_is_read_and_ends_when_it_was_closed() {
    runtime().block_on(async {
        for room in [1, 100, RECORD, 4 << 20] {
            let len = if room < 200 { 20_000 } else { 3_000_000 };
            let (mut here, mut there) = sealed(room);
            let content = bytes(len);
            let sent = content.clone();
            let writer = tokio::spawn(async move {
                // Pieces of all sizes.
                let (mut rest, mut size) = (&sent[..], 1);
                while !rest.is_empty() {
                    let (piece, tail) = rest.split_at(size.min(rest.len()));
                    here.write_all(piece).await.unwrap();
                    (rest, size) = (tail, size * 3 % 400_000 + 1);
                }
                here.shutdown().await.unwrap();
                here
            });
            let mut got = Vec::new();
            there.read_to_end(&mut got).await.unwrap();
            assert!(got == content);
            assert_eq!(there.read(&mut [0; 10]).await.unwrap(), 0, "the end stays the end");
            // The other direction is still open.
            let mut here = writer.await.unwrap();
            let answer = async {
                there.write_all(b"thanks").await.unwrap();
                there.shutdown().await.unwrap();
            };
            got.clear();
            let (read, ()) = tokio::join!(here.read_to_end(&mut got), answer);
            read.unwrap();
            assert_eq!(got, b"thanks");
        }
    });
}

#[test]
fn an_end_without_a_close_is_no_end() {
    runtime().block_on(async {
        let (mut here, mut there) = sealed(1 << 20);
        here.write_all(b"some").await.unwrap();
        here.flush().await.unwrap();
        drop(here);
        let mut got = Vec::new();
        assert_eq!(
            there.read_to_end(&mut got).await.unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
        assert_eq!(got, b"some");
    });
}

#[test]
fn a_changed_byte_and_another_stream_are_errors() {
    runtime().block_on(async {
        for at in [0, 3, 5, 20, OVERHEAD + 3] {
            let (one, other) = established();
            let (raw, mut sent) = tokio::io::duplex(1 << 20);
            let mut here = SealedStream::new(raw, one.send, one.recv, 3, 9);
            here.write_all(b"text").await.unwrap();
            let mut record = vec![0; OVERHEAD + 4];
            sent.read_exact(&mut record).await.unwrap();
            record[at] ^= 1;
            let (mut feed, raw) = tokio::io::duplex(1 << 20);
            feed.write_all(&record).await.unwrap();
            drop(feed);
            let mut there = SealedStream::new(raw, other.send, other.recv, 3, 9);
            let error = there.read(&mut [0; 100]).await.unwrap_err();
            // A changed length may ask for more than there is.
            assert!(
                [ErrorKind::InvalidData, ErrorKind::UnexpectedEof].contains(&error.kind()),
                "{at}: {error}"
            );
        }
        let (one, other) = established();
        let (here, there) = tokio::io::duplex(1 << 20);
        let mut here = SealedStream::new(here, one.send, one.recv, 3, 9);
        let mut there = SealedStream::new(there, other.send, other.recv, 3, 10);
        here.write_all(b"text").await.unwrap();
        assert_eq!(
            there.read(&mut [0; 100]).await.unwrap_err().kind(),
            ErrorKind::InvalidData
        );
    });
}

#[test]
fn a_tree_is_served_over_records() {
    let tree = MemoryTree::new();
    let content = bytes(9 << 20);
    tree.put_file(&path("file"), content.clone());
    let runtime = runtime();
    let (here, there) = sealed(1 << 18);
    runtime.spawn(serve(there, Arc::new(tree), ServeOptions::default()));
    let remote = runtime.block_on(GrpcTree::connect(here)).unwrap();
    let opened = remote.open(&path("file"), &call()).unwrap();
    for at in 0..9 {
        let chunk = remote.read(opened.handle, at << 20, 1 << 20, &call()).unwrap();
        assert!(chunk.data == content[(at as usize) << 20..][..1 << 20]);
    }
    let mut whole = Vec::new();
    runtime
        .block_on(remote.stream_file(&path("file"), 0, |piece| {
            whole.extend_from_slice(&piece);
            Ok(())
        }))
        .unwrap();
    assert!(whole == content);
}
