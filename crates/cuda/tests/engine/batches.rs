//! Batches through the engine, on devices that are not there: equal to the processor's, whatever the mix.

use sealway_aead::batch::{Job, Memory, Slot, Status};
use sealway_aead::{JobError, Nonce, Suite};
use sealway_cuda::device::Launch;
use sealway_cuda::{Bins, Error, Options, Stopped, Wrong};

use crate::support::mix::{Mix, Noise, key, set_keys};
use crate::support::{each, gpu, model, small};

fn lens(seed: u64, count: usize, most: usize) -> Vec<usize> {
    let mut noise = Noise(seed);
    (0..count)
        .map(|_| {
            let below = [2, 70, 400, most][noise.below(4)].min(most);
            noise.below(below)
        })
        .collect()
}

#[test]
fn mixes_equal_the_processors() {
    for mut engine in each(&small()) {
        set_keys(&mut engine, 16);
        for seed in 0..24 {
            let count = [0, 1, 2, 9, 60, 150][seed as usize % 6];
            let mix = Mix::new(seed, &lens(seed, count, 3000), 16, seed % 2 == 0);
            let report = mix.check(&mut engine);
            if count == 150 {
                assert!(report.chunks > 4, "more than the ring has: {report:?}");
            }
            assert_eq!(report.times, None);
        }
    }
}

/// A device as it is used: thousands of messages a launch, forged ones and associated data among them, with many lanes a message and
/// with few.
#[test]
fn a_hundred_large_mixes_on_a_gpu() {
    for crowd in [0, usize::MAX] {
        let options = Options {
            slots: 16,
            crowd,
            ..Options::default()
        };
        let Some(mut engine) = gpu(options) else { return };
        set_keys(&mut engine, 16);
        for seed in 0..50 {
            let mut lens = lens(seed, 6000, 1500);
            lens[3000] = 60_000;
            Mix::new(seed, &lens, 16, seed % 2 == 0).check(&mut engine);
        }
    }
}

#[test]
fn a_giant_among_dwarves() {
    let options = Options {
        chunk_bytes: 1 << 17,
        ..small()
    };
    for mut engine in each(&options) {
        set_keys(&mut engine, 16);
        for (seed, giant) in [(1, 16_385), (2, 50_000), (3, 100_000), (6, 64 * 256 * 4)] {
            let mut lens = lens(seed, 40, 500);
            lens[20] = giant;
            lens[31] = 16_384;
            Mix::new(seed, &lens, 16, seed == 1).check(&mut engine);
        }
    }
}

#[test]
fn every_length_in_every_bin() {
    // Everything to one kernel, for each of them; the last in parts from the first block on.
    for bin in 0..6 {
        let bins = Bins {
            up_to: std::array::from_fn(|lanes| if lanes == bin { u32::MAX } else { 0 }),
        };
        let options = Options {
            chunk_bytes: 1 << 16,
            bins,
            crowded: bins,
            ..small()
        };
        for mut engine in each(&options) {
            set_keys(&mut engine, 16);
            let lens: Vec<usize> = (0..140).chain([191, 192, 193, 1000, 4097]).collect();
            Mix::new(bin as u64, &lens, 16, true).check(&mut engine);
        }
    }
}

#[test]
fn start_and_finish_are_the_halves_of_run() {
    let (mut engine, _) = model(small());
    set_keys(&mut engine, 16);
    for seed in 0..12 {
        // Some fit the ring, some do not.
        let count = [3, 20, 200][seed as usize % 3];
        let mix = Mix::new(seed, &lens(seed, count, 900), 16, seed % 2 == 0);
        let jobs = mix.jobs();
        let started = engine.start(&jobs, &mix.src, &mix.aad).unwrap();
        assert_eq!(started.jobs, count);
        if seed == 5 {
            // Begun again without an end.
            engine.start(&jobs[..1], &mix.src, &mix.aad).unwrap();
            engine.start(&jobs, &mix.src, &mix.aad).unwrap();
        }
        let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; count]);
        let report = engine.finish(&jobs, &mut dst, &mut statuses).unwrap();
        mix.compare(&dst, &statuses);
        assert_eq!(report.done + report.refused, count);
        let again = engine.finish(&jobs, &mut dst, &mut statuses);
        assert_eq!(again.unwrap_err().error, Error::NotStarted);
    }
}

