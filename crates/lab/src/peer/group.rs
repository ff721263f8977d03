//! Process groups: starting, watching and ending them, and the list of all that run.
//!
//! The number of a group is that of the program that leads it. It may be used only until that program is waited for: then
//! the system may give it to another. So the list is locked while a group is started, killed and waited for.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::{KILL_PATIENCE, LAST_STEP, PeerError, guard};

/// The groups that run.
#[derive(Debug, Default)]
struct Running {
    groups: BTreeSet<u32>,
    /// Nothing is started any more.
    leaving: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    groups: BTreeSet::new(),
    leaving: false,
});

fn running() -> MutexGuard<'static, Running> {
    // The list is whole after every statement that changes it.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every group that runs and starts none from now on: for a process that is about to exit without unwinding, as at
/// a second Ctrl-C.
pub fn end_all() {
    let mut running = running();
    running.leaving = true;
    for &group in &running.groups {
        signal(group, Signal::KILL);
    }
}

/// Nobody waits any more for a program to be ready.
static HURRIED: AtomicBool = AtomicBool::new(false);

/// From now on nobody waits for a program to be ready: for the first Ctrl-C. What is being measured is finished.
pub fn hurry() {
    HURRIED.store(true, Ordering::Relaxed);
}

/// True after [`hurry`].
pub(crate) fn is_hurried() -> bool {
    HURRIED.load(Ordering::Relaxed)
}

/// Starts a program as the leader of a new group.
pub(super) fn spawn(command: &mut Command, program: &Path) -> Result<Child, PeerError> {
    command.process_group(0);
    let mut running = running();
    if running.leaving {
        return Err(PeerError::Leaving);
    }
    let child = command.spawn().map_err(|source| PeerError::Start {
        program: program.to_owned(),
        source,
    })?;
    running.groups.insert(child.id());
    guard::group_begins(child.id());
    Ok(child)
}

/// True once the program has ended. It stays to be waited for.
pub(super) fn has_ended(child: &mut Child) -> Result<bool, PeerError> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), look) {
        Ok(ended) => Ok(ended.is_some()),
        Err(error) => Err(waiting(error.into())),
    }
}

fn waiting(source: io::Error) -> PeerError {
    PeerError::System {
        doing: "wait for it",
        source,
    }
}

/// Kills the group and waits for its leader, for a bounded time: how it ended, and its CPU time.
pub(super) fn end(child: &mut Child) -> Result<(ExitStatus, Option<Duration>), PeerError> {
    let id = child.id();
    signal(id, Signal::KILL);
    let patience = Instant::now() + KILL_PATIENCE;
    while !has_ended(child)? {
        if Instant::now() >= patience {
            // It stays on the list, since its number stays its own: it can be killed again on the way out.
            return Err(PeerError::Stuck);
        }
        // Where a group cannot be killed, its leader can.
        let _ = child.kill();
        std::thread::sleep(LAST_STEP);
    }
    let mut running = running();
    // Children that were waited for so far and those after: what is between is this one's, since all are waited for
    // under this lock.
    let before = children_cpu();
    let status = child.wait().map_err(waiting)?;
    let cpu = children_cpu()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before));
    running.groups.remove(&id);
    guard::group_ends(id);
    Ok((status, cpu))
}

/// The number of a process or a group. 1 as a group would mean everyone.
fn pid(number: u32) -> Option<Pid> {
    let number = i32::try_from(number).ok().filter(|number| *number > 1);
    number.and_then(Pid::from_raw)
}

/// Sends a signal to a group whose leader was not waited for yet; one that is gone already is as good as killed.
pub(super) fn signal(group: u32, signal: Signal) {
    if let Some(group) = pid(group) {
        let _ = kill_process_group(group, signal);
    }
}

/// CPU time of all children that were waited for.
fn children_cpu() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let time = |value: nix::sys::time::TimeVal| {
        let micros = u64::try_from(value.tv_usec()).ok()?;
        Some(Duration::from_secs(u64::try_from(value.tv_sec()).ok()?) + Duration::from_micros(micros))
    };
    Some(time(usage.user_time())? + time(usage.system_time())?)
}
