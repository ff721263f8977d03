//! What goes wrong: damages, lengths, full arenas, ids that are gone.

use std::time::Duration;

use sealway_bip324::batch::{BatchTransport, ConnectionId, Due, FlushPolicy};
use sealway_bip324::fschacha::PacketNumber;
use sealway_bip324::{Awaiting, Error, Fault, Kind, PacketSealer};

use crate::both::{chains, small, small_but};

fn add(batch: &mut BatchTransport, n: usize) -> ConnectionId {
    let (send, recv) = chains(n);
    batch.add(send, recv, &[]).unwrap()
}

fn sealer(n: usize) -> PacketSealer {
    PacketSealer::new(chains(n).0)
}

fn packet(sealer: &mut PacketSealer, contents: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    sealer.seal(Kind::Genuine, &[], contents, &mut wire).unwrap();
    wire
}

fn messages(batch: &mut BatchTransport) -> Vec<(ConnectionId, Vec<u8>)> {
    let all = batch.open();
    all.iter()
        .map(|message| (message.id, message.contents.to_vec()))
        .collect()
}

/// Each bit of a packet among others: what came before is delivered, nothing after, and other connections go on.
#[test]
fn a_damaged_packet_ends_its_own_connection() {
    for bit in 0..8 * 25 {
        for separately in [false, true] {
            let mut batch = BatchTransport::new(small()).unwrap();
            let ids: Vec<_> = (0..3).map(|n| add(&mut batch, n)).collect();
            let mut sealers: Vec<_> = (0..3).map(sealer).collect();
            let mut want = Vec::new();
            for round in 0..3u8 {
                for (n, (&id, sealer)) in ids.iter().zip(&mut sealers).enumerate() {
                    let contents = [b"round"[..].to_vec(), vec![round, n as u8]].concat();
                    let mut wire = packet(sealer, &contents[..5]);
                    if n == 1 && round == 1 {
                        wire[bit / 8] ^= 1 << (bit % 8);
                    }
                    let received = batch.receive(id, &wire);
                    if received.is_ok() && (n != 1 || round == 0) {
                        want.push((id, contents[..5].to_vec()));
                    }
                    if separately {
                        let got = messages(&mut batch);
                        assert_eq!(got.len(), usize::from(n != 1 || round == 0));
                    }
                }
            }
            let got = messages(&mut batch);
            if !separately {
                assert_eq!(got, want, "bit {bit}");
            }
            match batch.poll_closed() {
                // Either the tag is wrong, or what comes after is taken for a part of it.
                Some((id, error)) => {
                    assert!(id == ids[1] && error.fault() == Fault::Peer, "{error:?}");
                    assert!(!batch.contains(id));
                    assert_eq!(batch.receive(id, b"x"), Err(Error::Closed));
                    assert_eq!(batch.submit(id, Kind::Genuine, b""), Err(Error::Closed));
                    assert_eq!((batch.connections(), batch.counters().connections_failed), (2, 1));
                }
                None => {
                    assert!(bit < 24, "bit {bit} went unnoticed");
                    assert!(matches!(batch.awaiting(ids[1]), Some(Awaiting::Packet { .. })));
                }
            }
            assert_eq!(batch.poll_closed(), None);
            // The others still can do everything.
            for n in [0, 2] {
                let wire = packet(&mut sealers[n], b"later");
                batch.receive(ids[n], &wire).unwrap();
                assert_eq!(messages(&mut batch), [(ids[n], b"later".to_vec())]);
                batch.submit(ids[n], Kind::Genuine, b"sent").unwrap();
                assert_eq!(batch.seal().connections(), 1);
            }
        }
    }
}

/// A bad packet deep in a batch that is opened in several stretches, with good ones behind it.
#[test]
fn nothing_after_a_bad_packet() {
    let mut batch = BatchTransport::new(small()).unwrap();
    let (bad, good) = (add(&mut batch, 1), add(&mut batch, 2));
    for (id, n, damaged) in [(bad, 1, 1500), (good, 2, usize::MAX)] {
        let mut sealer = sealer(n);
        let mut wire = Vec::new();
        for i in 0..4000usize {
            let mut one = packet(&mut sealer, &i.to_le_bytes());
            one[10] ^= u8::from(i == damaged);
            wire.extend(one);
        }
        for piece in wire.chunks(5000) {
            // After the failure was found, nothing is taken any more.
            let taken = batch.receive(id, piece);
            assert!(taken.is_ok() || id == bad, "{taken:?}");
        }
    }
    let got = messages(&mut batch);
    let of = |id| got.iter().filter(|(from, _)| *from == id).count();
    assert_eq!((of(bad), of(good)), (1500, 4000));
    for (n, (_, contents)) in got.iter().filter(|(from, _)| *from == bad).enumerate() {
        assert_eq!(contents[..], n.to_le_bytes());
    }
    assert_eq!(batch.poll_closed(), Some((bad, Error::Unauthentic)));
}

