//! The engine of `sealway-cuda` as executor, over a device made of ordinary memory, and over a GPU where there is one.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used)]

#[path = "common/both.rs"]
mod both;
mod common;
#[path = "../../cuda/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use both::{Both, HALF};
use sealway_bip324::batch::{Backend, Costs, CostsFile, Executor, Routing};
use sealway_cuda::{Engine, Error, Options};
use support::failing::{Call, Failing};
use support::fake::Fake;
use support::kernels::Model;

/// Batches of many chunks, more than are under way at a time, and of messages that no chunk takes.
fn options() -> Options {
    Options {
        slots: 16,
        chunk_bytes: 8192,
        chunks: 3,
        ..Options::default()
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
    for (peers, routing) in [(4, Routing::Always), (4, HALF), (1, HALF), (5, Routing::Always)] {
        let device = Fake::new(Model);
        let seen = Arc::clone(&device.seen);
        let engine = Engine::with_device(Box::new(device), options()).unwrap();
        let both = run(Both::new(peers.max(4)), engine, routing);
        let counters = both.batch.counters();
        assert_eq!(
            (counters.fallbacks, counters.connections_failed),
            (0, 0),
            "{:?}",
            both.batch.executor_failure()
        );
        assert_eq!(counters.executor_jobs + counters.processor_jobs, 3606);
        assert!(counters.executor_jobs > 0);
        assert!(routing == Routing::Always || counters.splits > 0);
        drop(both);
        let seen = seen.lock().unwrap();
        assert!(seen.launches.len() > 20);
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
                let (device, trigger) = Failing::new(Fake::new(Model));
                let engine = Engine::with_device(Box::new(device), options()).unwrap();
                trigger.arm(call, before, lost);
                let both = run(Both::new(4), engine, HALF);
                let counters = both.batch.counters();
                assert_eq!(counters.connections_failed, 0, "{call:?} {before} {lost}");
                assert_eq!(counters.executor_jobs + counters.processor_jobs, 3606);
                assert!(counters.fallbacks <= u64::from(trigger.happened()));
                failed += counters.fallbacks;
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

/// Measured once, and once more only for what costs differently; what is no file of ours stays as it is.
#[test]
fn costs_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache/sealway/costs");
    let known = |options: Options, path: Option<&Path>| {
        let device = Fake::new(Model);
        let seen = Arc::clone(&device.seen);
        let mut engine = Engine::with_device(Box::new(device), options).unwrap();
        let known = Costs::of_gpu(&mut engine, Backend::best(), path).unwrap();
        drop(engine);
        let measured = !seen.lock().unwrap().launches.is_empty();
        (known, measured)
    };
    let other = || Options { chunks: 2, ..options() };
    let (none, measured) = known(options(), None);
    assert!(matches!(none.file, CostsFile::None) && measured);
    let (first, measured) = known(options(), Some(&path));
    assert!(matches!(first.file, CostsFile::Written) && measured, "{:?}", first.file);
    let (again, measured) = known(options(), Some(&path));
    assert!(matches!(again.file, CostsFile::Read) && !measured, "{:?}", again.file);
    assert_eq!(again.costs, first.costs);
    let (second, _) = known(other(), Some(&path));
    assert!(matches!(second.file, CostsFile::Written), "{:?}", second.file);
    for (options, costs) in [(options(), first.costs), (other(), second.costs)] {
        let (known, measured) = known(options, Some(&path));
        assert!(matches!(known.file, CostsFile::Read) && !measured);
        assert_eq!(known.costs, costs);
    }

    // Damaged, they are measured again; the other line is still good.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen(" cpu ", " cpus ", 1)).unwrap();
    assert!(matches!(known(options(), Some(&path)).0.file, CostsFile::Written));
    assert!(matches!(known(other(), Some(&path)).0.file, CostsFile::Read));

    // What is not ours is not touched, and no obstacle.
    let foreign = folder.path().join("letter");
    for text in [&b"Dear reader"[..], b"\xff", &[b'\n'; 70_000]] {
        fs::write(&foreign, text).unwrap();
        let (known, measured) = known(options(), Some(&foreign));
        assert!(
            matches!(known.file, CostsFile::Failed(_)) && measured,
            "{:?}",
            known.file
        );
        assert_eq!(fs::read(&foreign).unwrap(), text);
    }
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [
        folder.path(),
        &foreign.join("below a file"),
        Path::new("/dev/zero"),
        &pipe,
    ] {
        let (known, measured) = known(options(), Some(path));
        assert!(
            matches!(known.file, CostsFile::Failed(_)) && measured,
            "{:?}",
            known.file
        );
    }

    // A link stays one, and leads to the costs.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    fs::write(&path, "").unwrap();
    assert!(matches!(known(options(), Some(&link)).0.file, CostsFile::Written));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(matches!(known(options(), Some(&path)).0.file, CostsFile::Read));
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
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
