//! One entry a parser, for the fuzz targets and for the test that replays their corpora. Not part of the public interface.
//!
//! The test takes this file in by its path, so it uses what is public alone.
//!
//! Every entry checks more than that nothing panics: that cutting the input elsewhere changes nothing, that what is opened is
//! what was sealed, that no more comes out than went in.

#![allow(
    clippy::field_reassign_with_default,
    reason = "outside the crate, no other way makes such options"
)]

// By its path, so that it is found from there as well.
#[path = "fuzzing/batch.rs"]
mod batch;

use std::collections::VecDeque;

use crate::fschacha::{PacketNumber, RecvChain, SendChain};
use crate::message::{Message, MessageTypes, v1};
use crate::{Connection, Error, Event, Kind, LocalKey, Magic, Options, PacketOpener, PacketSealer, Role};

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[
    ("bip324_handshake", handshake),
    ("bip324_packets", packets),
    ("bip324_message", message),
    ("bip324_v1", v1_message),
    ("bip324_operations", operations),
    ("bip324_batch", batch::batch),
];

/// Runs the entry of this name.
///
/// # Panics
/// If there is none, or if the entry finds a fault.
pub fn run(name: &str, data: &[u8]) {
    match ENTRIES.iter().find(|(entry, _)| *entry == name) {
        Some((_, entry)) => entry(data),
        None => panic!("there is no fuzz entry {name}"),
    }
}

/// The end that the entries are given the peer of: one with keys that are always the same, so that inputs can get through
/// the handshake.
///
/// # Panics
/// Never: the options and the key are in order.
pub fn end(role: Role) -> Connection {
    let byte = match role {
        Role::Initiator => 0x31,
        Role::Responder => 0x32,
    };
    let mut options = Options::default();
    options.garbage = vec![byte; 19];
    options.decoys = vec![vec![0; 5]];
    options.contents_limit = 5000;
    options.event_limit = 4;
    options.event_bytes_limit = 600;
    options.output_limit = 700;
    let made = LocalKey::new(&[byte; 32], &[byte; 32]).and_then(|key| match role {
        Role::Initiator => Connection::initiator(Magic::REGTEST, key, options),
        Role::Responder => Connection::responder(Magic::REGTEST, key, options),
    });
    match made {
        Ok(made) => made,
        Err(error) => panic!("{error}"),
    }
}

/// The bytes that a peer sends, after one that says which end we are and how they are cut.
fn handshake(data: &[u8]) {
    let Some((&first, input)) = data.split_first() else {
        return;
    };
    let role = if first & 1 == 0 {
        Role::Responder
    } else {
        Role::Initiator
    };
    let whole = feed(end(role), input, input.len().max(1));
    let pieces = feed(end(role), input, 1 + usize::from(first >> 1));
    assert_eq!(whole, pieces, "cutting the input made a difference");
}

/// Feeds in pieces and takes every event; gives what came of it.
fn feed(mut ours: Connection, input: &[u8], piece: usize) -> (Vec<Event>, Vec<u8>, Result<usize, Error>) {
    let (mut events, mut taken, mut result) = (Vec::new(), 0, Ok(0));
    'input: for mut part in input.chunks(piece) {
        while !part.is_empty() {
            result = ours.handle_input(part);
            let before = events.len();
            events.extend(std::iter::from_fn(|| ours.poll_event()));
            match result {
                Ok(0) if before == events.len() => break 'input,
                Ok(n) => {
                    taken += n;
                    part = &part[n..];
                }
                Err(_) => break 'input,
            }
        }
    }
    let contents: usize = events
        .iter()
        .map(|event| if let Event::Message(c) = event { c.len() + 20 } else { 0 })
        .sum();
    assert!(contents <= input.len(), "more came out than went in");
    if result.is_err() {
        assert!(ours.output().is_empty(), "something is said after a failure");
        assert_eq!(ours.handle_input(&[0]), Err(Error::Closed));
    }
    (events, ours.output().to_vec(), result.map(|_| taken))
}

