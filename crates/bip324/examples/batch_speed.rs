//! Measures packets of many connections, sealed and opened, against crate `bip324` and against one packet after the other
//! through aws-lc-rs.
//!
//! `cargo run --release -p sealway-bip324 --example batch_speed [CONNECTIONS [BATCH]]`. Packets are 40% U[1,32],
//! 30% U[33,128], 20% U[129,512], 10% U[513,4096] bytes of contents, each 256th of them empty, for connections drawn at
//! random, from splitmix64 with seed 2026. Everyone frames, masks lengths and changes keys as BIP324 says. Sealing starts
//! from contents in memory and ends with bytes that a socket could be given, per packet; opening starts from the bytes of
//! each connection in one piece and ends with contents in memory. A pair is one of each. Key changes fall where they
//! fall: each round goes on with the numbers of the one before.
//!
//! Subjects take turns within each round; figures are medians of the rounds, or with `FASTEST=1` the fastest round.
//! `SOLO=1` leaves the others out, `GROUPED=1` submits the packets of a connection one after the other, `DECOYS=20` makes
//! as many of a hundred packets decoys of U[0,64] bytes. `engine` is the batch AEAD alone, with one key a connection and nothing of BIP324:
//! what is above it is the cost of planning and delivering. `CREW=N` adds a transport in a crew of N more threads; with
//! `CREW=0` nobody helps, and its packets go through slabs all the same. `SEALWAY_CPU_DISABLE=avx512` and the like choose the backend.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead as aws;
use bip324::{CipherSession, GarbageResult, Handshake, InboundCipher, Initialized, OutboundCipher, VersionResult};
use sealway_aead::batch::{Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};
use sealway_bip324::batch::{Backend, BatchOptions, BatchTransport, ConnectionId, Crew, Routing};
use sealway_bip324::fschacha::{RecvChain, SendChain};
use sealway_bip324::{Kind, OVERHEAD};

#[path = "common/mix.rs"]
mod mix;

use mix::Generator;

const ROUNDS: usize = 61;

fn key(generator: &mut Generator) -> [u8; 32] {
    std::array::from_fn(|_| generator.next() as u8)
}

/// A packet to be sent: its connection, where its contents lie, and what it is for.
struct Packet {
    connection: usize,
    start: usize,
    len: usize,
    kind: Kind,
}

/// The packets of a batch; the same in every round.
struct Load {
    connections: usize,
    packets: Vec<Packet>,
    plain: Vec<u8>,
    /// By connection, the packets of it.
    of: Vec<Vec<usize>>,
}

impl Load {
    fn new(connections: usize, count: usize) -> Self {
        let decoys: u64 = std::env::var("DECOYS").map_or(0, |text| text.parse().unwrap());
        let mut generator = Generator(2026);
        let mut start = 0;
        let mut packets: Vec<Packet> = (0..count)
            .map(|i| {
                let connection = (generator.next() % connections as u64) as usize;
                let (kind, len) = match generator.next() % 100 < decoys {
                    true => (Kind::Decoy, generator.between(0, 64)),
                    false => (Kind::Genuine, generator.contents_len(1) * usize::from(i % 256 != 255)),
                };
                let packet = Packet {
                    connection,
                    start,
                    len,
                    kind,
                };
                start += len;
                packet
            })
            .collect();
        if std::env::var_os("GROUPED").is_some() {
            packets.sort_by_key(|packet| packet.connection);
        }
        let mut of = vec![Vec::new(); connections];
        for (i, packet) in packets.iter().enumerate() {
            of[packet.connection].push(i);
        }
        Load {
            connections,
            packets,
            plain: (0..start).map(|_| generator.next() as u8).collect(),
            of,
        }
    }

    fn contents(&self, packet: &Packet) -> &[u8] {
        &self.plain[packet.start..packet.start + packet.len]
    }

    fn wire_len(&self) -> usize {
        self.plain.len() + OVERHEAD * self.packets.len()
    }

    /// Where the packets of each connection lie if its bytes are in one piece.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.packets.len()];
        let mut at = 0;
        for &i in self.of.iter().flatten() {
            places[i] = at;
            at += self.packets[i].len + OVERHEAD;
        }
        places
    }

    /// The connections with packets, and where their bytes lie if each has them in one piece.
    fn pieces(&self) -> Vec<(usize, usize, usize)> {
        let mut at = 0;
        let each = self.of.iter().enumerate().map(|(connection, of)| {
            let len: usize = of.iter().map(|&i| self.packets[i].len + OVERHEAD).sum();
            at += len;
            (connection, at - len, at)
        });
        each.filter(|(_, from, to)| from < to).collect()
    }
}

