//! Where the packets of a direction lie: in its own arena, or in slabs of an executor.

use std::collections::VecDeque;

use sealway_aead::batch::{Job, Status, prefetch};

use super::BatchCounters;
use super::crypt::Crypt;

/// Memory that packets lie in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    Arena,
    Slab(u32),
}

/// What has become of the jobs of a sheet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Planned,
    /// The executor has them.
    UnderWay,
    /// The processor has done them, all or not.
    Done(bool),
}

/// Packets that were planned one after the other in one place.
#[derive(Debug)]
struct Sheet {
    place: Place,
    /// Bytes of the place that are in use.
    filled: usize,
    jobs: Vec<Job>,
    statuses: Vec<Status>,
    stage: Stage,
    /// True if jobs that were done wait to be shown in the same slab, which therefore stays here.
    stays: bool,
}

impl Sheet {
    const fn new() -> Self {
        Sheet {
            place: Place::Arena,
            filled: 0,
            jobs: Vec::new(),
            statuses: Vec::new(),
            stage: Stage::Planned,
            stays: false,
        }
    }

    /// Gives it to the executor, if it is in a slab and better done there.
    #[inline]
    fn start(&mut self, crypt: &mut Crypt, more: bool) -> bool {
        if let Place::Slab(slab) = self.place
            && !self.stays
            && crypt.start_slab(slab, self.filled, &self.jobs, more)
        {
            self.stage = Stage::UnderWay;
            return true;
        }
        false
    }

    /// Has the processor, or an executor that has no slabs, do its jobs.
    fn process(&mut self, arena: &mut [u8], crypt: &mut Crypt) {
        let Sheet { jobs, statuses, .. } = self;
        if jobs.is_empty() {
            return;
        }
        self.stage = Stage::Done(match self.place {
            Place::Arena => crypt.run(jobs, &mut arena[..self.filled], statuses),
            Place::Slab(slab) => {
                statuses.clear();
                statuses.resize(jobs.len(), Status::Failed);
                crypt.process_slab(slab, jobs, statuses)
            }
        });
    }

    /// Shows its jobs, if they are done, and forgets them.
    #[inline]
    fn show(&mut self, arena: &mut [u8], crypt: &mut Crypt, each: &mut impl FnMut(Finished<'_>)) {
        let Stage::Done(all) = self.stage else {
            return;
        };
        let memory = match self.place {
            Place::Arena => arena,
            Place::Slab(slab) => crypt.slab_mut(slab),
        };
        each(Finished {
            place: self.place,
            memory,
            jobs: &self.jobs,
            statuses: &self.statuses,
            all,
        });
        self.jobs.clear();
        self.statuses.clear();
        (self.stage, self.stays) = (Stage::Planned, false);
    }
}

/// Jobs that are done, in the order in which they were planned.
pub(super) struct Finished<'a> {
    pub(super) place: Place,
    pub(super) memory: &'a mut [u8],
    pub(super) jobs: &'a [Job],
    pub(super) statuses: &'a [Status],
    /// True if all of them are [`Status::Done`].
    pub(super) all: bool,
}

/// How far behind what is written memory is asked for, in bytes: it takes that long to come from far away.
const AHEAD: usize = 4096;

/// Bytes asked for at a time.
const STEP: usize = 1024;

/// Asks for memory that will be written soon, once a [`STEP`], when `len` bytes are written at `start`. Other programs and sockets may have
/// taken the caches since the last batch, and packets of a few bytes to a few thousand are not what a processor foresees.
#[inline(always)]
pub(super) fn ask_ahead(memory: &[u8], start: usize, len: usize) {
    let (first, last) = (start / STEP, (start + len) / STEP);
    if first != last
        && let Some(next) = memory.get(AHEAD + first * STEP..AHEAD + last * STEP)
    {
        prefetch(next);
    }
}

