//! The workload `files`: files from one program to another, as their users would send them.
//!
//! Case parameters: `way` (`send`; `grpc`: streamed through gRPC; `mount-read` and `mount-random`: read from a mounted
//! folder, from start to end or 4 KiB at random places), `shape` (`file`: one of 1 GiB; `small`: 10,000 of 4 KiB; `tree`: 1 of
//! 512 MiB, 64 of 4 MiB and 4,096 of 64 KiB; `byte`: one of one byte, for set-up; `hundred`: one of 10^8 B; a quick run moves
//! a sixteenth), `place` (`memory` or `disk`: where source and destination are, the source in the page cache), `suite` (what
//! seals, or `default`: each subject's own choice), `files` and `total` (their number and bytes). Contents are keystream, which
//! nothing compresses or finds twice.
//!
//! A window is one transfer by programs that start for it. The clock runs from the start of the first command of the
//! transfer (who listens, and a relay, are there before) to the end of the receiver, or of the sender where that waits for
//! a server. When it has stopped every byte that arrived is compared by BLAKE3, for all subjects alike; a wrong, missing or
//! additional file is an error.
//!
//! Metrics: `throughput` in B/s and `rate` in files (or random reads) a second; `throughput_synced`, with the time until a
//! disk had it all; `setup_time` in s, from the start of the command to the first byte in a file of the receiver, and
//! `total_time` to its end, of one byte; `cpu_per_gb` in s/GB of all programs, and of each role (`cpu_per_gb_sender`,
//! `_receiver`, `_relay`), of programs' whole lives as the system told at their ends (method `W`); `memory` in B, the peak of
//! what was resident, looked at every 20 ms, and of each role. Reading a mounted file is the lab's own work, in no figure.
//!
//! Over an emulated link ([`crate::link`]) it lies between both ends; subjects that go by servers of their own take no part.
//!
//! Subjects: our program; `https-post`, LocalSend's way built in, and the same in Go; rsync, scp, croc and magic-wormhole
//! with servers of their own on 127.0.0.1; KeibiDrop's encrypted gRPC.

mod advice;
mod cells;
pub mod https_post;
mod lens;
mod movers;
mod processes;
mod source;
mod spec;
mod storage;

use std::rc::Rc;
use std::time::Duration;

use crate::link::Link;
use crate::measure::WarningCode;
use crate::measure::cpu::Method;
use crate::plan::{Overhead, Plan, PlanError, Profile};
use crate::result::{Case, Warning};
use crate::run::Cell;
use crate::workload::fit::fit;
use crate::workload::metric::{Metric, THROUGHPUT};
use crate::workload::rows::{Reference, Scheme};
use crate::workload::{self, LabError, Peers, Prepared, Request, Workload};
use cells::{FileCell, Sources};
use source::Shape;
use spec::{Spec, Way, specs};
use storage::Storage;

/// Name of the workload.
pub const NAME: &str = "files";

/// Names of all peers this workload knows.
pub const PEERS: [&str; 9] = movers::PEERS;

/// The workload.
pub static WORKLOAD: Workload = Workload {
    name: NAME,
    summary: "files from end to end, beside scp, rsync, croc and others",
    peers: &PEERS,
    programs: &movers::PROGRAMS,
    gpu: false,
    guests: false,
    alone: false,
    limits: &LIMITS,
    prepare,
    lens: &lens::LENS,
};

/// What the figures cannot show.
const LIMITS: [&str; 4] = [
    "Both ends run on this machine over loopback: no loss, no distance, no limit of a network card, unless a link is emulated, which has no packets but bytes in order.",
    "Sender and receiver share the CPUs of this machine; on machines of their own, rates differ more than CPU time does.",
    "Files lie in the page cache or in memory; a disk that is slower than the transfer decides instead.",
    "A peer is used as its own documents say, with its defaults: other settings can be faster or slower.",
];

/// Version of what a window does. Raise it when figures before and after are no longer comparable.
const VERSION: u32 = 1;

/// Time limit of a standard run without a budget: a gigabyte takes seconds.
const STANDARD_LIMIT: Duration = Duration::from_secs(45 * 60);

/// CPU time of programs' whole lives.
const fn cpu(name: &'static str, unit: &'static str) -> Metric {
    Metric::lower(name, unit).by(Method::Wait)
}

const FILES_RATE: Metric = Metric::higher("rate", "1/s").related();

/// What a case is judged by, before what it costs.
macro_rules! metrics {
    ($($first:expr),+) => {
        [
            $($first,)+
            Metric::higher("throughput_synced", "B/s").related(),
            cpu("cpu_per_gb", "s/GB").related(),
            cpu("cpu_per_gb_sender", "s/GB").related(),
            cpu("cpu_per_gb_receiver", "s/GB").related(),
            cpu("cpu_per_gb_relay", "s/GB"),
            Metric::lower("memory", "B"),
            Metric::lower("memory_sender", "B"),
            Metric::lower("memory_receiver", "B"),
            Metric::lower("memory_relay", "B"),
        ]
    };
}

static BULK: [Metric; 11] = metrics!(THROUGHPUT, FILES_RATE);
static RANDOM: [Metric; 11] = metrics!(FILES_RATE, THROUGHPUT);
static SET_UP: [Metric; 12] = metrics!(
    Metric::lower("setup_time", "s").related(),
    Metric::lower("total_time", "s").related(),
    cpu("cpu_per_transfer", "s").related()
);

fn metrics(case: &Case) -> &'static [Metric] {
    match (case.text("way"), case.text("shape")) {
        (Some("mount-random"), _) => &RANDOM,
        (_, Some("byte")) => &SET_UP,
        _ => &BULK,
    }
}

