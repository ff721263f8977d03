//! The workload `flows`: many short connections through a proxied route, and what idle ones cost.
//!
//! A flow has the sizes of a short connection with TLS: 517 B from the client, 3,200 B from the server, 64 B and 350 B from
//! the client, 2,048 B from the server, and the client closes; with `pq`, the first two are 1,750 and 4,400 B. 32 at a time,
//! from 1,024 addresses of 127.0.0.0/8 in turn, in a closed loop (`load=closed`) and, not in quick runs, in an open one at
//! 50 % of the ceiling of the slowest subject (`load=open-50`). `load=idle` opens 2,000 connections (500 in a quick run),
//! sends the first two messages of a flow through each, lets them lie for the length of a warm-up and a window, and then sends and
//! compares them again: a program that closes what lies idle has failed.
//!
//! Case parameters: `stack`, `mode` (`flow`, `flow-pq`, `hold`), `load`, `connections`. Metrics: `rate` in 1/s;
//! `first_byte_p50` to `first_byte_p99` and `latency_p50` to `latency_p99.9` in s, from the start of connecting (in the open
//! loop: from when it was meant) to the first byte and to the last; `cpu_per_op` in s/op, of all programs and of each;
//! `memory_per_connection` in B, of the server process, from what it had after eight connections, `…_client` of the client
//! process, `…_kernel` of the buffers of all sockets of the machine, which are none where nothing waits to be read.
//!
//! Subjects, starts and comparison are those of [`crate::requests`].

use crate::lens::{Lens, Part, Plot};
use crate::link::Link;
use crate::load::cells::{Drive, Spec};
use crate::load::scripts::{FLOW, FLOW_PQ, HOLD};
use crate::load::workload::{prepare as prepare_load, stacks};
use crate::load::{generator, lens, metrics, pacer};
use crate::plan::Profile;
use crate::route::{Stack, engine};
use crate::workload::{self, LabError, Prepared, Request, Workload};

/// Name of the workload.
pub const NAME: &str = "flows";

/// Names of all peers this workload knows.
pub const PEERS: [&str; 4] = engine::PEERS;

/// The workload.
pub static WORKLOAD: Workload = Workload {
    name: NAME,
    summary: "short connections through proxied paths, and memory of idle ones",
    peers: &PEERS,
    programs: &crate::route::PROGRAMS,
    gpu: false,
    guests: true,
    alone: false,
    limits: &crate::route::LIMITS,
    prepare,
    lens: &LENS,
};

/// How its figures are read.
static LENS: Lens = Lens {
    headline: |scope| lens::headline(scope, "short connections"),
    parts: &[Part {
        id: "flows-section",
        figure: NAME,
        title: "Short connections and idle ones",
        link: "Flows",
        caption: "Load on proxied paths",
        plot: Plot::Bars(lens::PANELS),
        reading: lens::READING,
        ..Part::PLAIN
    }],
    ..lens::LENS
};

/// Version of what a window does. Raise it when figures before and after are no longer comparable.
const VERSION: u32 = 2;

/// Flows at a time.
const AT_A_TIME: usize = 32;

/// Rate of the open loop in hundredths of the ceiling.
const RATE: u32 = 50;

/// Connections that lie idle.
const fn held(profile: Profile) -> usize {
    match profile {
        Profile::Quick => 500,
        Profile::Standard | Profile::Full => 2000,
    }
}

/// Finds the subjects, makes the cells, fits the plan.
pub(crate) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    prepare_load(
        request,
        NAME,
        hash(request.profile, request.link),
        metrics::flows,
        specs(request.profile, &request.stacks),
    )
}

fn hash(profile: Profile, link: Option<Link>) -> String {
    let definition = format!(
        "{NAME} {VERSION} at-a-time={AT_A_TIME} rate={RATE} held={} timeout={:?} late={} in-flight={} {FLOW:?} \
         {FLOW_PQ:?} {HOLD:?}",
        held(profile),
        generator::TIMEOUT,
        pacer::LATE_NS,
        pacer::MOST_IN_FLIGHT
    );
    workload::hash_over(&definition, link)
}

fn specs(profile: Profile, chosen: &[Stack]) -> Vec<Spec> {
    let mut specs = Vec::new();
    for (place, stack) in stacks(profile, chosen).into_iter().enumerate() {
        let leads = place == 0;
        specs.push(Spec::new(stack, "flow", &FLOW, AT_A_TIME, Drive::Closed));
        if leads || profile != Profile::Quick {
            specs.push(Spec::new(stack, "hold", &HOLD, held(profile), Drive::Idle));
        }
        if profile == Profile::Full || (leads && profile == Profile::Standard) {
            specs.push(Spec::new(stack, "flow", &FLOW, AT_A_TIME, Drive::Open(RATE)));
            specs.push(Spec::new(stack, "flow-pq", &FLOW_PQ, AT_A_TIME, Drive::Closed));
        }
    }
    specs
}
