//! Transports whose threads help each other: the same bytes, in order, whoever makes them.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sealway_aead::batch::{Job, Slot, Status};
use sealway_aead::{Nonce, SealingKey, Suite};
use sealway_bip324::batch::{
    Backend, BatchOptions, BatchTransport, Costs, Crew, CrewMember, Executor, ExecutorFailure, Line, Routing, Shards,
    Stopped,
};
use sealway_bip324::{Error, Kind, OVERHEAD, PacketSealer};

use crate::both::{Both, HALF, chains};

/// How long a test waits for threads.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls `work` beside so many threads that help and have nothing to do yet.
fn beside(helpers: usize, work: impl FnOnce(&Crew)) {
    let crew = Crew::new(Backend::best());
    thread::scope(|scope| {
        // Also if a test fails: the scope waits for all threads.
        let _close = Close(&crew);
        for _ in 0..helpers {
            scope.spawn(|| crew.work());
        }
        wait_for(&crew, helpers);
        work(&crew);
    });
    assert_eq!(crew.idle(), 0);
}

struct Close<'a>(&'a Crew);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Waits until so many threads of a crew have nothing to do.
fn wait_for(crew: &Crew, idle: usize) {
    let begin = Instant::now();
    while crew.idle() < idle {
        assert!(begin.elapsed() < PATIENCE, "{} of {idle} threads are idle", crew.idle());
        thread::yield_now();
    }
}

/// So many packets that several slabs are full, on a few connections.
fn rounds(both: &mut Both) {
    for count in [1, 3000, 20, 9000, 0, 700] {
        both.batch.begin_seal();
        both.round(count);
    }
}

#[test]
fn one_thread_and_many_give_the_same() {
    for helpers in [0, 1, 3] {
        beside(helpers, |crew| {
            for routing in [Routing::Always, HALF] {
                wait_for(crew, helpers);
                let mut both = Both::new(3);
                both.set(crew.member(), routing);
                rounds(&mut both);
                let counters = both.batch.counters();
                assert_eq!((counters.fallbacks, counters.connections_failed), (0, 0));
                assert_eq!(counters.executor_jobs > 0, helpers > 0, "{helpers} {counters:?}");
                assert_eq!(counters.executor_jobs + counters.processor_jobs, 2 * 12_721);
            }
        });
    }
}

/// Every shard has a thread and more to do than the next; one connection is forged.
#[test]
fn shards_with_unequal_loads() {
    const SHARDS: usize = 3;
    beside(1, |crew| {
        let mut shards = Shards::new(&BatchOptions::default(), NonZeroUsize::new(SHARDS).unwrap()).unwrap();
        shards.join(crew);
        let ids: Vec<_> = (0..SHARDS)
            .map(|n| {
                let (send, recv) = chains(n);
                shards.add(send, recv, &[]).unwrap()
            })
            .collect();
        thread::scope(|scope| {
            for (shard, transport) in shards.iter_mut().enumerate() {
                let id = ids[shard].id;
                scope.spawn(move || echo(transport, id, shard, 200 + 3000 * shard));
            }
        });
        let counters = shards.counters();
        assert_eq!(counters.packets_received, 5 * (600 + 9000));
        // The first full slab finds a thread that waits.
        assert!(counters.executor_jobs > 0, "{counters:?}");
        assert_eq!((counters.fallbacks, counters.connections_failed), (0, 0));
    });
}

/// A connection that hears itself, and beside it the sealer that says what is right.
fn echo(transport: &mut BatchTransport, id: sealway_bip324::batch::ConnectionId, keys: usize, count: usize) {
    let mut sealer = PacketSealer::new(chains(keys).0);
    for turn in 0..5 {
        let mut want = Vec::new();
        let contents = |n: usize| vec![(n + turn) as u8; n % 300];
        for n in 0..count {
            transport.submit(id, Kind::Genuine, &contents(n)).unwrap();
            sealer.seal(Kind::Genuine, &[], &contents(n), &mut want).unwrap();
        }
        let wire: Vec<u8> = transport
            .seal()
            .iter()
            .flat_map(|output| output.slices().flatten().copied().collect::<Vec<_>>())
            .collect();
        assert!(wire == want, "{keys}");
        transport.receive(id, &wire).unwrap();
        transport.begin_open();
        let opened = transport.open();
        assert_eq!(opened.len(), count);
        assert!(
            opened
                .iter()
                .enumerate()
                .all(|(n, message)| message.contents == contents(n))
        );
    }
}