/// Does a round; gives the seconds of sealing and of opening.
type Subject<'a> = (&'static str, Box<dyn FnMut() -> (f64, f64) + 'a>);

fn ours<'a>(name: &'static str, load: &'a Load, crew: Option<&Crew>) -> Subject<'a> {
    let mut generator = Generator(7);
    let mut batch = BatchTransport::new(BatchOptions::default()).unwrap();
    if let Some(crew) = crew {
        batch.set_executor(Box::new(crew.member()), Routing::Always);
    }
    let ids: Vec<ConnectionId> = (0..load.connections)
        .map(|_| {
            let (lengths, contents) = (key(&mut generator), key(&mut generator));
            let send = SendChain::new(&lengths, &contents).unwrap();
            let recv = RecvChain::new(&lengths, &contents).unwrap();
            batch.add(send, recv, &[]).unwrap()
        })
        .collect();
    let pieces = load.pieces();
    let mut places = vec![0; load.connections];
    for &(connection, from, _) in &pieces {
        places[connection] = from;
    }
    let mut wire = vec![0; load.wire_len()];
    let genuine: usize = load
        .packets
        .iter()
        .filter(|packet| packet.kind == Kind::Genuine)
        .map(|packet| packet.len)
        .sum();
    let run = move || {
        let start = Instant::now();
        for packet in &load.packets {
            let contents = load.contents(packet);
            batch.submit(ids[packet.connection], packet.kind, contents).unwrap();
        }
        let outgoing = batch.seal();
        let bytes: usize = outgoing.iter().map(|output| output.byte_count()).sum();
        let seal = start.elapsed().as_secs_f64();
        assert_eq!(bytes, wire.len());
        for output in outgoing.iter() {
            let mut at = places[output.id.index()];
            for slice in output.slices() {
                wire[at..at + slice.len()].copy_from_slice(slice);
                at += slice.len();
            }
        }
        let start = Instant::now();
        for &(connection, from, to) in &pieces {
            batch.receive(ids[connection], &wire[from..to]).unwrap();
        }
        let bytes: usize = batch.open().iter().map(|message| message.contents.len()).sum();
        let open = start.elapsed().as_secs_f64();
        assert_eq!(bytes, genuine);
        assert!(batch.poll_closed().is_none());
        (seal, open)
    };
    (name, Box::new(run))
}

/// The batch AEAD alone.
fn engine(load: &Load) -> Subject<'_> {
    const SUITE: Suite = Suite::ChaCha20Poly1305;
    let mut generator = Generator(7);
    let mut keys = Keys::with_slots(load.connections);
    for slot in 0..load.connections {
        keys.set(Slot(slot as u32), SUITE, &key(&mut generator)).unwrap();
    }
    let mut engine = Engine::new();
    let mut arena = vec![0; load.wire_len()];
    let mut at = 0;
    let (mut seals, mut opens) = (Vec::new(), Vec::new());
    for (i, packet) in load.packets.iter().enumerate() {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&(i as u64).to_le_bytes());
        let slot = Slot(packet.connection as u32);
        let text = at + 3..at + 4 + packet.len as u32;
        seals.push(Job::seal(
            slot,
            Nonce::assume_unique(SUITE, &nonce).unwrap(),
            text.clone(),
            at + 3,
        ));
        opens.push(Job::open(slot, &nonce, at + 3..text.end + 16, at + 3).unwrap());
        at = text.end + 16;
    }
    let mut statuses = vec![Status::Failed; seals.len()];
    let run = move || {
        let mut pass = |jobs: &[Job]| {
            let start = Instant::now();
            for (jobs, statuses) in jobs.chunks(1024).zip(statuses.chunks_mut(1024)) {
                let memory = Memory::InPlace(&mut arena);
                let report = engine.run(&keys, jobs, memory, &[], statuses).unwrap();
                assert_eq!(report.refused, 0);
            }
            start.elapsed().as_secs_f64()
        };
        (pass(&seals), pass(&opens))
    };
    ("engine", Box::new(run))
}

