//! Packets on a GPU: `packets --gpu`, on a machine with an NVIDIA GPU and its driver.
//!
//! Case parameters besides those of `packets`: `mode`, `decoys` and `streams`. Keys are resident, of 1,000 connections.
//!
//! - `kernel`: packets lie on the device, descriptors too, and only kernels count, by the device's own clock around many runs of
//!   one batch (the result says `T` for that too). Small batches show the rate at which a thread can launch; the 65,536 packets that
//!   lead lie half in the cache of a large device, 262,144 do not.
//! - `pinned`: packets lie in host memory that the device reads; copies, kernels and copies back of `streams` batches
//!   overlap, as in a program that writes its packets there once. The tables of a batch are made once too. By the wall.
//! - `call`: one call as an application makes it: packets are gathered, sealed or opened, and scattered, by a thread that
//!   waits (`sealway:gpu`), or by as many as there are processors, each with an engine of its own (`sealway:gpu:all`), on all GPUs
//!   in turn. By the wall; here our engine on one CPU thread (`sealway`) and on all (`sealway:all`) does the same, which shows from
//!   which batch on the device is faster.
//! - `link`: nothing but copies of 4 MiB: what the link carries (`op` `in`, `out`; `both` counts both ways together).
//!
//! Of several GPUs all but the threads of `sealway:gpu:all` have the first.
//!
//! Of `decoys` in a hundred packets nobody wants the contents: 0 to 64 B, uniform. They are sealed and opened as all are, and
//! counted neither as operations nor as contents.
//!
//! Metrics besides: `link_in` and `link_out`, B/op across the link, tables and padding among them; `link_rate`, B/s on the busier
//! way; `copy_share`, the part of the device's time that copies take when they do not overlap, from a pass of its own.
//!
//! Outputs are compared with the oracle's at the end of every window, in full, those of `kernel` after one more run into blanked
//! memory; statuses of the other modes at every batch.

mod cells;
mod devices;
mod moved;
#[cfg(test)]
pub(crate) mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sealway_aead::Suite;
use sealway_aead::batch::Backend;

use super::cells::{Make, PacketCell, Scratch, Task};
use super::mover::Batches;
use super::pool::{KeyUse, Pool};
use super::threads::ThreadsCell;
use super::{METRICS, NAME, definition};
use crate::plan::{Overhead, PlanError, Profile};
use crate::result::{Case, Subject};
use crate::run::{self, Cell, CellError};
use crate::workload::batch::{Op, Sizes, keep_first};
use crate::workload::chunk::failed_cell;
use crate::workload::engine::{Engine as _, Sealway};
use crate::workload::fit::fit;
use crate::workload::metric::{Metric, RATE, THROUGHPUT};
use crate::workload::rows::{Reference, Scheme};
use crate::workload::subjects::{ours, ours_as};
use crate::workload::{self, LabError, Prepared, Request};
use cells::{LinkCell, PinnedCell, ResidentCell};
pub(crate) use devices::{Gpus, Open, here, is_there};
use moved::Called;

/// The subjects.
pub(crate) const GPU: &str = "sealway:gpu";
const GPU_ALL_THREADS: &str = "sealway:gpu:all";
const ALL_THREADS: &str = "sealway:all";

/// Packets of the largest batch.
const HUGE: usize = 1 << 22;

/// Version of what a window does.
const VERSION: u32 = 2;

/// Bytes of a copy of the mode `link`.
const LINK_BYTES: usize = 4 << 20;

/// What is spent besides warm-up and windows: opening the device, making packets, bringing them there, comparing. Cases of millions of
/// packets take seconds for that, so it is the mean of the cases that are to be.
fn overhead(specs: &[Spec]) -> Overhead {
    let packets = specs.iter().map(Spec::count).sum::<usize>() / specs.len().max(1);
    let mean = Duration::from_micros(packets as u64);
    Overhead {
        per_cell: Duration::from_millis(100) + mean / 2,
        per_window: Duration::from_millis(400) + mean,
    }
}

const PINNED_METRICS: [Metric; 6] = [
    RATE,
    THROUGHPUT,
    Metric::lower("link_in", "B/op"),
    Metric::lower("link_out", "B/op"),
    Metric::higher("link_rate", "B/s"),
    Metric::lower("copy_share", "1"),
];
const KERNEL_METRICS: [Metric; 2] = [RATE, THROUGHPUT];
const LINK_METRICS: [Metric; 1] = [THROUGHPUT];

/// Where packets lie and what counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Kernel,
    Pinned,
    Call,
    Link(sealway_cuda::Ways),
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Mode::Kernel => "kernel",
            Mode::Pinned => "pinned",
            Mode::Call => "call",
            Mode::Link(_) => "link",
        }
    }
}

/// One parameter set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spec {
    pub(super) mode: Mode,
    pub(super) op: Op,
    pub(super) sizes: Sizes,
    pub(super) decoys: u32,
    pub(super) batch: usize,
    pub(super) streams: usize,
}

