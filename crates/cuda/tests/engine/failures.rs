//! A device that fails at any call: what is complete is complete, what is not is untouched, and the processor does the rest.

use std::sync::{Arc, Mutex};

use sealway_aead::batch::{Memory as Batch, Slot, Status};
use sealway_cuda::device::Launch;
use sealway_cuda::{Engine, Error, Message, Options};

use crate::support::failing::{Call, Failing, Trigger};
use crate::support::fake::{Fake, Kernels, Memory, Seen};
use crate::support::kernels::Model;
use crate::support::mix::{Mix, key, set_keys};
use crate::support::small;

const COUNT: usize = 120;

fn failing(options: Options) -> (Engine, Trigger, Arc<Mutex<Seen>>) {
    let fake = Fake::new(Model);
    let seen = Arc::clone(&fake.seen);
    let (device, trigger) = Failing::new(fake);
    (Engine::with_device(Box::new(device), options).unwrap(), trigger, seen)
}

fn mix(in_place: bool) -> Mix {
    let lens: Vec<usize> = (0..COUNT).map(|i| i * 37 % 600).collect();
    Mix::new(11, &lens, 16, in_place)
}

fn timed() -> Options {
    Options {
        timing: true,
        ..small()
    }
}

/// What an engine left of a batch: as many complete as it says, the others untouched, the rest done by the processor.
fn check_rest(mix: &Mix, done: usize, mut dst: Vec<u8>, mut statuses: Vec<Status>) {
    assert_eq!(dst, mix.half_way(done), "{done} done");
    assert_eq!(statuses[..done], mix.statuses[..done]);
    assert!(statuses[done..].iter().all(|&status| status == Status::Failed));
    mix.finish_on_processor(done, 16, &mut dst, &mut statuses);
    mix.compare(&dst, &statuses);
}

#[test]
fn any_call_of_a_run_may_fail() {
    let mut stopped_half_way = 0;
    for in_place in [false, true] {
        let mix = mix(in_place);
        for call in Call::ALL {
            for lost in [false, true] {
                for before in 0.. {
                    let (mut engine, trigger, seen) = failing(timed());
                    set_keys(&mut engine, 16);
                    // An update while nothing is under way, then one while something is.
                    engine.set_key(Slot(3), &key(3)).unwrap();
                    trigger.arm(call, before, lost);
                    let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; COUNT]);
                    let memory = if in_place {
                        Batch::InPlace(&mut dst)
                    } else {
                        Batch::Separate {
                            src: &mix.src,
                            dst: &mut dst,
                        }
                    };
                    let result = engine.run(&mix.jobs(), memory, &mix.aad, &mut statuses);
                    let done = match result {
                        Ok(_) => {
                            assert!(!trigger.happened(), "{call:?} {before}: a failure that nobody saw");
                            mix.compare(&dst, &statuses);
                            break;
                        }
                        Err(stopped) => {
                            assert!(trigger.happened());
                            assert!(matches!(stopped.error, Error::Device { code: 719, .. }), "{stopped}");
                            assert_eq!(stopped.error.is_lost(), lost);
                            stopped.done
                        }
                    };
                    stopped_half_way += usize::from(done > 0);
                    check_rest(&mix, done, dst, statuses);
                    if lost {
                        assert!(engine.is_lost());
                        let again = engine.start(&mix.jobs(), &mix.src, &mix.aad);
                        assert_eq!(again, Err(Error::Lost));
                    } else if !engine.is_lost() {
                        // What has passed has passed.
                        mix.check(&mut engine);
                    }
                    drop(engine);
                    let seen = seen.lock().unwrap();
                    assert_eq!(seen.leaked, 0);
                    assert!(lost || seen.dirty == 0, "{call:?} {before}: {} not wiped", seen.dirty);
                }
            }
        }
    }
    assert!(stopped_half_way > 50, "{stopped_half_way}");
}

#[test]
fn any_call_of_a_start_or_finish_may_fail() {
    let mix = mix(false);
    let jobs = mix.jobs();
    let mut refused = 0;
    for call in Call::ALL {
        for before in 0.. {
            let (mut engine, trigger, _) = failing(timed());
            set_keys(&mut engine, 16);
            trigger.arm(call, before, false);
            let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; COUNT]);
            if engine.start(&jobs, &mix.src, &mix.aad).is_err() {
                assert!(trigger.happened());
                refused += 1;
                check_rest(&mix, 0, dst, statuses);
                continue;
            }
            match engine.finish(&jobs, &mut dst, &mut statuses) {
                Ok(_) => {
                    assert!(!trigger.happened());
                    mix.compare(&dst, &statuses);
                    break;
                }
                Err(stopped) => {
                    assert!(trigger.happened());
                    check_rest(&mix, stopped.done, dst, statuses);
                }
            }
        }
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn keys_survive_what_passes() {
    let mix = mix(false);
    for call in [Call::CopyIn, Call::Launch, Call::Clear, Call::Record] {
        let (mut engine, trigger, _) = failing(small());
        set_keys(&mut engine, 16);
        // The first of these calls sends the keys.
        trigger.arm(call, 0, false);
        assert!(engine.start(&mix.jobs(), &mix.src, &mix.aad).is_err());
        assert!(trigger.happened() && !engine.is_lost());
        // Still waiting, and set anew: one update.
        engine.set_key(Slot(3), &key(9)).unwrap();
        engine.set_key(Slot(3), &key(3)).unwrap();
        mix.check(&mut engine);
    }
}