/// The key of an epoch, set up.
struct EpochKey(Option<(u64, aws::LessSafeKey)>);

impl EpochKey {
    fn get(&mut self, epoch: u64, key: &[u8; 32]) -> &aws::LessSafeKey {
        match &self.0 {
            Some((have, _)) if *have == epoch => {}
            _ => {
                let key = aws::UnboundKey::new(&aws::CHACHA20_POLY1305, key).unwrap();
                self.0 = Some((epoch, aws::LessSafeKey::new(key)));
            }
        }
        &self.0.as_ref().unwrap().1
    }
}

fn aws_loop(load: &Load) -> Subject<'_> {
    let mut generator = Generator(7);
    let mut ends: Vec<_> = (0..load.connections)
        .map(|_| {
            let (lengths, contents) = (key(&mut generator), key(&mut generator));
            let send = SendChain::new(&lengths, &contents).unwrap();
            let recv = RecvChain::new(&lengths, &contents).unwrap();
            (send, EpochKey(None), recv, EpochKey(None))
        })
        .collect();
    let (places, pieces) = (load.places(), load.pieces());
    let mut wire = vec![0; load.wire_len()];
    let run = move || {
        let start = Instant::now();
        for (packet, &at) in load.packets.iter().zip(&places) {
            let (chain, key, ..) = &mut ends[packet.connection];
            let (number, length) = chain.reserve(packet.len).unwrap();
            let key = key.get(number.epoch(), chain.key_of(number).unwrap());
            let out = &mut wire[at..at + packet.len + OVERHEAD];
            out[..3].copy_from_slice(&length);
            out[3] = packet.kind.header();
            out[4..4 + packet.len].copy_from_slice(load.contents(packet));
            let (text, tag) = out[3..].split_at_mut(1 + packet.len);
            let nonce = aws::Nonce::assume_unique_for_key(number.nonce());
            let made = key.seal_in_place_separate_tag(nonce, aws::Aad::empty(), text).unwrap();
            tag.copy_from_slice(made.as_ref());
        }
        let seal = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut opened = 0;
        for &(connection, from, to) in &pieces {
            let (_, _, chain, key) = &mut ends[connection];
            let mut at = from;
            while at < to {
                let (number, len) = chain.open_length(wire[at..at + 3].try_into().unwrap()).unwrap();
                let key = key.get(number.epoch(), chain.key_of(number).unwrap());
                let nonce = aws::Nonce::assume_unique_for_key(number.nonce());
                let packet = &mut wire[at + 3..at + len + OVERHEAD];
                let text = key.open_in_place(nonce, aws::Aad::empty(), packet).unwrap();
                opened += text.len() - 1;
                at += len + OVERHEAD;
            }
        }
        let open = start.elapsed().as_secs_f64();
        assert_eq!(black_box(opened), load.plain.len());
        (seal, open)
    };
    ("aws-lc-rs", Box::new(run))
}

/// Two ends of crate `bip324` after a handshake with each other.
fn theirs() -> (OutboundCipher, InboundCipher) {
    let magic = [0xf9, 0xbe, 0xb4, 0xd9];
    let (mut key_a, mut key_b) = ([0; 64], [0; 64]);
    let start = |role, key: &mut [u8; 64]| -> Handshake<_> {
        let handshake = Handshake::<Initialized>::new(magic, role).unwrap();
        handshake.send_key(None, key).unwrap()
    };
    let a = start(bip324::Role::Initiator, &mut key_a);
    let b = start(bip324::Role::Responder, &mut key_b);
    let (a, b) = (a.receive_key(key_b).unwrap(), b.receive_key(key_a).unwrap());
    let len = Handshake::<bip324::ReceivedKey<'_>>::send_version_len(None);
    let (mut sent_a, mut sent_b) = (vec![0; len], vec![0; len]);
    let (a, b) = (
        a.send_version(&mut sent_a, None).unwrap(),
        b.send_version(&mut sent_b, None).unwrap(),
    );
    let finish = |end: Handshake<bip324::SentVersion>, came: &[u8]| -> CipherSession {
        let GarbageResult::FoundGarbage {
            mut handshake,
            consumed_bytes,
        } = end.receive_garbage(came).unwrap()
        else {
            panic!("no terminator");
        };
        let (length, rest) = came[consumed_bytes..].split_at(3);
        handshake.decrypt_packet_len(length.try_into().unwrap()).unwrap();
        match handshake.receive_version(&mut rest.to_vec()).unwrap() {
            VersionResult::Complete { cipher } => cipher,
            VersionResult::Decoy(_) => panic!("a decoy"),
        }
    };
    let (a, b) = (finish(a, &sent_b), finish(b, &sent_a));
    (a.into_split().1, b.into_split().0)
}

