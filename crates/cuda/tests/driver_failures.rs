//! NVIDIA's driver failing at every one of its calls: an error, never a panic, never wrong bytes, nothing kept and nothing left that
//! was secret; and the stand-in sees to it that what was begun is waited for all the same. A program of its own: it starts itself
//! again for each library.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a failed test")]

#[path = "support/driver.rs"]
mod driver;
mod support;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use sealway_aead::batch::{Memory, Slot, Status};
use sealway_cuda::{Engine, Error, Options, Place, Stopped, Ways, probe};

use driver::{StandIn, with_driver, with_library};
use support::mix::{Mix, key, set_keys};
use support::small;

const SLOTS: u32 = 4;
const COUNT: usize = 40;

/// `CUDA_ERROR_OPERATING_SYSTEM`: it passes.
const PASSES: u32 = 304;
/// `CUDA_ERROR_LAUNCH_FAILED`: nothing works after it.
const LOSES: u32 = 719;
const OUT_OF_MEMORY: u32 = 2;

/// Batches of which some jobs were complete and some were not.
static HALF_WAY: AtomicUsize = AtomicUsize::new(0);

/// Calls that put something into a queue.
const QUEUED: [&str; 6] = [
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemsetD8Async",
    "cuLaunchKernel",
    "cuEventRecord",
    "cuStreamWaitEvent",
];

/// Every call that the stand-in has; the crate makes all of them.
fn calls() -> Vec<&'static str> {
    let calls: Vec<_> = include_str!("support/driver/driver.cpp")
        .lines()
        .filter_map(|line| line.strip_prefix("int ")?.split_once('('))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("cu"))
        .collect();
    assert!(calls.len() > 30, "{calls:?}");
    calls
}

fn options() -> Options {
    Options {
        slots: SLOTS as usize,
        timing: true,
        ..small()
    }
}

fn mix() -> Mix {
    let lens: Vec<usize> = (0..COUNT).map(|i| i * 137 % 900).collect();
    Mix::new(11, &lens, SLOTS, false)
}

/// Everything an engine does, with a failure at any of it.
fn use_all(engine: &mut Engine, mix: &Mix) -> Result<(), Error> {
    let jobs = mix.jobs();
    let untouched = || (mix.before.clone(), vec![Status::Failed; COUNT]);
    engine.set_key(Slot(3), &key(3)).unwrap();

    let (mut dst, mut statuses) = untouched();
    let memory = Memory::Separate {
        src: &mix.src,
        dst: &mut dst,
    };
    let ran = engine.run(&jobs, memory, &mix.aad, &mut statuses);
    ended(mix, ran.map(|_| ()), dst, statuses)?;

    let (mut dst, mut statuses) = untouched();
    engine.start(&jobs, &mix.src, &mix.aad)?;
    let finished = engine.finish(&jobs, &mut dst, &mut statuses);
    ended(mix, finished.map(|_| ()), dst, statuses)?;

    // Two on their way, with a key between them; the second once more.
    let first = sealed(engine)?;
    engine.set_key(Slot(1), &key(1)).unwrap();
    let second = sealed(engine)?;
    engine.is_done(&first)?;
    let second = engine.collect(second)?.again()?;
    drop(first);
    assert_eq!(engine.collect(second)?.get(0).unwrap().1, text());

    let (mut dst, mut statuses) = untouched();
    let mut resident = engine.resident(&jobs)?;
    resident.upload(&jobs, &mix.src, &mix.aad)?;
    resident.run()?;
    resident.download(&jobs, &mut dst, &mut statuses)?;
    mix.compare(&dst, &statuses);
    drop(resident);
    engine.copy_chunks(Ways::Both, 1).map(|_| ())
}

fn sealed(engine: &mut Engine) -> Result<sealway_cuda::Ticket, Error> {
    let message = sealway_cuda::Message {
        slot: Slot(0),
        nonce: [9; 12],
        len: 100,
        aad_len: 0,
        opens: false,
    };
    let mut batch = engine.batch()?.unwrap();
    batch.reserve(&message)?.unwrap().text.fill(7);
    batch.submit()
}

fn text() -> Vec<u8> {
    use chacha20poly1305::aead::{AeadInOut, KeyInit};
    let mut text = vec![7; 100];
    chacha20poly1305::ChaCha20Poly1305::new(&key(0).into())
        .encrypt_inout_detached(&[9; 12].into(), &[], (&mut text[..]).into())
        .unwrap();
    text
}

/// As many jobs complete as it says, the others untouched; the processor does the rest.
fn ended(mix: &Mix, ended: Result<(), Stopped>, mut dst: Vec<u8>, mut statuses: Vec<Status>) -> Result<(), Error> {
    let Err(Stopped { done, error }) = ended else {
        mix.compare(&dst, &statuses);
        return Ok(());
    };
    HALF_WAY.fetch_add(usize::from(done > 0), Relaxed);
    assert_eq!(dst, mix.half_way(done), "{done} done");
    assert_eq!(statuses[..done], mix.statuses[..done]);
    assert!(statuses[done..].iter().all(|&status| status == Status::Failed));
    mix.finish_on_processor(done, SLOTS, &mut dst, &mut statuses);
    mix.compare(&dst, &statuses);
    Err(error)
}

