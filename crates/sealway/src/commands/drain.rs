//! `sealway drain`.
//!
//! A process is held by a descriptor before anybody looks what it is, so that it cannot be mistaken for another one that has got its
//! number since. A file with a number in it would outlive the process, and a command over a socket would let whoever reads
//! numbers there end the server.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use crate::args::{Drain, of_xray, with_two_dashes};
use crate::exit::Exit;
use crate::problem::{Problem, note};

/// What the kernel puts behind the name of a program whose file was replaced.
const REPLACED: &str = " (deleted)";

pub(crate) fn run(options: &Drain) -> Result<Exit, Problem> {
    let server = match (options.pid, &options.socket) {
        (Some(pid), _) => Process::hold(pid).and_then(Process::checked)?,
        (None, Some(path)) => at_socket(path)?,
        (None, None) => the_only_one()?,
    };
    server.signal()?;
    if options.wait == Some(Duration::ZERO) {
        return Ok(Exit::Done);
    }
    note(format_args!("process {} was told to end; waiting for it", server.pid));
    match server.ended(options.wait)? {
        true => Ok(Exit::Done),
        false => Err(Problem::new(
            Exit::Remote,
            format_args!("process {} goes on", server.pid),
        )),
    }
}

/// A process, which stays the same one.
struct Process {
    pid: i32,
    held: OwnedFd,
}

impl Process {
    fn hold(pid: i32) -> Result<Process, Problem> {
        let held = Pid::from_raw(pid)
            .ok_or(Errno::SRCH)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        match held {
            Ok(held) => Ok(Process { pid, held }),
            Err(Errno::SRCH | Errno::INVAL) => Err(Problem::usage(format_args!("there is no process {pid}"))),
            Err(error) => Err(Problem::new(Exit::Internal, format_args!("process {pid}: {error}"))),
        }
    }

    /// The same, if it is a proxy of this program.
    fn checked(self) -> Result<Process, Problem> {
        match is_proxy(self.pid) {
            Ok(true) => Ok(self),
            Ok(false) => Err(Problem::usage(format_args!(
                "process {} is no `sealway run` of this program",
                self.pid
            ))),
            Err(error) => {
                let problem = Problem::usage(format_args!("it cannot be seen what process {} is: {error}", self.pid));
                Err(problem.hint("run this as its user or as root"))
            }
        }
    }

    fn signal(&self) -> Result<(), Problem> {
        match pidfd_send_signal(&self.held, Signal::TERM) {
            // It has ended by itself.
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(Problem::usage(format_args!(
                "process {} cannot be told to end: {error}",
                self.pid
            ))),
        }
    }

    /// Waits for its end; false if it goes on after this time.
    fn ended(&self, within: Option<Duration>) -> Result<bool, Problem> {
        let end = within.map(|within| Instant::now() + within);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.held, PollFlags::IN)], left.as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Problem::new(Exit::Internal, format_args!("cannot wait: {error}"))),
            }
        }
    }
}

/// Whoever listens at a unix socket.
fn at_socket(path: &Path) -> Result<Process, Problem> {
    let name = path.display();
    let stream =
        UnixStream::connect(path).map_err(|error| Problem::usage(format_args!("nobody answers at {name}: {error}")))?;
    let who = getsockopt(&stream, PeerCredentials)
        .map_err(|error| Problem::usage(format_args!("{name} does not say who listens: {error}")))?;
    match who.pid() {
        // It is not in the namespace of this one, nor in one inside of that.
        0 => Err(
            Problem::usage(format_args!("whoever listens at {name} has no number here"))
                .hint("run this where the server runs: in its container, or on its host"),
        ),
        pid => Process::hold(pid)?.checked(),
    }
}

