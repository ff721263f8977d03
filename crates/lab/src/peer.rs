//! Programs that the lab starts: each in a process group of its own, with bounds on its time and its output.
//!
//! The group keeps the terminal's Ctrl-C away from the program, so that an interruption of the lab is not mistaken for a
//! failure of the peer, and lets the lab end whatever the program has started. What has left its group on purpose
//! (`setsid`) is out of reach: the lab never waits for it.

mod group;
mod guard;
pub(crate) mod proc;
pub(crate) mod program;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::remote::Token;

pub(crate) use group::is_hurried;
pub use group::{end_all, hurry};
pub(crate) use guard::Folder;

/// How often a running program is looked at. Its output ends with it as a rule, which is noticed at once.
const STEP: Duration = Duration::from_millis(20);

/// How often it is looked at once its output has ended, or when it was killed: it has only to fall apart then.
const LAST_STEP: Duration = Duration::from_micros(500);

/// How long a killed program may take to be gone. It is longer only when the kernel itself is stuck.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// How long the output may take to end after the program and its group have. Longer only when someone left the group
/// and holds the pipe; all that the program itself has written is read by then.
const DRAIN_PATIENCE: Duration = Duration::from_millis(500);

/// What a program left behind that ended well.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Its standard output, at most as many bytes as were allowed.
    pub output: Vec<u8>,
    /// Wall time from its start to its end.
    pub wall: Duration,
    /// CPU time, user and system, of its whole life and of the children that it waited for: method
    /// [`Wait`](crate::measure::cpu::Method::Wait). `None` where the system does not tell.
    pub cpu: Option<Duration>,
}

/// Why a program gave no output to rely on. Nothing of its group runs any more, unless `Stuck` says so.
#[derive(Debug)]
#[non_exhaustive]
pub enum PeerError {
    /// It cannot be started: the file is not there, or is no program for this machine.
    Start {
        /// The program.
        program: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// The lab is on its way out, and starts nothing any more.
    Leaving,
    /// It did not end in time and was killed.
    Deadline {
        /// The time it had.
        patience: Duration,
    },
    /// It printed more than was allowed and was killed.
    TooMuchOutput {
        /// The bound in bytes.
        limit: usize,
    },
    /// It ended, and said that it failed, or was killed by someone else.
    Status {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: ExitStatus,
    },
    /// It was killed and is still there.
    Stuck,
    /// The system refused a call about it.
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's own error.
        source: io::Error,
    },
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerError::Start { program, source } => write!(f, "cannot start \"{}\": {source}", program.display()),
            PeerError::Leaving => f.write_str("not started, because the lab is leaving"),
            PeerError::Deadline { patience } => {
                write!(f, "it did not end within {} s and was stopped", patience.as_secs_f64())
            }
            PeerError::TooMuchOutput { limit } => write!(f, "it printed more than {limit} bytes and was stopped"),
            PeerError::Status { program, status } => write!(f, "\"{}\" ended with {status}", program.display()),
            PeerError::Stuck => f.write_str("it was killed and is still there; look for it with `ps`"),
            PeerError::System { doing, source } => write!(f, "cannot {doing}: {source}"),
        }
    }
}

impl std::error::Error for PeerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PeerError::Start { source, .. } | PeerError::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Runs a program to its end and returns what it printed to standard output, at most `max_output` bytes within
/// `patience`. Standard input and standard error of `command` are left as they are set; whatever the program leaves
/// running in its group is killed.
///
/// # Errors
/// [`PeerError`]; the program and its group have been ended then.
pub fn run(command: &mut Command, max_output: usize, patience: Duration) -> Result<Ended, PeerError> {
    Peer::start(command, max_output)?.wait(patience)
}

/// A running program with its group. Dropping it kills the group.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    program: PathBuf,
    started: Instant,
    max_output: usize,
    output: Arc<Mutex<Vec<u8>>>,
    reader: Receiver<Reading>,
    /// Its output has not ended yet.
    reading: bool,
    /// It is gone and its number may belong to another program.
    reaped: bool,
}

/// How the reading of the output ended.
#[derive(Debug)]
enum Reading {
    End,
    TooMuch,
    Failed(io::Error),
}

impl Peer {
    /// Starts `command` in a process group of its own, with its standard output read from now on up to `max_output`
    /// bytes.
    ///
    /// # Errors
    /// [`PeerError::Start`] when the system cannot start it, [`PeerError::Leaving`] after [`end_all`].
    pub fn start(command: &mut Command, max_output: usize) -> Result<Peer, PeerError> {
        let program = PathBuf::from(command.get_program());
        command.stdout(Stdio::piped()).env_remove(Token::VARIABLE);
        let started = Instant::now();
        let mut child = group::spawn(command, &program)?;
        let output = Arc::new(Mutex::new(Vec::new()));
        let (tell, reader) = channel();
        if let Some(stdout) = child.stdout.take() {
            let output = Arc::clone(&output);
            // The thread ends with the pipe. It is not joined: who holds the pipe open must not hold the lab.
            let thread = std::thread::Builder::new()
                .name("peer output".to_owned())
                .spawn(move || {
                    // The lab may no longer listen.
                    let _ = tell.send(read(stdout, max_output, &output));
                });
            if let Err(source) = thread {
                group::end(&mut child)?;
                return Err(PeerError::System {
                    doing: "start a thread for its output",
                    source,
                });
            }
        }
        Ok(Peer {
            child,
            program,
            started,
            max_output,
            output,
            reader,
            reading: true,
            reaped: false,
        })
    }

