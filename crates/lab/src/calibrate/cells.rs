//! Our own generators as subjects.

use std::time::Duration;

use super::{CONNECTIONS, LATENCY, whole};
use crate::load::generator::Generator;
use crate::load::scripts::HTTP_KEEP;
use crate::load::sink::Sink;
use crate::measure::place::{End, hold};
use crate::run::{CellError, Counted, Timed};
use crate::transports::{self, Moved, WRITE};

/// Connections that are opened at once before a window.
const AT_ONCE: usize = 32;

/// A stream of the workload `transports`, without a route.
pub(super) struct OurStream;

impl Timed for OurStream {
    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let Moved { bytes, wall_s, cpu_s } = transports::bare(Duration::from_secs(whole(window)))?;
        if bytes == 0 {
            return Err(CellError::failed("nothing arrived in the window"));
        }
        Ok(Counted {
            ops: bytes.div_ceil(WRITE as u64),
            bytes,
            wall_s,
            cpu_s,
            figures: vec![
                ("throughput", bytes as f64 / wall_s),
                ("cpu_per_gb", cpu_s / (bytes as f64 / 1e9)),
            ],
            tails: Vec::new(),
        })
    }
}

/// A server with so much work for each request, on a CPU of its own.
pub(super) fn server(work: Duration) -> Result<Sink, CellError> {
    let _held = hold(End::Server);
    Sink::start_with(&HTTP_KEEP, work)
        .map_err(|error| CellError::failed(format_args!("the server does not start: {error}")))
}

/// Requests of the workload of that name, straight to the server.
pub(super) struct OurRequests {
    /// What the server does for each.
    pub(super) work: Duration,
}

impl Timed for OurRequests {
    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let sink = server(self.work)?;
        let _held = hold(End::Client);
        let seed = crate::run::seed().map_err(CellError::failed)?;
        let mut generator = Generator::new(&HTTP_KEEP, sink.address(), CONNECTIONS, seed)?;
        generator.once(AT_ONCE)?;
        let length = Duration::from_secs(whole(window));
        let window = generator.closed(Duration::ZERO, length, &mut |_| {})?;
        sink.check()?;
        let failed = generator.latency.failed();
        if failed > 0 || window.done == 0 {
            let all = generator.latency.count();
            return Err(CellError::failed(format_args!("{failed} of {all} requests failed")));
        }
        let busy = window
            .busy
            .ok_or_else(|| CellError::unavailable("this system has no CPU clock of a thread"))?;
        let cpu_s = busy * window.wall_s;
        Ok(Counted {
            ops: window.done,
            bytes: window.bytes,
            wall_s: window.wall_s,
            cpu_s,
            figures: vec![
                ("rate", window.done as f64 / window.wall_s),
                ("cpu_per_op", cpu_s / window.done as f64),
            ],
            tails: vec![(LATENCY, generator.latency.tail())],
        })
    }
}
