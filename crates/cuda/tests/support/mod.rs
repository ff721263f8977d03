//! Devices that are not there, and batches to run on them.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a failed test")]

#[path = "emulator.rs"]
pub mod emulator;
#[path = "failing.rs"]
pub mod failing;
#[path = "fake.rs"]
pub mod fake;
#[path = "kernels.rs"]
pub mod kernels;
#[path = "mix.rs"]
pub mod mix;
#[path = "packets.rs"]
pub mod packets;

use std::sync::{Arc, Mutex};

use sealway_cuda::{Engine, Error, Options};

use emulator::Emulator;
use fake::{Fake, Seen};
use kernels::Model;

/// Small chunks, so that small batches have many.
pub fn small() -> Options {
    Options {
        slots: 16,
        chunk_bytes: 4096,
        chunks: 3,
        ..Options::default()
    }
}

/// An engine over the model, and what its device saw.
pub fn model(options: Options) -> (Engine, Arc<Mutex<Seen>>) {
    over(Fake::new(Model), options)
}

/// Engines over everything that does the kernels' work here: the model, the program, and a GPU where there is one.
pub fn each(options: &Options) -> Vec<Engine> {
    let mut engines = vec![model(options.clone()).0];
    engines.extend(gpu(options.clone()));
    engines.extend(Emulator::start().map(|program| over(Fake::new(program), options.clone()).0));
    engines
}

/// An engine on a GPU, if there is one that will do.
///
/// # Panics
/// If there is one and it does not work.
pub fn gpu(options: Options) -> Option<Engine> {
    match Engine::open(options) {
        Ok(engine) => Some(engine),
        Err(error @ (Error::NoDriver | Error::NoDevice | Error::DriverTooOld { .. } | Error::TooOldDevice { .. })) => {
            println!("SKIPPED on a GPU: {error}");
            None
        }
        Err(error) => panic!("the GPU does not work: {error}"),
    }
}

fn over(device: Fake, options: Options) -> (Engine, Arc<Mutex<Seen>>) {
    let seen = Arc::clone(&device.seen);
    (Engine::with_device(Box::new(device), options).unwrap(), seen)
}
