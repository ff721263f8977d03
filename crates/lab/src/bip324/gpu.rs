//! Packets of BIP324 connections with a GPU beside the processor: `bip324 --gpu`, on a machine with an NVIDIA GPU and its driver.
//!
//! A node's packets on several threads ([`node`]) come first; those threads take the GPUs of the machine in turn. The other cases are
//! those of `bip324` with packets in memory, on 1,000 connections and one thread, on the first GPU, for batches of all sizes, and
//! `decoys`. Everything that belongs to a packet is in them: numbers, lengths, changes of keys, copies, delivery.
//!
//! Subjects: `sealway`, the processor alone; `sealway:gpu`, all packets go to the GPU; `sealway:routed`, as many go there as
//! make a batch end soonest, by the costs of this machine, those of a GPU that is awake. Costs are read from the file that keeps them, or
//! measured before the first window and kept. What a device does and does not is no CPU time: all are read by the wall (method `T`).
//!
//! Metrics besides: `gpu_share`, the part of packets that the GPU did. A GPU that fails ends its cells; that the processor would
//! have gone on in its place is no result. Engines are open for their own windows only, so that the pinned memory of one cell is
//! enough: some 64 MiB for each end.

mod kept;
pub(super) mod node;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_bip324::batch::{Backend, Costs, Executor, MeasureError, Routing};
use sealway_cuda::{Engine, Options};

use self::kept::{CostsFile, KnownCosts};
use super::cells::Kept;
use super::definition::{BATCH, MANY, Spec, Stage, batched, hash, none};
use super::ends::{Batched, Make, MakeExecutor};
use super::links::{Link, failed, links};
use super::{GPU_SHARE, NAME, PACKETS, STRETCH, hash_on};
use crate::packets::gpu::{GPU, Gpus, Open};
use crate::plan::{Overhead, Profile};
use crate::result::Subject;
use crate::run::{self, Cell};
use crate::workload::batch::{Op, Sizes, packets};
use crate::workload::fit::fit;
use crate::workload::rows::{Reference, Scheme};
use crate::workload::subjects::{ours, ours_as};
use crate::workload::{LabError, Prepared, Request};

/// The subject whose packets go where they are done soonest.
pub(crate) const ROUTED: &str = "sealway:routed";

/// Version of what a window does.
const VERSION: u32 = 2;

/// For how long a GPU that had nothing to do runs slower, and a little more.
const WAKING: Duration = Duration::from_millis(300);

/// Contents of an average packet of the mix, for words.
const MEAN: usize = 325;

/// What is spent besides warm-up and windows: opening the device for each end, canaries, the check for forgeries.
const OVERHEAD: Overhead = Overhead {
    per_cell: Duration::from_millis(250),
    per_window: Duration::from_millis(150),
};

/// Every case, the most telling first.
pub(super) fn specs(profile: Profile) -> Vec<Spec> {
    let largest = packets(profile);
    let ops = [Op::Pair, Op::Seal, Op::Open];
    let sweep = [BATCH, 1024, 256, 64, 16, 65_536, 1].into_iter();
    let mut batches = vec![largest, 16_384];
    batches.extend(sweep.filter(|&batch| batch < largest));
    batches.dedup();
    let mut specs: Vec<Spec> = batches.iter().map(|&batch| Spec::mix(Op::Pair, batch)).collect();
    specs.extend([20, 5].map(|decoys| Spec::Packets {
        op: Op::Pair,
        sizes: Sizes::Mix,
        connections: MANY,
        batch: BATCH,
        decoys,
    }));
    let directions = if profile == Profile::Quick {
        &[16_384][..]
    } else {
        &batches[..]
    };
    specs.extend(
        directions
            .iter()
            .flat_map(|&batch| ops[1..].iter().map(move |&op| Spec::mix(op, batch))),
    );
    specs
}

/// The cases of a profile, on any machine.
#[cfg(test)]
pub(crate) fn cases(profile: Profile) -> Vec<crate::result::Case> {
    specs(profile).iter().map(Spec::case).collect()
}

/// Options of an engine that serves the connections of these cases: two keys in each direction.
fn options() -> Options {
    Options {
        slots: 4 * MANY,
        ..Options::default()
    }
}

/// Our batches with a GPU beside the processor.
fn beside(links: &Rc<Vec<Link>>, gpus: &Gpus, routing: Routing) -> Make {
    let (links, gpus) = (Rc::clone(links), gpus.clone());
    let executor = move || {
        let engine = gpus
            .open(0, options())
            .map_err(|error| failed(format!("{GPU}: {error}")))?;
        let executor: Box<dyn Executor> = Box::new(engine);
        Ok((executor, routing))
    };
    Rc::new(move |traffic, op, batch| {
        let executor: &MakeExecutor = &executor;
        let ends = Batched::new(Rc::clone(&links), traffic, op, batch)?;
        Ok(Box::new(ends.with_executors(executor)?))
    })
}