#[test]
fn what_was_started_is_what_can_be_finished() {
    let (mut engine, _) = model(small());
    set_keys(&mut engine, 16);
    for count in [10, 200] {
        let mix = Mix::new(4, &vec![100; count], 16, false);
        let jobs = mix.jobs();
        let refused = |engine: &mut sealway_cuda::Engine, jobs: &[Job], dst: usize, statuses: usize| {
            engine.start(&mix.jobs(), &mix.src, &mix.aad).unwrap();
            let mut dst = mix.before[..dst].to_vec();
            let stopped = engine
                .finish(jobs, &mut dst, &mut vec![Status::Failed; statuses])
                .unwrap_err();
            assert_eq!(dst, mix.before[..dst.len()], "nothing was written");
            assert_eq!(stopped.done, 0);
            stopped.error
        };
        let full = mix.before.len();
        assert_eq!(refused(&mut engine, &jobs[1..], full, count - 1), Error::NotStarted);
        let other = Mix::new(4, &vec![99; count], 16, false).jobs();
        assert_eq!(refused(&mut engine, &other, full, count), Error::NotStarted);
        assert!(matches!(
            refused(&mut engine, &jobs, full - 120, count),
            Error::Job {
                wrong: Wrong::Rule(JobError::Output),
                ..
            }
        ));
        let statuses = count - 1;
        let wanted = Error::StatusCount { jobs: count, statuses };
        assert_eq!(refused(&mut engine, &jobs, full, statuses), wanted);
        mix.check(&mut engine);
    }
}

#[test]
fn keys_change_between_batches() {
    for mut engine in each(&small()) {
        set_keys(&mut engine, 16);
        let mix = Mix::new(9, &lens(9, 30, 500), 16, false);
        mix.check(&mut engine);
        // Other keys: nothing opens, nothing is sealed as before.
        for slot in 0..16 {
            engine.set_key(Slot(slot), &key(slot + 1)).unwrap();
            engine.set_key(Slot(slot), &key(slot + 50)).unwrap();
        }
        let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; 30]);
        let memory = Memory::Separate {
            src: &mix.src,
            dst: &mut dst,
        };
        engine.run(&mix.jobs(), memory, &mix.aad, &mut statuses).unwrap();
        for (job, status) in mix.jobs().iter().zip(&statuses) {
            assert_eq!(*status == Status::Unauthentic, job.opens());
        }
        assert_ne!(dst, mix.after);
        // And the first ones again.
        set_keys(&mut engine, 16);
        mix.check(&mut engine);
        engine.clear_key(mix.jobs()[7].slot()).unwrap();
        let memory = Memory::Separate {
            src: &mix.src,
            dst: &mut dst,
        };
        let stopped = engine.run(&mix.jobs(), memory, &mix.aad, &mut statuses).unwrap_err();
        assert!(matches!(
            stopped.error,
            Error::Job {
                wrong: Wrong::Rule(JobError::NoKey),
                ..
            }
        ));
    }
    let (mut engine, _) = model(small());
    let wanted = Error::NoSuchSlot { slot: 16, slots: 16 };
    assert_eq!(engine.set_key(Slot(16), &[0; 32]), Err(wanted.clone()));
    assert_eq!(engine.clear_key(Slot(16)), Err(wanted));
    assert_eq!(engine.slots(), 16);
}

#[test]
fn more_keys_than_go_over_at_once() {
    let options = Options {
        slots: 40_000,
        ..small()
    };
    let (mut engine, seen) = model(options);
    set_keys(&mut engine, 40_000);
    Mix::new(3, &[100; 50], 40_000, false).check(&mut engine);
    let sets = |launch: &&Launch| matches!(launch, Launch::SetKeys { .. });
    assert_eq!(seen.lock().unwrap().launches.iter().filter(sets).count(), 3);
    // Only what changed goes over again.
    engine.set_key(Slot(1), &key(1)).unwrap();
    Mix::new(4, &[100; 50], 40_000, false).check(&mut engine);
    let seen = seen.lock().unwrap();
    let last = seen.launches.iter().rev().find(sets).unwrap();
    assert!(matches!(last, Launch::SetKeys { count: 1, .. }));
}