/// All sheets of a batch.
#[derive(Debug)]
pub(super) struct Sheets {
    /// True if packets are opened, false if they are sealed.
    opens: bool,
    arena: Box<[u8]>,
    /// Bytes of the arena in use by sheets before the one that is written.
    own: usize,
    /// The one that is written.
    open: Sheet,
    /// Those before it whose jobs were not taken yet.
    closed: VecDeque<Sheet>,
    /// Slabs of this batch, in the order in which they were written, and bytes of each that are in use.
    held: Vec<(u32, usize)>,
    /// Empty ones with room for jobs.
    spare: Vec<Sheet>,
}

impl Sheets {
    pub(super) fn new(arena: usize, opens: bool) -> Self {
        Sheets {
            opens,
            arena: vec![0; arena].into_boxed_slice(),
            own: 0,
            open: Sheet::new(),
            closed: VecDeque::new(),
            held: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Bytes of the arena.
    pub(super) const fn arena_len(&self) -> usize {
        self.arena.len()
    }

    /// Where the next packet goes: the place, and the byte.
    #[inline]
    pub(super) const fn end(&self) -> (Place, usize) {
        (self.open.place, self.open.filled)
    }

    /// Sets where the next packet goes in the same place.
    #[inline]
    pub(super) const fn set_end(&mut self, filled: usize) {
        self.open.filled = filled;
    }

    /// Adds the job of a packet in the place that is written.
    #[inline]
    pub(super) fn push(&mut self, job: Job) {
        self.open.jobs.push(job);
    }

    /// True if the next job has to wait until those before are worked on.
    #[inline]
    pub(super) fn is_due(&self, crypt: &Crypt) -> bool {
        let most = match self.open.place {
            Place::Arena => crypt.eager,
            Place::Slab(_) => crypt.slabs.jobs,
        };
        self.open.jobs.len() >= most
    }

    #[inline]
    pub(super) fn memory<'a>(&'a self, place: Place, crypt: &'a Crypt) -> &'a [u8] {
        match place {
            Place::Arena => &self.arena,
            Place::Slab(slab) => crypt.slab(slab),
        }
    }

    /// The memory that is written.
    #[inline]
    pub(super) fn open_memory<'a>(&'a mut self, crypt: &'a mut Crypt) -> &'a mut [u8] {
        match self.open.place {
            Place::Arena => &mut self.arena,
            Place::Slab(slab) => crypt.slab_mut(slab),
        }
    }

    /// The place of a packet of so many bytes, which is taken from now on; the jobs there, and the counters. `None` if an executor
    /// gives less than it said.
    #[inline]
    pub(super) fn next<'a>(
        &'a mut self,
        len: usize,
        crypt: &'a mut Crypt,
    ) -> Option<(&'a mut [u8], &'a mut Vec<Job>, &'a mut BatchCounters)> {
        let Sheets { arena, open, .. } = self;
        let (memory, counters) = match open.place {
            Place::Arena => (&mut **arena, &mut crypt.counters),
            Place::Slab(slab) => crypt.slab_and_counters(slab),
        };
        let end = open.filled + len;
        ask_ahead(memory, open.filled, len);
        let packet = memory.get_mut(open.filled..end)?;
        open.filled = end;
        Some((packet, &mut open.jobs, counters))
    }

    /// Sees that so many bytes fit behind [`Sheets::end`]; false if there is no room in any place.
    #[inline]
    pub(super) fn make_room(&mut self, len: usize, crypt: &mut Crypt) -> bool {
        let limit = match self.open.place {
            Place::Arena if crypt.slabs.has_free() && len <= crypt.slabs.bytes => 0,
            Place::Arena => self.arena.len(),
            Place::Slab(_) if self.is_due(crypt) => 0,
            Place::Slab(_) => crypt.slabs.bytes,
        };
        limit.checked_sub(self.open.filled).is_some_and(|left| len <= left) || self.turn(len, crypt)
    }

    /// Goes on in another place.
    #[cold]
    fn turn(&mut self, len: usize, crypt: &mut Crypt) -> bool {
        let slab = len <= crypt.slabs.bytes && crypt.slabs.has_free();
        if !slab && (self.open.place == Place::Arena || self.arena.len() - self.own < len) {
            return false;
        }
        self.close(crypt, true);
        // The executor may have gone meanwhile.
        if slab && let Some(slab) = crypt.take_slab() {
            self.held.push((slab, 0));
            (self.open.place, self.open.filled) = (Place::Slab(slab), 0);
        }
        self.open.filled + len <= self.open_memory(crypt).len()
    }

    /// Has the jobs of what is written done, here or elsewhere, and goes on in the arena.
    fn close(&mut self, crypt: &mut Crypt, more: bool) {
        if !self.open.start(crypt, more) {
            self.open.process(&mut self.arena, crypt);
        }
        self.turn_over();
    }

    /// Puts what was written behind what was written before, and goes on in the arena.
    fn turn_over(&mut self) {
        match self.open.place {
            Place::Arena => self.own = self.open.filled,
            Place::Slab(_) => self.note(),
        }
        let mut next = self.spare.pop().unwrap_or(Sheet::new());
        (next.place, next.filled) = (Place::Arena, self.own);
        (next.stage, next.stays) = (Stage::Planned, false);
        let sheet = std::mem::replace(&mut self.open, next);
        if sheet.jobs.is_empty() {
            self.spare.push(sheet);
        } else {
            self.closed.push_back(sheet);
        }
    }

    /// Notes how much of the slab that is written is in use.
    fn note(&mut self) {
        if let (Place::Slab(open), Some((slab, filled))) = (self.open.place, self.held.last_mut())
            && *slab == open
        {
            *filled = self.open.filled;
        }
    }

    /// Gives what is written to the executor, if it is to have it, and does not wait.
    pub(super) fn begin(&mut self, crypt: &mut Crypt) {
        if self.open.start(crypt, true) {
            self.turn_over();
        }
    }

    /// Has the jobs of what is written done as soon as there are enough, and shows them if none before them is under way.
    pub(super) fn relieve(&mut self, crypt: &mut Crypt, each: impl FnMut(Finished<'_>)) {
        if self.closed.is_empty() {
            return self.finish(crypt, false, each);
        }
        let (place, filled) = self.end();
        self.open.process(&mut self.arena, crypt);
        self.turn_over();
        (self.open.place, self.open.filled, self.open.stays) = (place, filled, true);
    }

    /// Has all jobs done, and shows them. `last` says that no packet follows for now.
    ///
    /// Jobs stay where they are until they are done: if an executor panics, nothing of them passes for done.
    pub(super) fn finish(&mut self, crypt: &mut Crypt, last: bool, mut each: impl FnMut(Finished<'_>)) {
        if last && self.open.start(crypt, false) {
            self.turn_over();
        }
        // While others are under way.
        self.open.process(&mut self.arena, crypt);
        while let Some(sheet) = self.closed.front_mut() {
            if let (Stage::UnderWay, Place::Slab(slab)) = (sheet.stage, sheet.place) {
                sheet.stage = Stage::Done(crypt.finish_slab(slab, &sheet.jobs, &mut sheet.statuses));
            }
            sheet.show(&mut self.arena, crypt, &mut each);
            self.spare.extend(self.closed.pop_front());
        }
        self.open.show(&mut self.arena, crypt, &mut each);
        self.open.stays = false;
    }

    /// True if there is nothing to be done.
    pub(super) fn is_idle(&self) -> bool {
        self.open.jobs.is_empty() && self.closed.is_empty()
    }

    /// Forgets all packets, which are done.
    pub(super) fn recycle(&mut self, crypt: &mut Crypt) {
        if !self.held.is_empty() {
            self.note();
            for (slab, filled) in self.held.drain(..) {
                crypt.release_slab(slab, filled, self.opens);
            }
        }
        self.own = 0;
        (self.open.place, self.open.filled) = (Place::Arena, 0);
        self.open.stays = false;
    }
}
