//! NVIDIA's driver as the crate calls it, over a stand-in that computes what a GPU would and ends the process at the first call that
//! is wrong: work that was not waited for, memory that is not wiped, whatever is not given back. A program of its own: it
//! starts itself again for each library.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a failed test")]

#[path = "support/driver.rs"]
mod driver;
mod support;

use std::thread;

use sealway_aead::batch::{Memory, Slot, Status};
use sealway_cuda::{Engine, Error, Message, Options, Stopped, Ticket, Ways, probe};

use driver::{StandIn, with_driver};
use support::mix::{Mix, Noise, key, set_keys};
use support::{packets, small};

/// As late as can be, and several orders of what may come earlier.
const SEEDS: std::ops::Range<u64> = 0..6;

fn timed() -> Options {
    Options {
        timing: true,
        ..small()
    }
}

fn open(options: Options) -> Engine {
    let mut engine = Engine::open(options).unwrap();
    set_keys(&mut engine, 16);
    engine
}

fn lens(seed: u64, count: usize, most: usize) -> Vec<usize> {
    let mut noise = Noise(seed);
    (0..count)
        .map(|_| noise.below([2, 70, 400, most][seed as usize % 4]))
        .collect()
}

fn each_seed(driver: &mut StandIn, mut test: impl FnMut(u64)) {
    for seed in SEEDS {
        driver.is(&format!("seed={seed}"));
        test(seed);
    }
}

#[test]
fn mixes_equal_the_processors() {
    with_driver("mixes_equal_the_processors", |driver| {
        each_seed(driver, |seed| {
            let options = if seed % 2 == 0 { small() } else { timed() };
            let mut engine = open(options);
            for (round, count) in [0, 1, 9, 60, 200].into_iter().enumerate() {
                let round = seed * 5 + round as u64;
                let mix = Mix::new(round, &lens(round, count, 3000), 16, round.is_multiple_of(2));
                let report = mix.check(&mut engine);
                assert_eq!(report.times.is_some(), seed % 2 == 1 && count > 0);
                if let Some(times) = report.times {
                    assert!(
                        times.copy_in_s > 0.0 && times.kernels_s > 0.0 && times.copy_out_s > 0.0,
                        "{times:?}"
                    );
                }
            }
        });
    });
}

#[test]
fn long_messages_go_in_parts() {
    with_driver("long_messages_go_in_parts", |driver| {
        each_seed(driver, |seed| {
            let mut engine = open(Options {
                chunk_bytes: 1 << 17,
                ..small()
            });
            for giant in [16_385, 50_000, 64 * 256 * 4, 100_000] {
                let mut lens = lens(seed, 40, 500);
                (lens[20], lens[31]) = (giant, 16_384);
                Mix::new(seed, &lens, 16, seed % 2 == 1).check(&mut engine);
            }
        });
    });
}

#[test]
fn slabs_equal_the_processors() {
    with_driver("slabs_equal_the_processors", |driver| {
        each_seed(driver, |seed| {
            let mut engine = Engine::open(packets::options()).unwrap();
            let mut noise = packets::Noise(seed);
            for turn in 0..2 {
                let load =
                    |slab: u64| packets::load(seed * 9 + turn * 3 + slab, &packets::lens(&mut noise), slab as u32);
                let loads: Vec<_> = (0..3).map(load).collect();
                for (slab, load) in loads.iter().enumerate() {
                    packets::set_keys(&mut engine, slab as u32);
                    packets::start(&mut engine, slab, load);
                }
                for slab in [2, 0, 1] {
                    packets::finish(&mut engine, slab, &loads[slab]);
                }
            }
            // One under way when it is dropped.
            packets::start(&mut engine, 1, &packets::load(seed, &[40, 900], 2));
        });
    });
}

