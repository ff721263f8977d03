//! What this process remembers of headers: one memory for all inbounds of all servers, whatever becomes of their
//! configurations.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use sealway_tls::reality::memory::Memory as Hellos;
use sealway_v2ray::replay::{ReplayGuard, Seen};

use crate::clock::{to_next_second, unix_time, unix_time_before};

/// Hellos of REALITY that were accepted.
static HELLOS: LazyLock<Mutex<Hellos>> = LazyLock::new(Mutex::default);

struct Memory {
    guard: Mutex<ReplayGuard>,
    /// Nothing was accepted before, at least not by this process.
    since: Instant,
}

static MEMORY: LazyLock<Memory> = LazyLock::new(|| Memory {
    guard: Mutex::default(),
    since: Instant::now(),
});

/// The second in which the memory began, by the system's clock as it is set now: one that was set right after the start
/// refuses nobody for as long as it was wrong.
fn start() -> i64 {
    unix_time_before(MEMORY.since.elapsed())
}

/// Begins to remember, and waits until the second in which it began is over.
///
/// Ids are made to the second: those of this second may have been used before, and are refused. Who comes after this has
/// been waited for can have no such id, unless their clock is behind.
pub(crate) async fn begin() {
    let begun = start();
    // A clock that is set back meanwhile is not waited for.
    for _ in 0..2 {
        if unix_time() > begun {
            return;
        }
        tokio::time::sleep(to_next_second()).await;
    }
}

/// Remembers what a header brought.
///
/// # Errors
/// What [`ReplayGuard::insert`] refuses.
pub(crate) fn remember(seen: Seen, now: i64) -> Result<(), sealway_v2ray::Error> {
    // Read before the lock is taken, for the memory begins when it is asked for first.
    let start = start();
    let mut guard = MEMORY.guard.lock().unwrap_or_else(PoisonError::into_inner);
    guard.insert(seen, now, start)
}

/// Refuses what was made before the memory began: a process before this one may have accepted it.
///
/// # Errors
/// [`sealway_v2ray::Error::BeforeStart`].
pub(crate) fn check_start(time: i64) -> Result<(), sealway_v2ray::Error> {
    let start = start();
    if time > start {
        return Ok(());
    }
    Err(sealway_v2ray::Error::BeforeStart {
        seconds: start.abs_diff(time),
    })
}

/// Remembers a hello of REALITY by its random. False: it was accepted before.
pub(crate) fn remember_hello(random: &[u8; 32]) -> bool {
    let now = MEMORY.since.elapsed().as_secs();
    let mut hellos = HELLOS.lock().unwrap_or_else(PoisonError::into_inner);
    let shortened = hellos.shortened();
    let fresh = hellos.insert(random, now);
    if hellos.shortened() > shortened {
        tracing::warn!("REALITY: more clients came in a day than are remembered; the oldest are forgotten");
    }
    fresh
}
