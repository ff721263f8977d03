use std::time::Duration;

use sealway_aead::batch::Slot;

use super::crypt::{SLOTS, Way, slot_of};
use super::*;
use crate::fschacha::{PacketNumber, RecvChain, SendChain};
use crate::{CONTENTS_MAX, Error, Kind, PacketSealer};

const LENGTH_KEY: [u8; 32] = [3; 32];
const CONTENT_KEY: [u8; 32] = [4; 32];

fn add(batch: &mut BatchTransport, from: PacketNumber) -> ConnectionId {
    let send = SendChain::resume(&LENGTH_KEY, &CONTENT_KEY, from).unwrap();
    let recv = RecvChain::resume(&LENGTH_KEY, &CONTENT_KEY, from).unwrap();
    batch.add(send, recv, &[]).unwrap()
}

/// Slots of a connection that hold a key.
fn held(batch: &BatchTransport, id: ConnectionId) -> Vec<u32> {
    let first = id.index * SLOTS as u32;
    let slots = first..first + SLOTS as u32;
    slots.filter(|&slot| batch.crypt.holds(Slot(slot))).collect()
}

/// Until packets are sealed, plaintext lies where they will be.
#[test]
fn nothing_is_shown_that_is_not_sealed() {
    let mut batch = BatchTransport::new(BatchOptions::default()).unwrap();
    let id = add(&mut batch, PacketNumber::new(0, 0).unwrap());
    assert!(batch.outgoing().is_empty());
    batch.submit(id, Kind::Genuine, b"one").unwrap();
    assert!(batch.outgoing().is_empty() && batch.outgoing().iter().next().is_none());
    assert_eq!(batch.seal().connections(), 1);
    assert_eq!(batch.outgoing().connections(), 1);
    batch.submit(id, Kind::Genuine, b"two").unwrap();
    assert!(batch.outgoing().is_empty(), "neither the old nor the new");
}

#[test]
fn keys_go_with_their_last_packet() {
    let mut batch = BatchTransport::new(BatchOptions::default()).unwrap();
    let from = PacketNumber::new(6, 220).unwrap();
    let (other, id) = (add(&mut batch, from), add(&mut batch, from));
    let even = slot_of(id.index(), Way::Send, 6).0;
    let mut wire = Vec::new();
    for n in 0..1000usize {
        batch.submit(id, Kind::Genuine, b"contents").unwrap();
        let waiting = held(&batch, id);
        assert!(waiting.len() <= 2, "{n}: keys of more than two epochs");
        if n % 97 == 0 || n > 900 {
            wire.extend(batch.seal().iter().next().unwrap().as_slice().unwrap());
            // Epochs end at packets 3, 227, ...: the key of the next is taken when it is needed.
            let epoch = 6 + (n + 220) as u64 / 224;
            let between = (n + 220) % 224 == 223;
            let want = (!between).then_some(even + (epoch & 1) as u32);
            assert_eq!(held(&batch, id), want.into_iter().collect::<Vec<_>>(), "{n}");
        }
    }
    let sending = held(&batch, id).len();
    batch.receive(id, &wire).unwrap();
    assert!(held(&batch, id).len() <= sending + 2);
    assert_eq!(batch.open().len(), 1000);
    assert_eq!(held(&batch, id).len(), sending + 1);
    // A packet that waits keeps its key, and no longer than that.
    batch.submit(id, Kind::Genuine, b"").unwrap();
    assert!(batch.remove(id));
    assert_eq!(held(&batch, id), []);
    batch.submit(other, Kind::Genuine, b"").unwrap();
    assert_eq!(held(&batch, other).len(), 1);
}

#[test]
fn a_failure_wipes_the_keys() {
    let mut batch = BatchTransport::new(BatchOptions::default()).unwrap();
    let id = add(&mut batch, PacketNumber::FIRST);
    let wire = |len| {
        let send = SendChain::new(&LENGTH_KEY, &CONTENT_KEY).unwrap();
        let mut wire = Vec::new();
        let contents = vec![0; len];
        PacketSealer::new(send)
            .seal(Kind::Genuine, &[], &contents, &mut wire)
            .unwrap();
        wire
    };
    let mut bad = wire(9);
    bad[10] ^= 1;
    batch.submit(id, Kind::Genuine, b"waits").unwrap();
    batch.receive(id, &bad).unwrap();
    assert_eq!(held(&batch, id).len(), 2);
    assert!(batch.open().is_empty());
    assert_eq!(held(&batch, id), []);
    assert!(batch.seal().is_empty(), "something is said after a failure");
    // A length that is too long says so before its packet is here.
    let id = add(&mut batch, PacketNumber::FIRST);
    batch.receive(id, &wire(5_000_000)[..3]).unwrap();
    batch.open();
    assert_eq!(held(&batch, id), []);
    assert_eq!(batch.connections(), 0);
}