#[test]
fn started_and_finished() {
    with_driver("started_and_finished", |driver| {
        each_seed(driver, |seed| {
            let mut engine = open(small());
            for count in [3, 20, 200] {
                let mix = Mix::new(seed, &lens(seed, count, 900), 16, seed % 2 == 0);
                let jobs = mix.jobs();
                // Begun again without an end.
                engine.start(&jobs[1..], &mix.src, &mix.aad).unwrap();
                assert_eq!(engine.start(&jobs, &mix.src, &mix.aad).unwrap().jobs, count);
                let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; count]);
                engine.finish(&jobs, &mut dst, &mut statuses).unwrap();
                mix.compare(&dst, &statuses);
            }
            // Something under way when it is dropped.
            let mix = Mix::new(seed, &[300; 30], 16, false);
            engine.set_key(Slot(1), &[1; 32]).unwrap();
            engine.start(&mix.jobs(), &mix.src, &mix.aad).unwrap();
            engine.set_key(Slot(2), &[1; 32]).unwrap();
        });
    });
}

const TEXT: usize = 333;

/// One sealed message.
fn submit(engine: &mut Engine, slot: u32, fill: u8) -> Option<Ticket> {
    let mut batch = engine.batch().unwrap()?;
    let message = Message {
        slot: Slot(slot),
        nonce: [9; 12],
        len: TEXT as u32,
        aad_len: 5,
        opens: false,
    };
    let room = batch.reserve(&message).unwrap().unwrap();
    room.text.fill(fill);
    room.aad.fill(fill);
    Some(batch.submit().unwrap())
}

/// What it must be, by a library that is not ours.
fn sealed(key: &[u8; 32], fill: u8) -> (Vec<u8>, Vec<u8>) {
    use chacha20poly1305::aead::{AeadInOut, KeyInit};
    let mut text = vec![fill; TEXT];
    let tag = chacha20poly1305::ChaCha20Poly1305::new(&(*key).into())
        .encrypt_inout_detached(&[9; 12].into(), &[fill; 5], (&mut text[..]).into())
        .unwrap();
    (text, tag.to_vec())
}

fn collect(engine: &mut Engine, ticket: Ticket, key: &[u8; 32], fill: u8) {
    let mut finished = engine.collect(ticket).unwrap();
    let wanted = sealed(key, fill);
    assert_eq!(finished.get(0), Some((Status::Done, &wanted.0[..], &wanted.1[..])));
}

#[test]
fn batches_are_filled_sent_collected_and_sent_again() {
    with_driver("batches_are_filled_sent_collected_and_sent_again", |driver| {
        let mut not_yet = 0;
        each_seed(driver, |seed| {
            let mut engine = open(small());
            let mut noise = Noise(seed);
            for round in 0..20 {
                let mut tickets: Vec<(u8, Ticket)> = (0..3)
                    .map(|fill| (fill, submit(&mut engine, 2, fill + round).unwrap()))
                    .collect();
                assert!(submit(&mut engine, 2, 0).is_none());
                while !tickets.is_empty() {
                    let (fill, mut ticket) = tickets.swap_remove(noise.below(tickets.len()));
                    for _ in 0..noise.below(3) {
                        let mut finished = engine.collect(ticket).unwrap();
                        assert_eq!(finished.get(0).unwrap().1, sealed(&key(2), fill + round).0);
                        ticket = finished.again().unwrap();
                    }
                    match noise.below(4) {
                        // Nobody wants it any more.
                        0 => drop(ticket),
                        1 => {
                            while !engine.is_done(&ticket).unwrap() {
                                not_yet += 1;
                            }
                            collect(&mut engine, ticket, &key(2), fill + round);
                        }
                        _ => collect(&mut engine, ticket, &key(2), fill + round),
                    }
                }
                drop(engine.batch().unwrap());
            }
        });
        assert!(not_yet > 10, "{not_yet}");
    });
}

#[test]
fn what_is_under_way_has_the_old_key() {
    with_driver("what_is_under_way_has_the_old_key", |driver| {
        each_seed(driver, |seed| {
            let mut engine = open(small());
            let mut noise = Noise(seed);
            for _ in 0..10 {
                let mut tickets = Vec::new();
                for round in 0..3 {
                    engine.set_key(Slot(0), &key(round)).unwrap();
                    tickets.push((round, submit(&mut engine, 0, 7).unwrap()));
                }
                while !tickets.is_empty() {
                    let (round, ticket) = tickets.swap_remove(noise.below(tickets.len()));
                    collect(&mut engine, ticket, &key(round), 7);
                }
            }
            let ticket = submit(&mut engine, 0, 7).unwrap();
            engine.clear_key(Slot(0)).unwrap();
            collect(&mut engine, ticket, &key(2), 7);
            // More keys than go over at once, most of them while the others are under way.
            let mut engine = Engine::open(Options {
                slots: 20_000,
                ..small()
            })
            .unwrap();
            set_keys(&mut engine, 20_000);
            Mix::new(3, &[100; 50], 20_000, false).check(&mut engine);
            engine.clear_key(Slot(19_999)).unwrap();
            set_keys(&mut engine, 20_000);
            Mix::new(4, &[100; 50], 20_000, false).check(&mut engine);
        });
    });
}

