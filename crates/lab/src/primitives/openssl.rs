//! `openssl speed` as a subject: a program of its own, which times itself.
//!
//! Always called with `-elapsed -aead`: without `-aead` it streams one endless message with neither nonce nor tag, and
//! without `-elapsed` it divides by user CPU time. It takes whole seconds only, seals with 13 bytes of AAD, and sets a new
//! nonce but not a new key for each message.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sealway_aead::Suite;
use sha2::{Digest, Sha256};

use crate::result::{Case, Subject};
use crate::run::{Cell, CellError, Counted};

/// The subject's name.
pub(super) const NAME: &str = "openssl";

/// AAD bytes that `openssl speed -aead` uses.
pub(super) const AAD: usize = 13;

/// The shortest window it can do, its start included.
pub(super) const SHORTEST: Duration = Duration::from_millis(1020);

/// How long the program may take beyond the window it was given.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most bytes of output that are read.
const MAX_OUTPUT: u64 = 64 * 1024;

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
        let path = std::env::var_os("PATH")
            .iter()
            .flat_map(std::env::split_paths)
            .map(|folder| folder.join(NAME))
            .find(|path| path.is_file())
            .ok_or("not found on PATH; install the package openssl to compare with it")?;
        let text = run(&path, &["version"], None, PATIENCE)?;
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        if !version.starts_with("OpenSSL ") {
            return Err(format!(
                "\"{}\" does not call itself OpenSSL; only OpenSSL's speed is understood",
                path.display()
            ));
        }
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
            sha256: sha256_of(&self.path).unwrap_or_default(),
            role_argv: BTreeMap::from([("speed".to_owned(), argv)]),
            setup: "matched".to_owned(),
            differs: vec![
                "times itself by the wall, in whole seconds".to_owned(),
                "its outputs are not compared with the oracle".to_owned(),
            ],
            error: String::new(),
        }
    }

    /// The argument list for one window.
    pub(super) fn arguments(suite: Suite, bytes: usize, seconds: u64) -> Vec<String> {
        [
            "speed",
            "-elapsed",
            "-seconds",
            &seconds.to_string(),
            "-evp",
            suite.name(),
            "-aead",
        ]
        .into_iter()
        .chain(["-bytes", &bytes.to_string(), "-mr"])
        .map(str::to_owned)
        .collect()
    }
}

/// SHA-256 of a file, lower-case hex.
fn sha256_of(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// True if `openssl speed` has the suite.
pub(super) fn has(suite: Suite) -> bool {
    suite != Suite::XChaCha20Poly1305
}

/// Runs the program and returns what it printed.
fn run<S: AsRef<std::ffi::OsStr>>(
    path: &Path,
    arguments: &[S],
    environment: Option<(&str, &str)>,
    patience: Duration,
) -> Result<String, String> {
    let mut child = Command::new(path)
        .args(arguments)
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start \"{}\": {error}", path.display()))?;
    let status = wait(&mut child, patience)?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // It has ended, so what it printed is in the pipe, which holds less than the bound.
        stdout
            .take(MAX_OUTPUT)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot read its output: {error}"))?;
    }
    if !status.success() {
        return Err(format!("\"{}\" ended with {status}", path.display()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Waits for the child, and kills it when it takes too long.
fn wait(child: &mut Child, patience: Duration) -> Result<std::process::ExitStatus, String> {
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let killed = child.kill().and_then(|()| child.wait());
                return Err(match killed {
                    Ok(_) => format!("it did not end within {} s and was stopped", patience.as_secs()),
                    Err(error) => format!("it did not end and cannot be stopped: {error}"),
                });
            }
            Err(error) => return Err(format!("cannot wait for it: {error}")),
        }
    }
}

/// Bytes per second out of the machine-readable output of one size: the line `+F:index:NAME:bytes-per-second`.
pub(super) fn parse_throughput(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.starts_with("+F:"))?;
    let value: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    (value.is_finite() && value > 0.0).then_some(value)
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
pub(super) struct OpensslCell {
    case: Case,
    program: Program,
    suite: Suite,
    bytes: usize,
    environment: Option<(&'static str, &'static str)>,
}

impl OpensslCell {
    pub(super) fn new(
        case: Case,
        program: Program,
        suite: Suite,
        bytes: usize,
        environment: Option<(&'static str, &'static str)>,
    ) -> Self {
        OpensslCell {
            case,
            program,
            suite,
            bytes,
            environment,
        }
    }
}

impl Cell for OpensslCell {
    fn case(&self) -> &Case {
        &self.case
    }

    fn subject(&self) -> &str {
        NAME
    }

    fn prepare(&mut self) -> Result<(), CellError> {
        Ok(())
    }

    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let seconds = window.as_secs_f64().round().max(1.0) as u64;
        let arguments = Program::arguments(self.suite, self.bytes, seconds);
        let patience = Duration::from_secs(seconds) + PATIENCE;
        let output = run(&self.program.path, &arguments, self.environment, patience)
            .map_err(|what| CellError::Failed { what })?;
        let rate = parse_throughput(&output).ok_or_else(|| CellError::Failed {
            what: format!(
                "its output has no line with a throughput: {:?}",
                output.lines().next().unwrap_or_default()
            ),
        })?;
        let bytes = rate * seconds as f64;
        let ops = (bytes / self.bytes as f64).round();
        // It reports a rate over whole seconds; its own CPU time is that long as well, since it never waits.
        Ok(Counted {
            ops: ops as u64,
            bytes: ops as u64 * self.bytes as u64,
            wall_s: seconds as f64,
            cpu_s: seconds as f64,
            figures: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_real_run() {
        let text =
            "+DT:AES-128-GCM:1:1420\n+R:1500577:AES-128-GCM:1.000000\n+H:1420\n+F:25:AES-128-GCM:2130819340.00\n";
        assert_eq!(parse_throughput(text), Some(2_130_819_340.0));
    }

    #[test]
    fn other_output_is_no_figure() {
        for text in [
            "",
            "+F:",
            "+F:25:X:",
            "+F:25:X:nan",
            "+F:25:X:-1",
            "+F:25:X:0",
            "+R:1:X:2",
            "+F:25:X:1e999",
        ] {
            assert_eq!(parse_throughput(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_program_that_hangs_is_stopped_and_one_that_fails_is_an_error() {
        let Some(sleep) = ["/bin/sleep", "/usr/bin/sleep"]
            .iter()
            .map(Path::new)
            .find(|path| path.is_file())
        else {
            println!("skipped: no sleep program here");
            return;
        };
        let text = run(sleep, &["60"], None, Duration::from_millis(20)).unwrap_err();
        assert!(text.contains("was stopped"), "{text}");
        assert!(
            run(sleep, &["not-a-number"], None, PATIENCE)
                .unwrap_err()
                .contains("ended with")
        );
        assert!(
            run(Path::new("/no/such/program"), &[] as &[&str], None, PATIENCE)
                .unwrap_err()
                .contains("cannot start")
        );
    }
}
