//! The workload `primitives`: four suites, sealing, opening, key set-up and a fresh key per message, on one thread.
//!
//! Case parameters: `suite` (its name), `op` (`seal`, `open`, `key-setup`, `fresh-key`, `seal-without-aes`), `bytes`
//! (message length; absent for `key-setup`), `aad` (bytes). Metrics: `throughput` in B/s (higher is better) and
//! `cpu_per_op` in s/op (lower) for messages, `setup_time` in s/op (lower) for `key-setup`. In-process subjects are
//! timed by the measuring thread's CPU clock (method `C`), so that a subject does not pay for a pause that another
//! program forced; `openssl` counts by the wall, and its figures are per second of its own CPU time (method `W`).
//!
//! `seal-without-aes` is `openssl speed` with AES and carry-less multiply hidden from it: what the suite costs a machine
//! that has no hardware for it.

mod advice;
mod cells;
mod definition;
mod headline;
mod lens;
mod openssl;
mod script;

use std::time::Duration;

use sealway_aead::cpu::Cpu;

use crate::doctor;
use crate::doctor::{Diagnosis, Surroundings};
use crate::measure::cpu::Method;
use crate::plan::{Overhead, Plan, PlanError, Profile};
use crate::result::{Case, PlanFacts};
use crate::run::{Cell, Observer, SystemProbe, Timing};
use crate::workload::fit::fit;
use crate::workload::metric::{CPU_PER_OP, Metric, SETUP_TIME, THROUGHPUT};
use crate::workload::rows::{Reference, Scheme};
use crate::workload::{LabError, Prepared, Request, Workload, subjects};

/// Name of the workload.
pub const NAME: &str = "primitives";

/// What is spent besides warm-up and windows, measured on a small virtual machine: two canaries' share, the readings of
/// the machine, and the comparison of outputs.
const OVERHEAD: Overhead = Overhead {
    per_cell: Duration::from_millis(4),
    per_window: Duration::from_millis(8),
};

/// Lengths of a visit of the doctor.
const DOCTOR_TIMING: Timing = Timing {
    warmup: Duration::from_millis(150),
    window: Duration::from_millis(600),
    extra_rounds: 0,
};

/// Names of all peers this workload knows, in the order in which they are taken as the reference of a case.
pub const PEERS: [&str; 4] = ["aws-lc-rs", "ring", "rustcrypto", openssl::NAME];

/// The workload.
pub static WORKLOAD: Workload = Workload {
    name: NAME,
    summary: "ciphers alone: seal, open, key set-up, a fresh key per message",
    peers: &PEERS,
    programs: &[openssl::NAME],
    gpu: false,
    guests: false,
    alone: false,
    limits: &LIMITS,
    prepare,
    lens: &lens::LENS,
};

/// What the figures cannot show.
const LIMITS: [&str; 3] = [
    "One thread on this machine, data in cache, keys hot: a server with many keys and cold buffers is slower.",
    "No network, no framing, no system calls: this is the cipher's share of a transport, not the transport.",
    "Another CPU can turn the ranking round, above all one without AES instructions.",
];

fn metrics(case: &Case) -> &'static [Metric] {
    match case.text("op") {
        Some("key-setup") => &[SETUP_TIME],
        Some("fresh-key") => &[CPU_PER_OP],
        _ => &[THROUGHPUT, CPU_PER_OP],
    }
}

/// How windows are read. A single key takes many times as long to check as to set up, so keys are sampled.
fn scheme(def: String) -> Scheme {
    Scheme {
        method: |_, subject| match subject {
            openssl::NAME => Method::Wait,
            _ => Method::Thread,
        },
        verified: |case, subject| match case.text("op") {
            _ if subject == openssl::NAME => "self",
            Some("key-setup") => "sampled",
            _ => "full",
        },
        ..Scheme::new(NAME, def, metrics, Reference::First(&PEERS))
    }
}