/// A forged packet in a slab that another thread opens ends its connection there, and no other.
#[test]
fn a_forged_packet() {
    for helpers in [0, 2] {
        beside(helpers, |crew| {
            let mut both = Both::new(2);
            both.set(crew.member(), Routing::Always);
            let mut want = both.submit_some(6000);
            assert!(both.sealed() == want);
            wait_for(crew, helpers);
            let at = want[1].len() / 2;
            want[1][at] ^= 1;
            for (id, wire) in both.ids.iter().zip(&want) {
                for piece in wire.chunks(50_000) {
                    // The forged one may have been found already.
                    let received = both.batch.receive(*id, piece);
                    assert!(received.is_ok() || *id == both.ids[1], "{received:?}");
                }
            }
            let (first, second) = (both.ids[0], both.ids[1]);
            let of = |incoming: sealway_bip324::batch::Incoming<'_>, id| {
                incoming.iter().filter(|message| message.id == id).count()
            };
            let incoming = both.batch.open();
            let (all, some) = (of(incoming, first), of(incoming, second));
            assert!(all > 2000 && some > 500 && some < 2500, "{all} {some}");
            assert!(matches!(
                both.batch.poll_closed(),
                Some((id, Error::Unauthentic | Error::PacketTooLong { .. })) if id == second
            ));
            assert_eq!(both.batch.poll_closed(), None);
            assert!(both.batch.executor_failure().is_none());
        });
    }
}

/// A transport goes on without its crew, and without its member.
#[test]
fn a_crew_that_leaves() {
    let mut both = Both::new(2);
    beside(2, |crew| {
        both.set(crew.member(), Routing::Always);
        rounds(&mut both);
    });
    rounds(&mut both);
    beside(1, |crew| {
        both.set(crew.member(), Routing::Always);
        let want = both.submit_some(8000);
        // What is under way comes back first.
        both.batch.remove_executor();
        assert!(both.sealed() == want);
        for (id, wire) in both.ids.iter().zip(&want) {
            both.batch.receive(*id, wire).unwrap();
        }
        assert_eq!(both.batch.open().len(), 8000);
        rounds(&mut both);
        // Dropped while a slab is under way.
        let mut other = Both::new(1);
        other.set(crew.member(), Routing::Always);
        let _ = other.submit_some(5000);
        other.batch.begin_seal();
    });
    assert!(both.batch.executor_failure().is_none());
}

/// A thread helps only as long as it says, and stops when it is woken.
#[test]
fn a_thread_that_has_other_work() {
    let crew = Crew::new(Backend::best());
    let goes_on = AtomicBool::new(true);
    thread::scope(|scope| {
        let helper = scope.spawn(|| crew.work_while(|| goes_on.load(Ordering::SeqCst)));
        wait_for(&crew, 1);
        let mut both = Both::new(1);
        both.set(crew.member(), Routing::Always);
        both.round(6000);
        assert!(both.batch.counters().executor_jobs > 0);
        goes_on.store(false, Ordering::SeqCst);
        crew.wake();
        helper.join().unwrap();
        assert_eq!(crew.idle(), 0);
        both.round(3000);
    });
}

/// Slabs are handed over only while somebody helps, and only ahead of other work.
#[test]
fn slabs_that_nobody_would_take_stay() {
    let crew = Crew::new(Backend::best());
    let mut member = crew.member();
    assert!(!member.wants_slab(true), "nobody helps");
    thread::scope(|scope| {
        let _close = Close(&crew);
        scope.spawn(|| crew.work());
        wait_for(&crew, 1);
        assert!(member.wants_slab(true) && !member.wants_slab(false));
    });
    assert!(!member.wants_slab(true), "nobody helps any more");
}

