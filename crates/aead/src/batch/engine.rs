//! Runs batches.

use core::cell::Cell;

use zeroize::Zeroize;

use crate::low::portable::hchacha20_words;
use crate::low::{self, KeyWords, Memory, Single, Task, Text, Use};
use crate::one::tags_match;
use crate::{Error, Suite};

use super::backend::Lone;
use super::chunk::Chunk;
use super::{Arenas, Backend, Job, Keys, Report, Rules, Status, library};

/// Jobs worked on at a time: enough that sorting by length fills the lanes, few enough that the text of common packets
/// is still in the second-level cache when the authenticator comes to it.
const CHUNK_JOBS: usize = 1024;

/// Bytes of text worked on at a time, unless one job alone has more.
const CHUNK_BYTES: usize = 512 * 1024;

/// Seals and opens batches of messages; owns the scratch memory.
///
/// Scratch grows to what the largest batch needs and stays; whatever was secret in it is wiped before a call returns.
#[derive(Debug)]
pub struct Engine {
    backend: Backend,
    chunk: Chunk,
    rules: Rules,
}

impl Engine {
    /// An engine with the best backend of this machine.
    pub fn new() -> Self {
        Self::with_backend(Backend::best())
    }

    /// An engine with a given backend.
    pub fn with_backend(backend: Backend) -> Self {
        Engine {
            backend,
            chunk: Chunk::default(),
            rules: Rules::default(),
        }
    }

    /// The backend in use.
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// Runs every job and puts what became of each into `statuses`, in the order of the jobs.
    ///
    /// `aad` is the arena of associated data; it may be empty if no job has any. Jobs of one batch may be of any suite,
    /// direction and length, and may share keys. Bytes of the arenas that no job names are left as they are.
    ///
    /// # Errors
    /// [`Error::Job`] if a job breaks a rule and [`Error::StatusCount`] unless there is one status a job; nothing has
    /// been read or written then, and `statuses` are as they were.
    pub fn run(
        &mut self,
        keys: &Keys,
        jobs: &[Job],
        mut memory: Memory<'_>,
        aad: &[u8],
        statuses: &mut [Status],
    ) -> Result<Report, Error> {
        if statuses.len() != jobs.len() {
            return Err(Error::StatusCount {
                jobs: jobs.len(),
                statuses: statuses.len(),
            });
        }
        let has_chacha = Cell::new(false);
        let suite_of = |slot| {
            let suite = keys.suite(slot);
            has_chacha.set(has_chacha.get() || !suite.is_none_or(Suite::is_aes));
            suite
        };
        self.rules.check(suite_of, jobs, Arenas::of(&memory, aad))?;
        let refused = if !has_chacha.get() {
            library::gcm_each(keys, jobs, &mut memory, aad, statuses)
        } else if self.backend.lone(jobs.len(), 0).is_some() {
            // By their number, whatever their lengths.
            self.run_alone(keys, jobs, &mut memory, aad, statuses)
        } else {
            return Ok(self.run_together(keys, jobs, memory, aad, statuses));
        };
        Ok(Report {
            done: jobs.len() - refused,
            refused,
            ..Report::default()
        })
    }

    /// Runs few jobs that have been checked, one after the other; gives how many were refused.
    fn run_alone(
        &self,
        keys: &Keys,
        jobs: &[Job],
        memory: &mut Memory<'_>,
        aad: &[u8],
        statuses: &mut [Status],
    ) -> usize {
        let mut refused = 0;
        for (index, (job, status)) in jobs.iter().zip(statuses).enumerate() {
            let aad = job.associated(aad);
            let extended = match keys.suite(job.slot) {
                Some(Suite::ChaCha20Poly1305) => Some(false),
                Some(Suite::XChaCha20Poly1305) => Some(true),
                _ => None,
            };
            *status = match extended.zip(self.backend.lone(jobs.len(), job.message_len())) {
                Some((extended, how)) => {
                    let task = task(job, index, extended);
                    lone(how, keys, job, &task, extended, memory, aad)
                }
                None => library::gcm(keys.expanded(job.slot), job, memory, aad),
            };
            refused += usize::from(*status != Status::Done);
        }
        refused
    }