fn bip324_loop(load: &Load) -> Subject<'_> {
    let (outbound, inbound) = theirs();
    let mut ends = vec![(outbound, inbound); load.connections];
    let (places, pieces) = (load.places(), load.pieces());
    let mut wire = vec![0; load.wire_len()];
    let mut text = vec![0; 1 + 4096];
    let run = move || {
        let start = Instant::now();
        for (packet, &at) in load.packets.iter().zip(&places) {
            let kind = match packet.kind {
                Kind::Genuine => bip324::PacketType::Genuine,
                Kind::Decoy => bip324::PacketType::Decoy,
            };
            let out = &mut wire[at..at + packet.len + OVERHEAD];
            let outbound = &mut ends[packet.connection].0;
            outbound.encrypt(load.contents(packet), out, kind, None).unwrap();
        }
        let seal = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut opened = 0;
        for &(connection, from, to) in &pieces {
            let inbound = &mut ends[connection].1;
            let mut at = from;
            while at < to {
                let len = inbound.decrypt_packet_len(wire[at..at + 3].try_into().unwrap());
                let packet = &wire[at + 3..at + 3 + len];
                inbound.decrypt(packet, &mut text[..len - 16], None).unwrap();
                opened += black_box(&text[1..len - 16]).len();
                at += 3 + len;
            }
        }
        let open = start.elapsed().as_secs_f64();
        assert_eq!(black_box(opened), load.plain.len());
        (seal, open)
    };
    ("bip324", Box::new(run))
}

fn race(load: &Load) {
    let mut subjects = vec![ours("sealway", load, None)];
    let helpers: Option<usize> = std::env::var("CREW").ok().map(|text| text.parse().unwrap());
    if let Some(helpers) = helpers {
        let crew = Crew::new(Backend::best());
        for _ in 0..helpers {
            let crew = crew.clone();
            std::thread::spawn(move || crew.work());
        }
        subjects.push(ours("crew", load, Some(&crew)));
    }
    if std::env::var_os("SOLO").is_none() {
        subjects.extend([engine(load), aws_loop(load), bip324_loop(load)]);
    }
    let mut times = vec![Vec::new(); subjects.len()];
    for round in 0..ROUNDS + 2 {
        for (times, (_, run)) in times.iter_mut().zip(&mut subjects) {
            // Enough for half a millisecond or more at a time, whatever the batch.
            let repeats = (4096 / load.packets.len()).max(1);
            let (mut seal, mut open) = (0.0, 0.0);
            for _ in 0..repeats {
                let (a, b) = run();
                (seal, open) = (seal + a, open + b);
            }
            if round >= 2 {
                times.push((seal / repeats as f64, open / repeats as f64));
            }
        }
    }
    let pick = if std::env::var_os("FASTEST").is_some() {
        0
    } else {
        ROUNDS / 2
    };
    println!("{} connections, batch {}", load.connections, load.packets.len());
    let mut first = None;
    for (times, (name, _)) in times.iter().zip(&subjects) {
        let figure = |of: fn(&(f64, f64)) -> f64| {
            let mut sorted: Vec<f64> = times.iter().map(of).collect();
            sorted.sort_by(f64::total_cmp);
            sorted[pick] * 1e9 / load.packets.len() as f64
        };
        let pair = figure(|t| t.0 + t.1);
        let ours = *first.get_or_insert(pair);
        println!(
            "  {name:10} seal {:7.1} ns, open {:7.1} ns, pair {pair:7.1} ns, {:.3} M pairs/s, {:.2}x",
            figure(|t| t.0),
            figure(|t| t.1),
            1e3 / pair,
            pair / ours,
        );
    }
}

fn main() {
    println!("backend {}", Engine::new().backend());
    let mut args = std::env::args().skip(1).map(|arg| arg.parse().unwrap());
    let connections = args.next();
    let batch = args.next().unwrap_or(4096);
    for connections in connections.map_or(vec![1, 1000], |one| vec![one]) {
        race(&Load::new(connections, batch));
    }
}
