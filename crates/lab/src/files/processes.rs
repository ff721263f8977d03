//! The programs of one transfer: started together, watched, timed to the receiver's end.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::link::Relay;
use crate::peer::proc;
use crate::peer::{self, Peer, PeerError};
use crate::run::CellError;

/// How long a program may take until it listens.
const READY: Duration = Duration::from_secs(30);

/// How long a program may take to end after the receiver has, or after it was asked to.
const LEAVE: Duration = Duration::from_secs(30);

/// The same when something has failed.
const DROP_PATIENCE: Duration = Duration::from_secs(5);

/// How often programs are looked at: their memory is read then.
const STEP: Duration = Duration::from_millis(20);

/// The same while the first byte is waited for, or a program that starts.
const SHORT_STEP: Duration = Duration::from_micros(500);

/// Most bytes of standard output that are taken.
const MAX_OUTPUT: usize = 1 << 20;

/// Lines and bytes of a program's last words.
const LAST_LINES: usize = 4;
const LAST_BYTES: usize = 1000;

/// What a program does for a transfer. Several can share a role: their costs are added.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Role {
    /// Has the files.
    Sender,
    /// Gets them.
    Receiver,
    /// Stands between, or brings the two together.
    Relay,
}

impl Role {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Role::Sender => "sender",
            Role::Receiver => "receiver",
            Role::Relay => "relay",
        }
    }
}

/// How a program ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ends {
    /// By itself, with the exit code 0.
    Alone,
    /// When it is asked to (`SIGTERM`), with any exit code; its cost is read before ([`Processes::hold_costs`]).
    Asked,
    /// Never; it is killed.
    Never,
}

/// Ends a transfer took, and its costs.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved {
    /// From the start of the first command of the transfer to the end of the receiver.
    pub(super) wall: Duration,
    /// From the same start until the first byte stood at the receiver, where that was looked for.
    pub(super) first: Option<Duration>,
    /// CPU time of each role.
    pub(super) cpu: BTreeMap<Role, Duration>,
    /// Peak of resident memory of each role, bytes.
    pub(super) memory: BTreeMap<Role, u64>,
    /// Operations and bytes, where they are not those of the whole source.
    pub(super) read: Option<(u64, u64)>,
}

struct Member {
    role: Role,
    ends: Ends,
    /// `None` once it was waited for.
    peer: Option<Peer>,
    errors: PathBuf,
    /// CPU time before the clock started, which does not count.
    before: Duration,
    /// What it had cost when that was last to count.
    counted: Option<Duration>,
    peak: u64,
}

impl Member {
    /// CPU time so far.
    fn cpu(&self) -> Option<Duration> {
        self.peer.as_ref().and_then(|peer| proc::cpu(peer.id()))
    }
}

/// Programs that run. Dropping it kills them.
pub(super) struct Processes<'a> {
    /// Private folder of this transfer.
    folder: &'a Path,
    members: Vec<Member>,
    cpu: BTreeMap<Role, Duration>,
    patience: Duration,
    /// The link that some of them speak over.
    relay: Option<Relay>,
}

impl<'a> Processes<'a> {
    /// Nobody yet. A transfer of `bytes` may take `patience` at most.
    pub(super) fn new(folder: &'a Path, patience: Duration) -> Processes<'a> {
        Processes {
            folder,
            members: Vec::new(),
            cpu: BTreeMap::new(),
            patience,
            relay: None,
        }
    }

    /// Keeps a link for as long as the processes; where it is reached.
    pub(super) fn keep(&mut self, relay: Relay) -> SocketAddr {
        self.relay.insert(relay).address()
    }

    /// Starts a program; its place in the processes.
    pub(super) fn start(&mut self, role: Role, ends: Ends, command: &mut Command) -> Result<usize, CellError> {
        let place = self.members.len();
        let errors = self.folder.join(format!("{}-{place}.log", role.name()));
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&errors)
            .map_err(|error| failed("make a log", &error))?;
        command.stdin(Stdio::null()).stderr(log).current_dir(self.folder);
        let peer = Peer::start(command, MAX_OUTPUT)
            .map_err(|error| CellError::failed(format_args!("the {} does not start: {error}", role.name())))?;
        self.members.push(Member {
            role,
            ends,
            peer: Some(peer),
            errors,
            before: Duration::ZERO,
            counted: None,
            peak: 0,
        });
        Ok(place)
    }