#[test]
fn batches_stay_on_the_device() {
    with_driver("batches_stay_on_the_device", |driver| {
        each_seed(driver, |seed| {
            let mut engine = open(Options {
                chunk_bytes: 8192,
                ..small()
            });
            for round in 0..3 {
                let mut lens: Vec<usize> = (0..90).map(|i| (i * 41 + round) % 700).collect();
                // Longer than what is pinned, and in parts.
                lens[4] = 20_000;
                let mix = Mix::new(seed + round as u64, &lens, 16, false);
                let jobs = mix.jobs();
                let ticket = submit(&mut engine, 3, 1).unwrap();
                // One that waits for its key.
                engine.set_key(Slot(3), &key(3)).unwrap();
                let mut resident = engine.resident(&jobs).unwrap();
                resident.upload(&jobs, &mix.src, &mix.aad).unwrap();
                assert!(resident.run().unwrap() > 0.0);
                let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; 90]);
                resident.download(&jobs, &mut dst, &mut statuses).unwrap();
                mix.compare(&dst, &statuses);
                resident.blank().unwrap();
                assert!(resident.run_times(3).unwrap() > 0.0);
                (dst, statuses) = (mix.before.clone(), vec![Status::Failed; 90]);
                resident.download(&jobs, &mut dst, &mut statuses).unwrap();
                mix.compare(&dst, &statuses);
                drop(resident);
                collect(&mut engine, ticket, &key(3), 1);
            }
        });
    });
}

#[test]
fn the_link_by_itself() {
    with_driver("the_link_by_itself", |driver| {
        each_seed(driver, |seed| {
            let mut engine = open(small());
            assert_eq!(engine.copy_chunks(Ways::In, 2), Ok(2 * 3 * 4096));
            let ticket = submit(&mut engine, 1, 3).unwrap();
            assert_eq!(engine.copy_chunks(Ways::Both, 3), Ok(2 * 3 * 2 * 4096));
            assert_eq!(engine.copy_chunks(Ways::Out, 1), Ok(2 * 4096));
            collect(&mut engine, ticket, &key(1), 3);
            Mix::new(seed, &[50; 70], 16, true).check(&mut engine);
        });
    });
}

#[test]
fn devices_say_what_they_are() {
    with_driver("devices_say_what_they_are", |driver| {
        driver.is("devices=2 compute=8.6 memory=100000000 driver=12040");
        let devices = probe().unwrap();
        assert_eq!(devices.len(), 2);
        let second = &devices[1];
        assert_eq!(
            (
                second.ordinal,
                second.name.as_str(),
                second.pci.as_str(),
                second.compute
            ),
            (1, "Stand-in 1", "0000:1c:00.0", (8, 6))
        );
        assert_eq!(
            (
                second.multiprocessors,
                second.memory_bytes,
                second.copy_engines,
                second.driver
            ),
            (2, 100_000_000, 3, (12, 4))
        );
        let mut engine = open(Options { device: 1, ..small() });
        assert_eq!(engine.device(), second);
        Mix::new(1, &[50; 70], 16, true).check(&mut engine);
    });
}

