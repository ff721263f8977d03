//! Packets written once, at any byte: what the device leaves of them is what the processor would have.

use sealway_aead::batch::{Job, Slot, Status};
use sealway_aead::{JobError, Nonce, Suite};
use sealway_cuda::{Engine, Error};

use crate::support::failing::{Call, Failing};
use crate::support::fake::Fake;
use crate::support::kernels::Model;
use crate::support::packets::{BYTES, Load, Noise, finish, lens, load, options, set_keys, start};
use crate::support::{each, model};

#[test]
fn packets_at_any_byte_equal_the_processors() {
    for mut engine in each(&options()) {
        set_keys(&mut engine, 0);
        let mut noise = Noise(1);
        for seed in 0..6 {
            let load = load(seed, &lens(&mut noise), 0);
            start(&mut engine, seed as usize % 3, &load);
            finish(&mut engine, seed as usize % 3, &load);
        }
    }
}

/// Several at once, of which each has the keys of when it was started; results in any order.
#[test]
fn slabs_overlap_and_keys_change_between() {
    for mut engine in each(&options()) {
        let mut noise = Noise(2);
        for seed in [0, 3] {
            let loads: Vec<Load> = (0..3).map(|n| load(seed + n, &lens(&mut noise), n as u32)).collect();
            for (slab, load) in loads.iter().enumerate() {
                set_keys(&mut engine, slab as u32);
                start(&mut engine, slab, load);
                assert!(engine.slab(slab).is_empty() && engine.slab_mut(slab).is_empty());
                assert_eq!(
                    engine.start_slab(slab, load.packets.len(), &load.jobs),
                    Err(Error::Busy)
                );
            }
            for slab in [1, 0, 2] {
                finish(&mut engine, slab, &loads[slab]);
            }
        }
        // One that is written to while it is under way is waited for, and its results are gone.
        let load = load(9, &lens(&mut noise), 2);
        start(&mut engine, 0, &load);
        start(&mut engine, 0, &load);
        finish(&mut engine, 0, &load);
        assert!(matches!(engine.finish_slab(0, &mut []), Err(Error::NotStarted)));
    }
}

#[test]
fn what_a_slab_does_not_take() {
    let (mut engine, _) = model(options());
    set_keys(&mut engine, 0);
    let load = load(4, &[10, 20, 30], 0);
    let filled = load.packets.len();
    let mut refused = |filled: usize, jobs: &[Job], wrong: JobError, at: usize| {
        let wrong = wrong.into();
        assert_eq!(engine.start_slab(1, filled, jobs), Err(Error::Job { index: at, wrong }));
    };
    let seal = |slot, range: std::ops::Range<u32>, to| {
        let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &[1; 12]).unwrap();
        Job::seal(Slot(slot), nonce, range, to)
    };
    refused(filled, &[seal(0, 9..20, 9), seal(0, 35..40, 35)], JobError::Overlap, 1);
    refused(filled - 6, &load.jobs, JobError::Output, 2);
    refused(filled, &[seal(16, 0..4, 0)], JobError::NoKey, 0);
    refused(filled, &[seal(0, 0..4, 1)], JobError::NotInPlace, 0);
    refused(filled, &[seal(0, 0..4, 0).with_aad(0..3)], JobError::AssociatedData, 0);
    refused(BYTES + 1, &[seal(0, 0..4, 0)], JobError::Input, 1);
    let many: Vec<Job> = (0..=engine.slab_jobs() as u32)
        .map(|n| seal(0, n * 17..n * 17 + 1, n * 17))
        .collect();
    assert!(engine.start_slab(1, BYTES, &many).is_err());
    assert_eq!(engine.start_slab(3, filled, &load.jobs), Err(Error::NotStarted));
    assert!(engine.clear_slab(3).is_err() && engine.slab(3).is_empty());
    start(&mut engine, 1, &load);
    finish(&mut engine, 1, &load);
}

/// As many of the shortest packets as there is room for, and one as long as the slab.
#[test]
fn full_slabs() {
    let (mut engine, seen) = model(options());
    set_keys(&mut engine, 0);
    let many = load(5, &vec![1; engine.slab_jobs()], 0);
    start(&mut engine, 0, &many);
    let one = load(6, &[BYTES - 40], 0);
    start(&mut engine, 1, &one);
    finish(&mut engine, 1, &one);
    finish(&mut engine, 0, &many);
    drop(engine);
    let seen = seen.lock().unwrap();
    assert_eq!((seen.dirty, seen.leaked), (0, 0));
}

/// Whatever call fails: the packets are as they were written, or all of them are done.
#[test]
fn a_device_that_fails() {
    let mut failed = 0;
    let loads: Vec<Load> = (0..3).map(|n| load(n, &[0, 40, 300, 20_000, 77], 0)).collect();
    for call in Call::ALL {
        for lost in [false, true] {
            for before in 0..30 {
                let (device, trigger) = Failing::new(Fake::new(Model));
                let mut engine = Engine::with_device(Box::new(device), options()).unwrap();
                set_keys(&mut engine, 0);
                trigger.arm(call, before, lost);
                for (slab, load) in loads.iter().enumerate() {
                    engine.slab_mut(slab)[..load.packets.len()].copy_from_slice(&load.packets);
                }
                let started: Vec<bool> = (0..3)
                    .map(|slab| {
                        engine
                            .start_slab(slab, loads[slab].packets.len(), &loads[slab].jobs)
                            .is_ok()
                    })
                    .collect();
                for (slab, load) in loads.iter().enumerate() {
                    let mut statuses = vec![Status::Failed; load.jobs.len()];
                    let done = started[slab] && engine.finish_slab(slab, &mut statuses).is_ok();
                    if done {
                        assert_eq!(statuses, load.statuses);
                        assert!(engine.slab(slab)[..load.packets.len()] == load.after);
                    } else {
                        failed += 1;
                        assert!(trigger.happened(), "{call:?} {before} {lost}");
                        assert!(statuses.iter().all(|&status| status == Status::Failed));
                        assert!(engine.slab_mut(slab)[..load.packets.len()] == load.packets);
                    }
                }
            }
        }
    }
    assert!(failed > 100, "{failed} failures");
}

/// Results that never came are not those of the slab before.
#[test]
fn a_copy_that_does_nothing() {
    let (mut engine, seen) = model(options());
    set_keys(&mut engine, 0);
    let load = load(7, &[10, 20, 300], 0);
    seen.lock().unwrap().mute = Some(1);
    start(&mut engine, 0, &load);
    finish(&mut engine, 0, &load);
    start(&mut engine, 0, &load);
    let mut statuses = vec![Status::Failed; load.jobs.len()];
    assert!(engine.finish_slab(0, &mut statuses).is_err());
    assert!(statuses.iter().all(|&status| status == Status::Failed));
    assert!(engine.slab(0)[..load.packets.len()] == load.packets);
}

/// A wrong number of statuses changes nothing.
#[test]
fn statuses_of_another_number() {
    let (mut engine, _) = model(options());
    set_keys(&mut engine, 0);
    let load = load(8, &[10, 20, 300], 0);
    start(&mut engine, 0, &load);
    let (jobs, statuses) = (3, 2);
    assert_eq!(
        engine.finish_slab(0, &mut [Status::Failed; 2]).err(),
        Some(Error::StatusCount { jobs, statuses })
    );
    finish(&mut engine, 0, &load);
}