/// The one proxy of this program that can be seen here.
fn the_only_one() -> Result<Process, Problem> {
    let all = fs::read_dir("/proc").map_err(|error| Problem::new(Exit::Internal, format_args!("/proc: {error}")))?;
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let others = numbers.filter(|pid| *pid != getpid().as_raw_nonzero().get());
    // What cannot be looked at is somebody else's.
    let held = others.filter_map(|pid| Process::hold(pid).ok());
    let is_meant = |process: &Process| Ok::<_, io::Error>(is_proxy(process.pid)? && is_beside_us(process.pid)?);
    let mut found: Vec<Process> = held.filter(|process| is_meant(process).unwrap_or(false)).collect();
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(Problem::usage("no `sealway run` of this program is to be seen")
            .hint("say which process is meant with --pid")),
        (Some(last), _) => {
            let mut pids: Vec<i32> = found.iter().chain([&last]).map(|process| process.pid).collect();
            pids.sort_unstable();
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            let problem = Problem::usage(format_args!("there are several: processes {}", pids.join(", ")));
            Err(problem.hint("say which one is meant with --pid"))
        }
    }
}

/// True if a process is not in a container while we are outside: that has processes of its own. (Its files it has too, but so does
/// a service of systemd.)
fn is_beside_us(pid: i32) -> io::Result<bool> {
    Ok(fs::read_link(format!("/proc/{pid}/ns/pid"))? == fs::read_link("/proc/self/ns/pid")?)
}

/// True if a process is this program, in this version or another, and runs the proxy.
fn is_proxy(pid: i32) -> io::Result<bool> {
    let of = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    let (theirs, ours) = (fs::read_link(of("exe"))?, fs::read_link("/proc/self/exe")?);
    if bare(&theirs) != bare(&ours) {
        return Ok(false);
    }
    Ok(runs(&fs::read(of("cmdline"))?))
}

/// The path of a program, whether or not its file was replaced since.
fn bare(path: &Path) -> &[u8] {
    let path = path.as_os_str().as_bytes();
    path.strip_suffix(REPLACED.as_bytes()).unwrap_or(path)
}

/// True if arguments as the system tells them, each with a zero behind it, are those of `run`.
fn runs(cmdline: &[u8]) -> bool {
    let words = cmdline.strip_suffix(b"\0").unwrap_or(cmdline).split(|byte| *byte == 0);
    let words: Vec<OsString> = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
    let words = match of_xray(words.iter().cloned()) {
        // Xray without a word serves.
        Some(rest) if rest.is_empty() => return true,
        Some(rest) => [OsString::new()].into_iter().chain(rest).collect(),
        None => words,
    };
    let words = with_two_dashes(words.into_iter());
    words.get(1).is_some_and(|word| word == "run") && !words.iter().any(|word| word == "--test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_proxy_is_drained() {
        for (cmdline, is) in [
            ("sealway\0run\0-c\0a.json\0", true),
            ("/usr/bin/sealway\0-config\0a.json\0", true),
            ("sealway\0run\0", true),
            ("sealway\0run\0-test\0", false),
            ("sealway\0send\0file\0", false),
            ("sealway\0drain\0", false),
            ("sealway\0", false),
            ("/usr/local/bin/xray\0", true),
            ("xray\0-c\0a.json\0", true),
            ("xray\0version\0", false),
            ("sealway\0--compat\0xray\0run\0-c\0a.json\0", true),
            ("sealway\0--compat\0xray\0uuid\0", false),
            ("", false),
        ] {
            assert_eq!(runs(cmdline.as_bytes()), is, "{cmdline:?}");
        }
        assert_eq!(bare(Path::new("/usr/bin/sealway (deleted)")), b"/usr/bin/sealway");
    }

    #[test]
    fn this_test_is_no_proxy_and_a_process_that_is_gone_is_none() {
        let own = getpid().as_raw_nonzero().get();
        let refused = Process::hold(own).and_then(Process::checked).err().unwrap();
        assert_eq!(refused.exit(), Exit::Usage);
        assert!(
            refused.message().contains("is no `sealway run`"),
            "{}",
            refused.message()
        );
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id().try_into().unwrap();
        child.wait().unwrap();
        assert!(
            Process::hold(gone)
                .err()
                .unwrap()
                .message()
                .contains("there is no process")
        );
    }
}