impl Spec {
    fn case(&self) -> Case {
        let case = Case::new().with("mode", self.mode.name());
        if let Mode::Link(ways) = self.mode {
            let op = match ways {
                sealway_cuda::Ways::In => "in",
                sealway_cuda::Ways::Out => "out",
                sealway_cuda::Ways::Both => "both",
            };
            return case.with("op", op).with("streams", self.streams);
        }
        let case = case
            .with("suite", Suite::ChaCha20Poly1305.name())
            .with("op", self.op.name())
            .with("sizes", self.sizes.name().as_str())
            .with("decoys", self.decoys as usize)
            .with("batch", self.batch)
            .with("keys", KeyUse::Resident.name());
        match self.mode {
            Mode::Pinned => case.with("streams", self.streams),
            _ => case,
        }
    }

    /// Packets of its pool: four batches, so that not all that is opened is in a cache, and at least one of 4096, or four of them for
    /// the chunks of several threads.
    fn count(&self) -> usize {
        let least = if self.mode == Mode::Call { 16_384 } else { 4096 };
        let bytes = match self.sizes {
            Sizes::Fixed(bytes) => bytes.max(64),
            _ => 512,
        };
        // 256 MiB at most, and one batch at least.
        (4 * self.batch).max(least).min((256 << 20) / bytes).max(self.batch)
    }
}

/// Every case, the most telling first; of a short choice, or of all.
pub(super) fn specs(quick: bool) -> Vec<Spec> {
    use sealway_cuda::Ways;
    let base = Spec {
        mode: Mode::Kernel,
        op: Op::Seal,
        sizes: Sizes::Mix,
        decoys: 0,
        batch: 65_536,
        streams: 1,
    };
    let pinned = Spec {
        mode: Mode::Pinned,
        batch: 16_384,
        streams: 4,
        ..base
    };
    let call = Spec {
        mode: Mode::Call,
        batch: 4096,
        ..base
    };
    let ways = |spec: Spec| [Op::Seal, Op::Open, Op::Pair].map(|op| Spec { op, ..spec });
    let mut specs = Vec::new();
    specs.extend([Ways::In, Ways::Out, Ways::Both].map(|ways| Spec {
        mode: Mode::Link(ways),
        streams: 4,
        ..base
    }));
    specs.extend(ways(base));
    specs.extend(ways(Spec { batch: 262_144, ..base }));
    if !quick {
        specs.extend(
            [1 << 20, HUGE]
                .into_iter()
                .flat_map(|batch| ways(Spec { batch, ..base })),
        );
    }
    specs.extend(ways(pinned));
    let sweep: &[usize] = if quick {
        &[16, 256, 4096, 65_536]
    } else {
        &[1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144]
    };
    specs.extend(sweep.iter().map(|&batch| Spec { batch, ..call }));
    specs.extend(sweep.iter().map(|&batch| Spec { batch, ..base }));
    for streams in if quick { &[1, 2, 8][..] } else { &[1, 2, 3, 4, 6, 8] } {
        specs.push(Spec {
            streams: *streams,
            ..pinned
        });
    }
    for decoys in [5, 20] {
        specs.push(Spec { decoys, ..base });
        specs.push(Spec { decoys, ..pinned });
    }
    for bytes in if quick {
        &[64, 1024, 16_384][..]
    } else {
        &[32, 64, 128, 256, 512, 1024, 4096, 16_384, 1 << 20]
    } {
        // As many bytes as the mix has.
        let batch = ((16 << 20) / *bytes).clamp(4, 65_536);
        let sizes = Sizes::Fixed(*bytes);
        specs.push(Spec { sizes, batch, ..base });
        let batch = ((4 << 20) / *bytes).clamp(4, 16_384);
        specs.push(Spec { sizes, batch, ..pinned });
    }
    if !quick {
        specs.push(Spec {
            sizes: Sizes::Tiny,
            ..base
        });
        let opens: Vec<Spec> = specs.iter().filter(|spec| spec.mode != Mode::Call).cloned().collect();
        specs.extend(opens.into_iter().map(|spec| Spec { op: Op::Open, ..spec }));
    }
    // Of a pair, both directions have as many streams.
    for spec in &mut specs {
        if spec.op == Op::Pair {
            spec.streams = spec.streams.next_multiple_of(2);
        }
    }
    specs.retain(|spec| !matches!(spec.mode, Mode::Link(_)) || spec.op == Op::Seal);
    keep_first(&mut specs);
    specs
}

/// The cases of a request.
fn chosen(request: &Request) -> Vec<Spec> {
    let modes = &request.gpu_modes;
    let asked = |spec: &Spec| modes.is_empty() || modes.iter().any(|mode| mode == spec.mode.name());
    // Who names a mode wants all of it, quickly or not.
    let all = !modes.is_empty() || request.profile == Profile::Full;
    let quick = !all && request.profile == Profile::Quick;
    // Some 4 GB of this machine's memory.
    let huge = |spec: &Spec| spec.batch >= HUGE;
    let wanted = |spec: &Spec| asked(spec) && (all || !huge(spec)) && request.wants(&spec.case());
    specs(quick).into_iter().filter(wanted).collect()
}

