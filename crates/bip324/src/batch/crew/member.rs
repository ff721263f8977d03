//! The executor of one transport.

use std::fmt;
use std::sync::Arc;

use sealway_aead::batch::{Engine, Job, Slot, Status};
use zeroize::{Zeroize, Zeroizing};

use super::super::executor::{Executor, ExecutorFailure, Stopped};
use super::Crew;
use super::load::{Home, Load};

/// Keys that are kept in one piece of memory. It does not move, so growing leaves no copies behind.
const PAGE: usize = 64;

/// A key, and where the slab that is being started has it.
#[derive(Clone, Default)]
struct Known {
    key: Zeroizing<[u8; 32]>,
    is_set: bool,
    /// The start in which it was last put into a slab, and its slot there.
    start: u64,
    slot: u32,
}

/// A slab.
enum Place {
    Here(Box<Load>),
    /// Handed over.
    Away,
}

/// A transport's part in a [`Crew`]: its executor. Made by [`Crew::member`].
pub struct CrewMember {
    crew: Crew,
    home: Arc<Home>,
    slabs: Vec<Place>,
    keys: Vec<Box<[Known]>>,
    /// Counts the slabs that were started.
    starts: u64,
    /// For what this thread does while it waits.
    engine: Engine,
}

impl CrewMember {
    pub(super) fn new(crew: Crew) -> Self {
        let home = Arc::default();
        CrewMember {
            slabs: (0..Crew::SLABS)
                .map(|slab| Place::Here(Load::new(slab, &home)))
                .collect(),
            keys: Vec::new(),
            starts: 0,
            engine: crew.engine(),
            crew,
            home,
        }
    }

    /// Has each slab fail before the last so many jobs.
    #[cfg(test)]
    pub(super) fn leave_out(&mut self, jobs: usize) {
        for place in &mut self.slabs {
            if let Place::Here(load) = place {
                load.left_out = jobs;
            }
        }
    }

    /// Puts jobs and their keys into a slab.
    fn fill(&mut self, load: &mut Load, filled: usize, jobs: &[Job]) -> Result<(), ExecutorFailure> {
        self.starts += 1;
        load.begin(filled);
        for job in jobs {
            let slot = job.slot().0 as usize;
            let known = self.keys.get_mut(slot / PAGE).map(|page| &mut page[slot % PAGE]);
            let known = known
                .filter(|known| known.is_set)
                .ok_or_else(|| ExecutorFailure::new("a job without a key"))?;
            if known.start != self.starts {
                known.slot = load.add_key(&known.key)?;
                known.start = self.starts;
            }
            load.add_job(job, known.slot);
        }
        Ok(())
    }

    /// A slab, once it is here.
    fn fetch(&mut self, slab: usize) -> Option<&mut Load> {
        let place = self.slabs.get_mut(slab)?;
        if let Place::Away = place {
            *place = Place::Here(self.crew.wait(&self.home, slab, &mut self.engine));
        }
        match place {
            Place::Here(load) => Some(load),
            Place::Away => None,
        }
    }
}

impl Executor for CrewMember {
    fn set_key(&mut self, slot: Slot, key: &[u8; 32]) {
        let slot = slot.0 as usize;
        while self.keys.len() <= slot / PAGE {
            self.keys.push(vec![Known::default(); PAGE].into_boxed_slice());
        }
        let known = &mut self.keys[slot / PAGE][slot % PAGE];
        known.key.copy_from_slice(key);
        (known.is_set, known.start) = (true, 0);
    }

    fn clear_key(&mut self, slot: Slot) {
        let slot = slot.0 as usize;
        if let Some(page) = self.keys.get_mut(slot / PAGE) {
            let known = &mut page[slot % PAGE];
            known.key.zeroize();
            known.is_set = false;
        }
    }

    fn slabs(&self) -> usize {
        self.slabs.len()
    }

    fn slab_bytes(&self) -> usize {
        Crew::SLAB_BYTES
    }

    fn slab_jobs(&self) -> usize {
        Crew::SLAB_JOBS
    }

    fn clear_slab(&mut self, slab: usize) {
        if let Some(load) = self.fetch(slab) {
            load.is_done = false;
        }
    }

    #[inline]
    fn slab(&self, slab: usize) -> &[u8] {
        match self.slabs.get(slab) {
            Some(Place::Here(load)) => load.memory(),
            _ => &[],
        }
    }

    #[inline]
    fn slab_mut(&mut self, slab: usize) -> &mut [u8] {
        match self.slabs.get_mut(slab) {
            Some(Place::Here(load)) => load.memory_mut(),
            _ => &mut [],
        }
    }

    fn wants_slab(&mut self, more: bool) -> bool {
        // Without other packets this thread would only wait for another one.
        more && self.crew.takes()
    }

    fn start_slab(&mut self, slab: usize, filled: usize, jobs: &[Job]) -> Result<(), ExecutorFailure> {
        let place = self
            .slabs
            .get_mut(slab)
            .map(|place| std::mem::replace(place, Place::Away));
        let Some(Place::Here(mut load)) = place else {
            return Err(ExecutorFailure::new("a slab that is under way was started"));
        };
        let filled = self.fill(&mut load, filled, jobs);
        if filled.is_err() {
            load.forget_keys();
            self.slabs[slab] = Place::Here(load);
            return filled;
        }
        self.crew.push(load);
        Ok(())
    }

    fn is_slab_done(&mut self, slab: usize) -> bool {
        matches!(self.slabs.get(slab), Some(Place::Here(_))) || self.crew.has(&self.home, slab)
    }

    fn finish_slab(&mut self, slab: usize, statuses: &mut [Status]) -> Result<(), ExecutorFailure> {
        match self.fetch(slab) {
            Some(load) if load.is_done && load.statuses.len() == statuses.len() => {
                statuses.copy_from_slice(&load.statuses);
                Ok(())
            }
            Some(load) => {
                load.is_done = false;
                Err(ExecutorFailure::new("a thread did not do all jobs of a slab"))
            }
            None => Err(ExecutorFailure::new("there is no such slab")),
        }
    }

    fn start(&mut self, _: &[Job], _: &[u8]) -> Result<(), ExecutorFailure> {
        Err(ExecutorFailure::new("a crew takes slabs only"))
    }

    fn finish(&mut self, _: &[Job], _: &mut [u8], _: &mut [Status]) -> Result<(), Stopped> {
        let failure = ExecutorFailure::new("a crew takes slabs only");
        Err(Stopped { done: 0, failure })
    }
}

impl Drop for CrewMember {
    fn drop(&mut self) {
        self.crew.leave(std::mem::take(&mut self.home));
    }
}

impl fmt::Debug for CrewMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrewMember")
            .field("crew", &self.crew)
            .finish_non_exhaustive()
    }
}