fn open() -> Result<Engine, Error> {
    let mut engine = Engine::open(options())?;
    set_keys(&mut engine, SLOTS);
    Ok(engine)
}

/// For each call, at each of its times: `test` says whether all went well, and is done again until the call was made less often.
fn each_failure(
    driver: &StandIn,
    code: u32,
    after: bool,
    calls: &[&'static str],
    mut test: impl FnMut(&dyn Fn()) -> Result<(), Error>,
) -> usize {
    let mut failures = 0;
    for &call in calls {
        for before in 0.. {
            let arm = || {
                if after {
                    driver.fails_after(call, before, code);
                } else {
                    driver.fails(call, before, code);
                }
            };
            let result = test(&arm);
            let fired = driver.fired();
            driver.passes();
            let named = |error: &Error| match *error {
                Error::Device { code: given, lost, .. } => given == code && lost == (code == LOSES),
                Error::OutOfMemory { .. } => code == OUT_OF_MEMORY,
                _ => false,
            };
            match result {
                Ok(()) if !fired => break,
                Ok(()) => {}
                Err(error) => assert!(fired && named(&error), "{call} {before}: {error}"),
            }
            failures += 1;
        }
    }
    failures
}

#[test]
fn any_call_of_use_may_fail() {
    with_driver("any_call_of_use_may_fail", |driver| {
        let mix = mix();
        for (after, calls) in [(false, calls()), (true, QUEUED.to_vec())] {
            let failures = each_failure(driver, PASSES, after, &calls, |arm| {
                let mut engine = open().unwrap();
                arm();
                let used = use_all(&mut engine, &mix);
                driver.passes();
                if !engine.is_lost() {
                    // What has passed has passed.
                    mix.check(&mut engine);
                }
                used
            });
            assert!(failures > 50, "{failures}");
        }
        assert!(HALF_WAY.load(Relaxed) > 50, "{HALF_WAY:?}");
        use_all(&mut open().unwrap(), &mix).unwrap();
    });
}

#[test]
fn any_call_of_opening_may_fail() {
    with_driver("any_call_of_opening_may_fail", |driver| {
        for code in [PASSES, OUT_OF_MEMORY] {
            let failures = each_failure(driver, code, false, &calls(), |arm| {
                arm();
                let opened = open();
                driver.passes();
                opened.map(drop)
            });
            assert!(failures > 80, "{failures}");
        }
        use_all(&mut open().unwrap(), &mix()).unwrap();
    });
}

#[test]
fn any_call_of_closing_may_fail() {
    with_driver("any_call_of_closing_may_fail", |driver| {
        let mix = mix();
        let failures = each_failure(driver, PASSES, false, &calls(), |arm| {
            let mut engine = open().unwrap();
            engine.start(&mix.jobs(), &mix.src, &mix.aad).unwrap();
            arm();
            drop(engine);
            Ok(())
        });
        assert!(failures > 50, "{failures}");
        use_all(&mut open().unwrap(), &mix).unwrap();
    });
}

#[test]
fn a_device_may_be_lost_at_any_call() {
    with_driver("a_device_may_be_lost_at_any_call", |driver| {
        driver.is("revive=1");
        let mix = mix();
        let mut calls = calls();
        // What the device itself does, while nobody calls.
        calls.push("work");
        let failures = each_failure(driver, LOSES, false, &calls, |arm| {
            let mut engine = open().unwrap();
            arm();
            let used = use_all(&mut engine, &mix);
            if let Err(error) = &used {
                assert!(engine.is_lost(), "{error}");
                let again = engine.start(&mix.jobs(), &mix.src, &mix.aad);
                assert_eq!(again, Err(Error::Lost));
                // The process cannot have it again.
                assert!(open().unwrap_err().is_lost());
            }
            used
        });
        assert!(failures > 100, "{failures}");
        let failures = each_failure(driver, LOSES, false, &calls, |arm| {
            arm();
            open().map(drop)
        });
        assert!(failures > 50, "{failures}");
    });
}

#[test]
fn memory_may_run_out_at_each_allocation() {
    with_driver("memory_may_run_out_at_each_allocation", |driver| {
        let out = |error: Error| match error {
            Error::OutOfMemory { asked, place } => (asked, place),
            other => panic!("{other}"),
        };
        let chunk = options().chunk_bytes;
        for before in 0.. {
            driver.fails("cuMemAlloc_v2", before, OUT_OF_MEMORY);
            let opened = open();
            if !driver.fired() {
                // The table and what goes into it, three for each chunk.
                assert_eq!(before, 2 + 3 * options().chunks);
                break;
            }
            let (asked, place) = out(opened.unwrap_err());
            assert!(asked > 0 && asked <= chunk && place == Place::Device, "{asked}");
        }
        driver.fails("cuMemHostAlloc", 1, OUT_OF_MEMORY);
        assert_eq!(out(open().unwrap_err()), (chunk, Place::Host));
        // What the driver itself needs.
        for call in [
            "cuDevicePrimaryCtxRetain",
            "cuModuleLoadData",
            "cuStreamCreate",
            "cuEventCreate",
        ] {
            driver.fails(call, 0, OUT_OF_MEMORY);
            assert_eq!(out(open().unwrap_err()), (0, Place::Device), "{call}");
        }
        driver.is("memory=30000");
        let mut engine = open().unwrap();
        let mix = Mix::new(1, &[9000], SLOTS, false);
        assert_eq!(out(engine.resident(&mix.jobs()).unwrap_err()).1, Place::Device);
        use_all(&mut engine, &self::mix()).unwrap_err();
        self::mix().check(&mut engine);
        driver.is("memory=20000");
        assert_eq!(out(open().unwrap_err()).1, Place::Device);
    });
}

#[test]
fn what_the_driver_says_is_passed_on() {
    with_driver("what_the_driver_says_is_passed_on", |driver| {
        let opened = |call, code| {
            driver.fails(call, 0, code);
            open().map(drop).unwrap_err()
        };
        assert_eq!(opened("cuInit", 100), Error::NoDevice);
        assert_eq!(opened("cuInit", 34), Error::NoDriver);
        let (have, need) = ((12, 8), (12, 0));
        // A driver that says that it is new enough, and does not know the text.
        assert_eq!(opened("cuModuleLoadData", 222), Error::DriverTooOld { have, need });
        let said = opened("cuModuleLoadData", 218).to_string();
        assert!(
            said.contains("loading the kernels: CUDA_ERROR_INVALID_PTX (218)"),
            "{said}"
        );
        let said = opened("cuStreamCreate", 205).to_string();
        assert!(said.contains("an error without a name (205)"), "{said}");
        driver.fails("cuDeviceGetPCIBusId", 0, 101);
        assert_eq!(probe().unwrap()[0].pci, "");
        driver.is("revive=1");
        driver.fails("cuDeviceGetPCIBusId", 0, LOSES);
        assert!(matches!(probe(), Err(Error::Device { lost: true, .. })));
        driver.is("revive=1");
        assert!(open().is_ok());
    });
}

#[test]
fn without_a_driver() {
    with_library("without_a_driver", None, || {
        if std::path::Path::new("/dev/nvidiactl").exists() {
            println!("SKIPPED: there is a driver; what happens without one was NOT tested");
            return;
        }
        assert_eq!(probe(), Err(Error::NoDriver));
        assert_eq!(open().map(drop).unwrap_err(), Error::NoDriver);
    });
}

#[test]
fn every_call_is_looked_for() {
    let source = include_str!("../src/driver/context.rs");
    let (_, list) = source.split_once("const CALLS").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let mut looked_for: Vec<_> = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
        .collect();
    let mut made = calls();
    looked_for.sort_unstable();
    made.sort_unstable();
    assert_eq!(looked_for, made);
}

/// A file of the right name that is no driver.
#[test]
fn a_library_that_lacks_calls() {
    let source = "extern \"C\" int cuInit(unsigned) { return 0; }";
    with_library("a_library_that_lacks_calls", Some(source), || {
        let said = probe().unwrap_err().to_string();
        assert!(said.contains("has no cuDriverGetVersion"), "{said}");
        assert_eq!(open().map(drop).unwrap_err().to_string(), said);
    });
}

/// Drivers from before the calls that are made, of which some are new names for what changed.
#[test]
fn a_driver_from_before_the_calls() {
    let source = "extern \"C\" { int cuInit(unsigned) { return 0; } int cuGetErrorName(int, const char**) { return 1; }\n\
                  int cuDriverGetVersion(int* version) { return *version = 9010, 0; } }";
    with_library("a_driver_from_before_the_calls", Some(source), || {
        let (have, need) = ((9, 1), (12, 0));
        assert_eq!(probe(), Err(Error::DriverTooOld { have, need }));
        assert_eq!(open().map(drop).unwrap_err(), Error::DriverTooOld { have, need });
    });
}

/// Waiting fails for a while: memory that may be in use is neither shown nor given back.
#[test]
fn waiting_may_fail_more_than_once() {
    with_driver("waiting_may_fail_more_than_once", |driver| {
        let mix = mix();
        for times in [1, 2, 3, 7, 1000] {
            let mut engine = open().unwrap();
            driver.fails_often("cuStreamSynchronize", times, PASSES);
            let used = use_all(&mut engine, &mix);
            assert!(driver.fired(), "{times}");
            // One that fails once is asked again.
            assert!(used.is_err() || times == 1, "{times}");
            driver.passes();
            // What was kept is wiped and given back now.
            drop(engine);
        }
        use_all(&mut open().unwrap(), &mix).unwrap();
    });
}
