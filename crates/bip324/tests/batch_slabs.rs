//! Packets written into the memory of an executor, on one thread and on several: the same bytes, in order, whatever the device does.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used)]

#[path = "common/both.rs"]
mod both;
mod common;
#[path = "../../cuda/tests/support/mod.rs"]
mod support;

use std::num::NonZeroUsize;
use std::sync::Arc;

use both::{Both, HALF, chains};
use sealway_bip324::batch::{BatchOptions, BatchTransport, Routing, Shards};
use sealway_bip324::{Error, Kind, PacketSealer};
use sealway_cuda::{Engine, Options};
use support::failing::{Call, Failing};
use support::fake::Fake;
use support::kernels::Model;

fn options(slabs: usize) -> Options {
    Options {
        slots: 64,
        chunk_bytes: 4096,
        chunks: 1,
        slabs,
        slab_bytes: 8192,
        ..Options::default()
    }
}

fn engine(slabs: usize) -> Engine {
    Engine::with_device(Box::new(Fake::new(Model)), options(slabs)).unwrap()
}

/// Begun early, in pieces, with more after it, or not at all: the same bytes.
#[test]
fn what_was_begun_early_is_the_same() {
    for (slabs, routing) in [(1, Routing::Always), (8, Routing::Always), (8, HALF), (3, HALF)] {
        let mut both = Both::new(3);
        both.set(engine(slabs), routing);
        for turn in 0..12 {
            let mut want = vec![Vec::new(); 3];
            for n in 0..200 {
                let which = both.numbers.below(3);
                // Some are longer than a slab.
                let len = if n % 90 == 40 { 9000 } else { n };
                let contents = both.numbers.bytes(len);
                want[which].extend(both.submit(which, &contents));
                if n % 50 == turn {
                    both.batch.begin_seal();
                }
            }
            both.batch.begin_seal();
            assert!(both.sealed() == want);
            assert!(both.batch.outgoing().connections() == 3);
            for (id, wire) in both.ids.iter().zip(&want) {
                for piece in wire.chunks(5000 + turn * 100) {
                    both.batch.receive(*id, piece).unwrap();
                    both.batch.begin_open();
                }
            }
            assert_eq!(both.batch.open().len(), 200);
        }
        let counters = both.batch.counters();
        assert!(counters.executor_jobs > 50, "{counters:?}");
        assert_eq!((counters.fallbacks, counters.connections_failed), (0, 0));
    }
}

/// A packet that begins at the byte at which the one before ended, but elsewhere, is a slice of its own.
#[test]
fn one_offset_in_two_places() {
    let mut both = Both::new(2);
    both.set(engine(1), Routing::Always);
    let mut want = vec![Vec::new(); 2];
    // 100 bytes of the slab, all but 72 of the rest, 100 bytes of the arena, and on from there.
    for (which, len) in [(0, 80), (1, 8000), (1, 80), (0, 50)] {
        want[which].extend(both.submit(which, &vec![len as u8; len]));
    }
    assert!(both.sealed() == want);
}

/// Room that was given lies in a slab that is gone, once that was begun.
#[test]
fn room_ends_when_its_slab_is_begun() {
    let mut both = Both::new(2);
    both.set(engine(4), Routing::Always);
    let want = both.submit(0, b"abc");
    assert!(both.sealed()[0] == want);
    let (id, other) = (both.ids[0], both.ids[1]);
    both.batch.receive(id, &want).unwrap();
    both.batch.receive_room(other, 10).unwrap().fill(0);
    both.batch.begin_open();
    assert!(matches!(both.batch.receive_commit(10), Err(Error::OutOfOrder { .. })));
    let incoming = both.batch.open();
    assert!(incoming.iter().map(|message| message.contents).eq([b"abc"]));
}

/// Results stay to be read when their executor is taken away, and so do packets that wait in its memory.
#[test]
fn what_lies_in_a_slab_outlives_its_executor() {
    for (begun, again) in [(false, false), (true, false), (true, true)] {
        let mut both = Both::new(3);
        both.set(engine(2), Routing::Always);
        let mut want = vec![Vec::new(); 3];
        for n in 0..60 {
            want[n % 3].extend(both.submit(n % 3, &[n as u8; 300]));
        }
        if begun {
            both.batch.begin_seal();
        }
        if again {
            both.set(engine(3), Routing::Always);
        } else {
            both.batch.remove_executor();
        }
        for n in 0..60 {
            want[n % 3].extend(both.submit(n % 3, &[n as u8; 200]));
        }
        assert!(both.sealed() == want);
        for (id, wire) in both.ids.iter().zip(&want) {
            both.batch.receive(*id, wire).unwrap();
        }
        assert_eq!(both.batch.open().len(), 120);
        both.batch.remove_executor();
        let incoming = both.batch.incoming();
        assert!(incoming.iter().all(|message| message.contents.len() >= 200));
        both.round(100);
    }
}

