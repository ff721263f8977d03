//! Which jobs of a batch go to the executor.

use sealway_aead::batch::{Job, Slot};

use crate::{LENGTH_LEN, TAG_LEN};

use super::costs::{Costs, Load};
use super::executor::Executor;

/// How the jobs of a batch are divided between the processor and another executor.
///
/// The executor gets the first jobs of a batch: none, some or all of them. It never gets more than it takes: the first
/// message longer than [`Executor::longest`], or with a key beyond [`Executor::slots`], and everything behind it stay with the
/// processor, so that what goes elsewhere is always one stretch in the order of the batch. Of an executor with slabs, each slab
/// goes there whole or stays: by the number of its jobs, or by what it and those under way there cost. A slab in which a key is beyond
/// its slots stays.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Routing {
    /// All that the executor takes. For tests and measurements.
    Always,
    /// All that the executor takes, if it takes at least so many; a slab also if it is full.
    Threshold {
        /// The number of jobs.
        jobs: usize,
    },
    /// As many as make the batch end soonest by these costs: none of a small batch; of a larger one so many that the
    /// processor ends with the rest when the executor does.
    Measured(Costs),
}

impl Default for Routing {
    /// A threshold of 4096 jobs: where a transfer to a device and back is a small part of what the processor would need on any
    /// machine. Whether the device is faster than this processor only [`Costs::measure`] can tell.
    fn default() -> Self {
        Routing::Threshold { jobs: 4096 }
    }
}

/// A rule, and what the executor takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Router {
    routing: Routing,
    longest: usize,
    capacity: usize,
    slots: usize,
    slab_bytes: usize,
    slab_jobs: usize,
}

impl Router {
    pub(super) fn new(routing: Routing, executor: &dyn Executor) -> Self {
        Router {
            routing,
            longest: executor.longest(),
            capacity: executor.capacity(),
            slots: executor.slots(),
            slab_bytes: executor.slab_bytes(),
            slab_jobs: executor.slab_jobs(),
        }
    }

    /// True if the executor has this slot.
    pub(super) const fn has(&self, slot: Slot) -> bool {
        (slot.0 as usize) < self.slots
    }

    /// How many of the first jobs go to the executor.
    pub(super) fn share(&self, jobs: &[Job]) -> usize {
        let load = self.load(jobs);
        match self.routing {
            Routing::Always => load.taken,
            Routing::Threshold { jobs } if load.taken < jobs => 0,
            Routing::Threshold { .. } => load.taken,
            Routing::Measured(costs) => costs.share(&load),
        }
    }

    /// True if the executor is to have a slab with jobs of so many bytes, while others with these loads are under way there.
    /// `more` says that this thread goes on with other packets meanwhile.
    pub(super) fn takes(&self, jobs: usize, bytes: usize, under_way: &[(usize, usize)], more: bool) -> bool {
        match self.routing {
            Routing::Always => true,
            Routing::Threshold { jobs: least } => jobs >= least.min(self.full(jobs, bytes)) || !under_way.is_empty(),
            Routing::Measured(costs) => costs.pays(jobs, bytes, under_way, more),
        }
    }

    /// How many jobs like these a slab takes, less one in eight: what does not fit any more leaves room.
    fn full(&self, jobs: usize, bytes: usize) -> usize {
        let each = bytes.checked_div(jobs).unwrap_or(0) + LENGTH_LEN + TAG_LEN;
        let most = self.slab_jobs.min(self.slab_bytes / each);
        most - most / 8
    }

    fn load(&self, jobs: &[Job]) -> Load {
        let takes = |job: &&Job| job.message_len() <= self.longest && self.has(job.slot());
        let (mut taken, mut taken_bytes) = (0, 0);
        for job in jobs.iter().take_while(takes) {
            if taken_bytes + job.message_len() > self.capacity {
                break;
            }
            taken += 1;
            taken_bytes += job.message_len();
        }
        let rest: usize = jobs[taken..].iter().map(Job::message_len).sum();
        Load {
            jobs: jobs.len(),
            bytes: taken_bytes + rest,
            taken,
            taken_bytes,
        }
    }
}

#[cfg(test)]
mod tests;
