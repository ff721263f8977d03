//! `openssl speed` as a subject: a program of its own, which times itself.
//!
//! Always called with `-elapsed -aead`: without `-aead` it streams one endless message with neither nonce nor tag, and
//! without `-elapsed` it divides by user CPU time. It takes whole seconds only and seals with 13 bytes of AAD. Versions 3.0
//! set a new nonce but not a new key for each message; others may set the key again for every message, and then their
//! figure is key set-up and sealing together.
//!
//! It counts operations by the wall. So that a ratio to a subject inside this process compares like with like, a window
//! also has the CPU time of those operations: that of the program's whole life ([`Method::Wait`]), times the share of
//! its life in which it counted. What it claims is held against all that is known besides: the time that it says it counted
//! against its life, the count against the rate, and the rate against what a library of this process does on this machine.
//!
//! [`Method::Wait`]: crate::measure::cpu::Method::Wait

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sealway_aead::Suite;

use crate::measure::clock::thread_cpu;
use crate::peer::{self, Ended, program};
use crate::result::{Case, Subject};
use crate::run::{Cell, CellError, Counted, Timed};
#[cfg(feature = "peers")]
use crate::workload::engine::AwsLc as Yardstick;
use crate::workload::engine::Engine;
#[cfg(not(feature = "peers"))]
use crate::workload::engine::Sealway as Yardstick;

/// The subject's name.
pub(super) const NAME: &str = "openssl";

/// AAD bytes that `openssl speed -aead` uses.
pub(super) const AAD: usize = 13;

/// The shortest window it can do, its start included.
pub(super) const SHORTEST: Duration = Duration::from_millis(1020);

/// How long the program may take beyond the window it was given.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most bytes of output that are taken; it prints a few hundred.
const MAX_OUTPUT: usize = 64 * 1024;

/// Bytes per second above which a figure is no measurement: 16 bytes in each cycle of a clock of 6 GHz. The fastest cores
/// seal a quarter of that.
const MAX_RATE: f64 = 96e9;

/// How many times as fast as a library of this process it may be: libraries differ by less than half of that.
const MOST_TIMES: f64 = 4.0;

/// How much the rate that it gives may differ from the one that follows from its count, which has fewer digits.
const ROUNDING: f64 = 0.01;

/// Seconds by which its time may be above that of its life: it takes both ends from a clock of 100 ticks a second.
const TICK: f64 = 0.02;

/// Share of the time that was asked for in which it must have counted.
const MIN_COUNTED: f64 = 0.9;

/// Share of its life that the program must have computed: below, it was not the one that did the work, or the machine is so
/// overloaded that its figure means nothing.
const MIN_SHARE: f64 = 0.1;

/// The program, found and asked for its version.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) version: String,
}

impl Program {
    /// Looks on PATH and asks for the version.
    ///
    /// # Errors
    /// Why the program cannot take part, for the reader.
    pub(super) fn find() -> Result<Program, String> {
        let path = program::on_path(NAME)?;
        // Only OpenSSL's speed is understood.
        let version = program::version_of("OpenSSL ", &path, Command::new(&path).arg("version"))?;
        Ok(Program { path, version })
    }

    /// The program as the result file describes it.
    pub(super) fn subject(&self) -> Subject {
        let mut argv = vec![NAME.to_owned()];
        argv.extend(Self::arguments(Suite::ChaCha20Poly1305, 16_384, 1));
        Subject {
            name: NAME.to_owned(),
            version: self.version.clone(),
            kind: "program".to_owned(),
            sha256: program::sha256_of(&self.path).unwrap_or_default(),
            role_argv: BTreeMap::from([("speed".to_owned(), argv)]),
            setup: "matched".to_owned(),
            differs: vec![
                "counts by the wall, in whole seconds; its CPU time is that of its whole life, scaled to them"
                    .to_owned(),
                keys(&self.version).to_owned(),
                "its outputs are not compared with the oracle".to_owned(),
            ],
            ..Subject::default()
        }
    }

    /// The argument list for one window.
    pub(super) fn arguments(suite: Suite, bytes: usize, seconds: u64) -> Vec<String> {
        let line = format!("speed -elapsed -seconds {seconds} -evp {suite} -aead -bytes {bytes} -mr");
        line.split(' ').map(str::to_owned).collect()
    }
}

/// What a version does with the key from message to message, for the reader.
fn keys(version: &str) -> &'static str {
    let number = version.split_whitespace().nth(1).unwrap_or_default();
    if number.starts_with("3.0.") {
        "sets a new nonce, not a new key, for each message"
    } else {
        "may set the key again for every message: its figure is then key set-up and sealing together"
    }
}

/// True if `openssl speed` has the suite.
pub(super) fn has(suite: Suite) -> bool {
    suite != Suite::XChaCha20Poly1305
}

/// Runs the program to its end. Its counts go to standard error and its rates to standard output: both are read as one.
fn run<S: AsRef<std::ffi::OsStr>>(
    path: &Path,
    arguments: &[S],
    environment: Option<(&str, &str)>,
    patience: Duration,
) -> Result<Ended, String> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(path);
    command.args(arguments).envs(environment).stdin(Stdio::null());
    peer::run(&mut command, MAX_OUTPUT, patience).map_err(|error| error.to_string())
}

