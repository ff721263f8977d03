//! Threads that fail partway through a slab, and what is in one that was done.

use std::ops::Range;

use sealway_aead::batch::{Job, Slot, Status};
use sealway_aead::{Nonce, Suite};

use super::*;
use crate::batch::{BatchOptions, BatchTransport, ConnectionId, Executor, Routing};
use crate::fschacha::{RecvChain, SendChain};
use crate::{Kind, PacketSealer, TAG_LEN};

const KEYS: ([u8; 32], [u8; 32]) = ([3; 32], [4; 32]);

fn contents(n: usize) -> Vec<u8> {
    vec![n as u8; n % 300]
}

/// Gives packets to a transport; what they are on the wire.
fn submit(batch: &mut BatchTransport, id: ConnectionId, sealer: &mut PacketSealer, count: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for n in 0..count {
        batch.submit(id, Kind::Genuine, &contents(n)).unwrap();
        sealer.seal(Kind::Genuine, &[], &contents(n), &mut wire).unwrap();
    }
    wire
}

fn sealed(batch: &mut BatchTransport) -> Vec<u8> {
    let output = batch.seal();
    output
        .iter()
        .flat_map(|output| output.slices().flatten().copied().collect::<Vec<_>>())
        .collect()
}

/// A member of which each slab fails before the last so many jobs.
fn failing(crew: &Crew, left_out: usize) -> CrewMember {
    let mut member = crew.member();
    member.leave_out(left_out);
    member
}

/// The packets whose nonces are spent are sealed again to the same bytes, and opened again to the same contents.
#[test]
fn what_failed_partway_is_done_again() {
    const COUNT: usize = 5000;
    for left_out in [1, 100, usize::MAX] {
        let crew = Crew::new(Backend::best());
        let mut batch = BatchTransport::new(BatchOptions::default()).unwrap();
        let (send, recv) = (SendChain::new(&KEYS.0, &KEYS.1), RecvChain::new(&KEYS.0, &KEYS.1));
        let id = batch.add(send.unwrap(), recv.unwrap(), &[]).unwrap();
        let mut sealer = PacketSealer::new(SendChain::new(&KEYS.0, &KEYS.1).unwrap());
        std::thread::scope(|scope| {
            let _close = Close(&crew);
            scope.spawn(|| crew.work());
            wait_for_helper(&crew);

            batch.set_executor(Box::new(failing(&crew, left_out)), Routing::Always);
            let want = submit(&mut batch, id, &mut sealer, COUNT);
            assert!(sealed(&mut batch) == want, "{left_out}");
            assert!(batch.executor_failure().is_some(), "{left_out} {:?}", batch.counters());
            assert_eq!(batch.counters().fallbacks, 1);

            wait_for_helper(&crew);
            batch.set_executor(Box::new(failing(&crew, left_out)), Routing::Always);
            for piece in want.chunks(50_000) {
                batch.receive(id, piece).unwrap();
            }
            let opened = batch.open();
            assert_eq!(opened.len(), COUNT);
            assert!(
                opened
                    .iter()
                    .enumerate()
                    .all(|(n, message)| message.contents == contents(n))
            );
            assert!(batch.executor_failure().is_some(), "{left_out} {:?}", batch.counters());
            assert_eq!(batch.counters().fallbacks, 2);

            // And what comes after them.
            let want = submit(&mut batch, id, &mut sealer, 100);
            assert!(sealed(&mut batch) == want, "{left_out}");
        });
        assert_eq!(batch.counters().connections_failed, 0);
        assert_eq!(batch.counters().processor_jobs, (2 * COUNT + 100) as u64);
    }
}

/// A slab shows what was made of it; what was written, if that failed or once it is to be written again.
#[test]
fn a_slab_shows_what_was_made_or_written() {
    const TEXT: [u8; 64] = [7; 64];
    let crew = Crew::new(Backend::best());
    for left_out in [0, 1] {
        let mut member = failing(&crew, left_out);
        member.set_key(Slot(0), &KEYS.0);
        member.slab_mut(0)[..64].copy_from_slice(&TEXT);
        assert_eq!(member.slab(0)[..64], TEXT);
        let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &[1; 12]).unwrap();
        let job = Job::seal(Slot(0), nonce, 0..64, 0);
        member.start_slab(0, 64 + TAG_LEN, &[job]).unwrap();
        assert!(member.slab(0).is_empty(), "it is under way");

        let mut statuses = [Status::Failed];
        let finished = member.finish_slab(0, &mut statuses);
        if left_out > 0 {
            assert!(finished.is_err());
            assert_eq!(member.slab(0)[..64], TEXT);
            continue;
        }
        finished.unwrap();
        assert_eq!(statuses, [Status::Done]);
        let sealed = member.slab(0)[..64 + TAG_LEN].to_vec();
        assert_ne!(sealed[..64], TEXT);
        assert!(sealed[64..] != [0; TAG_LEN]);
        assert_eq!(member.slab_mut(0)[..64 + TAG_LEN], sealed);
        member.clear_slab(0);
        assert_eq!(member.slab(0)[..64], TEXT);
    }
}

/// What no job writes is as it was written, whoever was in the slab before: lengths before packets, tags that were opened, the rest.
#[test]
fn what_lies_between_jobs_is_there() {
    let crew = Crew::new(Backend::best());
    let mut member = crew.member();
    member.set_key(Slot(0), &KEYS.0);
    let text: Vec<u8> = (0..=255).collect();
    let places = [3..40, 60..61, 90..200];
    let mut sealed = Vec::new();
    for opens in [false, true] {
        member.clear_slab(0);
        member.slab_mut(0).fill(0xaa);
        let written = if opens { &sealed } else { &text };
        member.slab_mut(0)[..256].copy_from_slice(written);
        let jobs = places.clone().map(|place| {
            let nonce = [place.start as u8; 12];
            if opens {
                return Job::open(Slot(0), &nonce, place.start..place.end + TAG_LEN as u32, place.start).unwrap();
            }
            let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &nonce).unwrap();
            Job::seal(Slot(0), nonce, place.clone(), place.start)
        });
        member.start_slab(0, 256, &jobs).unwrap();
        member.finish_slab(0, &mut [Status::Failed; 3]).unwrap();
        let made = &member.slab(0)[..256];
        let mut want = written.clone();
        for Range { start, end } in places.clone().map(|place| place.start as usize..place.end as usize) {
            let end = if opens { end } else { end + TAG_LEN };
            let from = if opens { &text[start..end] } else { &made[start..end] };
            want[start..end].copy_from_slice(from);
        }
        assert!(made == want, "{opens}");
        sealed = made.to_vec();
    }
}

/// Also if a test fails: a scope waits for its threads.
struct Close<'a>(&'a Crew);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn wait_for_helper(crew: &Crew) {
    let begin = std::time::Instant::now();
    while crew.idle() == 0 {
        assert!(begin.elapsed().as_secs() < 10, "the thread that helps does not come");
        std::thread::yield_now();
    }
}
