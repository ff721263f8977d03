//! Connections of a batch beside the same ones alone.

use std::collections::VecDeque;

use super::Bytes;
use crate::batch::{BatchOptions, BatchTransport, ConnectionId};
use crate::fschacha::{PacketNumber, RecvChain, SendChain};
use crate::{Error, Kind, PacketSealer};

/// A connection to itself.
struct Peer {
    id: ConnectionId,
    alone: PacketSealer,
    /// What was sealed alone and is to come out of the batch.
    want: Vec<u8>,
    wire: VecDeque<u8>,
    sent: VecDeque<Vec<u8>>,
    /// True once a byte on the way was changed.
    damaged: bool,
    over: bool,
}

fn options() -> BatchOptions {
    let mut options = BatchOptions::default();
    options.send_arena = 20_000;
    options.receive_arena = 70_000;
    options.contents_limit = 2000;
    options.connections_limit = 6;
    options
}

fn add(batch: &mut BatchTransport, bytes: &mut Bytes<'_>) -> Option<Peer> {
    let key = [bytes.byte(); 32];
    let first = PacketNumber::new(u64::from(bytes.byte()) << (bytes.byte() % 50), bytes.byte() % 224)?;
    let send = || SendChain::resume(&key, &key, first).ok();
    let recv = RecvChain::resume(&key, &key, first).ok()?;
    match batch.add(send()?, recv, &[]) {
        Ok(id) => Some(Peer {
            id,
            alone: PacketSealer::new(send()?),
            want: Vec::new(),
            wire: VecDeque::new(),
            sent: VecDeque::new(),
            damaged: false,
            over: false,
        }),
        Err(error) => {
            assert_eq!(error, Error::TooManyConnections { limit: 6 });
            None
        }
    }
}

/// A list of operations on a batch of up to six connections.
pub(super) fn batch(data: &[u8]) {
    let mut bytes = Bytes(data);
    let Ok(mut batch) = BatchTransport::new(options()) else {
        panic!("the options are in order");
    };
    let mut peers: Vec<Peer> = Vec::new();
    for _ in 0..600 {
        if bytes.0.is_empty() {
            break;
        }
        let op = bytes.byte();
        if op & 7 == 0 {
            peers.extend(add(&mut batch, &mut bytes));
            continue;
        }
        let count = peers.len().max(1);
        let Some(peer) = peers.get_mut(usize::from(op >> 3) % count) else {
            continue;
        };
        match op & 7 {
            1 | 2 => {
                let kind = if op & 1 == 1 { Kind::Genuine } else { Kind::Decoy };
                let contents = vec![op; bytes.short() % 2001];
                for _ in 0..1 + bytes.byte() % 60 {
                    submit(&mut batch, peer, kind, &contents);
                }
            }
            3 => seal(&mut batch, &mut peers),
            4 => {
                if let Some(byte) = peer.wire.back_mut() {
                    *byte ^= bytes.byte().max(1);
                    peer.damaged = true;
                }
            }
            5 => receive(&mut batch, peer, bytes.short()),
            6 => open(&mut batch, &mut peers),
            _ => {
                assert_eq!(batch.remove(peer.id), !peer.over);
                let id = peer.id;
                peers.retain(|peer| peer.id != id);
            }
        }
    }
    seal(&mut batch, &mut peers);
    open(&mut batch, &mut peers);
    for _ in 0..40 {
        peers.iter_mut().for_each(|peer| receive(&mut batch, peer, usize::MAX));
        open(&mut batch, &mut peers);
    }
    for peer in peers.iter().filter(|peer| !peer.damaged) {
        assert!(peer.wire.is_empty() && peer.sent.is_empty(), "something was lost");
    }
    let counters = batch.counters();
    assert!(counters.packets_received <= counters.packets_sent);
}

fn submit(batch: &mut BatchTransport, peer: &mut Peer, kind: Kind, contents: &[u8]) {
    match batch.submit(peer.id, kind, contents) {
        Ok(()) => {
            assert_eq!(peer.alone.seal(kind, &[], contents, &mut peer.want), Ok(()));
            if kind == Kind::Genuine {
                peer.sent.push_back(contents.to_vec());
            }
        }
        Err(error) => assert!(
            match error {
                Error::Closed => peer.damaged,
                error => matches!(error, Error::ArenaFull { .. }),
            },
            "a packet was refused"
        ),
    }
    let next = batch.next_sent(peer.id);
    assert!(next.is_none() || next == peer.alone.next_number());
}

fn seal(batch: &mut BatchTransport, peers: &mut [Peer]) {
    for output in batch.seal().iter() {
        let Some(peer) = peers.iter_mut().find(|peer| peer.id == output.id) else {
            panic!("output of a connection that was removed");
        };
        let bytes: Vec<u8> = output.slices().flatten().copied().collect();
        assert!(bytes == peer.want, "other bytes than alone");
        peer.wire.extend(peer.want.drain(..));
    }
    // Of a connection that ended nothing is sent any more.
    for peer in peers {
        assert!(peer.want.is_empty() || peer.damaged, "output is missing");
        peer.want.clear();
    }
}

fn receive(batch: &mut BatchTransport, peer: &mut Peer, n: usize) {
    let n = n.min(peer.wire.len()).min(30_000);
    let part: Vec<u8> = peer.wire.range(..n).copied().collect();
    match batch.receive(peer.id, &part) {
        Ok(()) => drop(peer.wire.drain(..n)),
        Err(Error::ArenaFull { .. }) => {}
        Err(error) => {
            assert!(error == Error::Closed && peer.damaged, "{error}");
            peer.wire.clear();
        }
    }
}

fn open(batch: &mut BatchTransport, peers: &mut [Peer]) {
    for message in batch.open().iter() {
        if let Some(peer) = peers.iter_mut().find(|peer| peer.id == message.id) {
            assert!(!peer.over, "a message after the end");
            assert!(peer.sent.pop_front().is_some_and(|sent| sent == message.contents));
        }
    }
    while let Some((id, error)) = batch.poll_closed() {
        assert!(error.ends_connection() && !batch.contains(id));
        if let Some(peer) = peers.iter_mut().find(|peer| peer.id == id) {
            assert!(peer.damaged && !peer.over);
            peer.over = true;
            peer.sent.clear();
        }
    }
}
