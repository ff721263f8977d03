//! The workload `bip324`: packets of BIP324 connections with everything that belongs to them, sealed, opened and carried over
//! sockets, and what a connection costs once.
//!
//! Every packet is one: three bytes of encrypted length, the header, contents, a tag, 20 bytes more than its contents; the
//! real forward-secret ciphers, which change their keys every 224 packets. Keys are those of real key agreements. Contents are
//! drawn from a stated generator and seed: 40 % uniform in 0 to 32 B, 30 % in 33 to 128, 20 % in 129 to 512, 10 % in 513 to
//! 4096 (`mix`, mean 325.1 B), or all alike. Each packet is on a random connection, which begins anywhere in its first 224
//! packets. Of `decoys` in a hundred packets the contents mean nothing: 0 to 64 B, uniform, on the connection of the packet
//! before. They are sealed, opened and thrown away, and are counted neither as operations nor as contents. There are 131,072
//! packets (16,384 in a quick run; of equal packets 8 MiB), and batches walk through them; at the end all connections are put
//! back to where they began, off the clock.
//!
//! Case parameters: `op`: `seal`, `open`, `pair` (sealed at one end and opened at the other: one operation, the unit that
//! published figures use), `loopback` (two endpoints over a TCP connection, one thread each), and once a connection `key`
//! (key and encoding), `ecdh`, `expand` (one of HKDF), `hkdf` (one extract and one expand), `key-schedule` (one extract and all
//! expands), `agree` (`ecdh` and `key-schedule`), `handshake` (both ends, keys among it); `sizes` (`mix`
//! or bytes); `connections`; `batch`, packets given at once, with `loopback` written by one call; `decoys` in per cent; `threads`.
//!
//! Metrics: `rate` in 1/s, packets or pairs; `throughput` in B/s, contents; `wire_throughput` in B/s, whole packets, decoys
//! among them; `latency_p50`, `latency_p99` in s, a batch from submission to done, and `packet_p50`, `packet_p99` in s/op,
//! the same shared out; `message_p50`, `message_p99` in s, over many connections, a message from one end's submission to the other
//! end's program; `overhead`, bytes on the wire over bytes of contents less 1; `lane_use`, `lane_use_mac` as in
//! `packets`; `cpu_per_gb`, `cpu_per_op` of both endpoints together, system calls among it; `setup_time` in s/op.
//!
//! `bip324 bench sockets` has one more `op`, `sockets`: the mix over many TCP connections, both ways. `bip324/crowd.rs` says more.
//!
//! Over an emulated link there are the cases over sockets only. Bytes are compared before any window as without it, and the CPU time
//! of the link's thread is in no figure.
//!
//! With `--gpu` the workload is another: the same packets by a transport that has a GPU beside it. `bip324/gpu.rs` says more.
//!
//! Subjects: `sealway`, our `BatchTransport`; `sealway:single`, our `PacketSealer` and `PacketOpener`, one packet at a time;
//! crate `bip324`; and a loop over aws-lc-rs with the same framing and rekeying. In memory one thread is read by its CPU
//! clock (method `C`), loopback by the wall (`T`). Nobody copies more than a program must: packets come to lie in memory of
//! each subject's own, messages likewise. Batches below 64 are timed 1024 packets together, and what they made is copied
//! away inside the clock, for all subjects.
//!
//! Every packet and message of every timed batch is compared with the answers of a loop over RustCrypto, which shares no
//! code with our engine; over sockets every message with what was sent; handshakes by the session ids of both ends.

mod advice;
mod cells;
mod ciphers;
mod crowd;
mod definition;
mod ends;
mod framed;
pub(crate) mod gpu;
mod lens;
mod links;
mod once;
#[cfg(feature = "peers")]
mod once_theirs;
mod single;
mod sockets;
#[cfg(feature = "peers")]
mod theirs;
mod traffic;
mod way;

use std::time::Duration;

use sealway_aead::Suite;
use sealway_aead::cpu::DISABLE_VARIABLE;

use crate::measure::cpu::Method;
use crate::packets;
use crate::plan::{Overhead, PlanError};
use crate::result::Case;
use crate::workload::fit::fit;
use crate::workload::metric::{
    LANE_USE, LANE_USE_MAC, LATENCY_P50, LATENCY_P99, Metric, PACKET_P50, PACKET_P99, RATE, SETUP_TIME, THROUGHPUT,
    figure,
};
use crate::workload::rows::{Reference, Scheme};
use crate::workload::subjects::{self, BIP324, Found, ours, ours_as};
use crate::workload::{self, LabError, Prepared, Request, Workload};
use ciphers::{Ciphers, Own};

pub use crowd::MOST_OVER_LINK;

/// Name of the workload.
pub const NAME: &str = "bip324";

/// Names of all peers this workload knows.
pub const PEERS: [&str; 2] = [BIP324, "aws-lc-rs"];

/// The workload.
pub static WORKLOAD: Workload = Workload {
    name: NAME,
    summary: "packets of Bitcoin's v2 transport: batches, sockets, handshakes",
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
    "Packets are framed, sealed and opened in memory; only the cases named sockets make system calls, over loopback or an emulated link.",
    "Both ends of every connection run in one process, so what a node does besides, such as validation, does not compete with it.",
    "A batch is full from the start: how long a program waits until it has that many packets does not count.",
];

