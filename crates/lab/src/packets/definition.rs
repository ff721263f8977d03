//! Which cases there are, and who takes part in each.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use sealway_aead::Suite;
use sealway_aead::batch::Backend;

use super::NAME;
use super::cells::{CHUNK_PACKETS, Make, PacketCell, Scratch, Task};
use super::mover::{Batches, Loop};
use super::pool::{CONNECTIONS, KeyUse, Pool, SEED};
use super::threads::ThreadsCell;
use crate::plan::Profile;
use crate::result::{Case, Subject};
use crate::run::{Cell, CellError};
use crate::workload;
use crate::workload::batch::{Op, Sizes, keep_first, packets};
use crate::workload::chunk::failed_cell;
#[cfg(feature = "peers")]
use crate::workload::engine::{AwsLc, Ring};
use crate::workload::engine::{Engine, RustCrypto, Sealway};
use crate::workload::subjects::{Found, ours_as};

/// Version of what a window does. Raise it when figures before and after are no longer comparable.
const VERSION: u32 = 2;

/// Batch that stands for a busy relay.
const BATCH: usize = 4096;

/// Batch of the cases with other sizes than the mix.
const SIZED_BATCH: usize = 1024;

/// Batch sizes of the sweep over the mix.
const SWEEP: [usize; 9] = [16, 1, 256, 1024, 64, 4, 16_384, 65_536, BATCH];

/// Bytes of contents that a pool of equal packets has, if that makes at least [`LEAST`].
const FIXED_BYTES: usize = 8 << 20;
const LEAST: usize = 16;

/// Packets of a large batch of 1 MiB each.
const LARGE: usize = 1 << 20;
const LARGE_BATCH: usize = 4;

/// Hash of the numbers that define a window. A quick run has fewer packets, so that more of them stay in the cache, and
/// its figures are not to be compared with those of the others.
pub(super) fn hash(profile: Profile) -> String {
    let count = packets(profile);
    workload::hash(&format!(
        "{NAME} {VERSION} mix=40%U[1,32],30%U[33,128],20%U[129,512],10%U[513,4096] tiny=U[1,32] packets={count} \
         fixed={FIXED_BYTES}/{LEAST} seed={SEED} connections={CONNECTIONS} aad=0 chunk={CHUNK_PACKETS} percentiles=all-rounds"
    ))
}

/// One parameter set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Spec {
    pub(super) suite: Suite,
    pub(super) op: Op,
    pub(super) sizes: Sizes,
    pub(super) batch: usize,
    pub(super) key_use: KeyUse,
    pub(super) threads: usize,
}

impl Spec {
    /// The case that leads every run.
    pub(super) const MIX: Spec = Spec {
        suite: Suite::ChaCha20Poly1305,
        op: Op::Seal,
        sizes: Sizes::Mix,
        batch: BATCH,
        key_use: KeyUse::Fresh,
        threads: 1,
    };

    pub(super) fn case(&self) -> Case {
        Case::new()
            .with("suite", self.suite.name())
            .with("op", self.op.name())
            .with("sizes", self.sizes.name().as_str())
            .with("batch", self.batch)
            .with("keys", self.key_use.name())
            .with("threads", self.threads)
    }

    /// Whether each batch is timed too: where it tells what a packet waits for the others.
    fn latency(&self) -> bool {
        self.threads == 1 && self.key_use == KeyUse::Fresh && (self.sizes == Sizes::Mix || self.batch <= LEAST)
    }

    fn count(&self, profile: Profile) -> usize {
        let all = packets(profile);
        match self.sizes {
            Sizes::Mix | Sizes::Tiny => all,
            Sizes::Fixed(bytes) => (FIXED_BYTES / bytes).clamp(LEAST, all),
        }
    }
}

/// Every case, the most telling first: a time limit drops cases from the end.
pub(super) fn specs(profile: Profile, suites: &[Suite], cpus: usize) -> Vec<Spec> {
    let quick = profile == Profile::Quick;
    let base = Spec::MIX;
    let sized = |bytes, batch| Spec {
        sizes: Sizes::Fixed(bytes),
        batch,
        ..base
    };
    let resident = Spec {
        key_use: KeyUse::Resident,
        ..base
    };
    let aes = Spec {
        suite: Suite::Aes128Gcm,
        ..resident
    };
    let two_ways = |spec: Spec| [spec, Spec { op: Op::Open, ..spec }];
    let mut specs = Vec::new();
    specs.extend(two_ways(base));
    specs.push(Spec { op: Op::Pair, ..base });
    specs.extend(two_ways(sized(128, 16)));
    specs.extend(two_ways(sized(64, 1)));
    specs.push(sized(64, SIZED_BATCH));
    if cpus >= 2 {
        specs.push(Spec { threads: 2, ..base });
    }
    for &batch in SWEEP.iter().filter(|batch| **batch <= packets(profile)) {
        specs.push(Spec { batch, ..base });
    }
    specs.extend(two_ways(resident));
    specs.extend(two_ways(aes));
    specs.push(Spec { batch: LEAST, ..aes });
    for bytes in [32, 128, 512, 4096] {
        specs.push(sized(bytes, SIZED_BATCH));
    }
    specs.push(Spec {
        sizes: Sizes::Tiny,
        batch: SIZED_BATCH,
        ..base
    });
    specs.push(sized(LARGE, LARGE_BATCH));
    if !quick {
        let opens: Vec<Spec> = specs.iter().map(|spec| Spec { op: Op::Open, ..*spec }).collect();
        specs.extend(opens);
        for batch in [1, LEAST] {
            specs.push(Spec { batch, ..resident });
        }
    }
    specs.retain(|spec| suites.contains(&spec.suite));
    keep_first(&mut specs);
    specs
}