    /// Runs jobs that have been checked, as many at a time as gain by it.
    #[inline(never)]
    fn run_together(
        &mut self,
        keys: &Keys,
        jobs: &[Job],
        mut memory: Memory<'_>,
        aad: &[u8],
        statuses: &mut [Status],
    ) -> Report {
        let mut report = Report::default();
        statuses.fill(Status::Done);
        let mut bytes = 0;
        for (index, job) in jobs.iter().enumerate() {
            let extended = match keys.suite(job.slot) {
                Some(Suite::ChaCha20Poly1305) => false,
                Some(Suite::XChaCha20Poly1305) => true,
                // The check refused empty slots, so what is left is AES.
                _ => {
                    statuses[index] = library::gcm(keys.expanded(job.slot), job, &mut memory, job.associated(aad));
                    continue;
                }
            };
            // The task is made twice in the source so that it is made once, in its place: a task with an address of its own
            // would be stored in pieces and loaded whole, for which the processor waits.
            if let Some(how) = self.backend.lone(jobs.len(), job.message_len()) {
                let task = task(job, index, extended);
                statuses[index] = lone(how, keys, job, &task, extended, &mut memory, job.associated(aad));
                continue;
            }
            if bytes + job.message_len() > CHUNK_BYTES || self.chunk.len() == CHUNK_JOBS {
                self.chunk
                    .run(self.backend, keys, jobs, &mut memory, aad, statuses, &mut report);
                bytes = 0;
            }
            bytes += job.message_len();
            self.chunk
                .push(task(job, index, extended), extended.then_some(&job.nonce));
        }
        self.chunk
            .run(self.backend, keys, jobs, &mut memory, aad, statuses, &mut report);
        report.refused = statuses.iter().filter(|&&status| status != Status::Done).count();
        report.done = jobs.len() - report.refused;
        report
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

/// The task of a ChaCha20 job.
#[inline(always)]
fn task(job: &Job, index: usize, extended: bool) -> Task {
    let word = |at: usize| u32::from_le_bytes([job.nonce[at], job.nonce[at + 1], job.nonce[at + 2], job.nonce[at + 3]]);
    // XChaCha20: the first 16 bytes go into the sub-key, the last 8 stand after four zeros.
    let nonce = if extended {
        [0, 0, word(16), word(20)]
    } else {
        [0, word(0), word(4), word(8)]
    };
    Task {
        nonce,
        src: job.src,
        dst: job.dst,
        len: job.len,
        key: job.slot.0,
        job: index as u32,
        way: if job.opens { Use::Open } else { Use::Seal },
    }
}

/// Runs one job on its own.
fn lone(how: Lone, keys: &Keys, job: &Job, task: &Task, extended: bool, memory: &mut Memory<'_>, aad: &[u8]) -> Status {
    let resident = &keys.words()[task.key as usize];
    let mut sub_key = KeyWords::default();
    if extended {
        let words = job.nonce.as_chunks::<4>().0;
        let head = core::array::from_fn(|i| u32::from_le_bytes(words[i]));
        hchacha20_words(&resident.0, &head, &mut sub_key.0);
    }
    let key = if extended { &sub_key } else { resident };
    let status = match how {
        Lone::Own(have) => lone_own(have, key, job, task, memory, aad),
        #[cfg(feature = "aes")]
        Lone::Library => {
            let kept = if extended { None } else { keys.lone(job.slot) };
            let ready = kept.as_ref().and_then(|kept| kept.key());
            library::chacha(ready, key, task, job, memory, aad)
        }
    };
    if extended {
        sub_key.zeroize();
    }
    status
}

/// Runs one job through the kernels for one message.
fn lone_own(have: Single, key: &KeyWords, job: &Job, task: &Task, memory: &mut Memory<'_>, aad: &[u8]) -> Status {
    let mut sent = [0; Suite::TAG_LEN];
    if job.opens {
        sent.copy_from_slice(&memory.src()[task.src() + task.len()..][..Suite::TAG_LEN]);
    }
    let made = low::one(have, key, &task.nonce, aad, &mut Text::of(memory, task), task.way);
    let dst = memory.dst();
    if !job.opens {
        dst[task.dst() + task.len()..][..Suite::TAG_LEN].copy_from_slice(&made);
    } else if !tags_match(&made, &sent) {
        dst[task.dst()..][..task.len()].fill(0);
        return Status::Unauthentic;
    }
    Status::Done
}
