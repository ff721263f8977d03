//! The workload `requests`: small HTTP requests through a proxied route, one after the other on many connections.
//!
//! `GET` over HTTP/1.1, answered with 1,024 B by the lab's own server in the process of the lab: `keep` has 64 connections
//! that stay, `close` 32 at a time with a connection for each request. A closed loop, in which each connection asks again
//! when it has its answer, finds the ceiling (`load=closed`). An open loop, not in quick runs, asks by a schedule made before
//! the start at 25, 50 and 80 % of the ceiling that the slowest subject showed in the first round of the same run
//! (`load=open-25`, …), and takes latencies from when a request was meant to be sent.
//!
//! Case parameters: `stack`, `mode`, `load`, `connections`. Metrics: `rate` in 1/s; `latency_p50` to `latency_p99.9` and
//! `latency_max` in s, with failures and requests without an answer within 2 s as infinite, each percentile only where
//! 10 / (1 - q) requests support it; `service_p50` and `service_p99`, the same from when a request was sent (open loop);
//! `cpu_per_op` in s/op, of all programs of the route, and of each (`cpu_per_op_client`, `cpu_per_op_server`); `failed`, the
//! share that failed, where any did. An open loop in which less than 99 % were done is marked `overloaded`.
//!
//! Subjects: our engine and the peers as client and server, and `direct`, the generator straight to the server. Programs
//! are started anew for every window. Every byte of every request and answer is compared, in and before the window: each
//! request has a key of its own, of which all bytes of its answer are made. Before the first window one bit is flipped on the wire
//! of a stack that seals, as in [`crate::transports`], and a peer that lets it pass is marked in the same way.

use crate::lens::{Lens, Part, Plot};
use crate::link::Link;
use crate::load::cells::{Drive, Spec};
use crate::load::scripts::{BODY, HTTP_CLOSE, HTTP_KEEP};
use crate::load::workload::{prepare as prepare_load, stacks};
use crate::load::{generator, lens, metrics, pacer};
use crate::plan::Profile;
use crate::route::{Stack, engine};
use crate::workload::{self, LabError, Prepared, Request, Workload};

/// Name of the workload.
pub const NAME: &str = "requests";

/// Names of all peers this workload knows.
pub const PEERS: [&str; 4] = engine::PEERS;

/// The workload.
pub static WORKLOAD: Workload = Workload {
    name: NAME,
    summary: "HTTP requests through proxied paths: rate, latency, CPU",
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
    headline: |scope| lens::headline(scope, "requests"),
    parts: &[Part {
        id: "requests-section",
        figure: NAME,
        title: "HTTP requests",
        link: "Requests",
        caption: "Load on proxied paths",
        plot: Plot::Bars(lens::PANELS),
        reading: lens::READING,
        ..Part::PLAIN
    }],
    ..lens::LENS
};

/// Version of what a window does. Raise it when figures before and after are no longer comparable.
const VERSION: u32 = 2;

/// Connections.
const KEEP: usize = 64;
const CLOSE: usize = 32;

/// Rates of the open loop in hundredths of the ceiling.
const RATES: [u32; 3] = [50, 80, 25];

/// Finds the subjects, makes the cells, fits the plan.
pub(crate) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    prepare_load(
        request,
        NAME,
        hash(request.link),
        metrics::requests,
        specs(request.profile, &request.stacks),
    )
}

fn hash(link: Option<Link>) -> String {
    let definition = format!(
        "{NAME} {VERSION} body={BODY} keep={KEEP} close={CLOSE} rates={RATES:?} timeout={:?} late={} in-flight={} \
         {HTTP_KEEP:?} {HTTP_CLOSE:?}",
        generator::TIMEOUT,
        pacer::LATE_NS,
        pacer::MOST_IN_FLIGHT
    );
    workload::hash_over(&definition, link)
}

fn specs(profile: Profile, chosen: &[Stack]) -> Vec<Spec> {
    let mut specs = Vec::new();
    for (place, stack) in stacks(profile, chosen).into_iter().enumerate() {
        specs.push(Spec::new(stack, "keep", &HTTP_KEEP, KEEP, Drive::Closed));
        if place == 0 || profile != Profile::Quick {
            specs.push(Spec::new(stack, "close", &HTTP_CLOSE, CLOSE, Drive::Closed));
        }
        if profile == Profile::Full || (place == 0 && profile == Profile::Standard) {
            let open = |rate| Spec::new(stack, "keep", &HTTP_KEEP, KEEP, Drive::Open(rate));
            specs.extend(RATES.map(open));
        }
    }
    specs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_comes_before_what_goes_by_it() {
        for profile in Profile::ALL {
            let specs = specs(profile, &[]);
            assert_eq!(specs[0].stack.name(), "vless-tcp-tls");
            for (place, open) in specs.iter().enumerate() {
                if matches!(open.drive, Drive::Open(_)) {
                    let finds =
                        |spec: &Spec| spec.drive == Drive::Closed && (spec.stack, spec.mode) == (open.stack, open.mode);
                    assert!(specs[..place].iter().any(finds), "{open:?}");
                }
            }
            let open = specs.iter().any(|spec| matches!(spec.drive, Drive::Open(_)));
            assert_eq!(open, profile != Profile::Quick);
        }
    }

    #[test]
    fn stacks_can_be_chosen() {
        let chosen = specs(Profile::Quick, &[Stack::DIRECT, Stack::VLESS_WS]);
        assert!(!chosen.is_empty() && chosen.iter().all(|spec| spec.stack == Stack::VLESS_WS));
    }
}