#[test]
fn rules_are_kept_before_anything_is_touched() {
    let (mut engine, seen) = model(small());
    engine.set_key(Slot(0), &[1; 32]).unwrap();
    let seal = |src: std::ops::Range<u32>, dst| {
        let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &[0; 12]).unwrap();
        Job::seal(Slot(0), nonce, src, dst)
    };
    let mut refuse = |job: Job| {
        let mut arena = vec![7; 8192];
        let jobs = [seal(0..5, 0), job];
        let mut statuses = [Status::Failed; 2];
        let stopped = engine
            .run(&jobs, Memory::InPlace(&mut arena), &[1; 4], &mut statuses)
            .unwrap_err();
        assert_eq!((arena, statuses), (vec![7; 8192], [Status::Failed; 2]));
        match stopped {
            Stopped {
                done: 0,
                error: Error::Job { index: 1, wrong },
            } => wrong,
            other => panic!("{other}"),
        }
    };
    assert_eq!(refuse(seal(8000..8190, 8000)), Wrong::Rule(JobError::Output));
    assert_eq!(refuse(seal(100..120, 101)), Wrong::Rule(JobError::NotInPlace));
    assert_eq!(refuse(seal(8..9, 8)), Wrong::Rule(JobError::Overlap));
    assert_eq!(
        refuse(seal(100..101, 100).with_aad(1..5)),
        Wrong::Rule(JobError::AssociatedData)
    );
    let long = Job::open(Slot(0), &[0; 24], 100..120, 100).unwrap();
    assert_eq!(refuse(long), Wrong::Rule(JobError::NonceLength));
    let other = Job::open(Slot(1), &[0; 12], 100..120, 100).unwrap();
    assert_eq!(refuse(other), Wrong::Rule(JobError::NoKey));
    assert!(matches!(
        refuse(seal(100..4100, 100)),
        Wrong::TooLong { most: 4096, .. }
    ));
    let stopped = engine
        .run(&[seal(0..5, 0)], Memory::InPlace(&mut [0; 100]), &[], &mut [])
        .unwrap_err();
    let wanted = Error::StatusCount { jobs: 1, statuses: 0 };
    assert_eq!(stopped.error, wanted);
    assert!(seen.lock().unwrap().launches.is_empty());
}

#[test]
fn options_that_cannot_be_are_refused() {
    let refused = |options: Options| match sealway_cuda::Engine::open(options) {
        Err(Error::Option { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    let chunk_bytes = 100;
    assert_eq!(refused(Options { chunk_bytes, ..small() }), "chunk_bytes");
    assert_eq!(refused(Options { chunks: 0, ..small() }), "chunks");
    assert_eq!(refused(Options { slots: 0, ..small() }), "slots");
}

#[test]
fn reports_count_bytes_and_time() {
    let options = Options {
        timing: true,
        ..small()
    };
    let (mut engine, _) = model(options);
    set_keys(&mut engine, 1);
    let mix = Mix::new(0, &[100; 60], 1, false);
    let report = mix.check(&mut engine);
    let texts = 60 * 112;
    // A descriptor of 32 bytes and at most two pieces for associated data and alignment, with its entry.
    assert!(
        (texts + 60 * 32..texts + 60 * 120 + 1024).contains(&(report.link_in as usize)),
        "{report:?}"
    );
    assert!(
        (texts + 60..texts + 60 * 17 + 1).contains(&(report.link_out as usize)),
        "{report:?}"
    );
    assert_eq!(report.launches, report.chunks as u64);
    let times = report.times.unwrap();
    // The device that is not there takes a second for each thing it does.
    assert!(times.copy_in_s >= report.chunks as f64 && times.copy_out_s >= report.chunks as f64);
    assert!(times.kernels_s >= 2.0 * report.chunks as f64, "{times:?}");
}