/// Memory follows what has come, whatever a length claims.
#[test]
fn a_peer_that_claims_much_and_stalls() {
    for piece in [1, 1000, 70_000, 300_000] {
        let mut batch = BatchTransport::new(BatchOptions {
            contents_limit: CONTENTS_MAX,
            receive_arena: 18 << 20,
            ..BatchOptions::default()
        })
        .unwrap();
        let id = add(&mut batch, PacketNumber::FIRST);
        let mut chain = SendChain::new(&LENGTH_KEY, &CONTENT_KEY).unwrap();
        let (_, length) = chain.reserve(CONTENTS_MAX).unwrap();
        batch.receive(id, &length).unwrap();
        let mut came = 0;
        for _ in 0..40 {
            batch.receive(id, &vec![7; piece]).unwrap();
            came += piece;
            assert!(batch.open().is_empty());
            let (len, capacity) = batch.recv.begun(id.index()).unwrap();
            assert_eq!(len, came);
            assert!(capacity <= came + 256 * 1024, "{capacity} bytes for {came}");
            assert!(capacity <= (2 * came).max(came + 256), "{capacity} bytes for {came}");
        }
        assert_eq!(batch.recv.waiting(), (0, 0), "the arena is free for others");
        let missing = CONTENTS_MAX + 17 - came;
        assert_eq!(batch.awaiting(id), Some(crate::Awaiting::Packet { missing }));
    }
}

/// Room that was given before the batch was shown is not to be used after it: what was planned there would be lost.
#[test]
fn room_ends_when_the_batch_is_shown() {
    let mut batch = BatchTransport::new(BatchOptions::default()).unwrap();
    let id = add(&mut batch, PacketNumber::FIRST);
    let mut sealer = PacketSealer::new(SendChain::new(&LENGTH_KEY, &CONTENT_KEY).unwrap());
    let mut wire = Vec::new();
    for n in 0..3 {
        sealer.seal(Kind::Genuine, &[], &[n; 10], &mut wire).unwrap();
    }
    batch.receive_room(id, wire.len()).unwrap().copy_from_slice(&wire);
    assert!(batch.open().is_empty());
    assert!(matches!(
        batch.receive_commit(wire.len()),
        Err(Error::OutOfOrder { .. })
    ));
    // Nothing was taken: the same bytes can come again.
    batch.receive(id, &wire).unwrap();
    let came: Vec<_> = batch.open().iter().map(|message| message.contents.to_vec()).collect();
    assert_eq!(came, [[0; 10], [1; 10], [2; 10]]);
}

/// A connection that ends without a packet to be opened is told without waiting for one.
#[test]
fn a_peer_whose_first_length_is_too_long_is_due_at_once() {
    let mut batch = BatchTransport::new(BatchOptions::default()).unwrap();
    let id = add(&mut batch, PacketNumber::FIRST);
    let mut sealer = PacketSealer::new(SendChain::new(&LENGTH_KEY, &CONTENT_KEY).unwrap());
    let mut wire = Vec::new();
    sealer.seal(Kind::Genuine, &[], &vec![0; 5_000_000], &mut wire).unwrap();
    batch.receive(id, &wire[..3]).unwrap();
    assert_eq!(batch.deadline(), Some(Duration::ZERO));
    assert!(batch.poll_flush(Duration::ZERO).open);
    assert!(batch.open().is_empty());
    assert!(matches!(batch.poll_closed(), Some((closed, Error::PacketTooLong { .. })) if closed == id));
    assert_eq!((batch.deadline(), batch.contains(id)), (None, false));
    assert!(!batch.poll_flush(Duration::ZERO).open);
}