/// The case's word for two endpoints over sockets.
pub(crate) const LOOPBACK: &str = "loopback";

/// The figure of packets that an executor beside the processor did, of all.
pub(crate) const GPU_SHARE: &str = "gpu_share";

/// What is spent besides warm-up and windows: canaries, the check for forgeries, connections set up.
const OVERHEAD: Overhead = Overhead {
    per_cell: Duration::from_millis(25),
    per_window: Duration::from_millis(9),
};

/// How much longer a visit is than its warm-up and window: the comparison of every output, connections put back, and
/// batches timed alone.
const STRETCH: f64 = 1.5;

const WIRE: Metric = Metric::higher("wire_throughput", "B/s").of(|window, s| figure(window, "wire_bytes") / s);

/// Of packets in memory; the last only with an executor beside the processor.
const PACKETS: [Metric; 11] = [
    RATE,
    THROUGHPUT,
    WIRE,
    LATENCY_P50,
    LATENCY_P99,
    PACKET_P50,
    PACKET_P99,
    Metric::lower("overhead", "1"),
    LANE_USE,
    LANE_USE_MAC,
    Metric::higher(GPU_SHARE, "1"),
];

/// Of two endpoints over sockets.
const SOCKETS: [Metric; 5] = [
    RATE,
    THROUGHPUT,
    WIRE,
    Metric::lower("cpu_per_gb", "s/GB").by(Method::Process),
    Metric::lower("cpu_per_op", "s/op").by(Method::Process),
];

/// Latencies of messages over many connections.
const MESSAGES: &str = "message";

/// Of many connections over sockets: the same, and how long a message takes from one end to the other.
const OVER_SOCKETS: [Metric; 7] = {
    let [rate, throughput, wire, per_gb, per_op] = SOCKETS;
    [
        rate,
        throughput,
        wire,
        Metric::lower("message_p50", "s").percentile(MESSAGES, 0.5),
        Metric::lower("message_p99", "s").percentile(MESSAGES, 0.99),
        per_gb,
        per_op,
    ]
};

/// Of what is done once a connection.
const ONCE: [Metric; 1] = [SETUP_TIME];

fn metrics(case: &Case) -> &'static [Metric] {
    match case.text("op") {
        Some("seal" | "open" | "pair") => &PACKETS[..PACKETS.len() - 1],
        Some(LOOPBACK) => &SOCKETS,
        _ => &ONCE,
    }
}

fn method(case: &Case, _: &str) -> Method {
    if case.text("op") == Some(LOOPBACK) {
        Method::Wall
    } else {
        Method::Thread
    }
}

/// The cases of a profile, without the packets that they take long to make.
#[cfg(test)]
pub(crate) fn cases(profile: crate::plan::Profile) -> Vec<Case> {
    definition::specs(profile).iter().map(definition::Spec::case).collect()
}

/// Finds the subjects, makes the cells, fits the plan.
pub(crate) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    // BIP324 has one suite.
    if !request.suites().contains(&Suite::ChaCha20Poly1305) {
        return Err(LabError::Plan(PlanError::NoCells));
    }
    if request.gpu {
        return gpu::prepare(request, &packets::gpu::here());
    }
    if !request.sockets.is_empty() {
        return crowd::prepare(request);
    }
    let found = subjects_of(request)?;
    let mut specs = definition::specs(request.profile);
    specs.retain(|spec| request.wants(&spec.case()) && (request.link.is_none() || spec.is_over_sockets()));
    let cells = definition::cells(request.profile, &specs, &found, request.over());
    let overhead = Overhead {
        per_window: OVERHEAD.per_window + request.link.map_or(Duration::ZERO, |link| link.settling()),
        ..OVERHEAD
    };
    Ok(Prepared {
        plan: fit(request.profile, &cells, overhead, request.limit(), STRETCH)?,
        subjects: found.subjects,
        scheme: Scheme {
            method,
            ..Scheme::new(
                NAME,
                definition::hash(request.profile, request.link),
                metrics,
                Reference::Best(&PEERS),
            )
        },
        cells,
        warnings: Vec::new(),
        // What a link gives is the same for all, and the advice is of memory and of loopback.
        recommend: match request.link {
            Some(_) => |_| Vec::new(),
            None => advice::advice,
        },
    })
}

/// The hash of a definition, with the CPUs that threads are to stay on and the link: figures of others are not of one kind.
fn hash_on(request: &Request, definition: &str) -> String {
    match &request.pin {
        Some(places) => workload::hash_over(&format!("{definition} {}", places.definition()), request.link),
        None => workload::hash_over(definition, request.link),
    }
}

/// Who takes part, and how each differs from a program's own use.
fn subjects_of(request: &Request) -> Result<Found, LabError> {
    let mut found = subjects::find(&request.peers, &PEERS, |name| Err(format!("{name} is no peer here")))?;
    found.subjects.insert(1, ours_as(Own::NAME, []));
    for subject in &mut found.subjects {
        match subject.name.as_str() {
            // Here our engine counts, and so does everybody.
            name if name.starts_with(ours().name.as_str()) => {
                subject.differs.retain(|text| text.contains(DISABLE_VARIABLE));
            }
            BIP324 => subject
                .differs
                .push("encodes keys with no randomness but the key's".to_owned()),
            _ => subject
                .differs
                .push("framing, lengths (by crate chacha20) and rekeying are a loop of the lab's around it".to_owned()),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;
