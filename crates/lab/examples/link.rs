//! An emulated link by itself: `link ADDR rate=100mbit,rtt=40ms,loss=0.1%` prints `listening ADDR` and carries connections over it to
//! `ADDR` until its standard input ends; `link test LINK` says what it does.

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use sealway_lab::link::{Link, Relay, measure};

/// Seed of the losses, the same every time.
const SEED: u64 = 1;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [to, link] = &words[..] else {
        eprintln!("usage: link ADDR|test LINK, such as rate=100mbit,rtt=40ms,loss=0.1%");
        return ExitCode::from(2);
    };
    match run(to, link) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(to: &str, link: &str) -> Result<(), Box<dyn Error>> {
    let link: Link = link.parse()?;
    if to == "test" {
        println!("{:?}", measure(&link)?);
        return Ok(());
    }
    let relay = Relay::open(to.parse()?, link)?;
    relay.engage(SEED);
    println!("listening {}", relay.address());
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
