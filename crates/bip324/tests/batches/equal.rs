//! What a batch gives is what one packet after the other gives, whatever the order, the cuts and the epochs.

use proptest::prelude::*;
use sealway_bip324::batch::{Backend, BatchOptions, BatchTransport, ConnectionId};
use sealway_bip324::fschacha::{PacketNumber, RecvChain, SendChain};
use sealway_bip324::{Awaiting, Error, Event, Kind, Options, PacketOpener, PacketSealer};

use crate::both::small;
use crate::common::{Numbers, pair};

/// A connection to itself, in the batch and beside it.
struct Peer {
    id: ConnectionId,
    sealer: PacketSealer,
    /// What the sealer has sealed since the batch was last sealed.
    want: Vec<u8>,
    /// Contents that are on their way.
    expected: Vec<Vec<u8>>,
    /// Bytes that were sealed and not yet received.
    wire: Vec<u8>,
}

fn chains(numbers: &mut Numbers, from: PacketNumber) -> (SendChain, RecvChain, PacketSealer) {
    let keys: [[u8; 32]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| numbers.next() as u8));
    let send = || SendChain::resume(&keys[0], &keys[1], from).unwrap();
    let recv = RecvChain::resume(&keys[0], &keys[1], from).unwrap();
    (send(), recv, PacketSealer::new(send()))
}

fn peers(batch: &mut BatchTransport, numbers: &mut Numbers, count: usize, from: PacketNumber) -> Vec<Peer> {
    let each = (0..count).map(|_| {
        let (send, recv, sealer) = chains(numbers, from);
        Peer {
            id: batch.add(send, recv, &[]).unwrap(),
            sealer,
            want: Vec::new(),
            expected: Vec::new(),
            wire: Vec::new(),
        }
    });
    each.collect()
}

fn submit(batch: &mut BatchTransport, peer: &mut Peer, kind: Kind, contents: &[u8]) {
    assert_eq!(batch.next_sent(peer.id), peer.sealer.next_number());
    match kind {
        Kind::Genuine => batch
            .reserve(peer.id, kind, contents.len())
            .unwrap()
            .copy_from_slice(contents),
        Kind::Decoy => batch.submit(peer.id, kind, contents).unwrap(),
    }
    peer.sealer.seal(kind, &[], contents, &mut peer.want).unwrap();
    if kind == Kind::Genuine {
        peer.expected.push(contents.to_vec());
    }
}

/// Seals, and compares with what the sealers gave.
fn seal(batch: &mut BatchTransport, peers: &mut [Peer]) {
    let outgoing = batch.seal();
    assert_eq!(
        outgoing.connections(),
        peers.iter().filter(|peer| !peer.want.is_empty()).count()
    );
    for output in outgoing.iter() {
        let peer = peers.iter_mut().find(|peer| peer.id == output.id).unwrap();
        let bytes: Vec<u8> = output.slices().flatten().copied().collect();
        assert_eq!(bytes.len(), output.byte_count());
        assert!(bytes == peer.want, "{:?}: other bytes", peer.id);
        peer.wire.append(&mut peer.want);
    }
    assert!(peers.iter().all(|peer| peer.want.is_empty()), "output is missing");
}

/// Opens, and takes what came from what was expected.
fn open(batch: &mut BatchTransport, peers: &mut [Peer]) {
    for message in batch.open().iter() {
        let peer = peers.iter_mut().find(|peer| peer.id == message.id).unwrap();
        assert!(
            message.contents == peer.expected[0],
            "another message, or another order"
        );
        peer.expected.remove(0);
    }
    assert_eq!(batch.poll_closed(), None);
}