/// Messages of `bytes` bytes and the seconds that they took, out of the machine-readable output of one size: the line
/// `+R:messages:NAME:seconds`, with which `+F:index:NAME:bytes-per-second` must agree.
///
/// # Errors
/// What is wrong with the output, for the reader.
fn parse(output: &str, bytes: usize) -> Result<(u64, f64), String> {
    let line = |mark: &str| output.lines().find(|line| line.starts_with(mark));
    let (Some(counts), Some(rates)) = (line("+R:"), line("+F:")) else {
        let first: String = output.lines().next().unwrap_or_default().chars().take(100).collect();
        return Err(format!(
            "its output has no lines with a count and a throughput: {first:?}"
        ));
    };
    let number = |line: &str, place: usize, what: &str| {
        let word: String = line
            .split(':')
            .nth(place)
            .unwrap_or_default()
            .trim()
            .chars()
            .take(40)
            .collect();
        let value = word
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite() && *value > 0.0);
        value.ok_or_else(|| format!("it gives {word:?} as its {what}"))
    };
    let messages = number(counts, 1, "messages")?;
    let seconds = number(counts, 3, "seconds")?;
    let rate = number(rates, 3, "bytes per second")?;
    let counted = messages * bytes as f64 / seconds;
    if (rate / counted - 1.0).abs() > ROUNDING {
        return Err(format!(
            "it claims {rate:e} bytes per second, and {counted:e} by its count"
        ));
    }
    Ok((messages as u64, seconds))
}

/// What a window of `seconds` counted in messages of `bytes` bytes, from the output and the life of the program, of which no more
/// than `most` bytes per second are believed.
///
/// # Errors
/// What about the figures cannot be, for the reader.
fn counted(ended: &Ended, seconds: u64, bytes: usize, most: f64) -> Result<Counted, String> {
    let (ops, said) = parse(&String::from_utf8_lossy(&ended.output), bytes)?;
    let (life, cpu) = (ended.wall.as_secs_f64(), ended.cpu.unwrap_or_default().as_secs_f64());
    if life + TICK < said || said < MIN_COUNTED * seconds as f64 {
        return Err(format!(
            "it ended after {life:.3} s and claims to have counted for {said} s of {seconds}"
        ));
    }
    let wall_s = said.min(life);
    // Loading, counting and leaving all compute without a pause, so the parts of its life have the same share of a CPU.
    let share = cpu / life;
    if share < MIN_SHARE {
        return Err(format!(
            "it used {cpu:.3} s of CPU time in {life:.3} s: either the machine is overloaded, or another program did the \
             work"
        ));
    }
    let cpu_s = wall_s * share;
    let bytes = ops.saturating_mul(bytes as u64);
    if bytes as f64 / cpu_s > most {
        return Err(format!(
            "{bytes} bytes in {cpu_s:.3} s of CPU time are above {most:.2e} bytes per second, which no program does here"
        ));
    }
    Ok(Counted {
        ops,
        bytes,
        wall_s,
        cpu_s,
        ..Counted::default()
    })
}

/// Bytes per second of CPU time that an engine of this process seals in long messages: the best of some short runs, as any of
/// them may be disturbed. `None` where it refuses, or where there is no clock.
fn bulk_rate<E: Engine>(suite: Suite) -> Option<f64> {
    const MESSAGES: usize = 64;
    let key = E::sealing(suite, &vec![0; suite.key_len()])?;
    let (nonce, mut buffer) = (vec![0; suite.nonce_len()], vec![0; 16 << 10]);
    let mut run = || {
        let before = thread_cpu()?;
        for _ in 0..MESSAGES {
            // One nonce for all of them: nobody sees what comes of it.
            E::seal(&key, &nonce, &[], &mut buffer)?;
        }
        let spent = thread_cpu()?.saturating_sub(before);
        Some((MESSAGES * buffer.len()) as f64 / spent.as_secs_f64())
    };
    (0..5).filter_map(|_| run()).reduce(f64::max)
}

/// The variable that takes AES and carry-less multiply away from OpenSSL on this architecture, so that it does what it
/// would do on a CPU without them (manual pages OPENSSL_ia32cap and OPENSSL_armcap).
pub(super) const fn without_aes() -> Option<(&'static str, &'static str)> {
    if cfg!(target_arch = "x86_64") {
        Some(("OPENSSL_ia32cap", "~0x200000200000000"))
    } else if cfg!(target_arch = "aarch64") {
        Some(("OPENSSL_armcap", "1"))
    } else {
        None
    }
}

/// Sealing of one size by `openssl speed`.
struct Speed {
    program: Program,
    suite: Suite,
    bytes: usize,
    environment: Option<(&'static str, &'static str)>,
    /// Bytes per second of CPU time above which it is not believed.
    most: f64,
}

/// A cell that seals one size by `openssl speed`.
pub(super) fn cell(
    case: Case,
    program: Program,
    suite: Suite,
    bytes: usize,
    environment: Option<(&'static str, &'static str)>,
) -> Cell {
    let speed = Speed {
        program,
        suite,
        bytes,
        environment,
        most: MAX_RATE,
    };
    Cell::new(case, NAME, speed)
}

impl Timed for Speed {
    fn prepare(&mut self) -> Result<(), CellError> {
        let here = bulk_rate::<Yardstick>(self.suite).unwrap_or(f64::INFINITY);
        self.most = MAX_RATE.min(MOST_TIMES * here);
        Ok(())
    }

    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let seconds = window.as_secs_f64().round().max(1.0) as u64;
        let arguments = Program::arguments(self.suite, self.bytes, seconds);
        let patience = Duration::from_secs(seconds) + PATIENCE;
        run(&self.program.path, &arguments, self.environment, patience)
            .and_then(|ended| counted(&ended, seconds, self.bytes, self.most))
            .map_err(CellError::failed)
    }
}

#[cfg(test)]
#[path = "openssl_tests.rs"]
mod tests;
