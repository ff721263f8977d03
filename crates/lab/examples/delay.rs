//! A TCP forwarder with distance, by itself: `delay ADDR ONE_WAY_MS [MB_PER_S]` prints `listening ADDR` and forwards to
//! `ADDR` until its standard input ends; `delay test ONE_WAY_MS [MB_PER_S]` says what one connection through it does.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use sealway_lab::delay::{Delay, Forwarder, self_test};

/// Rate that the buffers are made for unless the caller says, in MB/s.
const RATE: u64 = 2000;

/// Bytes of the test.
const BYTES: u64 = 1 << 30;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if error.kind() == io::ErrorKind::InvalidInput {
                2
            } else {
                1
            })
        }
    }
}

fn run(words: &[String]) -> io::Result<()> {
    let usage = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "usage: delay ADDR|test ONE_WAY_MS [MB_PER_S]",
        )
    };
    let [to, delay, rate @ ..] = words else {
        return Err(usage());
    };
    let millis: u64 = delay.parse().map_err(|_| usage())?;
    let rate = match rate {
        [] => RATE,
        [rate] => rate.parse().map_err(|_| usage())?,
        _ => return Err(usage()),
    };
    let delay = Delay::buffer_for(Duration::from_millis(millis), rate.saturating_mul(1_000_000));
    if to == "test" {
        let found = self_test(delay, BYTES)?;
        println!(
            "round trip {:.2} ms, {:.0} MB/s in one connection, buffer {} MiB each way",
            found.round_trip.as_secs_f64() * 1e3,
            found.rate / 1e6,
            delay.buffer >> 20
        );
        return Ok(());
    }
    let forwarder = Forwarder::open(to.parse().map_err(|_| usage())?, delay)?;
    println!("listening {}", forwarder.address());
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