    /// The program's process number, which is also its group's.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to its standard output so far.
    pub fn output(&self) -> Vec<u8> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True once the program has ended.
    ///
    /// # Errors
    /// [`PeerError::System`] when the system does not say.
    pub fn has_ended(&mut self) -> Result<bool, PeerError> {
        if self.reaped {
            return Ok(true);
        }
        group::has_ended(&mut self.child)
    }

    /// Waits up to `moment` for the program's end, which it notices within a millisecond; true once it has ended.
    ///
    /// # Errors
    /// [`PeerError::TooMuchOutput`], after which nothing of the group runs any more, or [`PeerError::System`].
    pub fn ended_within(&mut self, moment: Duration) -> Result<bool, PeerError> {
        let until = Instant::now() + moment;
        loop {
            if self.has_ended()? {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if self.reading {
                self.reading = !self.output_ended(left)?;
            } else {
                std::thread::sleep(left.min(LAST_STEP));
            }
        }
    }

    /// Asks the group to end, as a user would with `kill`; [`Peer::wait`] says how it did.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the group: CPU time of the program's whole life and of the children that it waited for; `None` where the
    /// system does not tell.
    ///
    /// # Errors
    /// [`PeerError::Stuck`] or [`PeerError::System`].
    pub fn stop(mut self) -> Result<Option<Duration>, PeerError> {
        self.end().map(|(_, cpu)| cpu)
    }

    /// Holds the whole group until [`Peer::resume`]: it costs nothing but its memory.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets the group go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if !self.reaped {
            group::signal(self.id(), signal);
        }
    }

    /// Waits for the end of the program, and kills its group when that takes longer than `patience` from now.
    ///
    /// # Errors
    /// [`PeerError`]; nothing of the group runs any more then, unless it is `Stuck`.
    pub fn wait(mut self, patience: Duration) -> Result<Ended, PeerError> {
        let from = Instant::now();
        let mut reading = self.reading;
        while !group::has_ended(&mut self.child)? {
            let left = patience.saturating_sub(from.elapsed());
            if left.is_zero() {
                self.end()?;
                return Err(PeerError::Deadline { patience });
            }
            if reading {
                reading = !self.output_ended(left.min(STEP))?;
            } else {
                std::thread::sleep(left.min(LAST_STEP));
            }
        }
        let wall = self.started.elapsed();
        let (status, cpu) = self.end()?;
        let until = Instant::now() + DRAIN_PATIENCE;
        while reading && Instant::now() < until {
            reading = !self.output_ended(until.saturating_duration_since(Instant::now()))?;
        }
        if !status.success() {
            return Err(PeerError::Status {
                program: std::mem::take(&mut self.program),
                status,
            });
        }
        let output = std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Ended { output, wall, cpu })
    }

    /// Waits a moment for the end of the output; true if it has come.
    fn output_ended(&mut self, moment: Duration) -> Result<bool, PeerError> {
        let failure = match self.reader.recv_timeout(moment) {
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Ok(Reading::End) | Err(RecvTimeoutError::Disconnected) => return Ok(true),
            Ok(Reading::TooMuch) => PeerError::TooMuchOutput { limit: self.max_output },
            Ok(Reading::Failed(source)) => PeerError::System {
                doing: "read its output",
                source,
            },
        };
        self.end()?;
        Err(failure)
    }

    /// Kills the group and waits for the program: how it ended, and its CPU time.
    fn end(&mut self) -> Result<(ExitStatus, Option<Duration>), PeerError> {
        let ended = if self.reaped {
            self.child
                .wait()
                .map(|status| (status, None))
                .map_err(|source| PeerError::System {
                    doing: "wait for it",
                    source,
                })
        } else {
            group::end(&mut self.child)
        };
        // Also where it is stuck: to try again would only take as long again.
        self.reaped = true;
        ended
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if !self.reaped {
            // There is nobody to tell.
            let _ = self.end();
        }
    }
}

/// Reads up to `max` bytes into `output`, piece by piece so that nothing is lost when the end never comes.
fn read(mut stdout: ChildStdout, max: usize, output: &Mutex<Vec<u8>>) -> Reading {
    let mut buffer = [0; 4096];
    loop {
        let n = match stdout.read(&mut buffer) {
            Ok(0) => return Reading::End,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Reading::Failed(error),
        };
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.len() + n > max {
            return Reading::TooMuch;
        }
        output.extend_from_slice(&buffer[..n]);
    }
}
