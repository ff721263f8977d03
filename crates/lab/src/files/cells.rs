//! A cell: a case with a subject.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::movers::{Job, Mover};
use super::processes::{Moved, Role, system};
use super::source::{Shape, Source, total};
use super::spec::{Spec, Way};
use super::storage::{Storage, sync};
use crate::link::{Link, Over};
use crate::peer::Folder;
use crate::run::{CellError, Counted, Timed};

/// How long any transfer may take, and the slowest rate that is still waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const SLOWEST: u64 = 10_000_000;

/// Files that are there to be sent, made once for all cells.
#[derive(Clone, Default)]
pub(super) struct Sources(Rc<RefCell<BTreeMap<(Storage, Shape), Kept>>>);

#[derive(Clone)]
struct Kept {
    source: Rc<Source>,
    /// Where destinations go: the same file system.
    beside: PathBuf,
    _folder: Rc<Folder>,
}

impl Sources {
    fn get(&self, spec: &Spec) -> Result<Kept, CellError> {
        let mut kept = self.0.borrow_mut();
        if let Some(found) = kept.get(&(spec.place, spec.shape)) {
            return Ok(found.clone());
        }
        let sizes = spec.sizes();
        let beside = spec.place.folder(room(spec)).map_err(CellError::unavailable)?;
        let folder = private(&beside)?;
        let source = Source::make(folder.path(), spec.shape, &sizes).map_err(system("make the files to send"))?;
        let made = Kept {
            source: Rc::new(source),
            beside,
            _folder: Rc::new(folder),
        };
        kept.insert((spec.place, spec.shape), made.clone());
        Ok(made)
    }
}

/// Bytes that a case takes: source and destination, and something for tables and for what is written in parts.
pub(super) fn room(spec: &Spec) -> u64 {
    let bytes = total(&spec.sizes());
    2 * bytes + bytes / 8 + (16 << 20)
}

/// A new folder that nobody else may read.
fn private(beside: &std::path::Path) -> Result<Folder, CellError> {
    Folder::new("sealway-files-", beside).map_err(system("make a folder"))
}

/// A case with a subject.
pub(super) struct FileCell {
    spec: Spec,
    mover: Rc<dyn Mover>,
    sources: Sources,
    over: Option<Over>,
    /// Windows so far.
    turns: u64,
}

impl FileCell {
    pub(super) fn new(spec: Spec, mover: Rc<dyn Mover>, sources: Sources, over: Option<Over>) -> FileCell {
        FileCell {
            spec,
            mover,
            sources,
            over,
            turns: 0,
        }
    }

    /// One transfer, verified; over this link.
    fn once(&self, spec: &Spec, window: Duration, link: Option<(Link, u64)>) -> Result<(Counted, Moved), CellError> {
        let kept = self.sources.get(spec)?;
        let folder = private(&std::env::temp_dir())?;
        let to = private(&kept.beside)?;
        let bytes = kept.source.bytes();
        // What is lost comes in seasons.
        let crossing = link.map_or(Duration::ZERO, |(link, _)| 4 * (link.opening() + link.transfer(bytes)));
        let moved = self.mover.go(&Job {
            spec,
            source: &kept.source,
            to: to.path(),
            folder: folder.path(),
            patience: PATIENCE + Duration::from_secs(bytes / SLOWEST) + crossing,
            window,
            link,
        })?;
        let mut synced = None;
        if spec.way.leaves_files() {
            if spec.place == Storage::Disk {
                synced = sync(to.path()).ok();
            }
            kept.source.verify(to.path())?;
        }
        let (ops, bytes) = moved.read.unwrap_or((kept.source.files() as u64, kept.source.bytes()));
        let mut counted = Counted {
            tails: Vec::new(),
            ops,
            bytes,
            wall_s: moved.wall.as_secs_f64(),
            cpu_s: moved.cpu.values().sum::<Duration>().as_secs_f64(),
            figures: figures(spec, &moved, bytes),
        };
        if spec.shape.is_folder() || spec.way == Way::Random {
            counted.figures.push(("rate", ops as f64 / counted.wall_s));
        }
        if let Some(synced) = synced {
            let rate = bytes as f64 / (counted.wall_s + synced.as_secs_f64());
            counted.figures.push(("throughput_synced", rate));
        }
        Ok((counted, moved))
    }
}

impl Timed for FileCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        // What cannot move a byte is found out before anything long begins, and programs come into memory.
        if self.spec.way == Way::Send && !self.spec.shape.is_folder() {
            let byte = Spec {
                shape: Shape::Byte,
                ..self.spec
            };
            self.once(&byte, Duration::ZERO, None)?;
        }
        self.sources.get(&self.spec).map(drop)
    }

    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let link = self.over.map(|over| (over.link, over.turn(self.turns)));
        self.turns += 1;
        self.once(&self.spec, window, link).map(|(counted, _)| counted)
    }
}

/// Names of what each role costs.
const ROLES: [(Role, &str, &str); 3] = [
    (Role::Sender, "cpu_per_gb_sender", "memory_sender"),
    (Role::Receiver, "cpu_per_gb_receiver", "memory_receiver"),
    (Role::Relay, "cpu_per_gb_relay", "memory_relay"),
];

fn figures(spec: &Spec, moved: &Moved, bytes: u64) -> Vec<(&'static str, f64)> {
    let mut figures = Vec::new();
    let gigabytes = bytes as f64 / 1e9;
    let set_up = spec.shape == Shape::Byte;
    for (role, cost, memory) in ROLES {
        if let Some(cpu) = moved.cpu.get(&role).filter(|_| !set_up) {
            figures.push((cost, cpu.as_secs_f64() / gigabytes));
        }
        if let Some(&peak) = moved.memory.get(&role).filter(|peak| **peak > 0) {
            figures.push((memory, peak as f64));
        }
    }
    let cpu: Duration = moved.cpu.values().sum();
    if set_up {
        figures.push(("setup_time", moved.first.unwrap_or(moved.wall).as_secs_f64()));
        figures.push(("total_time", moved.wall.as_secs_f64()));
        figures.push(("cpu_per_transfer", cpu.as_secs_f64()));
    } else {
        figures.push(("cpu_per_gb", cpu.as_secs_f64() / gigabytes));
    }
    let peak: u64 = moved.memory.values().sum();
    if peak > 0 {
        figures.push(("memory", peak as f64));
    }
    figures.retain(|(_, value)| value.is_finite());
    figures
}
