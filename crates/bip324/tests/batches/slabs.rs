//! Packets written into the memory of an executor, on one thread and on several: the same bytes, in order, whatever the device does.

use std::num::NonZeroUsize;
use std::sync::Arc;

use sealway_aead::batch::{Job, Slot, Status};
use sealway_bip324::batch::{BatchOptions, BatchTransport, Executor, ExecutorFailure, Routing, Shards, Stopped};
use sealway_bip324::{Error, Kind, PacketSealer};
use sealway_cuda::{Engine, Options};

use crate::both::{Both, HALF, chains};
use crate::support::failing::{Call, Failing};
use crate::support::fake::Fake;
use crate::support::kernels::Model;

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

/// Room for a packet holds nothing of the packets before, of either direction, wherever those were worked on.
#[test]
fn room_in_a_slab_is_empty() {
    let never = Routing::Threshold { jobs: usize::MAX };
    for routing in [Routing::Always, never] {
        let mut both = Both::new(2);
        both.set(engine(1), routing);
        let id = both.ids[0];
        for (turn, len) in [300, 700, 90].into_iter().enumerate() {
            let wire = both.submit(turn % 2, &vec![7; len]);
            assert!(both.sealed()[turn % 2] == wire);
            both.batch.receive(both.ids[turn % 2], &wire).unwrap();
            assert_eq!(both.batch.open().len(), 1);
        }
        // Gives back the slab of what was opened, and of what was sealed.
        both.batch.receive(id, &[]).unwrap();
        assert!(both.batch.open().is_empty());
        let room = both.batch.reserve(id, Kind::Genuine, 2000).unwrap();
        assert!(room.iter().all(|&byte| byte == 0));
    }
}

/// Packets of a connection that changes its key twice while they wait in slabs.
#[test]
fn two_epochs_in_slabs() {
    for (call, routing) in [
        (None, Routing::Always),
        (Some(Call::Wait), Routing::Always),
        (Some(Call::Finish), Routing::Always),
        (None, HALF),
    ] {
        let mut both = Both::new(1);
        let (device, trigger) = Failing::new(Fake::new(Model));
        both.set(Engine::with_device(Box::new(device), options(64)).unwrap(), routing);
        if let Some(call) = call {
            trigger.arm(call, 0, true);
        }
        let mut want = Vec::new();
        for n in 0..700 {
            want.extend(both.submit(0, &[n as u8; 40]));
            if n % 100 == 0 {
                both.batch.begin_seal();
            }
        }
        both.batch.begin_seal();
        assert!(both.sealed()[0] == want);
        for (n, piece) in want.chunks(3000).enumerate() {
            both.batch.receive(both.ids[0], piece).unwrap();
            if n % 3 == 0 {
                both.batch.begin_open();
            }
        }
        both.batch.begin_open();
        let incoming = both.batch.open();
        assert!(
            incoming
                .iter()
                .map(|message| message.contents)
                .eq((0..700).map(|n| [n as u8; 40]))
        );
        assert_eq!(both.batch.poll_closed(), None);
        let fallbacks = both.batch.counters().fallbacks;
        assert_eq!(fallbacks, u64::from(call.is_some() && trigger.happened()));
    }
}

/// An id of one shard means nothing to another.
#[test]
fn ids_of_other_shards() {
    let mut shards = Shards::new(&BatchOptions::default(), NonZeroUsize::new(3).unwrap()).unwrap();
    let mut add = || {
        let (send, recv) = chains(1);
        shards.add(send, recv, &[]).unwrap()
    };
    let mut ids = vec![add(), add(), add()];
    // Places that had connections before have others.
    for id in ids.clone() {
        let own = shards.shard(id.shard).unwrap();
        assert!(own.remove(id.id) && !own.contains(id.id));
        let (send, recv) = chains(2);
        let again = shards.shard(id.shard).unwrap().add(send, recv, &[]).unwrap();
        assert_eq!(again.index(), id.id.index());
        ids.push(sealway_bip324::batch::ShardedId { id: again, ..id });
    }
    for (n, id) in ids.iter().enumerate() {
        for shard in 0..3 {
            let there = shard == id.shard && n >= 3;
            let shard = shards.shard(shard).unwrap();
            assert_eq!(shard.contains(id.id), there);
            let submitted = shard.submit(id.id, Kind::Genuine, b"abc");
            assert!(if there {
                submitted.is_ok()
            } else {
                submitted == Err(Error::Closed)
            });
            assert_eq!(shard.receive(id.id, b"").is_ok(), there);
            assert!(there || !shard.remove(id.id));
        }
    }
}

/// An executor that says it has slabs and has no memory for them.
struct Empty(usize);

impl Executor for Empty {
    fn set_key(&mut self, _: Slot, _: &[u8; 32]) {}
    fn clear_key(&mut self, _: Slot) {}
    fn slabs(&self) -> usize {
        2
    }
    fn slab_bytes(&self) -> usize {
        self.0
    }
    fn slab_jobs(&self) -> usize {
        100
    }
    fn start(&mut self, _: &[Job], _: &[u8]) -> Result<(), ExecutorFailure> {
        Err(ExecutorFailure::new("nobody"))
    }
    fn finish(&mut self, _: &[Job], _: &mut [u8], _: &mut [Status]) -> Result<(), Stopped> {
        Ok(())
    }
}

/// It is dropped before a number is used up.
#[test]
fn slabs_that_are_not_there() {
    for bytes in [8192, 4 << 30, usize::MAX] {
        let mut both = Both::new(2);
        both.set(Empty(bytes), Routing::Always);
        both.round(100);
        assert!(both.batch.executor_failure().is_some());
        assert_eq!(both.batch.counters().fallbacks, 1);
    }
}

/// What was worked on because too much waited does not keep later packets from the executor.
#[test]
fn slabs_are_given_after_much_has_waited() {
    let mut both = Both::new(16);
    both.set(engine(2), Routing::Always);
    let packets: Vec<_> = (0..16 * 96)
        .map(|n| {
            let mut wire = Vec::new();
            both.sealers[n % 16]
                .seal(Kind::Genuine, &[], &[1; 40], &mut wire)
                .unwrap();
            (both.ids[n % 16], wire)
        })
        .collect();
    // Two slabs are under way, and the arena is worked on when the last packet that has come is not whole.
    let mut came = None;
    for (id, packet) in &packets {
        let done = both.batch.counters().processor_jobs;
        both.batch.receive(*id, &packet[..30]).unwrap();
        if both.batch.counters().processor_jobs > done {
            assert!(came.is_none());
            came = Some((both.batch.open().len(), both.batch.counters().executor_jobs));
        }
        both.batch.receive(*id, &packet[30..]).unwrap();
    }
    let (came, before) = came.unwrap();
    let left = both.batch.open().len();
    assert!(came > 1024 && came + left == packets.len());
    assert!(left > 200);
    assert_eq!(both.batch.counters().executor_jobs - before, left as u64);
}
