//! Which cases there are, and who takes part in each.

use std::collections::HashMap;
use std::rc::Rc;

use super::cells::{ALONE, Kept, PacketCell, TOGETHER, Task};
use super::ciphers::{Ciphers, Own};
use super::ends::{Batched, Make};
use super::links::{Link, SEED, links};
use super::once::{self, CHUNK, Once};
use super::single::Single;
use super::sockets::{self, Messages, SocketCell};
use super::traffic::{DECOY_MAX, Traffic};
use super::{LOOPBACK, NAME};
use crate::link::{self, Over};
use crate::plan::Profile;
use crate::result::Case;
use crate::run::{Cell, CellError};
use crate::workload;
use crate::workload::batch::{Op, Sizes, keep_first, packets};
use crate::workload::chunk::failed_cell;
use crate::workload::subjects::Found;

/// Version of what a window does. Raise it when figures before and after are no longer comparable.
const VERSION: u32 = 1;

/// Connections of a busy node.
pub(super) const MANY: usize = 1000;

/// Batch that stands for a busy node.
pub(super) const BATCH: usize = 4096;

/// Batch of the cases with other sizes than the mix.
const SIZED_BATCH: usize = 1024;

/// Packets that are written by one call.
const WRITE: usize = 256;

/// Batch sizes of the sweep over the mix.
const SWEEP: [usize; 8] = [1, 16, 256, 1024, 64, 4, 16_384, 65_536];

/// Sizes of contents besides the mix.
const FIXED: [usize; 4] = [32, 128, 512, 4096];

/// Bytes of contents that equal packets have together.
const FIXED_BYTES: usize = 8 << 20;

/// Packets of the traffic in which damage must be noticed.
const FORGED: usize = 64;

/// Hash of the numbers that define a window, over a link if there is one.
pub(super) fn hash(profile: Profile, link: Option<link::Link>) -> String {
    let count = packets(profile);
    let definition = format!(
        "{NAME} {VERSION} mix=40%U[0,32],30%U[33,128],20%U[129,512],10%U[513,4096] decoys=U[0,{DECOY_MAX}] \
         packets={count} fixed={FIXED_BYTES} seed={SEED} connections={MANY} chunk={ALONE}/{TOGETHER}/{CHUNK} percentiles=all-rounds"
    );
    workload::hash_over(&definition, link)
}

/// One parameter set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Spec {
    /// Packets in memory.
    Packets {
        op: Op,
        sizes: Sizes,
        connections: usize,
        batch: usize,
        /// In a hundred packets.
        decoys: u8,
    },
    /// Packets of one size over a TCP connection.
    Sockets { bytes: usize, batch: usize },
    /// Something done once a connection.
    Once(Once),
}

impl Spec {
    /// The mix on many connections, without decoys.
    pub(super) const fn mix(op: Op, batch: usize) -> Spec {
        Spec::Packets {
            op,
            sizes: Sizes::Mix,
            connections: MANY,
            batch,
            decoys: 0,
        }
    }

    /// Whether its packets leave the process.
    pub(super) const fn is_over_sockets(&self) -> bool {
        matches!(self, Spec::Sockets { .. })
    }

    pub(super) fn case(&self) -> Case {
        match *self {
            Spec::Packets {
                op,
                sizes,
                connections,
                batch,
                decoys,
            } => packets_of(op.name(), sizes, connections, batch, 1).with("decoys", i64::from(decoys)),
            Spec::Sockets { bytes, batch } => packets_of(LOOPBACK, Sizes::Fixed(bytes), 1, batch, 2),
            Spec::Once(once) => Case::new().with("op", once.name()).with("threads", 1_i64),
        }
    }
}

/// The case of packets without decoys.
pub(super) fn packets_of(op: &str, sizes: Sizes, connections: usize, batch: usize, threads: usize) -> Case {
    Case::new()
        .with("op", op)
        .with("sizes", sizes.name().as_str())
        .with("connections", connections)
        .with("batch", batch)
        .with("decoys", 0_i64)
        .with("threads", threads)
}

