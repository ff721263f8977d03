//! Programs that do not outlive their test.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, ran};

/// A program, killed when it is dropped.
pub struct Program(pub Child);

impl Program {
    pub fn start(command: &mut Command) -> Program {
        Program(command.spawn().unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// How it ends, which it does soon.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        ended(&mut self.0, PATIENCE).expect("it goes on")
    }

    pub fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Deref for Program {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a program ends, `None` if it goes on after this time.
pub fn ended(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + within;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            _ if Instant::now() >= until => return None,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Whether a process with this number is there, and has not ended.
pub fn exists(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with(['Z', 'X']))
}

/// Writes a program. Another process does it: a file that is open for writing anywhere cannot be started.
pub fn write_program(folder: &Path, name: &str, text: &str) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"]);
    ran(shell.arg(folder.join(name)).arg(text)).says(0, &[]);
}
