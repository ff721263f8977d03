//! The workload `packets`: many small messages at once, each with its own key and nonce, sealed and opened in batches.
//!
//! Packets are drawn from a stated generator and seed: lengths 40 % uniform in 1 to 32 B, 30 % in 33 to 128, 20 % in 129
//! to 512 and 10 % in 513 to 4096 (`mix`, mean 325.3 B); uniform in 1 to 32 B (`tiny`); or all alike. A pool has 131,072
//! packets (16,384 in a quick run; of equal packets 8 MiB, at least 16), and batches walk through it. There is no
//! associated data.
//!
//! Case parameters: `suite`, `op` (`seal`, `open`, `pair`: sealed and opened by the other end), `sizes` (`mix`, `tiny` or
//! bytes), `batch` (packets given at once), `keys` (`fresh`: one a packet, set up inside the clock; `resident`: 1,000
//! connections' keys, set up before), `threads`. Metrics: `rate` in 1/s, operations; `throughput` in B/s, contents;
//! `latency_p50` and `latency_p99` in s, a batch from submission to done, and `packet_p50` and `packet_p99` in s/op, the
//! same shared out over its packets, each only where a window has enough batches for it (11, 1,000); `lane_use` and
//! `lane_use_mac`, how full the vector lanes of the batch engine's ChaCha20 and Poly1305 were, 1 for full, where its
//! kernels for many messages ran.
//!
//! Subjects: our batch engine with the backend it chooses and, as subjects of their own (`sealway:avx2`, …), with the
//! others this machine can run; peers packet by packet. All write from one arena into another, ciphertext and tag side by
//! side. One thread is timed by its CPU clock (method `C`), several by the wall from a common start to the last end (`T`),
//! batches for latency by the wall. `openssl` takes no part: it cannot be called packet by packet from here.
//!
//! With `--gpu` the workload is another: the same packets on a GPU. `packets/gpu.rs` says what its cases and metrics are.
//!
//! Every packet of every timed batch is compared with the oracle's answer after the clock has stopped, in what it was
//! written to and in full.

mod cells;
mod definition;
pub(crate) mod gpu;
mod lens;
mod mover;
mod pool;
mod threads;

use std::time::Duration;

use crate::measure::cpu::Method;
use crate::plan::Overhead;
use crate::result::Case;
use crate::run;
use crate::workload::fit::fit;
use crate::workload::metric::{
    LANE_USE, LANE_USE_MAC, LATENCY_P50, LATENCY_P99, Metric, PACKET_P50, PACKET_P99, RATE, THROUGHPUT,
};
use crate::workload::rows::{Reference, Scheme};
use crate::workload::subjects::{self, IN_PROCESS};
use crate::workload::{LabError, Prepared, Request, Workload};

/// Name of the workload.
pub const NAME: &str = "packets";

/// Names of all peers this workload knows.
pub const PEERS: [&str; 3] = IN_PROCESS;

/// What can be measured of packets on a GPU: kernels alone, packets in memory that it reads, calls as an application makes them,
/// and copies alone.
pub const MODES: [&str; 4] = ["kernel", "pinned", "call", "link"];

/// The workload.
pub static WORKLOAD: Workload = Workload {
    name: NAME,
    summary: "many small packets in batches, each with its own key",
    peers: &PEERS,
    programs: &[],
    gpu: true,
    guests: false,
    alone: false,
    limits: &LIMITS,
    prepare,
    lens: &lens::LENS,
};

/// What the figures cannot show.
const LIMITS: [&str; 3] = [
    "No network, no framing, no system calls: this is the cipher's share of a node's work, not the node's.",
    "A batch is full from the start: how long a program waits until it has that many packets does not count.",
    "Another CPU, or another GPU and link, can turn the ranking round.",
];

/// What is spent besides warm-up and windows: the canaries, and once per cell the check for forgeries.
const OVERHEAD: Overhead = Overhead {
    per_cell: Duration::from_millis(8),
    per_window: Duration::from_millis(8),
};

/// How much longer a visit is than its warm-up and window: the comparison of every output, and batches timed alone.
const STRETCH: f64 = 1.4;

const METRICS: [Metric; 8] = [
    RATE,
    THROUGHPUT,
    LATENCY_P50,
    LATENCY_P99,
    PACKET_P50,
    PACKET_P99,
    LANE_USE,
    LANE_USE_MAC,
];

fn method(case: &Case, _: &str) -> Method {
    if case.int("threads") == Some(1) {
        Method::Thread
    } else {
        Method::Wall
    }
}

/// The cases of a profile, without the packets that they take long to make.
#[cfg(test)]
pub(crate) fn cases(profile: crate::plan::Profile) -> Vec<Case> {
    let specs = definition::specs(profile, &sealway_aead::Suite::ALL, 1);
    specs.iter().map(definition::Spec::case).collect()
}

/// Finds the subjects, makes the cells, fits the plan.
pub(crate) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    if request.gpu {
        return gpu::prepare(request, &gpu::here());
    }
    let mut found = subjects::find(&request.peers, &PEERS, |name| Err(format!("{name} is no peer here")))?;
    let variants = definition::variants();
    let entries = variants
        .iter()
        .map(|(backend, name)| definition::variant_subject(*backend, name));
    found.subjects.splice(1..1, entries);
    let mut specs = definition::specs(request.profile, request.suites(), run::cpus() as usize);
    specs.retain(|spec| request.wants(&spec.case()));
    let cells = definition::cells(request.profile, &specs, &found);
    Ok(Prepared {
        plan: fit(request.profile, &cells, OVERHEAD, request.limit(), STRETCH)?,
        subjects: found.subjects,
        scheme: Scheme {
            method,
            ..Scheme::new(
                NAME,
                definition::hash(request.profile),
                |_| &METRICS,
                Reference::Best(&PEERS),
            )
        },
        cells,
        warnings: Vec::new(),
        recommend: |_| Vec::new(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