#[test]
fn a_length_beyond_the_limit() {
    let mut batch = BatchTransport::new(small()).unwrap();
    let id = add(&mut batch, 1);
    let mut sealer = sealer(1);
    let mut wire = packet(&mut sealer, &[1; 100_000]);
    wire.extend(packet(&mut sealer, b"second"));
    wire.extend(&packet(&mut sealer, &[1; 100_001])[..3]);
    batch.receive(id, &wire).unwrap();
    assert_eq!(batch.receive(id, b"more"), Err(Error::Closed));
    assert_eq!(messages(&mut batch).len(), 2, "what came before is delivered");
    let (claimed, limit) = (100_001, 100_000);
    assert_eq!(batch.poll_closed(), Some((id, Error::PacketTooLong { claimed, limit })));
    // If what came before is not authentic, that is why it ended.
    let id = add(&mut batch, 1);
    wire[50] ^= 1;
    batch.receive(id, &wire).unwrap();
    assert!(messages(&mut batch).is_empty());
    assert_eq!(batch.poll_closed(), Some((id, Error::Unauthentic)));
    assert_eq!(batch.poll_closed(), None);
}

#[test]
fn a_full_arena_refuses_and_uses_up_no_number() {
    let mut batch = BatchTransport::new(small()).unwrap();
    let id = add(&mut batch, 1);
    let mut sealer = sealer(1);
    let mut want = Vec::new();
    let full = loop {
        match batch.submit(id, Kind::Genuine, &[1; 999]) {
            Ok(()) => want.extend(packet(&mut sealer, &[1; 999])),
            Err(error) => break error,
        }
    };
    let (waiting, limit) = (want.len(), 1 << 20);
    assert_eq!(full, Error::ArenaFull { waiting, limit });
    assert_eq!(full.fault(), Fault::Caller);
    let number = batch.next_sent(id);
    assert_eq!(number, sealer.next_number());
    assert!(batch.reserve(id, Kind::Decoy, 500_000).is_err());
    assert_eq!(batch.next_sent(id), number);
    assert!(batch.seal().iter().next().unwrap().as_slice() == Some(&want[..]));
    batch.submit(id, Kind::Genuine, b"again").unwrap();
    let next = packet(&mut sealer, b"again");
    assert_eq!(batch.seal().iter().next().unwrap().as_slice(), Some(&next[..]));
    assert!(batch.seal().is_empty(), "nothing is shown twice");

    let half = want.len() / 2;
    batch.receive(id, &want[..half]).unwrap();
    let mut got = 0;
    let second = batch.receive(id, &want).unwrap_err();
    assert!(
        matches!(second, Error::ArenaFull { limit: 1_048_576, .. }),
        "{second:?}"
    );
    got += batch.open().len();
    batch.receive(id, &want[half..]).unwrap();
    got += batch.open().len();
    assert_eq!(got, want.len() / 1019);
    assert!(batch.open().is_empty(), "nothing is delivered twice");
    assert_eq!(
        batch.receive_commit(0),
        Err(Error::OutOfOrder {
            what: "bytes were received without room for them"
        })
    );
    batch.receive_room(id, 3).unwrap();
    assert_eq!(batch.receive_commit(4), Err(Error::Buffer { need: 4, got: 3 }));
}