#[test]
fn what_will_not_do_is_refused() {
    with_driver("what_will_not_do_is_refused", |driver| {
        let opened = |device| Engine::open(Options { device, ..small() }).map(|_| ());
        for nothing in ["devices=0", "devices=-1"] {
            driver.is(nothing);
            assert_eq!(probe(), Err(Error::NoDevice));
            assert_eq!(opened(0), Err(Error::NoDevice));
        }
        driver.is("devices=2");
        let (ordinal, devices) = (2, 2);
        assert_eq!(opened(2), Err(Error::NoSuchDevice { ordinal, devices }));
        assert!(matches!(opened(u32::MAX), Err(Error::NoSuchDevice { .. })));
        driver.is("driver=11080");
        let have = (11, 8);
        assert_eq!(opened(0), Err(Error::DriverTooOld { have, need: (12, 0) }));
        assert_eq!(probe().unwrap()[0].driver, have);
        driver.is("compute=7.0");
        let have = (7, 0);
        assert_eq!(opened(0), Err(Error::TooOldDevice { have, need: (7, 5) }));
        driver.is("compute=7.5 driver=12000");
        assert_eq!(opened(0), Ok(()));
    });
}

/// What makes an engine fast on one thread must not tie it to that.
#[test]
fn engines_move_between_threads() {
    with_driver("engines_move_between_threads", |driver| {
        each_seed(driver, |seed| {
            let mix = &Mix::new(seed, &lens(seed, 80, 900), 16, false);
            let jobs = &mix.jobs();
            let mut engine = open(timed());
            engine.start(jobs, &mix.src, &mix.aad).unwrap();
            thread::scope(|scope| {
                let engine = &mut engine;
                scope.spawn(move || {
                    let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; jobs.len()]);
                    engine.finish(jobs, &mut dst, &mut statuses).unwrap();
                    mix.compare(&dst, &statuses);
                });
            });
            let ticket = submit(&mut engine, 1, 1).unwrap();
            thread::scope(|scope| {
                let engine = &mut engine;
                scope.spawn(move || collect(engine, ticket, &key(1), 1));
            });
            let mut resident = engine.resident(jobs).unwrap();
            thread::scope(|scope| {
                let resident = &mut resident;
                scope.spawn(move || {
                    resident.upload(jobs, &mix.src, &mix.aad).unwrap();
                    resident.run().unwrap();
                });
            });
            drop(resident);
            thread::spawn(move || drop(engine)).join().unwrap();
        });
    });
}

#[test]
fn two_engines_at_once() {
    with_driver("two_engines_at_once", |driver| {
        for seed in SEEDS {
            driver.is(&format!("seed={seed} devices=2"));
            for device in [0, 1] {
                let mut first = open(small());
                let mut second = open(Options { device, ..timed() });
                assert_eq!((first.device().ordinal, second.device().ordinal), (0, device));
                let mixes = [0, 1].map(|more| Mix::new(seed + more, &lens(seed, 90, 900), 16, false));
                // On one thread, one inside the other.
                first.start(&mixes[0].jobs(), &mixes[0].src, &mixes[0].aad).unwrap();
                mixes[1].check(&mut second);
                let (mut dst, mut statuses) = (mixes[0].before.clone(), vec![Status::Failed; 90]);
                first.finish(&mixes[0].jobs(), &mut dst, &mut statuses).unwrap();
                mixes[0].compare(&dst, &statuses);
                // On two.
                thread::scope(|scope| {
                    for (engine, mix) in [(&mut first, &mixes[0]), (&mut second, &mixes[1])] {
                        scope.spawn(move || (0..3).for_each(|_| assert!(mix.check(engine).chunks > 1)));
                    }
                });
                // What is left works without the other.
                drop(first);
                mixes[1].check(&mut second);
            }
        }
    });
}

/// A batch that is refused leaves nothing begun.
#[test]
fn what_breaks_a_rule_reaches_no_device() {
    with_driver("what_breaks_a_rule_reaches_no_device", |driver| {
        driver.is("");
        let mut engine = open(small());
        let mix = Mix::new(1, &[100, 4090], 16, false);
        // Nothing would be put into a queue without failing.
        driver.fails("cuMemcpyHtoDAsync_v2", 0, 1);
        let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; 2]);
        let memory = Memory::Separate {
            src: &mix.src,
            dst: &mut dst,
        };
        let refused = engine.run(&mix.jobs(), memory, &mix.aad, &mut statuses);
        let too_long = matches!(
            refused,
            Err(Stopped {
                done: 0,
                error: Error::Job { index: 1, .. }
            })
        );
        assert!(too_long && !driver.fired() && dst == mix.before);
    });
}