    /// Waits until `ready` has an answer about a program.
    fn until<T>(&mut self, place: usize, ready: impl Fn(u32, &Peer) -> Option<T>) -> Result<T, CellError> {
        let until = Instant::now() + READY;
        loop {
            let Some(peer) = self.members.get_mut(place).and_then(|member| member.peer.as_mut()) else {
                return Err(failed("watch a program", &"it was waited for"));
            };
            if let Some(answer) = ready(peer.id(), peer) {
                return Ok(answer);
            }
            let ended = peer.ended_within(SHORT_STEP).map_err(unwatched)?;
            if peer::is_hurried() {
                return Err(failed("wait for a program", &PeerError::Leaving));
            }
            if ended || Instant::now() >= until {
                let what = if ended {
                    "ended before it was ready"
                } else {
                    "was not ready in time"
                };
                return Err(self.complain(&format!("the {} {what}", self.members[place].role.name())));
            }
        }
    }

    /// Waits until a program listens at `port`, by its own sockets or those of a child.
    pub(super) fn listening(&mut self, place: usize, port: u16) -> Result<(), CellError> {
        self.until(place, |pid, _| {
            proc::family(pid)
                .into_iter()
                .any(|pid| proc::listens(pid, port))
                .then_some(())
        })
    }

    /// Waits until a program has a connection to `port` of this machine.
    pub(super) fn connected(&mut self, place: usize, port: u16) -> Result<(), CellError> {
        self.until(place, |pid, _| proc::connected(pid, port).then_some(()))
    }

    /// Waits until something is mounted at `path`.
    pub(super) fn mounted(&mut self, place: usize, path: &Path) -> Result<(), CellError> {
        self.until(place, |_, _| is_mounted(path).then_some(()))
    }

    /// Waits for the address that a program prints as `listening ADDRESS`.
    pub(super) fn told(&mut self, place: usize) -> Result<SocketAddr, CellError> {
        self.until(place, |_, peer| {
            let said = peer.output();
            let text = String::from_utf8_lossy(&said);
            // Only a whole line: half an address may be one too.
            let (line, _) = text.split_once('\n')?;
            line.strip_prefix("listening ")?.trim().parse().ok()
        })
    }

    /// The clock starts: what the programs have cost so far is theirs.
    pub(super) fn clock(&mut self) -> Instant {
        for member in &mut self.members {
            member.before = member.cpu().unwrap_or_default();
        }
        Instant::now()
    }

    /// Waits for the end of the program at `place`, watching all, and for the first byte below `watched` if that is given.
    pub(super) fn finish(mut self, started: Instant, place: usize, watched: Option<&Path>) -> Result<Moved, CellError> {
        let mut first = None;
        loop {
            self.watch()?;
            if first.is_none() && watched.is_some_and(has_a_byte) {
                first = Some(started.elapsed());
            }
            let step = if watched.is_some() && first.is_none() {
                SHORT_STEP
            } else {
                STEP
            };
            // Where there is nobody left to wait for, the look at all has seen its end.
            let Some(peer) = self.members.get_mut(place).and_then(|member| member.peer.as_mut()) else {
                break;
            };
            if peer.ended_within(step).map_err(unwatched)? {
                break;
            }
            if started.elapsed() >= self.patience {
                return Err(self.complain(&format!("it was not done within {} s", self.patience.as_secs())));
            }
        }
        let wall = started.elapsed();
        if first.is_none() && watched.is_some_and(has_a_byte) {
            first = Some(wall);
        }
        self.end(place)?;
        let mut moved = self.dismiss()?;
        moved.wall = wall;
        moved.first = first;
        Ok(moved)
    }

    /// Ends everybody: those that end alone must have, or do so soon. Times are the caller's to fill in.
    pub(super) fn dismiss(mut self) -> Result<Moved, CellError> {
        // Whoever is asked to end goes first to last: a mount before what it is connected to.
        for ends in [Ends::Alone, Ends::Asked, Ends::Never] {
            for place in (0..self.members.len()).rev() {
                if self.members[place].ends == ends {
                    self.end(place)?;
                }
            }
        }
        let mut memory = BTreeMap::new();
        for member in &self.members {
            *memory.entry(member.role).or_insert(0) += member.peak;
        }
        Ok(Moved {
            cpu: std::mem::take(&mut self.cpu),
            memory,
            ..Moved::default()
        })
    }