/// The cases of a profile, on any machine.
#[cfg(test)]
pub(crate) fn cases(profile: Profile) -> Vec<Case> {
    specs(profile == Profile::Quick).iter().map(Spec::case).collect()
}

fn metrics(case: &Case) -> &'static [Metric] {
    match case.text("mode") {
        Some("kernel") => &KERNEL_METRICS,
        Some("pinned") => &PINNED_METRICS,
        Some("link") => &LINK_METRICS,
        _ => &METRICS,
    }
}

/// The subjects, with so many threads where there are several.
fn subjects(gpus: &Gpus, threads: usize) -> Vec<Subject> {
    let all = || format!("batches on {threads} threads at once, each its own");
    vec![
        ours_as(GPU, [format!("on {}", gpus.first())]),
        ours_as(GPU_ALL_THREADS, [format!("on {}", gpus.all()), all()]),
        ours(),
        ours_as(ALL_THREADS, [all()]),
    ]
}

/// Every cell, with so many threads where there are several.
pub(super) fn cells(specs: &[Spec], gpus: &Gpus, threads: usize) -> Vec<Cell> {
    let scratch = Rc::new(RefCell::new(Scratch::default()));
    let mut pools: HashMap<(String, u32, usize), Result<Arc<Pool>, CellError>> = HashMap::new();
    let mut cells: Vec<Cell> = Vec::new();
    for spec in specs {
        let gpus = gpus.clone();
        if let Mode::Link(ways) = spec.mode {
            let streams = spec.streams;
            cells.push(Cell::new(spec.case(), GPU, LinkCell { ways, streams, gpus }));
            continue;
        }
        let key = (spec.sizes.name(), spec.decoys, spec.count());
        let pool = pools.entry(key).or_insert_with(|| {
            let suite = Suite::ChaCha20Poly1305;
            Pool::with_decoys(suite, spec.sizes, KeyUse::Resident, spec.count(), spec.decoys).map(Arc::new)
        });
        let pool = match pool {
            Ok(pool) => Arc::clone(pool),
            Err(error) => {
                cells.push(failed_cell(spec.case(), GPU, error));
                continue;
            }
        };
        let (case, spec) = (spec.case(), *spec);
        match spec.mode {
            Mode::Kernel => cells.push(Cell::new(case, GPU, ResidentCell { spec, pool, gpus })),
            Mode::Pinned => cells.push(Cell::new(case, GPU, PinnedCell { spec, pool, gpus })),
            Mode::Link(_) => {}
            Mode::Call => {
                let gpu: Make = Arc::new(move |pool, thread| Ok(Box::new(Called::new(&gpus, thread, pool)?)));
                let here: Make = Arc::new(move |pool, _| {
                    Ok(Box::new(Batches::new(
                        Sealway::NAME,
                        Backend::best(),
                        pool,
                        spec.batch,
                    )?))
                });
                let task = |make: &Make| Task {
                    pool: Arc::clone(&pool),
                    op: spec.op,
                    batch: spec.batch,
                    make: Arc::clone(make),
                };
                for (one, all, make) in [(GPU, GPU_ALL_THREADS, &gpu), (Sealway::NAME, ALL_THREADS, &here)] {
                    let cell = PacketCell::new(task(make), true, Rc::clone(&scratch));
                    cells.push(Cell::new(case.clone(), one, cell));
                    let cell = ThreadsCell::new(task(make), threads);
                    cells.push(Cell::new(case.clone(), all, cell));
                }
            }
        }
    }
    cells
}

/// Finds the devices, makes the cells, fits the plan.
pub(super) fn prepare(request: &Request, open: &Open) -> Result<Prepared, LabError> {
    if !request.suites().contains(&Suite::ChaCha20Poly1305) {
        return Err(LabError::Plan(PlanError::NoCells));
    }
    let (gpus, threads) = (Gpus::find(Arc::clone(open))?, run::cpus() as usize);
    let specs = chosen(request);
    let cells = cells(&specs, &gpus, threads);
    let def = workload::hash(&format!(
        "{NAME} gpu {VERSION} link={LINK_BYTES} {}",
        definition::hash(request.profile)
    ));
    Ok(Prepared {
        plan: fit(request.profile, &cells, overhead(&specs), request.limit(), 1.0)?,
        subjects: subjects(&gpus, threads),
        cells,
        scheme: Scheme {
            verified: |case, _| match case.text("mode") {
                Some("link") => "none",
                _ => "full",
            },
            ..Scheme::new(NAME, def, metrics, Reference::First(&[Sealway::NAME]))
        },
        warnings: Vec::new(),
        recommend: |_| Vec::new(),
    })
}
