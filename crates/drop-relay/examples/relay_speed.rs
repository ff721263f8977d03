//! What a relay costs: bytes through it over loopback, beside a plain loop that reads and writes, in turns.
//!
//! `cargo run --release -p sealway-drop --example relay_speed [MiB] [rounds]`
//!
//! The sender writes the same 256 KiB again and again, the receiver reads into 256 KiB; neither looks at the bytes. CPU
//! seconds are those of the threads between the two ends only: of the relay, or of the loop.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sealway_drop::cancel::Cancel;
use sealway_drop::relay::pair;
use sealway_drop_relay::{Limits, Server};
use sealway_session::handshake::Role;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What one transfer took.
struct Taken {
    wall: f64,
    between: f64,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mib: usize = arguments.next().map_or(Ok(2048), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let gb = (mib << 20) as f64 / 1e9;
    let mut ratios = Vec::new();
    println!("{mib} MiB one way, GB/s and CPU s/GB between the ends");
    for _ in 0..rounds {
        let relay = by_relay(mib)?;
        let (copy_64, copy_256) = (by_copy(mib, 64 << 10)?, by_copy(mib, 256 << 10)?);
        let show = |name: &str, taken: &Taken| {
            println!("{name:12} {:6.2} GB/s {:6.3} s/GB", gb / taken.wall, taken.between / gb);
        };
        show("relay", &relay);
        show("copy 64 KiB", &copy_64);
        show("copy 256 KiB", &copy_256);
        ratios.push((copy_64.wall / relay.wall, relay.between / copy_64.between));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let speed = ratios[ratios.len() / 2].0;
    ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
    println!(
        "median of {rounds}: {speed:.2} times the speed of copying 64 KiB, {:.2} of its CPU time",
        ratios[rounds / 2].1
    );
    Ok(())
}

/// CPU seconds of this process so far.
fn process_cpu() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// CPU seconds of this thread so far.
fn thread_cpu() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Sends from one end to the other. What the process used beyond these two threads was used between them.
fn transfer(mut from: TcpStream, mut to: TcpStream, mib: usize) -> Result<Taken, Failure> {
    let (begun, cpu) = (Instant::now(), process_cpu());
    let (sent, received) = std::thread::scope(|scope| {
        let sender = scope.spawn(move || -> std::io::Result<f64> {
            let own = thread_cpu();
            let content = vec![0x5a; 256 << 10];
            for _ in 0..mib * 4 {
                from.write_all(&content)?;
            }
            from.shutdown(Shutdown::Write)?;
            Ok(thread_cpu() - own)
        });
        let receiver = scope.spawn(move || -> std::io::Result<f64> {
            let own = thread_cpu();
            let (mut room, mut got) = (vec![0; 256 << 10], 0);
            loop {
                match to.read(&mut room)? {
                    0 => break,
                    read => got += read,
                }
            }
            assert_eq!(got, mib << 20, "bytes were lost");
            Ok(thread_cpu() - own)
        });
        (sender.join(), receiver.join())
    });
    let ends = sent.map_err(|_| "the sender failed")?? + received.map_err(|_| "the receiver failed")??;
    Ok(Taken {
        wall: begun.elapsed().as_secs_f64(),
        between: process_cpu() - cpu - ends,
    })
}

fn by_relay(mib: usize) -> Result<Taken, Failure> {
    let server = Server::bind(
        "127.0.0.1:0".parse()?,
        Limits {
            grace: Duration::ZERO,
            ..Limits::default()
        },
    )?;
    let (address, cancel) = (server.address().to_string(), Cancel::new());
    let serving = std::thread::spawn({
        let cancel = cancel.clone();
        move || server.run(&cancel)
    });
    let first = std::thread::spawn({
        let address = address.clone();
        move || pair(&address, &[1; 32], Role::Initiator, &|| false)
    });
    let to = pair(&address, &[1; 32], Role::Responder, &|| false)?;
    let from = first.join().map_err(|_| "the first end failed")??;
    let taken = transfer(from, to, mib);
    cancel.cancel();
    serving.join().map_err(|_| "the relay failed")??;
    taken
}

fn by_copy(mib: usize, room: usize) -> Result<Taken, Failure> {
    let (near, far) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let from = TcpStream::connect(near.local_addr()?)?;
    let (mut entry, _) = near.accept()?;
    let mut exit = TcpStream::connect(far.local_addr()?)?;
    let (to, _) = far.accept()?;
    let copying = std::thread::spawn(move || -> std::io::Result<()> {
        let mut room = vec![0; room];
        loop {
            match entry.read(&mut room)? {
                0 => return exit.shutdown(Shutdown::Write),
                read => exit.write_all(&room[..read])?,
            }
        }
    });
    let taken = transfer(from, to, mib);
    copying.join().map_err(|_| "the copying failed")??;
    taken
}