/// Reads a description; zeros after its end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn short(&mut self) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()]))
    }
}

/// Packets of any kind and length from any number on, one of which may be damaged.
fn packets(data: &[u8]) {
    let mut bytes = Bytes(data);
    let epoch = u64::from(bytes.byte()).wrapping_sub(1) << (bytes.byte() % 64);
    let Some(first) = PacketNumber::new(epoch, bytes.byte() % 224) else {
        return;
    };
    let (Ok(send), Ok(recv)) = (
        SendChain::resume(&[1; 32], &[2; 32], first),
        RecvChain::resume(&[1; 32], &[2; 32], first),
    ) else {
        panic!("a chain was refused")
    };
    let (mut sealer, mut opener) = (PacketSealer::new(send), PacketOpener::new(recv));
    while !bytes.0.is_empty() {
        let shape = bytes.byte();
        let kind = if shape & 1 == 0 { Kind::Genuine } else { Kind::Decoy };
        let contents = vec![shape; bytes.short() % 4100];
        let aad = vec![7; usize::from(shape >> 4)];
        let mut wire = Vec::new();
        if let Err(error) = sealer.seal(kind, &aad, &contents, &mut wire) {
            assert_eq!((error, wire.len()), (Error::Exhausted, 0));
            return;
        }
        let damaged = shape & 2 != 0;
        if damaged {
            let place = bytes.short() % wire.len();
            wire[place] ^= bytes.byte().max(1);
        }
        let Some((length, rest)) = wire.split_first_chunk() else {
            return;
        };
        let need = match opener.open_length(*length) {
            Ok(need) => need,
            Err(error) => panic!("{error}"),
        };
        let mut packet = rest.to_vec();
        packet.resize(need.min(20_000), 0);
        if need > packet.len() {
            assert!(damaged);
            return;
        }
        match opener.open_in_place(&aad, &mut packet) {
            Ok(opened) => assert!(!damaged && opened == (kind, &mut contents.clone()[..])),
            Err(error) => {
                assert!(damaged && error == Error::Unauthentic && opener.is_closed());
                assert!(packet.iter().all(|byte| *byte == 0), "something is left of it");
                return;
            }
        }
    }
}

/// Contents of a packet.
fn message(data: &[u8]) {
    for types in [
        MessageTypes::empty(),
        MessageTypes::standard(),
        MessageTypes::with_drafts(),
    ] {
        match Message::decode(&types, data) {
            Ok(message) => {
                let mut again = Vec::new();
                assert_eq!(message.encode(&types, &mut again), Ok(()));
                assert!(again.len() <= data.len(), "the short form is not the longer one");
                assert_eq!(Message::decode(&types, &again), Ok(message));
                assert!(!again.is_empty() && (again[0] == 0) == types.id(message.command).is_none());
            }
            Err(error) => assert!(!error.ends_connection() && !error.to_string().is_empty()),
        }
    }
}

/// A stream of v1 messages.
fn v1_message(data: &[u8]) {
    const LIMIT: u32 = 2000;
    let mut rest = data;
    loop {
        match v1::decode(Magic::REGTEST, LIMIT, rest) {
            Ok(None) => return assert!(rest.len() < v1::HEADER_LEN + LIMIT as usize),
            Err(error) => return assert!(error.ends_connection()),
            Ok(Some(decoded)) => {
                let used = decoded.len;
                match decoded.message {
                    Ok(message) => {
                        let mut again = Vec::new();
                        assert_eq!(v1::encode(Magic::REGTEST, &message, &mut again), Ok(()));
                        assert_eq!(again, rest[..used], "another encoding");
                    }
                    Err(error) => assert!(!error.ends_connection() && error.fault() == crate::Fault::Peer),
                }
                for n in (0..used).step_by(1 + used / 64) {
                    assert_eq!(v1::decode(Magic::REGTEST, LIMIT, &rest[..n]), Ok(None));
                }
                rest = &rest[used..];
            }
        }
    }
}