#[test]
fn when_a_batch_is_due() {
    let flush = FlushPolicy {
        packets: 3,
        bytes: 1000,
        delay: Duration::from_micros(50),
    };
    let mut batch = BatchTransport::new(small_but(|made| made.flush = flush)).unwrap();
    let id = add(&mut batch, 1);
    let at = Duration::from_micros;
    let none = Due::default();
    assert_eq!((batch.poll_flush(at(7)), batch.deadline()), (none, None));
    batch.submit(id, Kind::Genuine, b"one").unwrap();
    assert_eq!((batch.poll_flush(at(10)), batch.deadline()), (none, Some(at(60))));
    batch.submit(id, Kind::Genuine, b"two").unwrap();
    assert_eq!((batch.poll_flush(at(59)), batch.deadline()), (none, Some(at(60))));
    let seal = Due {
        seal: true,
        open: false,
    };
    assert_eq!(batch.poll_flush(at(60)), seal);
    let wire: Vec<u8> = batch
        .seal()
        .iter()
        .flat_map(|output| output.as_slice().unwrap().to_vec())
        .collect();
    assert_eq!((batch.poll_flush(at(61)), batch.deadline()), (none, None));
    // By count, by bytes.
    for _ in 0..3 {
        assert_eq!(batch.poll_flush(at(70)), none);
        batch.submit(id, Kind::Genuine, b"").unwrap();
    }
    assert_eq!(batch.poll_flush(at(70)), seal);
    batch.seal();
    batch.submit(id, Kind::Genuine, &[0; 980]).unwrap();
    assert_eq!(batch.poll_flush(at(80)), seal);
    // The other direction: what is not whole does not wait.
    let open = Due { seal: true, open: true };
    batch.receive(id, &wire[..10]).unwrap();
    assert_eq!(batch.poll_flush(at(81)), seal);
    batch.receive(id, &wire[10..]).unwrap();
    assert_eq!((batch.poll_flush(at(200)), batch.deadline()), (seal, Some(at(130))));
    assert_eq!(batch.poll_flush(at(250)), open);
    assert_eq!(batch.open().len(), 2);
    batch.seal();
    assert_eq!((batch.poll_flush(at(300)), batch.deadline()), (none, None));
}

#[test]
fn ids_are_not_taken_for_one_another() {
    let mut batch = BatchTransport::new(small_but(|made| made.connections_limit = 40)).unwrap();
    let ids: Vec<_> = (0..40).map(|n| add(&mut batch, n)).collect();
    let (send, recv) = chains(99);
    assert_eq!(batch.add(send, recv, &[]), Err(Error::TooManyConnections { limit: 40 }));
    for &id in &ids {
        batch.submit(id, Kind::Genuine, b"hello").unwrap();
        batch.receive(id, &packet(&mut sealer(id.index()), b"hello")).unwrap();
    }
    // Removed with jobs waiting: not sent any more, and what came is still delivered.
    assert!(batch.remove(ids[7]));
    assert!(!batch.remove(ids[7]) && !batch.contains(ids[7]));
    let new = add(&mut batch, 77);
    assert_eq!(new.index(), 7);
    assert_ne!(new, ids[7]);
    assert_eq!(batch.submit(ids[7], Kind::Genuine, b"x"), Err(Error::Closed));
    assert_eq!(batch.receive(ids[7], b"x"), Err(Error::Closed));
    assert_eq!((batch.next_sent(ids[7]), batch.awaiting(ids[7])), (None, None));
    assert_eq!(batch.next_sent(new), Some(PacketNumber::FIRST));
    batch.submit(new, Kind::Genuine, b"new").unwrap();
    let expected = packet(&mut sealer(77), b"new");
    let outgoing = batch.seal();
    assert_eq!(outgoing.connections(), 40);
    assert!(outgoing.iter().all(|output| output.id != ids[7]));
    let output = outgoing.iter().find(|output| output.id == new).unwrap();
    assert_eq!(output.as_slice(), Some(&expected[..]));
    let got = messages(&mut batch);
    assert_eq!(got.len(), 40);
    assert_eq!(got.iter().filter(|(id, _)| *id == ids[7]).count(), 1);
    assert_eq!((batch.connections(), batch.poll_closed()), (40, None));
}

#[test]
fn options_that_cannot_work() {
    let wrong = [
        small_but(|made| made.send_arena = 83),
        small_but(|made| made.receive_arena = 100_000),
        small_but(|made| made.receive_arena = 1 << 33),
        small_but(|made| (made.contents_limit, made.receive_arena) = (1 << 24, 1 << 25)),
    ];
    for options in wrong {
        let error = BatchTransport::new(options.clone()).map(|_| ()).unwrap_err();
        assert_eq!(error.fault(), Fault::Caller, "{options:?}");
    }
    fn is_send<T: Send>(_: &T) {}
    is_send(&BatchTransport::new(small()).unwrap());
}