    /// What the programs cost from now on does not count: for those that run on while the lab checks.
    pub(super) fn hold_costs(&mut self) {
        for member in &mut self.members {
            member.counted = member.cpu().map(|now| now.saturating_sub(member.before));
        }
    }

    /// Reads memory, and notices who failed.
    pub(super) fn watch(&mut self) -> Result<(), CellError> {
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            let Some(peer) = &mut member.peer else { continue };
            if let Some(memory) = proc::memory(peer.id()) {
                member.peak = member.peak.max(memory.peak);
            }
            let ended = peer.has_ended().map_err(unwatched)?;
            if ended && member.ends != Ends::Alone {
                return Err(self.complain(&format!("the {} is gone", self.members[place].role.name())));
            }
            if ended {
                // With a failure there is no use in waiting for the others.
                self.end(place)?;
            }
        }
        Ok(())
    }

    /// Waits for one program and counts its cost.
    fn end(&mut self, place: usize) -> Result<(), CellError> {
        let member = &mut self.members[place];
        let (role, before, counted) = (member.role, member.before, member.counted);
        let Some(peer) = member.peer.take() else { return Ok(()) };
        let ended: Result<Option<Duration>, PeerError> = match member.ends {
            Ends::Alone => peer.wait(LEAVE).map(|ended| ended.cpu),
            Ends::Asked => {
                peer.terminate();
                match peer.wait(LEAVE) {
                    // Some programs say with their exit code that they were asked to end.
                    Err(PeerError::Status { .. }) => Ok(None),
                    ended => ended.map(|ended| ended.cpu),
                }
            }
            Ends::Never => {
                // Children that do the work must have been waited for, or their cost is lost.
                let until = Instant::now() + Duration::from_secs(2);
                while proc::family(peer.id()).len() > 1 && Instant::now() < until {
                    std::thread::sleep(SHORT_STEP);
                }
                peer.stop()
            }
        };
        match ended {
            Ok(cpu) => {
                if let Some(cpu) = counted.or(cpu.map(|cpu| cpu.saturating_sub(before))) {
                    *self.cpu.entry(role).or_default() += cpu;
                }
                Ok(())
            }
            Err(error) => Err(self.complain(&format!("the {}: {error}", role.name()))),
        }
    }

    /// An error with everybody's last words.
    fn complain(&self, what: &str) -> CellError {
        let mut what = what.to_owned();
        for member in &self.members {
            let words = proc::tail(
                &std::fs::read(&member.errors).unwrap_or_default(),
                LAST_LINES,
                LAST_BYTES,
            );
            if !words.is_empty() {
                what.push_str(&format!("; the {} said: {words}", member.role.name()));
            }
        }
        CellError::Failed { what }
    }
}

impl Drop for Processes<'_> {
    /// A mount that is killed stays behind: those that end when asked are asked here too.
    fn drop(&mut self) {
        for member in self
            .members
            .iter_mut()
            .rev()
            .filter(|member| member.ends == Ends::Asked)
        {
            if let Some(mut peer) = member.peer.take() {
                peer.terminate();
                // After that it is killed.
                let _ = peer.ended_within(DROP_PATIENCE);
            }
        }
    }
}

fn failed(doing: &str, why: &dyn std::fmt::Display) -> CellError {
    CellError::failed(format_args!("cannot {doing}: {why}"))
}

fn unwatched(error: PeerError) -> CellError {
    failed("watch a program", &error)
}

/// As an error of a cell.
pub(super) fn system(doing: &'static str) -> impl Fn(io::Error) -> CellError {
    move |error| failed(doing, &error)
}

/// Ports of 127.0.0.1 at which nobody listens, all different.
pub(super) fn free_ports<const N: usize>() -> Result<[u16; N], CellError> {
    sealway_net::ports::free().map_err(system("find a free port"))
}

/// Writes a file that nobody else may read.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CellError> {
    proc::write(path, text).map_err(system("write a configuration"))
}

/// True if something is mounted at `path`, whose name must have no character that the system's table escapes.
pub(super) fn is_mounted(path: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let at = |line: &str| line.split(' ').nth(1).map(Path::new) == Some(path);
    table.lines().any(at)
}

/// True once any file below `folder` has a byte.
fn has_a_byte(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    entries.filter_map(Result::ok).any(|entry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => has_a_byte(&entry.path()),
        Ok(facts) => facts.len() > 0,
        Err(_) => File::open(entry.path()).is_ok_and(|file| file.metadata().is_ok_and(|facts| facts.len() > 0)),
    })
}
