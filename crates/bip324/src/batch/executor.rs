//! Something other than the processor that does the jobs.

use std::error::Error as StdError;
use std::fmt;

use sealway_aead::batch::{Job, Slot, Status};

/// Why an executor could not do what it was asked to.
#[derive(Debug)]
pub struct ExecutorFailure(Box<dyn StdError + Send + Sync>);

impl ExecutorFailure {
    /// A failure for a reason.
    pub fn new(reason: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        ExecutorFailure(reason.into())
    }
}

impl fmt::Display for ExecutorFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for ExecutorFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// An executor stopped in the middle of its jobs.
#[derive(Debug)]
pub struct Stopped {
    /// The first so many jobs are complete, output and status. Of all others the place in the arena is as it was when they
    /// were started, and the status was not touched.
    pub done: usize,
    /// Why it stopped.
    pub failure: ExecutorFailure,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped after {} jobs: {}", self.done, self.failure)
    }
}

impl StdError for Stopped {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.failure)
    }
}

/// Something other than the processor that does jobs of a batch, a graphics card for instance, with the same results.
///
/// All jobs are ChaCha20-Poly1305 without associated data, in place: input and output of a job start at one offset, and no
/// two jobs share a byte. A batch goes in two steps, so that the processor can do a part of it meanwhile: [`Executor::start`]
/// takes the input away, [`Executor::finish`] puts the output where the input was. `finish` is called once after each `start`
/// that succeeded, with the same jobs, before anything else is called.
///
/// # What it is trusted with
///
/// It has the keys, and it says which messages are authentic, so it is part of what the security of a connection rests on.
/// Mistakes of its own are looked for all the same, because in place a mistake is worse than lost work: to seal again what
/// has been sealed already would put the plaintext on the wire. After `finish` these must agree:
///
/// - what it says: `Ok`, or [`Stopped::done`];
/// - the statuses: complete jobs [`Status::Done`] (or [`Status::Unauthentic`], if they open), all others untouched;
/// - the room for the tag of each job that seals: it is set to zeros before `start`, and is written for a complete job and
///   only for a complete job. A tag of zeros, one in 2^128, counts as not written.
///
/// If they agree and it failed, the processor does the jobs that are not complete, to the same bytes. If they do not agree,
/// nothing of the jobs it had can be used or done again: they all count as failed, what lies there is wiped, and their
/// connections end. Of a slab, what it did stands apart from what it was given, so whatever it says, the processor can do all
/// of it; only the tags must be there. Either way the executor is dropped; see [`super::BatchTransport::executor_failure`]. One that panics takes the
/// transport with it: if somebody catches that, all further packets fail and their connections end.
pub trait Executor: Send {
    /// A key is in a slot from now on, in place of the one that was there. To be wiped when replaced, cleared or dropped.
    fn set_key(&mut self, slot: Slot, key: &[u8; 32]);

    /// A slot is empty from now on; its key is to be wiped.
    fn clear_key(&mut self, slot: Slot);

    /// Packets that it would like to have at a time; fewer come when results are asked for before.
    fn preferred_jobs(&self) -> usize {
        16_384
    }

    /// Bytes of the longest message it takes, without the tag. The processor does a longer one and what is behind it in the
    /// batch.
    fn longest(&self) -> usize {
        usize::MAX
    }

    /// Bytes of messages that it takes at a time without waiting for the first of them. The processor does what is behind, so that
    /// it need not wait either.
    fn capacity(&self) -> usize {
        usize::MAX
    }

    /// Slots of its table of keys. The processor does a job with the key of a slot beyond, and what is behind it in the batch;
    /// such keys are not set here.
    fn slots(&self) -> usize {
        usize::MAX
    }

    /// Slabs that it has: memory from which it takes packets itself. With them the transport writes packets there at once, and
    /// neither `start` nor `finish` is called.
    ///
    /// A slab is free until [`Executor::start_slab`], under way until [`Executor::finish_slab`], and done until
    /// [`Executor::clear_slab`]. Its jobs are in place and in the order of their offsets.
    fn slabs(&self) -> usize {
        0
    }

    /// Bytes of a slab.
    fn slab_bytes(&self) -> usize {
        0
    }

    /// Jobs that a slab takes.
    fn slab_jobs(&self) -> usize {
        0
    }

    /// Makes a slab free again, whatever it is.
    fn clear_slab(&mut self, _slab: usize) {}

    /// What lies in a slab: of a free one what was written, of one that is done what the executor made of that. Empty while it is
    /// under way.
    fn slab(&self, _slab: usize) -> &[u8] {
        &[]
    }

    /// The same, to be written.
    fn slab_mut(&mut self, _slab: usize) -> &mut [u8] {
        &mut []
    }

    /// True if it would work at once on a slab that is started now. If not, the caller does it itself; `more`: the caller goes on
    /// with other packets meanwhile.
    fn wants_slab(&mut self, _more: bool) -> bool {
        true
    }

    /// Begins with the jobs of a free slab, of which the first `filled` bytes were written.
    ///
    /// # Errors
    /// If it cannot; the slab is free, and as it was written, then.
    fn start_slab(&mut self, _slab: usize, _filled: usize, _jobs: &[Job]) -> Result<(), ExecutorFailure> {
        Err(ExecutorFailure::new("it has no slabs"))
    }

    /// True if [`Executor::finish_slab`] would not wait.
    fn is_slab_done(&mut self, _slab: usize) -> bool {
        true
    }

    /// Waits for a slab under way, and sets the status of each job. All other bytes are as they were written.
    ///
    /// # Errors
    /// If it could not do all of them; the slab is free, and as it was written, then.
    fn finish_slab(&mut self, _slab: usize, _statuses: &mut [Status]) -> Result<(), ExecutorFailure> {
        Err(ExecutorFailure::new("it has no slabs"))
    }

    /// Takes the input of the jobs away and begins with them. `arena` ends with the last of them.
    ///
    /// # Errors
    /// If it cannot; then none of the jobs is begun, and `finish` is not called.
    fn start(&mut self, jobs: &[Job], arena: &[u8]) -> Result<(), ExecutorFailure>;

    /// Waits until the jobs are done, puts the output of each in its place in `arena` and sets its status:
    /// [`Status::Unauthentic`] for what does not authenticate, with zeros as output. The statuses are [`Status::Failed`]
    /// before.
    ///
    /// # Errors
    /// If it cannot do all of them. What it says is checked, as above.
    fn finish(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut [Status]) -> Result<(), Stopped>;
}