const CONTENTS: [u8; 100] = [b'P'; 100];

fn holds_contents(memory: &[u8]) -> bool {
    memory
        .chunks(32)
        .any(|chunk| chunk.iter().all(|&byte| byte == CONTENTS[0]))
}

/// Contents stay neither in what was written to a slab nor in what was made of it, whoever worked on them.
#[test]
fn contents_do_not_stay_in_slabs() {
    // Half of the slabs, each with two epochs, so that the other half is there for what comes.
    const COUNT: usize = 1700;
    for helpers in [0, 1] {
        beside(helpers, |crew| {
            let mut both = Both::new(1);
            let (member, is_done) = (crew.member(), [false; Crew::SLABS]);
            both.set(Watched { member, is_done }, Routing::Always);
            let (batch, id) = (&mut both.batch, both.ids[0]);
            for _ in 0..3 {
                for _ in 0..COUNT {
                    batch.submit(id, Kind::Genuine, &CONTENTS).unwrap();
                }
                let sealed = batch.seal();
                let wire: Vec<u8> = sealed
                    .iter()
                    .flat_map(|output| output.slices())
                    .flatten()
                    .copied()
                    .collect();
                for packet in wire.chunks(CONTENTS.len() + OVERHEAD) {
                    batch.receive(id, packet).unwrap();
                }
                assert_eq!(batch.open().len(), COUNT);
                wait_for(crew, helpers);
            }
            assert!(batch.counters().executor_jobs > 0);
            // Gives back the slabs of what was opened, and of what was sealed.
            batch.receive(id, &[]).unwrap();
            assert!(batch.open().is_empty());
            while let Ok(room) = batch.reserve(id, Kind::Genuine, 20_000) {
                assert!(!holds_contents(room));
            }
        });
    }
}

/// A member that looks at what was made of a slab when the slab becomes free.
struct Watched {
    member: CrewMember,
    is_done: [bool; Crew::SLABS],
}

impl Executor for Watched {
    fn set_key(&mut self, slot: Slot, key: &[u8; 32]) {
        self.member.set_key(slot, key);
    }

    fn clear_key(&mut self, slot: Slot) {
        self.member.clear_key(slot);
    }

    fn slabs(&self) -> usize {
        self.member.slabs()
    }

    fn slab_bytes(&self) -> usize {
        self.member.slab_bytes()
    }

    fn slab_jobs(&self) -> usize {
        self.member.slab_jobs()
    }

    fn clear_slab(&mut self, slab: usize) {
        if std::mem::take(&mut self.is_done[slab]) {
            assert!(!holds_contents(self.member.slab(slab)));
        }
        self.member.clear_slab(slab);
    }

    fn slab(&self, slab: usize) -> &[u8] {
        self.member.slab(slab)
    }

    fn slab_mut(&mut self, slab: usize) -> &mut [u8] {
        self.member.slab_mut(slab)
    }

    fn start_slab(&mut self, slab: usize, filled: usize, jobs: &[Job]) -> Result<(), ExecutorFailure> {
        self.member.start_slab(slab, filled, jobs)
    }

    fn finish_slab(&mut self, slab: usize, statuses: &mut [Status]) -> Result<(), ExecutorFailure> {
        self.is_done[slab] = true;
        self.member.finish_slab(slab, statuses)
    }

    fn start(&mut self, jobs: &[Job], arena: &[u8]) -> Result<(), ExecutorFailure> {
        self.member.start(jobs, arena)
    }

    fn finish(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut [Status]) -> Result<(), Stopped> {
        self.member.finish(jobs, arena, statuses)
    }
}

/// Its costs can be measured, with and without a thread that helps.
#[test]
fn costs_of_a_crew() {
    for helpers in [0, 1] {
        beside(helpers, |crew| {
            let begin = Instant::now();
            let costs = Costs::measure(&mut crew.member(), Backend::best(), &mut || begin.elapsed()).unwrap();
            assert!(costs.cpu.job > 0 || costs.cpu.byte > 0);
            // Whose time it was, depends on when a thread that is woken runs.
            let [thread, theirs] = [costs.thread, costs.executor].map(|line| line != Line::default());
            assert!(thread || theirs, "{helpers} {costs:?}");
        });
    }
}