/// What one end has sent and the other has not delivered.
#[derive(Default)]
struct Way {
    wire: VecDeque<u8>,
    sent: VecDeque<(Kind, Vec<u8>)>,
}

/// Two ends and the way between them, by a list of operations.
fn operations(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut ends = [end(Role::Initiator), end(Role::Responder)];
    // The decoy that each sends before its version packet.
    let mut ways = [Role::Initiator, Role::Responder].map(|_| Way {
        sent: VecDeque::from([(Kind::Decoy, vec![0; 5])]),
        ..Way::default()
    });
    // True once a byte was changed on either way: that of a key makes both ends fail.
    let mut damaged = false;
    for _ in 0..400 {
        if bytes.0.is_empty() {
            break;
        }
        let op = bytes.byte();
        let (me, you) = (usize::from(op & 1), usize::from(op & 1 ^ 1));
        match op >> 1 & 7 {
            0 | 1 => {
                let kind = if op >> 1 & 1 == 0 { Kind::Genuine } else { Kind::Decoy };
                let contents = vec![op; bytes.short() % 700];
                let sent = match kind {
                    Kind::Genuine => ends[me].send(&contents),
                    Kind::Decoy => ends[me].send_decoy(&contents),
                };
                match sent {
                    Ok(()) => ways[me].sent.push_back((kind, contents)),
                    Err(error) => assert!(matches!(
                        error,
                        Error::NotReady | Error::OutputFull { .. } | Error::Closed
                    )),
                }
            }
            2 => {
                let n = ends[me].output().len().min(bytes.short());
                ways[me].wire.extend(ends[me].output()[..n].iter());
                ends[me].advance_output(n);
            }
            3 => {
                if let Some(byte) = ways[me].wire.back_mut() {
                    *byte ^= bytes.byte().max(1);
                    damaged = true;
                }
            }
            4 => deliver(&mut ends[you], &mut ways[me], 2000, damaged),
            _ => {
                let n = bytes.short();
                deliver(&mut ends[you], &mut ways[me], n, damaged);
            }
        }
    }
    // What is still under way arrives, whatever the cut.
    for _ in 0..200 {
        for me in 0..2 {
            ways[me].wire.extend(ends[me].output().iter());
            ends[me].advance_output(usize::MAX);
            deliver(&mut ends[me ^ 1], &mut ways[me], usize::MAX, damaged);
        }
    }
    if !damaged {
        assert!(ends.iter().all(Connection::is_established));
        assert!(
            ways.iter().all(|way| way.wire.is_empty() && way.sent.is_empty()),
            "something was lost"
        );
    }
}

/// Gives an end up to `n` bytes of what is on the way to it, and holds its events against what was sent.
fn deliver(to: &mut Connection, way: &mut Way, n: usize, damaged: bool) {
    let n = n.min(way.wire.len());
    let part: Vec<u8> = way.wire.range(..n).copied().collect();
    match to.handle_input(&part) {
        Ok(taken) => drop(way.wire.drain(..taken)),
        Err(error) => {
            assert!(
                damaged && (error == Error::Closed || error.ends_connection()),
                "{error}"
            );
            way.wire.clear();
        }
    }
    while let Some(event) = to.poll_event() {
        match event {
            Event::Established { .. } => {}
            Event::Decoy { len } => {
                assert!(
                    way.sent
                        .pop_front()
                        .is_some_and(|(kind, sent)| kind == Kind::Decoy && sent.len() == len)
                );
            }
            Event::Message(contents) => {
                assert!(
                    way.sent
                        .pop_front()
                        .is_some_and(|sent| sent == (Kind::Genuine, contents.to_vec()))
                );
            }
            // Version 1 was found. Nothing else is told of what came as it was sent.
            _ => assert!(damaged),
        }
    }
}