/// Finds the programs, makes the cells, fits the plan.
pub(crate) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    let mut found = movers::find(request)?;
    if request.profile == Profile::Quick && request.peers == Peers::Auto {
        found.leave_out_slow();
    }
    if request.link.is_some() {
        found.leave_out_unlinked();
    }
    let sources = Sources::default();
    let mut cells: Vec<Cell> = Vec::new();
    let mut takes = Vec::new();
    let mut specs = if request.cases.is_some() {
        spec::every(request.profile, &request.suites)
    } else {
        specs(request.profile, &request.suites)
    };
    specs.retain(|spec| request.wants(&spec.case()));
    let (specs, warnings) = placed(specs);
    for spec in specs {
        for mover in found.movers.iter().filter(|mover| mover.can(&spec)) {
            let timed = FileCell::new(spec, Rc::clone(mover), sources.clone(), request.over());
            cells.push(Cell::new(spec.case(), mover.name(), timed));
            takes.push(Takes {
                beside: mover.start_up() + expected(&spec) + crossing(&spec, request.link),
                timed: spec.way == Way::Random,
            });
        }
    }
    if cells.is_empty() {
        return Err(LabError::Plan(PlanError::NoCells));
    }
    Ok(Prepared {
        plan: plan(request, &cells, &takes)?,
        subjects: found.subjects,
        scheme: Scheme {
            verified: |case, _| match case.text("way") {
                Some("mount-read") => "full, sampled in the window",
                _ => "full",
            },
            ..Scheme::new(NAME, hash(request.link), metrics, Reference::Best(&PEERS))
        },
        cells,
        warnings,
        recommend: advice::advise,
    })
}

/// The cases that a caller can choose from who names them, whatever this program can do.
#[cfg(test)]
pub(crate) fn cases(profile: Profile) -> Vec<Case> {
    spec::every(profile, &[]).iter().map(Spec::case).collect()
}

/// The cases where there is room for them: on a disk what memory has no room for.
fn placed(specs: Vec<Spec>) -> (Vec<Spec>, Vec<Warning>) {
    let mut placed: Vec<Spec> = Vec::new();
    let mut why = None;
    for mut spec in specs {
        if spec.place == Storage::Memory
            && let Err(what) = spec.place.folder(cells::room(&spec))
        {
            spec.place = Storage::Disk;
            why = Some(what);
        }
        if !placed.contains(&spec) {
            placed.push(spec);
        }
    }
    let warn = |what| WarningCode::NoRoom.warn("memory", &format!("{what}."));
    (placed, why.map(warn).into_iter().collect())
}

/// Hash of the numbers that define a window.
fn hash(link: Option<Link>) -> String {
    let shapes = [Shape::Byte, Shape::File, Shape::Small, Shape::Tree, Shape::Hundred].map(|shape| {
        (
            shape.name(),
            shape.sizes(Profile::Standard),
            shape.sizes(Profile::Quick),
        )
    });
    workload::hash_over(&format!("{NAME} {VERSION} keystream seed=1 {shapes:?}"), link)
}

/// What a visit is planned to take.
#[derive(Clone, Copy, Debug)]
struct Takes {
    beside: Duration,
    /// It goes on for as long as it is told besides.
    timed: bool,
}

/// What a transfer and its comparison take at rates that are middling among the subjects: 1.2 GB/s to move, 3 GB/s to compare, as
/// measured on two CPUs.
fn expected(spec: &Spec) -> Duration {
    let sizes = spec.sizes();
    let files: usize = sizes.iter().map(|(count, _)| count).sum();
    let bytes = source::total(&sizes) as f64;
    let moved = if spec.way == Way::Random { 0.0 } else { bytes / 1.2e9 };
    Duration::from_secs_f64(moved + bytes / 3e9 + files as f64 * 3e-4)
}

/// What it takes longer over a link.
fn crossing(spec: &Spec, link: Option<Link>) -> Duration {
    let bytes = match spec.way {
        Way::Random => 0,
        _ => source::total(&spec.sizes()),
    };
    link.map_or(Duration::ZERO, |link| link.opening() + link.transfer(bytes))
}

/// Fits the cases to the time there is, with room for the average of them.
fn plan(request: &Request, cells: &[Cell], takes: &[Takes]) -> Result<Plan, LabError> {
    let limit = match request.profile {
        Profile::Standard => request.budget.or(Some(STANDARD_LIMIT)),
        _ => request.limit(),
    };
    let count = u32::try_from(takes.len()).unwrap_or(u32::MAX).max(1);
    let overhead = Overhead {
        per_cell: Duration::from_millis(200),
        per_window: takes.iter().map(|takes| takes.beside).sum::<Duration>() / count,
    };
    let mut plan = fit(request.profile, cells, overhead, limit, 1.0)?;
    plan.warmup = Duration::ZERO;
    // Only reading at random places goes on for as long as it is told: all else takes what it takes, and no window.
    let kept: Vec<Takes> = plan.layout.groups().iter().flatten().map(|&cell| takes[cell]).collect();
    let visit = |takes: &Takes| takes.beside + if takes.timed { plan.window } else { Duration::ZERO };
    let round: Duration = kept.iter().map(visit).sum();
    let kept = u32::try_from(kept.len()).unwrap_or(u32::MAX).max(1);
    plan.expected = overhead.per_cell * kept + round * plan.rounds;
    plan.visit = round / kept;
    Ok(plan)
}

#[cfg(test)]
mod tests;