/// A list of operations, drawn from numbers.
fn operations(seed: u64, count: usize, steps: usize, from: PacketNumber, backend: Backend) {
    let mut numbers = Numbers(seed);
    let mut batch = BatchTransport::with_backend(small(), backend).unwrap();
    let mut peers = peers(&mut batch, &mut numbers, count, from);
    for _ in 0..steps {
        let which = numbers.below(peers.len());
        match numbers.below(12) {
            0..=5 => {
                let len = match numbers.below(20) {
                    0 => 0,
                    1 => 2000,
                    _ => numbers.below(200),
                };
                let kind = match numbers.below(5) {
                    0 => Kind::Decoy,
                    _ => Kind::Genuine,
                };
                let contents = numbers.bytes(len);
                submit(&mut batch, &mut peers[which], kind, &contents);
            }
            // Many small ones: epochs end.
            6 => {
                for n in 0..numbers.below(150) {
                    submit(&mut batch, &mut peers[which], Kind::Genuine, &[n as u8; 9][..n % 9]);
                }
            }
            7 | 8 => seal(&mut batch, &mut peers),
            9 | 10 => {
                let peer = &mut peers[which];
                let len = numbers.below(peer.wire.len() + 1);
                let bytes: Vec<u8> = peer.wire.drain(..len).collect();
                let received = batch.receive(peer.id, &bytes);
                assert_eq!(received, Ok(()));
            }
            _ => open(&mut batch, &mut peers),
        }
    }
    seal(&mut batch, &mut peers);
    for peer in &mut peers {
        batch.receive(peer.id, &peer.wire).unwrap();
        peer.wire.clear();
    }
    open(&mut batch, &mut peers);
    assert!(
        peers.iter().all(|peer| peer.expected.is_empty()),
        "messages did not come"
    );
    let counters = batch.counters();
    assert_eq!(counters.packets_sent, counters.packets_received);
    assert_eq!(counters.decoys_sent, counters.decoys_received);
    assert_eq!(counters.bytes_sent, counters.bytes_received);
    assert_eq!((counters.connections_failed, counters.fallbacks), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_operations_on_any_connections(seed: u64, count in 1usize..=50, epoch in 0u64..4, slot in 0u8..224) {
        let from = PacketNumber::new([0, 7, u64::from(u32::MAX), u64::MAX - 100][epoch as usize], slot).unwrap();
        operations(seed, count, 400, from, Backend::best());
    }
}

#[test]
fn every_backend_gives_the_same() {
    for backend in Backend::available() {
        operations(1, 7, 500, PacketNumber::FIRST, backend);
    }
}

/// One connection, 100 epochs, in batches of up to 13 of them.
#[test]
fn a_hundred_epochs() {
    let mut numbers = Numbers(5);
    let mut batch = BatchTransport::new(small()).unwrap();
    let mut peers = peers(&mut batch, &mut numbers, 2, PacketNumber::FIRST);
    let mut sent = 0;
    while sent < 22_400 {
        for n in 0..1 + numbers.below(3000) {
            submit(&mut batch, &mut peers[0], Kind::Genuine, &[7; 30][..n % 30]);
            if n % 1000 == 0 {
                submit(&mut batch, &mut peers[1], Kind::Genuine, b"now and then");
            }
            sent += 1;
        }
        seal(&mut batch, &mut peers);
        for peer in &mut peers {
            batch.receive(peer.id, &peer.wire).unwrap();
            peer.wire.clear();
        }
        open(&mut batch, &mut peers);
    }
    assert!(batch.next_sent(peers[0].id).unwrap().epoch() >= 100);
    assert!(peers.iter().all(|peer| peer.expected.is_empty()));
}

/// Packets that are submitted one after the other are one slice.
#[test]
fn one_write_sends_all_of_a_connection() {
    let mut numbers = Numbers(6);
    let mut batch = BatchTransport::new(small()).unwrap();
    let mut peers = peers(&mut batch, &mut numbers, 2, PacketNumber::FIRST);
    for n in 0..600 {
        submit(
            &mut batch,
            &mut peers[usize::from(n >= 300)],
            Kind::Genuine,
            b"contents",
        );
    }
    seal(&mut batch, &mut peers);
    for (output, peer) in batch.outgoing().iter().zip(&peers) {
        assert_eq!(output.as_slice(), Some(&peer.wire[..]));
    }
    submit(&mut batch, &mut peers[1], Kind::Genuine, b"a new batch");
    submit(&mut batch, &mut peers[0], Kind::Genuine, b"");
    submit(&mut batch, &mut peers[1], Kind::Genuine, b"again");
    seal(&mut batch, &mut peers);
    let slices: Vec<_> = batch.outgoing().iter().map(|output| output.slices().count()).collect();
    assert_eq!(slices, [2, 1]);
    assert_eq!(batch.outgoing().iter().next().unwrap().as_slice(), None);
}

/// The stream cut at each place, and into single bytes.
#[test]
fn every_cut_of_a_stream() {
    let mut numbers = Numbers(8);
    let from = PacketNumber::new(3, 221).unwrap();
    let (_, _, mut sealer) = chains(&mut Numbers(8), from);
    let (mut wire, mut expected) = (Vec::new(), Vec::new());
    for len in [0, 1, 40, 0, 300, 5] {
        let contents = numbers.bytes(len);
        let kind = [Kind::Genuine, Kind::Decoy][usize::from(len == 40)];
        sealer.seal(kind, &[], &contents, &mut wire).unwrap();
        if kind == Kind::Genuine {
            expected.push(contents);
        }
    }
    let pieces_of = |cut: usize| match cut {
        0 => wire.chunks(1).collect::<Vec<_>>(),
        cut => vec![&wire[..cut], &wire[cut..]],
    };
    for cut in 0..=wire.len() {
        for open_between in [false, true] {
            let (send, recv, _) = chains(&mut Numbers(8), from);
            let mut batch = BatchTransport::new(small()).unwrap();
            let id = batch.add(send, recv, &[]).unwrap();
            let mut got = Vec::new();
            for piece in pieces_of(cut) {
                let room = batch.receive_room(id, piece.len() + 9).unwrap();
                room[..piece.len()].copy_from_slice(piece);
                batch.receive_commit(piece.len()).unwrap();
                if open_between {
                    got.extend(batch.open().iter().map(|message| message.contents.to_vec()));
                }
            }
            if !open_between {
                got.extend(batch.open().iter().map(|message| message.contents.to_vec()));
            }
            assert!(got == expected, "cut at {cut}");
            assert_eq!(batch.awaiting(id), Some(Awaiting::Length { missing: 3 }));
            assert_eq!(batch.counters().decoys_received, 1);
        }
    }
}

/// Two transports whose connections began as `Connection`s, with part of a packet read before.
#[test]
fn both_ends_from_connections() {
    let mut ends = [
        BatchTransport::new(small()).unwrap(),
        BatchTransport::new(small()).unwrap(),
    ];
    let mut pairs = Vec::new();
    for n in 0..20usize {
        let (mut a, mut b) = pair(Options::default(), Options::default());
        a.send(&vec![9; 10 * n]).unwrap();
        a.send(b"second").unwrap();
        let wire = a.output().to_vec();
        // All of the first packet or part of it, or none.
        let cut = (5 * n).min(wire.len());
        b.handle_input(&wire[..cut]).unwrap();
        let read = std::iter::from_fn(|| b.poll_event());
        let mut got: Vec<_> = read
            .map(|event| match event {
                Event::Message(contents) => contents.into_vec(),
                other => panic!("{other:?}"),
            })
            .collect();
        let (parts_a, parts_b) = (a.into_parts().unwrap(), b.into_parts().unwrap());
        assert_eq!(parts_a.output, wire);
        let id_a = ends[0].add(parts_a.send, parts_a.recv, &parts_a.unread).unwrap();
        let id_b = ends[1].add(parts_b.send, parts_b.recv, &parts_b.unread).unwrap();
        ends[1].receive(id_b, &wire[cut..]).unwrap();
        got.extend(ends[1].open().iter().map(|message| message.contents.to_vec()));
        assert_eq!(got, [vec![9; 10 * n], b"second".to_vec()], "{n}");
        pairs.push((id_a, id_b));
    }
    for round in 0..300usize {
        for end in [0, 1] {
            for &(a, b) in &pairs {
                let id = [a, b][end];
                ends[end]
                    .submit(id, Kind::Genuine, &[round as u8; 100][..round % 100])
                    .unwrap();
            }
            let [first, second] = &mut ends;
            let (from, to) = if end == 0 { (first, second) } else { (second, first) };
            for output in from.seal().iter() {
                let other = pairs
                    .iter()
                    .map(|&(a, b)| if end == 0 { (a, b) } else { (b, a) })
                    .find(|(own, _)| *own == output.id)
                    .unwrap()
                    .1;
                to.receive(other, output.as_slice().unwrap()).unwrap();
            }
            let got = to.open();
            assert_eq!(got.len(), pairs.len());
            assert!(
                got.iter()
                    .all(|message| message.contents == &[round as u8; 100][..round % 100])
            );
        }
    }
}

/// The last number of all, and then none.
#[test]
fn the_end_of_all_numbers() {
    let from = PacketNumber::new(u64::MAX, 222).unwrap();
    let (send, recv, _) = chains(&mut Numbers(1), from);
    let mut batch = BatchTransport::new(small()).unwrap();
    let id = batch.add(send, recv, &[]).unwrap();
    for _ in 0..2 {
        batch.submit(id, Kind::Genuine, b"one of the last").unwrap();
    }
    for _ in 0..3 {
        assert_eq!(batch.submit(id, Kind::Genuine, b""), Err(Error::Exhausted));
    }
    assert_eq!(batch.next_sent(id), None);
    let wire = batch.seal().iter().next().unwrap().as_slice().unwrap().to_vec();
    batch.receive(id, &wire).unwrap();
    assert_eq!(batch.open().len(), 2);
    batch.receive(id, &wire).unwrap();
    assert!(batch.open().is_empty());
    assert_eq!(batch.poll_closed(), Some((id, Error::Exhausted)));
}

/// What a batch seals, `PacketOpener` opens: contents of the longest length that an arena takes.
#[test]
fn long_contents() {
    let mut batch = BatchTransport::new(BatchOptions::default()).unwrap();
    let (send, recv, _) = chains(&mut Numbers(2), PacketNumber::FIRST);
    let mut opener = PacketOpener::new(chains(&mut Numbers(2), PacketNumber::FIRST).1);
    let id = batch.add(send, recv, &[]).unwrap();
    let limit = (8 << 20) - 20;
    let got = limit + 1;
    assert_eq!(
        batch.reserve(id, Kind::Genuine, got).err(),
        Some(Error::ContentsTooLong { got, limit })
    );
    for len in [limit, 3_000_000, 0] {
        batch.reserve(id, Kind::Genuine, len).unwrap().fill(5);
        let mut wire = batch.seal().iter().next().unwrap().as_slice().unwrap().to_vec();
        let (length, rest) = wire.split_first_chunk_mut().unwrap();
        assert_eq!(opener.open_length(*length), Ok(len + 17));
        let (kind, contents) = opener.open_in_place(&[], rest).unwrap();
        assert!(kind == Kind::Genuine && contents.len() == len && contents.iter().all(|&byte| byte == 5));
    }
}