/// Finds the subjects, makes the cells, fits the plan.
pub(crate) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    let mut program = None;
    let found = subjects::find(&request.peers, &PEERS, |_| {
        let there = openssl::Program::find()?;
        let subject = there.subject();
        program = Some(there);
        Ok(subject)
    })?;
    let mut cells = definition::cells(request.profile, request.suites(), &found, program.as_ref());
    cells.retain(|cell| request.wants(&cell.case));
    Ok(Prepared {
        plan: plan(request, &cells)?,
        subjects: found.subjects,
        scheme: scheme(definition::hash(request.profile)),
        cells,
        warnings: Vec::new(),
        recommend: |rows| advice::recommend(rows, Cpu::get()),
    })
}

/// Says whether this machine can be measured: one subject under two names, and a look at the machine.
///
/// The subject is our AES-128-GCM sealing 16 KiB, the steadiest case there is. `programs` are looked for. Takes about 15 seconds.
///
/// # Errors
/// [`LabError`] never happens with the fixed plan and is passed on as it comes.
pub fn doctor(programs: &[&'static str], observer: &mut dyn Observer) -> Result<Diagnosis, LabError> {
    let surroundings = Surroundings::of_this_machine(programs);
    observer.planned(&PlanFacts {
        rounds: doctor::ROUNDS as u32,
        window_s: DOCTOR_TIMING.window.as_secs_f64(),
        warmup_s: DOCTOR_TIMING.warmup.as_secs_f64(),
        cells: 2,
        expected_s: (2 * doctor::ROUNDS) as f64 * (DOCTOR_TIMING.window + DOCTOR_TIMING.warmup).as_secs_f64(),
        taken_s: 0.0,
    });
    doctor::examine(
        &mut definition::doctor_cell,
        DOCTOR_TIMING,
        &surroundings,
        &mut SystemProbe::start(),
        observer,
    )
    .map_err(LabError::Schedule)
}

/// Fits the windows to the time there is, after the programs that take whole seconds have had theirs.
fn plan(request: &Request, cells: &[Cell]) -> Result<Plan, LabError> {
    let limit = request.limit();
    let slow = |cell: &Cell| cell.subject == openssl::NAME;
    let mut programs =
        openssl::SHORTEST * cells.iter().filter(|cell| slow(cell)).count() as u32 * request.profile.rounds();
    // A plan may have more rounds than the profile, and less cells: what its programs take is known once there is one.
    let mut plan = loop {
        let plan = around(request.profile, cells, limit, programs)?;
        let kept = plan
            .layout
            .groups()
            .iter()
            .flatten()
            .filter(|&&cell| slow(&cells[cell]))
            .count();
        let planned = openssl::SHORTEST * kept as u32 * plan.rounds;
        let is_over = planned > programs && limit.is_some_and(|limit| plan.expected + planned > limit);
        programs = planned;
        if !is_over {
            break plan;
        }
    };
    // The deadline is that of all of it, and so is the mean of a visit.
    let visits = plan.facts().cells.saturating_mul(plan.rounds).max(1);
    plan.expected += programs;
    plan.visit += programs / visits;
    plan.limit = limit.or(request.profile.limit());
    Ok(plan)
}

/// Fits the windows to what programs leave of the limit.
fn around(profile: Profile, cells: &[Cell], limit: Option<Duration>, programs: Duration) -> Result<Plan, LabError> {
    let left = limit.map(|limit| limit.saturating_sub(programs));
    fit(profile, cells, OVERHEAD, left, 1.0).map_err(|error| match error {
        // Said in the user's terms: the limit that was given, and all that it would have to cover.
        LabError::Plan(PlanError::LimitTooShort { limit: _, needed }) => LabError::Plan(PlanError::LimitTooShort {
            limit: limit.unwrap_or(Duration::MAX),
            needed: needed + programs,
        }),
        other => other,
    })
}

#[cfg(test)]
mod checks;
#[cfg(test)]
mod tests;