/// What others do meanwhile counts as theirs: here this thread does it for them, while the clock stands.
#[test]
fn costs_of_work_that_others_do() {
    let crew = Crew::new(Backend::best());
    // So that it is left as soon as nothing waits.
    crew.close();
    let (begin, mut off) = (Instant::now(), Duration::ZERO);
    let mut clock = || {
        let now = begin.elapsed();
        crew.work();
        let reading = now - off;
        off += begin.elapsed() - now;
        reading
    };
    let costs = Costs::measure(&mut crew.member(), Backend::best(), &mut clock).unwrap();
    assert_ne!(costs.executor, Line::default(), "{costs:?}");
}

/// What breaks a rule is refused, and the slab is as it was written.
#[test]
fn jobs_that_break_a_rule() {
    let crew = Crew::new(Backend::best());
    let mut member = crew.member();
    let job = |slot, end| {
        let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &[1; 12]).unwrap();
        [Job::seal(Slot(slot), nonce, 0..end, 0)]
    };
    member.set_key(Slot(70), &[1; 32]);
    member.slab_mut(0)[..100].fill(7);
    let mut statuses = [Status::Failed];
    for slot in [0, 71, u32::MAX] {
        assert!(member.start_slab(0, 100, &job(slot, 50)).is_err(), "{slot}");
        assert!(member.finish_slab(0, &mut statuses).is_err());
    }
    // Longer than what was written.
    member.start_slab(0, 100, &job(70, 90)).unwrap();
    assert!(member.slab(0).is_empty() && member.start_slab(0, 100, &job(70, 50)).is_err());
    assert!(member.finish_slab(0, &mut statuses).is_err());
    assert!(member.slab(0)[..100] == [7; 100]);
    member.start_slab(0, 100, &job(70, 50)).unwrap();
    member.finish_slab(0, &mut statuses).unwrap();
    assert_eq!(statuses, [Status::Done]);
    assert!(member.slab(0)[..66] != [7; 66] && member.slab(0)[66..100] == [7; 34]);
    member.clear_key(Slot(70));
    member.clear_slab(0);
    assert!(member.slab(0)[..100] == [7; 100]);
    assert!(member.start_slab(0, 100, &job(70, 50)).is_err());
    assert!(member.start_slab(Crew::SLABS, 0, &[]).is_err());
}

/// Each slab comes back to its own member and place, whoever asks first and whoever did it.
#[test]
fn slabs_that_are_asked_for_in_another_order() {
    let crew = Crew::new(Backend::best());
    let mut members = [crew.member(), crew.member()];
    let nonce = |slab: usize| Nonce::assume_unique(Suite::ChaCha20Poly1305, &[slab as u8; 12]).unwrap();
    for (n, member) in members.iter_mut().enumerate() {
        member.set_key(Slot(3), &[n as u8; 32]);
        for slab in 0..3 {
            member.slab_mut(slab)[..50].fill(7 + slab as u8);
            let job = Job::seal(Slot(3), nonce(slab), 0..50, 0);
            member.start_slab(slab, 66, &[job]).unwrap();
        }
    }
    for (n, slab) in [(1, 2), (0, 1), (0, 0), (1, 0), (1, 1), (0, 2)] {
        let mut statuses = [Status::Failed];
        members[n].finish_slab(slab, &mut statuses).unwrap();
        let mut want = vec![0; 66];
        let key = SealingKey::new(Suite::ChaCha20Poly1305, &[n as u8; 32]).unwrap();
        key.seal_to(nonce(slab), &[], &[7 + slab as u8; 50], &mut want).unwrap();
        assert_eq!((statuses, &members[n].slab(slab)[..66]), ([Status::Done], &want[..]));
        assert!(members[n].is_slab_done(slab));
    }
}