/// Every case, the most telling first: a time limit drops cases from the end.
pub(super) fn specs(profile: Profile) -> Vec<Spec> {
    let ops = [Op::Pair, Op::Seal, Op::Open];
    let spec_of = |op, sizes, connections, batch, decoys| Spec::Packets {
        op,
        sizes,
        connections,
        batch,
        decoys,
    };
    let mut specs = vec![Spec::mix(Op::Pair, BATCH), Spec::Once(Once::Handshake)];
    specs.extend(
        FIXED[1..2]
            .iter()
            .flat_map(|&bytes| [WRITE, 1].map(|batch| Spec::Sockets { bytes, batch })),
    );
    specs.extend([Op::Seal, Op::Open].map(|op| Spec::mix(op, BATCH)));
    specs.extend([20, 5].map(|decoys| spec_of(Op::Pair, Sizes::Mix, MANY, BATCH, decoys)));
    specs.extend(ops.map(|op| spec_of(op, Sizes::Mix, 1, BATCH, 0)));
    specs.extend(Once::ALL.map(Spec::Once));
    let sweep = SWEEP.iter().filter(|batch| **batch <= packets(profile));
    specs.extend(sweep.clone().map(|&batch| Spec::mix(Op::Seal, batch)));
    for bytes in FIXED {
        specs.extend([WRITE, 1].map(|batch| Spec::Sockets { bytes, batch }));
    }
    for bytes in FIXED {
        specs.extend([Op::Seal, Op::Open].map(|op| spec_of(op, Sizes::Fixed(bytes), MANY, SIZED_BATCH, 0)));
    }
    if profile != Profile::Quick {
        for op in [Op::Pair, Op::Open] {
            specs.extend(sweep.clone().map(|&batch| Spec::mix(op, batch)));
        }
        specs.extend([1, 64].map(|batch| spec_of(Op::Pair, Sizes::Mix, 1, batch, 0)));
        for decoys in [5, 20] {
            specs.extend([Op::Seal, Op::Open].map(|op| spec_of(op, Sizes::Mix, MANY, BATCH, decoys)));
        }
        specs.extend(FIXED.map(|bytes| spec_of(Op::Pair, Sizes::Fixed(bytes), MANY, SIZED_BATCH, 0)));
    }
    keep_first(&mut specs);
    specs
}

/// Somebody who takes part with packets in memory and over sockets.
struct Party {
    name: &'static str,
    ends: Make,
    sockets: sockets::Make,
}

impl Party {
    fn batched(links: &Rc<Vec<Link>>) -> Party {
        let ends = batched(links);
        let links = Rc::clone(links);
        Party {
            name: Batched::NAME,
            ends,
            sockets: Rc::new(move || sockets::batched(&links[0])),
        }
    }

    fn single<C: Ciphers>(ciphers: C, links: &Rc<Vec<Link>>) -> Party {
        let ciphers = Rc::new(ciphers);
        let ends = single(&ciphers, links);
        let links = Rc::clone(links);
        Party {
            name: C::NAME,
            ends,
            sockets: Rc::new(move || sockets::single(&*ciphers, &links[0])),
        }
    }
}

/// Everybody who takes part.
fn parties(found: &Found, links: &Rc<Vec<Link>>) -> Vec<Party> {
    let mut parties = vec![
        Party::batched(links),
        Party::single(Own, links),
        #[cfg(feature = "peers")]
        Party::single(super::theirs::Theirs::default(), links),
        #[cfg(feature = "peers")]
        Party::single(super::framed::Loop::<workload::engine::AwsLc>::NEW, links),
    ];
    let ours = [Batched::NAME, Own::NAME];
    parties.retain(|party| ours.contains(&party.name) || found.has(party.name));
    parties
}

/// Our batches on the processor.
pub(super) fn batched(links: &Rc<Vec<Link>>) -> Make {
    let links = Rc::clone(links);
    Rc::new(move |traffic, op, batch| Ok(Box::new(Batched::new(Rc::clone(&links), traffic, op, batch)?)))
}

/// Packets one at a time.
pub(super) fn single<C: Ciphers>(ciphers: &Rc<C>, links: &Rc<Vec<Link>>) -> Make {
    let (ciphers, links) = (Rc::clone(ciphers), Rc::clone(links));
    Rc::new(move |traffic, op, _| {
        let single = Single::new(Rc::clone(&ciphers), Rc::clone(&links), traffic, op);
        Ok(Box::new(single))
    })
}

