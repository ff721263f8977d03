//! iperf3 as a subject: a client and a server of its own over loopback.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Program, claims, whole};
use crate::measure::place::{End, hold};
use crate::peer::{self, Ended, Peer, proc, program};
use crate::result::Subject;
use crate::run::{CellError, Counted, Timed};
use crate::transports::WRITE;

/// The subject's name.
pub(super) const NAME: &str = "iperf3";

/// Bytes for each second of CPU time above which a figure is no measurement: every byte is copied into the kernel and out of
/// it again, and the fastest cores copy a fifth of that.
const MAX_RATE: f64 = 96e9;

/// Most bytes of output that are taken; a second of the test has about 1,000.
const MAX_OUTPUT: usize = 256 * 1024;

/// How long the client may take beyond the seconds it was given.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the server may take until it listens, and to end after the client.
const START: Duration = Duration::from_secs(10);

/// How often it is looked whether it listens.
const STEP: Duration = Duration::from_millis(2);

/// Looks on PATH and asks for the version.
///
/// # Errors
/// Why the program cannot take part, for the reader.
pub(super) fn find() -> Result<Program, String> {
    let path = program::on_path(NAME)?;
    let version = program::version_of("iperf 3.", &path, Command::new(&path).arg("--version"))?;
    Ok(Program { path, version })
}

/// The program as the result file describes it.
pub(super) fn subject(program: &Program) -> Subject {
    let words = |words: Vec<String>| [vec![NAME.to_owned()], words].concat();
    let differs = [
        "two processes; it sends one buffer again and again, and looks at nothing that it receives",
        "counts for itself, in whole seconds; its CPU time is that of both processes from start to end",
    ];
    Subject {
        role_argv: BTreeMap::from([
            ("client".to_owned(), words(client(5201, 1))),
            ("server".to_owned(), words(server(5201))),
        ]),
        ..program.subject(NAME, &differs)
    }
}

/// The program as a stream over loopback.
pub(super) struct Stream {
    pub(super) program: Program,
}

impl Stream {
    /// Starts a server for one test, and waits until it listens.
    fn serve(&self, port: u16) -> Result<Peer, String> {
        let mut peer =
            Peer::start(&mut self.program.command(server(port)), MAX_OUTPUT).map_err(|error| error.to_string())?;
        let until = Instant::now() + START;
        while !proc::listens(peer.id(), port) {
            if peer.ended_within(STEP).map_err(|error| error.to_string())? {
                return Err(format!("its server ended before it listened on port {port}"));
            }
            if Instant::now() >= until {
                return Err(format!("its server does not listen after {} s", START.as_secs()));
            }
        }
        Ok(peer)
    }

    fn run(&self, seconds: u64) -> Result<Counted, String> {
        let port = free_port().map_err(|error| format!("there is no free port: {error}"))?;
        let held = hold(End::Server);
        let server = self.serve(port)?;
        drop(held);
        let _held = hold(End::Client);
        let patience = Duration::from_secs(seconds) + PATIENCE;
        let client = peer::run(&mut self.program.command(client(port, seconds)), MAX_OUTPUT, patience)
            .map_err(|error| error.to_string())?;
        let server = server.wait(START).map_err(|error| format!("its server: {error}"))?;
        counted(&client, &server, seconds)
    }
}

fn server(port: u16) -> Vec<String> {
    let words = ["-s", "-1", "-B", "127.0.0.1", "-p"].map(str::to_owned);
    [words.to_vec(), vec![port.to_string()]].concat()
}

fn client(port: u16, seconds: u64) -> Vec<String> {
    let (port, seconds, write) = (port.to_string(), seconds.to_string(), WRITE.to_string());
    ["-c", "127.0.0.1", "-p", &port, "-t", &seconds, "-l", &write, "-N", "-J"]
        .map(str::to_owned)
        .to_vec()
}

/// A port of loopback at which nobody listens.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The part of the client's output that counts.
#[derive(Deserialize)]
struct Report {
    end: Sums,
}

#[derive(Deserialize)]
struct Sums {
    sum_sent: Sum,
    sum_received: Sum,
}

/// Bytes and seconds of one end.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
struct Sum {
    bytes: f64,
    seconds: f64,
}

/// What the receiver was given, out of the client's JSON.
///
/// # Errors
/// What is wrong with the output, for the reader.
fn received(output: &[u8]) -> Result<Sum, String> {
    let report: Report = serde_json::from_slice(output).map_err(|error| {
        let start = claims::quoted(&String::from_utf8_lossy(&output[..output.len().min(400)]));
        format!("its output is not the JSON of a test: {error}; it begins with {start}")
    })?;
    let Sums { sum_sent, sum_received } = report.end;
    let Sum { bytes, seconds } = sum_received;
    if !(bytes > 0.0 && seconds > 0.0) {
        return Err(format!("it says that {bytes} bytes arrived in {seconds} s"));
    }
    if bytes > sum_sent.bytes {
        return Err(format!(
            "it says that {bytes} bytes arrived, and that {} were sent",
            sum_sent.bytes
        ));
    }
    Ok(sum_received)
}

/// What a test of `seconds` counted, from the client's output and the lives of both programs.
///
/// # Errors
/// What about the figures cannot be, for the reader.
fn counted(client: &Ended, server: &Ended, seconds: u64) -> Result<Counted, String> {
    let Sum { bytes, seconds: wall_s } = received(&client.output)?;
    claims::seconds(wall_s, seconds, client.wall)?;
    let cpu_s = claims::cpu(&[client, server])?;
    if bytes / cpu_s > MAX_RATE {
        return Err(format!(
            "it says that it moved {bytes} bytes, with {cpu_s:.3} s of CPU time: above {MAX_RATE:e} bytes for each second that \
             is no measurement"
        ));
    }
    Ok(Counted {
        ops: (bytes / WRITE as f64).ceil() as u64,
        bytes: bytes as u64,
        wall_s,
        cpu_s,
        figures: vec![("throughput", bytes / wall_s), ("cpu_per_gb", cpu_s / (bytes / 1e9))],
        tails: Vec::new(),
    })
}

impl Timed for Stream {
    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        self.run(whole(window)).map_err(CellError::failed)
    }
}

#[cfg(test)]
mod tests;