/// A forged packet in a slab ends its connection there, and no other.
#[test]
fn a_forged_packet_in_a_slab() {
    for routing in [Routing::Always, HALF] {
        let mut both = Both::new(3);
        both.set(engine(4), routing);
        let want = both.submit_some(900);
        assert!(both.sealed() == want);
        for (which, id) in both.ids.iter().enumerate() {
            let mut wire = want[which].clone();
            if which == 1 {
                let end = wire.len() - 1;
                wire[end] ^= 1;
            }
            both.batch.receive(*id, &wire).unwrap();
        }
        let (first, second) = (both.ids[0], both.ids[1]);
        let got = both.batch.open().iter().filter(|message| message.id == second).count();
        let all = both
            .batch
            .incoming()
            .iter()
            .filter(|message| message.id == first)
            .count();
        assert!(got > 100 && all > got / 2);
        assert_eq!(both.batch.poll_closed(), Some((second, Error::Unauthentic)));
        assert_eq!(both.batch.poll_closed(), None);
        assert!(both.batch.executor_failure().is_none());
    }
}

/// Every shard on a thread of its own; what they give, in their order.
fn run<T: Send>(shards: &mut Shards, work: impl Fn(usize, &mut BatchTransport) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let shards = shards.iter_mut().enumerate();
        let threads: Vec<_> = shards
            .map(|(shard, transport)| scope.spawn(move || work(shard, transport)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A thread's connections with a device that fails at a call, at one time or another: every packet once, in order.
#[test]
fn threads_with_devices_that_fail() {
    const THREADS: usize = 3;
    let calls = [
        (Call::CopyIn, 5),
        (Call::Launch, 10),
        (Call::Wait, 2),
        (Call::CopyOut, 0),
        (Call::Record, 9),
    ];
    for (call, before) in calls {
        for lost in [false, true] {
            let count = NonZeroUsize::new(THREADS).unwrap();
            let mut shards = Shards::new(&BatchOptions::default(), count).unwrap();
            assert!(shards.count() == THREADS && shards.shard(THREADS).is_none());
            let ids: Vec<_> = (0..12)
                .map(|n| {
                    let (send, recv) = chains(n);
                    shards.add(send, recv, &[]).unwrap()
                })
                .collect();
            for (shard, transport) in shards.iter_mut().enumerate() {
                assert_eq!(transport.connections(), 4);
                let (device, trigger) = Failing::new(Fake::new(Model));
                let engine = Engine::with_device(Box::new(device), options(3)).unwrap();
                if shard > 0 {
                    trigger.arm(call, before * shard, lost);
                }
                transport.set_executor(Box::new(engine), Routing::Always);
            }
            let ids = Arc::new(ids);
            let failures = run(&mut shards, |shard, transport| {
                let own: Vec<_> = (0..12).filter(|&n| ids[n].shard == shard).collect();
                let mut sealers: Vec<_> = own.iter().map(|&n| PacketSealer::new(chains(n).0)).collect();
                for turn in 0..6 {
                    let mut want = vec![Vec::new(); 4];
                    let mut sent = vec![Vec::new(); 4];
                    for n in 0..300 {
                        let contents = vec![(n + turn) as u8; n * 7 % 400];
                        let id = ids[own[n % 4]].id;
                        transport.submit(id, Kind::Genuine, &contents).unwrap();
                        sealers[n % 4]
                            .seal(Kind::Genuine, &[], &contents, &mut want[n % 4])
                            .unwrap();
                        sent[n % 4].push(contents);
                    }
                    transport.begin_seal();
                    let mut wires = vec![Vec::new(); 4];
                    for output in transport.seal().iter() {
                        wires[output.id.index()].extend(output.slices().flatten());
                    }
                    assert!(wires == want, "{call:?} {lost}");
                    for (n, wire) in wires.iter().enumerate() {
                        transport.receive(ids[own[n]].id, wire).unwrap();
                    }
                    let mut came = vec![Vec::new(); 4];
                    for message in transport.open().iter() {
                        came[message.id.index()].push(message.contents.to_vec());
                    }
                    assert!(came == sent, "{call:?} {lost}");
                }
                usize::from(transport.executor_failure().is_some())
            });
            assert_eq!(failures, [0, 1, 1], "{call:?} {lost}");
            let counters = shards.counters();
            assert_eq!((counters.fallbacks, counters.connections_failed), (2, 0));
            assert_eq!(counters.processor_jobs + counters.executor_jobs, 3 * 6 * 600);
            assert_eq!((counters.packets_sent, counters.packets_received), (5400, 5400));
        }
    }
}

/// Packets of one connection, in three slabs of which the first has a forged one; then in a slab that is under way and in what
/// the processor did behind it. Nothing of it is delivered from the forged packet on.
#[test]
fn nothing_follows_a_forged_packet() {
    for slabs in [3, 1] {
        let mut both = Both::new(2);
        let mut wire = Vec::new();
        for _ in 0..22 {
            wire.extend(both.submit(0, &[7; 1000]));
        }
        let _ = both.batch.seal();
        both.set(engine(slabs), Routing::Always);
        wire[2 * 1020 + 100] ^= 1;
        let id = both.ids[0];
        for piece in wire.chunks(8000) {
            both.batch.receive(id, piece).unwrap();
        }
        assert_eq!(both.batch.open().len(), 2, "{slabs}");
        assert_eq!(both.batch.poll_closed(), Some((id, Error::Unauthentic)));
        assert_eq!(both.batch.poll_closed(), None);
        assert_eq!(both.batch.counters().packets_received, 2);
    }
}
