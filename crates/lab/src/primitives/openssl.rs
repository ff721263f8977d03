//! `openssl speed` as a subject: a program of its own, which times itself.
//!
//! Always called with `-elapsed -aead`: without `-aead` it streams one endless message with neither nonce nor tag, and
//! without `-elapsed` it divides by user CPU time. It takes whole seconds only and seals with 13 bytes of AAD. Versions 3.0
//! set a new nonce but not a new key for each message; others may set the key again for every message, and then their
//! figure is key set-up and sealing together.
//!
//! It counts operations by the wall. So that a ratio to a subject inside this process compares like with like, a window
//! also has the CPU time of those operations: that of the program's whole life ([`Method::Wait`]), times the share of
//! its life in which it counted.
//!
//! [`Method::Wait`]: crate::measure::cpu::Method::Wait

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sealway_aead::Suite;

use crate::peer::{self, Ended, program};
use crate::result::{Case, Subject};
use crate::run::{Cell, CellError, Counted, Timed};

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

/// Runs the program to its end.
fn run<S: AsRef<std::ffi::OsStr>>(
    path: &Path,
    arguments: &[S],
    environment: Option<(&str, &str)>,
    patience: Duration,
) -> Result<Ended, String> {
    let mut command = Command::new(path);
    command.args(arguments).envs(environment);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    peer::run(&mut command, MAX_OUTPUT, patience).map_err(|error| error.to_string())
}

/// Bytes per second out of the machine-readable output of one size: the line `+F:index:NAME:bytes-per-second`.
///
/// # Errors
/// What is wrong with the output, for the reader.
fn parse_throughput(output: &str) -> Result<f64, String> {
    let Some(line) = output.lines().find(|line| line.starts_with("+F:")) else {
        let first: String = output.lines().next().unwrap_or_default().chars().take(100).collect();
        return Err(format!("its output has no line with a throughput: {first:?}"));
    };
    let word = line.rsplit(':').next().unwrap_or_default().trim();
    let named: String = word.chars().take(40).collect();
    match word.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= MAX_RATE => Ok(value),
        Ok(value) if value > MAX_RATE => Err(format!(
            "it claims {named:?} bytes per second; above {MAX_RATE:e} that is no measurement"
        )),
        _ => Err(format!("it gives {named:?} as its bytes per second")),
    }
}

/// What a window of `seconds` counted in messages of `bytes` bytes, from the output and the life of the program.
///
/// # Errors
/// What about the figures cannot be, for the reader.
fn counted(ended: &Ended, seconds: u64, bytes: usize) -> Result<Counted, String> {
    let rate = parse_throughput(&String::from_utf8_lossy(&ended.output))?;
    let wall_s = seconds as f64;
    let ops = (rate * wall_s / bytes.max(1) as f64).round() as u64;
    let (life, cpu) = (ended.wall.as_secs_f64(), ended.cpu.unwrap_or_default().as_secs_f64());
    if life < wall_s {
        return Err(format!(
            "it ended after {life:.3} s and claims to have counted for {wall_s} s"
        ));
    }
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
    if bytes as f64 / cpu_s > MAX_RATE {
        return Err(format!(
            "{bytes} bytes in {cpu_s:.3} s of CPU time are above {MAX_RATE:e} bytes per second, which is no measurement"
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
    };
    Cell::new(case, NAME, speed)
}

impl Timed for Speed {
    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let seconds = window.as_secs_f64().round().max(1.0) as u64;
        let arguments = Program::arguments(self.suite, self.bytes, seconds);
        let patience = Duration::from_secs(seconds) + PATIENCE;
        run(&self.program.path, &arguments, self.environment, patience)
            .and_then(|ended| counted(&ended, seconds, self.bytes))
            .map_err(CellError::failed)
    }
}

#[cfg(test)]
#[path = "openssl_tests.rs"]
mod tests;