/// Every cell.
pub(super) fn cells(profile: Profile, specs: &[Spec], gpus: &Gpus, costs: Costs) -> Vec<Cell> {
    let links = match links(MANY) {
        Ok(links) => Rc::new(links),
        Err(error) => return specs.iter().map(|spec| none(spec, &error)).collect(),
    };
    let mut stage = Stage::new(profile, Rc::clone(&links));
    let cells = specs.iter().flat_map(|spec| {
        let ends = vec![
            (Batched::NAME, batched(&links)),
            (GPU, beside(&links, gpus, Routing::Always)),
            (ROUTED, beside(&links, gpus, Routing::Measured(costs))),
        ];
        stage.cells(spec, ends, Kept::InWindows)
    });
    cells.collect()
}

/// What packets cost on an engine and on this thread, measured again and again for so long: a GPU that had nothing to do looks slow at
/// first, and the last time counts.
fn measured(engine: &mut Engine, backend: Backend, waking: Duration) -> Result<Costs, MeasureError> {
    let begin = Instant::now();
    last_of(waking, || Costs::measure(engine, backend, &mut || begin.elapsed()))
}

/// Does something again and again for so long, and once in any case; what the last time gave.
fn last_of<T, E>(time: Duration, mut once: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let begin = Instant::now();
    loop {
        let last = once()?;
        if begin.elapsed() >= time {
            return Ok(last);
        }
    }
}

/// The costs of a device, known or measured now.
fn costs(engine: &mut Engine, request: &Request) -> Result<KnownCosts, LabError> {
    let (backend, file) = (Backend::best(), request.costs.as_deref());
    let known = kept::costs_of(engine, backend, file, |engine| measured(engine, backend, WAKING));
    known.map_err(|error: MeasureError| LabError::Device {
        why: match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    })
}

/// The subject that follows costs, with these.
fn routed(known: &KnownCosts) -> Subject {
    let when = match &known.file {
        CostsFile::Read => "measured at an earlier time and kept".to_owned(),
        CostsFile::Written => "measured before the first window, and kept".to_owned(),
        CostsFile::Failed(error) => format!("measured before the first window, and not kept: {error}"),
        CostsFile::None => "measured before the first window".to_owned(),
    };
    let part = match known.costs.break_even(MEAN) {
        Some(packets) => {
            format!("the GPU has a part in batches of {packets} packets of {MEAN} B and more, by costs {when}")
        }
        None => format!("the GPU has no part in any batch, by costs {when}"),
    };
    ours_as(ROUTED, [part, known.costs.to_string()])
}

/// The subject whose packets all go to the GPU.
fn on_gpu(gpus: &Gpus) -> Subject {
    let share = "each thread of a node on one of them, in turn; one thread by itself on the first";
    let shared = (gpus.count() > 1).then(|| share.to_owned());
    ours_as(GPU, [format!("on {}", gpus.all())].into_iter().chain(shared))
}

/// Finds the devices, learns what the first costs, makes the cells, fits the plan.
pub(super) fn prepare(request: &Request, open: &Open) -> Result<Prepared, LabError> {
    let gpus = Gpus::find(Arc::clone(open))?;
    let known = costs(&mut gpus.open_first(options())?, request)?;
    let subjects = vec![ours(), on_gpu(&gpus), routed(&known)];
    let nodes = node::specs(request.profile, run::cpus() as usize).into_iter();
    let nodes: Vec<node::Spec> = nodes.filter(|spec| request.wants(&spec.case())).collect();
    let mut specs = specs(request.profile);
    specs.retain(|spec| request.wants(&spec.case()));
    let mut all = node::cells(&nodes, &gpus, node::EXTENT, request.pin.as_ref());
    all.extend(cells(request.profile, &specs, &gpus, known.costs));
    let cells = all;
    Ok(Prepared {
        plan: fit(request.profile, &cells, OVERHEAD, request.limit(), STRETCH)?,
        subjects,
        cells,
        scheme: Scheme {
            verified: |case, _| match case.text("op") {
                Some(node::NODE) => "sampled",
                _ => "full",
            },
            ..Scheme::new(
                NAME,
                hash_on(
                    request,
                    &format!("{NAME} gpu {VERSION} {}", hash(request.profile, None)),
                ),
                |_| &PACKETS,
                Reference::First(&[Batched::NAME]),
            )
        },
        warnings: Vec::new(),
        recommend: |_| Vec::new(),
    })
}