/// The backends of our engine besides the one it chooses here, each as a subject of its own.
pub(super) fn variants() -> Vec<(Backend, &'static str)> {
    let best = Backend::best().name();
    let others = Backend::available().filter(|backend| backend.name() != best);
    others
        .filter_map(|backend| Some((backend, variant_name(backend)?)))
        .collect()
}

fn variant_name(backend: Backend) -> Option<&'static str> {
    let names = ["sealway:avx512", "sealway:avx2", "sealway:neon", "sealway:portable"];
    names
        .into_iter()
        .find(|name| name.strip_prefix("sealway:") == Some(backend.name()))
}

/// The entry of such a subject in the result file.
pub(super) fn variant_subject(backend: Backend, name: &str) -> Subject {
    Subject {
        setup: "tuned".to_owned(),
        ..ours_as(name, [format!("batch engine held to its {backend} kernels")])
    }
}

fn batches(name: &'static str, backend: Backend, batch: usize) -> Make {
    Arc::new(move |pool, _| Ok(Box::new(Batches::new(name, backend, pool, batch)?)))
}

fn packet_loop<E: Engine>() -> Make {
    Arc::new(|pool, _| Ok(Box::new(Loop::<E>::new(pool)?)))
}

/// Who takes part in a case.
fn movers(spec: &Spec, found: &Found) -> Vec<(&'static str, Make)> {
    let mut movers = vec![(Sealway::NAME, batches(Sealway::NAME, Backend::best(), spec.batch))];
    // AES-GCM has one backend, and the kernels scale alike.
    if spec.suite == Suite::ChaCha20Poly1305 && spec.threads == 1 {
        let others = variants().into_iter();
        movers.extend(others.map(|(backend, name)| (name, batches(name, backend, spec.batch))));
    }
    let mut peer = |name: &'static str, there: bool, make: fn() -> Make| {
        if there && found.has(name) {
            movers.push((name, make()));
        }
    };
    #[cfg(feature = "peers")]
    {
        peer(AwsLc::NAME, AwsLc::has(spec.suite), packet_loop::<AwsLc>);
        peer(Ring::NAME, Ring::has(spec.suite), packet_loop::<Ring>);
    }
    peer(RustCrypto::NAME, RustCrypto::has(spec.suite), packet_loop::<RustCrypto>);
    movers
}

/// The packets of cases that have the same.
type Pools = HashMap<(&'static str, String, KeyUse), Result<Arc<Pool>, CellError>>;

/// Every cell of a run.
pub(super) fn cells(profile: Profile, specs: &[Spec], found: &Found) -> Vec<Cell> {
    let scratch = Rc::new(RefCell::new(Scratch::default()));
    let mut pools = Pools::new();
    let mut cells: Vec<Cell> = Vec::new();
    for spec in specs {
        let key = (spec.suite.name(), spec.sizes.name(), spec.key_use);
        let pool = pools
            .entry(key)
            .or_insert_with(|| Pool::new(spec.suite, spec.sizes, spec.key_use, spec.count(profile)).map(Arc::new));
        let pool = match pool {
            Ok(pool) => Arc::clone(pool),
            Err(error) => {
                cells.push(failed_cell(spec.case(), Sealway::NAME, error));
                continue;
            }
        };
        for (subject, make) in movers(spec, found) {
            let task = Task {
                pool: Arc::clone(&pool),
                op: spec.op,
                batch: spec.batch,
                make,
            };
            cells.push(if spec.threads > 1 {
                Cell::new(spec.case(), subject, ThreadsCell::new(task, spec.threads))
            } else {
                let cell = PacketCell::new(task, spec.latency(), Rc::clone(&scratch));
                Cell::new(spec.case(), subject, cell)
            });
        }
    }
    cells
}