/// Damaged packets on so many connections: a bit of the header, of the contents, of the tag.
fn forged(links: &[Link]) -> Result<Vec<Traffic>, CellError> {
    let damage = |from_end: bool| {
        let mut traffic = Traffic::new(links, Sizes::Fixed(40), 0, FORGED)?;
        let last = traffic.wire(FORGED / 2).len() - 1;
        traffic.flip(FORGED / 2, if from_end { last } else { 3 });
        Ok(traffic)
    };
    [false, true].into_iter().map(damage).collect()
}

/// Traffic of a case, and damaged packets on its connections.
type Shared = Result<(Rc<Traffic>, Rc<Vec<Traffic>>), CellError>;

/// Connections, and the traffic of cases that have the same.
pub(super) struct Stage {
    profile: Profile,
    links: Rc<Vec<Link>>,
    traffics: HashMap<(Sizes, usize, u8), Shared>,
}

impl Stage {
    pub(super) fn new(profile: Profile, links: Rc<Vec<Link>>) -> Self {
        Stage {
            profile,
            links,
            traffics: HashMap::new(),
        }
    }

    /// The cells of a case of packets in memory, one for each of those who take part.
    pub(super) fn cells(&mut self, spec: &Spec, ends: Vec<(&'static str, Make)>, kept: Kept) -> Vec<Cell> {
        let &Spec::Packets {
            op,
            sizes,
            connections,
            batch,
            decoys,
        } = spec
        else {
            return Vec::new();
        };
        let links = &self.links[..connections];
        let count = match sizes {
            Sizes::Mix | Sizes::Tiny => packets(self.profile),
            Sizes::Fixed(bytes) => (FIXED_BYTES / bytes).min(packets(self.profile)),
        };
        let traffic = self.traffics.entry((sizes, connections, decoys)).or_insert_with(|| {
            let traffic = Traffic::new(links, sizes, decoys, count)?;
            Ok((Rc::new(traffic), Rc::new(forged(links)?)))
        });
        let (traffic, forged) = match traffic {
            Ok(there) => there,
            Err(error) => return vec![none(spec, error)],
        };
        let cells = ends.into_iter().map(|(subject, make)| {
            let task = Task {
                traffic: Rc::clone(traffic),
                forged: Rc::clone(forged),
                op,
                batch,
                latency: sizes == Sizes::Mix && decoys == 0,
                make,
                kept,
            };
            Cell::new(spec.case(), subject, PacketCell::new(task))
        });
        cells.collect()
    }
}

/// A case that cannot be prepared.
pub(super) fn none(spec: &Spec, error: &CellError) -> Cell {
    failed_cell(spec.case(), Batched::NAME, error)
}

/// Every cell of a run, those over sockets over a link if there is one.
pub(super) fn cells(profile: Profile, specs: &[Spec], found: &Found, over: Option<Over>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let links = match links(MANY) {
        Ok(links) => Rc::new(links),
        Err(error) => return specs.iter().map(|spec| none(spec, &error)).collect(),
    };
    let parties = parties(found, &links);
    let mut stage = Stage::new(profile, Rc::clone(&links));
    for spec in specs {
        match *spec {
            Spec::Once(once) => {
                cells.push(once::own(once, spec.case(), &links));
                #[cfg(feature = "peers")]
                if found.has(super::PEERS[0]) {
                    cells.extend(super::once_theirs::theirs(once, spec.case(), &links));
                }
            }
            Spec::Sockets { bytes, batch } => {
                let messages = Rc::new(Messages::new(bytes));
                cells.extend(parties.iter().map(|party| {
                    let cell = SocketCell::new(&messages, batch, &party.sockets, over);
                    Cell::new(spec.case(), party.name, cell)
                }));
            }
            Spec::Packets { .. } => {
                let ends = parties.iter().map(|party| (party.name, Rc::clone(&party.ends)));
                cells.extend(stage.cells(spec, ends.collect(), Kept::Always));
            }
        }
    }
    cells
}