#[test]
fn submitting_may_fail() {
    fn can_be_sent_to_another_thread(_: &impl Send) {}
    let message = Message {
        slot: Slot(0),
        nonce: [0; 12],
        len: 40,
        aad_len: 0,
        opens: false,
    };
    let mut failed = 0;
    for call in Call::ALL {
        for before in 0.. {
            let (mut engine, trigger, _) = failing(small());
            can_be_sent_to_another_thread(&engine);
            set_keys(&mut engine, 16);
            trigger.arm(call, before, false);
            let mut batch = engine.batch().unwrap().unwrap();
            batch.reserve(&message).unwrap().unwrap().text.fill(1);
            let submitted = batch.submit();
            let ended = submitted.and_then(|ticket| Ok(engine.collect(ticket)?.report().done));
            if !trigger.happened() {
                assert_eq!(ended, Ok(1));
                break;
            }
            assert!(ended.is_err());
            failed += 1;
            if !engine.is_lost() {
                mix(false).check(&mut engine);
            }
        }
    }
    assert!(failed > 10, "{failed}");
}

#[test]
fn opening_may_fail_anywhere() {
    for call in Call::ALL {
        for before in 0.. {
            let fake = Fake::new(Model);
            let (device, trigger) = Failing::new(fake);
            trigger.arm(call, before, false);
            match Engine::with_device(Box::new(device), timed()) {
                Ok(_) => break,
                Err(error) => assert!(
                    trigger.happened() && matches!(error, Error::Device { .. } | Error::OutOfMemory { .. }),
                    "{error}"
                ),
            }
        }
    }
}

/// Runs so many kernels and then none, without saying so.
struct Tired(usize);

impl Kernels for Tired {
    fn run(&mut self, launch: &Launch, memory: &mut Memory) {
        if self.0 > 0 {
            self.0 -= 1;
            Model.run(launch, memory);
        }
    }
}

#[test]
fn what_no_kernel_has_touched_is_not_done() {
    // Keys and the first batch.
    let device = Fake::new(Tired(2));
    let mut engine = Engine::with_device(Box::new(device), small()).unwrap();
    set_keys(&mut engine, 1);
    let mix = Mix::new(1, &[5, 6], 1, false);
    mix.check(&mut engine);
    let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; 2]);
    let memory = Batch::Separate {
        src: &mix.src,
        dst: &mut dst,
    };
    let stopped = engine.run(&mix.jobs(), memory, &mix.aad, &mut statuses).unwrap_err();
    assert!(matches!(
        stopped.error,
        Error::Device {
            code: 0,
            lost: false,
            ..
        }
    ));
    assert_eq!((stopped.done, dst), (0, mix.before));
}

#[test]
fn everything_is_wiped_and_given_back() {
    let (mut engine, _, seen) = failing(Options {
        chunk_bytes: 1 << 17,
        ..small()
    });
    set_keys(&mut engine, 16);
    let long = Mix::new(5, &[70_000, 5, 300, 40_000], 16, false);
    long.check(&mut engine);
    // Something under way, and keys that wait.
    engine.set_key(Slot(1), &[1; 32]).unwrap();
    engine.start(&long.jobs(), &long.src, &long.aad).unwrap();
    engine.set_key(Slot(2), &[1; 32]).unwrap();
    drop(engine);
    let seen = seen.lock().unwrap();
    // For each of three chunks three pieces on the device and two pinned; for the keys two and one.
    assert_eq!((seen.freed, seen.dirty, seen.leaked), (3 * 5 + 3, 0, 0));
}

#[test]
fn without_a_driver_it_says_so() {
    let devices = sealway_cuda::probe();
    match Engine::open(Options {
        device: 1 << 20,
        ..small()
    }) {
        Err(Error::NoDriver) => assert_eq!(devices, Err(Error::NoDriver)),
        Err(Error::NoDevice) => assert_eq!(devices, Err(Error::NoDevice)),
        Err(Error::NoSuchDevice { devices: count, .. }) => assert_eq!(devices.unwrap().len() as u32, count),
        // A driver that is there and out of order.
        Err(Error::DriverTooOld { .. } | Error::Device { .. }) => {}
        other => panic!("{other:?}"),
    }
}
