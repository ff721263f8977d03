//! A stream with nothing between its ends, for whoever measures the generator itself.

use std::time::{Duration, Instant};

use super::traffic::{self, Direction, Order, Sink, Traffic};
use crate::measure::clock::process_cpu;
use crate::measure::place::{End, hold};
use crate::run::CellError;

/// Bytes of a write, and of a read at most.
pub(crate) const PIECE: usize = traffic::PIECE;

/// What the receiver was given in the timed part, and what that took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) bytes: u64,
    /// Seconds.
    pub(crate) wall_s: f64,
    /// CPU seconds of this process, in which both ends are.
    pub(crate) cpu_s: f64,
}

/// Moves bytes from a generator to a sink for `window`, from when the first have arrived, each on a CPU of its own. Every byte is
/// compared, as in a window of the workload.
///
/// # Errors
/// [`CellError`] when a byte is wrong, or the system does not give what it takes.
pub(crate) fn bare(window: Duration) -> Result<Moved, CellError> {
    let server = hold(End::Server);
    let sink = Sink::open().map_err(|error| CellError::failed(format_args!("cannot listen: {error}")))?;
    drop(server);
    let order = Order {
        must_end: true,
        ..Order::endless(Direction::Up)
    };
    let client = hold(End::Client);
    let mut traffic = Traffic::start(sink.address(), &sink, &[order])?;
    drop(client);
    traffic.flowing()?;
    let before = read(&traffic)?;
    traffic.watch(window)?;
    let after = read(&traffic)?;
    traffic.stop();
    traffic.finish()?;
    Ok(Moved {
        bytes: after.1 - before.1,
        wall_s: (after.0 - before.0).as_secs_f64(),
        cpu_s: after.2.saturating_sub(before.2).as_secs_f64(),
    })
}

/// The time, the bytes that have arrived, and the CPU time so far.
fn read(traffic: &Traffic) -> Result<(Instant, u64, Duration), CellError> {
    let cpu = process_cpu().ok_or_else(|| CellError::unavailable("this system has no CPU clock of a process"))?;
    let bytes = traffic.streams.iter().map(|stream| stream.received()).sum();
    Ok((Instant::now(), bytes, cpu))
}
