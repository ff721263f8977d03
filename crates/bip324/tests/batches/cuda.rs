//! The engine of `sealway-cuda` as executor, over a device made of ordinary memory, and over a GPU where there is one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use sealway_bip324::batch::{Backend, Costs, Executor, KeptCosts, MeasureError, Routing};
use sealway_cuda::device::{Lanes, Launch};
use sealway_cuda::{Engine, Error, Options};

use crate::both::{Both, HALF};
use crate::support::failing::{Call, Failing};
use crate::support::fake::Fake;
use crate::support::kernels::Model;

/// Batches of many chunks, more than are under way at a time, and of messages that no chunk takes.
fn options() -> Options {
    Options {
        slots: 16,
        chunk_bytes: 8192,
        chunks: 3,
        ..Options::default()
    }
}

/// The same with memory into which packets are written at once, less than a batch takes.
fn slabs() -> Options {
    Options {
        slabs: 3,
        slab_bytes: 8192,
        ..options()
    }
}

fn run(mut both: Both, engine: Engine, routing: Routing) -> Both {
    both.set(engine, routing);
    for len in [10, 9000, 7000] {
        both.round(600);
        // It has slots for four connections; the fifth is the processor's.
        let want = both.submit(3, &vec![7; len]);
        assert!(both.sealed()[3] == want);
        both.batch.receive(both.ids[3], &want).unwrap();
        let incoming = both.batch.open();
        assert!(incoming.len() == 1 && incoming.iter().all(|message| message.contents == vec![7; len]));
    }
    both
}

#[test]
fn a_gpu_gives_the_same_bytes() {
    let few = Routing::Threshold { jobs: 100 };
    for (peers, routing, options) in [
        (4, Routing::Always, options()),
        (4, HALF, options()),
        (1, HALF, options()),
        (5, Routing::Always, options()),
        (4, Routing::Always, slabs()),
        (4, HALF, slabs()),
        (1, HALF, slabs()),
        (1, few, slabs()),
        (5, Routing::Always, slabs()),
    ] {
        let (slabs, small) = (options.slabs > 0, peers < 5);
        let device = Fake::new(Model);
        let seen = Arc::clone(&device.seen);
        let engine = Engine::with_device(Box::new(device), options).unwrap();
        let both = run(Both::new(peers.max(4)), engine, routing);
        let counters = both.batch.counters();
        assert_eq!(
            (counters.fallbacks, counters.connections_failed),
            (0, 0),
            "{:?}",
            both.batch.executor_failure()
        );
        assert_eq!(counters.executor_jobs + counters.processor_jobs, 3606);
        assert!(counters.executor_jobs > 0 || (slabs && !small), "{routing:?}");
        assert!(routing == Routing::Always || slabs || counters.splits > 0);
        drop(both);
        let seen = seen.lock().unwrap();
        assert!(
            seen.launches.len() > if slabs { 2 } else { 20 } || !small,
            "{}",
            seen.launches.len()
        );
        assert_eq!((seen.dirty, seen.leaked), (0, 0));
    }
}

/// Whatever call of the driver fails: the same bytes, and every packet once.
#[test]
fn a_gpu_that_fails() {
    let mut failed = 0;
    for call in Call::ALL {
        for before in [0, 1, 7, 23] {
            for lost in [false, true] {
                for (options, routing) in [(options(), HALF), (slabs(), HALF), (slabs(), Routing::Always)] {
                    let (device, trigger) = Failing::new(Fake::new(Model));
                    let engine = Engine::with_device(Box::new(device), options).unwrap();
                    trigger.arm(call, before, lost);
                    let both = run(Both::new(4), engine, routing);
                    let counters = both.batch.counters();
                    assert_eq!(counters.connections_failed, 0, "{call:?} {before} {lost}");
                    assert_eq!(counters.executor_jobs + counters.processor_jobs, 3606);
                    assert!(counters.fallbacks <= u64::from(trigger.happened()));
                    failed += counters.fallbacks;
                }
            }
        }
    }
    assert!(failed > 20, "{failed} failures");
}

#[test]
fn costs_and_limits_of_a_gpu() {
    let mut engine = Engine::with_device(Box::new(Fake::new(Model)), options()).unwrap();
    let longest = Executor::longest(&engine);
    assert!((7800..8192).contains(&longest), "{longest}");
    assert_eq!(Executor::slots(&engine), 16);
    let begin = Instant::now();
    let costs = Costs::measure(&mut engine, Backend::best(), &mut || begin.elapsed()).unwrap();
    let both = run(Both::new(4), engine, Routing::Measured(costs));
    assert_eq!(both.batch.counters().fallbacks, 0);
}

/// Packets have work for several kernels, and each launch takes its time: with messages of one length, batches cost less.
#[test]
fn measured_batches_have_work_for_all_kernels() {
    for (slabs, kernels) in [
        (0, [Lanes::One, Lanes::Eight, Lanes::Sixteen, Lanes::Warp].as_slice()),
        (1, &[Lanes::Four, Lanes::Warp]),
    ] {
        let device = Fake::new(Model);
        let seen = Arc::clone(&device.seen);
        let room = Options {
            slots: 16,
            chunk_bytes: 1 << 20,
            chunks: 1,
            slabs,
            slab_bytes: 1 << 20,
            ..Options::default()
        };
        let mut engine = Engine::with_device(Box::new(device), room).unwrap();
        let begin = Instant::now();
        Costs::measure(&mut engine, Backend::best(), &mut || begin.elapsed()).unwrap();
        let mut launches: BTreeMap<Lanes, usize> = BTreeMap::new();
        for launch in &seen.lock().unwrap().launches {
            if let Launch::Lanes { lanes, .. } = launch {
                *launches.entry(*lanes).or_default() += 1;
            }
        }
        // Six times three batches by itself, and as many beside the processor.
        let each = kernels.iter().map(|&lanes| (lanes, 36));
        assert_eq!(launches, each.collect::<BTreeMap<_, _>>());
    }
}

#[test]
fn a_gpu_of_this_machine() {
    let engine = match Engine::open(Options::default()) {
        Ok(engine) => engine,
        Err(error @ (Error::NoDriver | Error::NoDevice | Error::DriverTooOld { .. } | Error::TooOldDevice { .. })) => {
            println!("SKIPPED: {error}; no GPU was tested");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let both = run(Both::new(5), engine, HALF);
    assert_eq!(
        both.batch.counters().fallbacks,
        0,
        "{:?}",
        both.batch.executor_failure()
    );
}

/// What was measured is of one size of memory.
#[test]
fn a_setting_names_slabs() {
    let setting = |options: Options| {
        let engine = Engine::with_device(Box::new(Fake::new(Model)), options).unwrap();
        KeptCosts::setting_of_gpu(&engine, Backend::Portable)
    };
    let longer = Options {
        slab_bytes: 16_384,
        ..slabs()
    };
    let all = [setting(options()), setting(slabs()), setting(longer)];
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
}

/// Slabs too small to be measured are told, and not something else measured in their place.
#[test]
fn small_slabs_are_not_measured() {
    let mut engine = Engine::with_device(Box::new(Fake::new(Model)), slabs()).unwrap();
    let begin = Instant::now();
    let measured = Costs::measure(&mut engine, Backend::Portable, &mut || begin.elapsed());
    assert!(matches!(
        measured,
        Err(MeasureError::Slab {
            bytes: 303_104,
            jobs: 512
        })
    ));
}
