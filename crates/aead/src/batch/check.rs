//! The rules a batch keeps, checked before anything is touched.

use alloc::vec::Vec;

use crate::low::Memory;
use crate::{Error, JobError, Suite};

use super::{Job, Slot};

/// Where the output of a job lies, for finding overlaps.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    end: u64,
    job: u32,
}

/// The memory of a batch, as far as its rules go: how large it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arenas {
    /// Bytes of the input arena.
    pub src: usize,
    /// Bytes of the output arena.
    pub dst: usize,
    /// Bytes of the arena of associated data.
    pub aad: usize,
    /// True if input and output are one arena, so that every job's input has to start where its output does.
    pub in_place: bool,
}

impl Arenas {
    /// Those of a batch that is to be run over `memory`.
    pub fn of(memory: &Memory<'_>, aad: &[u8]) -> Self {
        Arenas {
            src: memory.src().len(),
            dst: memory.dst_ref().len(),
            aad: aad.len(),
            in_place: matches!(memory, Memory::InPlace(_)),
        }
    }
}

/// The rules of a batch, for whoever runs the jobs: [`super::Engine`], or something other than this processor.
///
/// Holds scratch memory, which is used only for batches whose outputs do not ascend.
#[derive(Debug, Default)]
pub struct Rules {
    spans: Vec<Span>,
}

impl Rules {
    /// Refuses a batch that breaks a rule, and names the first job that does. `suite_of` says which suite the key of a slot
    /// is for, or `None` if there is no key.
    ///
    /// # Errors
    /// [`Error::Job`].
    #[inline]
    pub fn check(
        &mut self,
        suite_of: impl Fn(Slot) -> Option<Suite>,
        jobs: &[Job],
        arenas: Arenas,
    ) -> Result<(), Error> {
        let (src, dst, aad) = (arenas.src as u64, arenas.dst as u64, arenas.aad as u64);
        let mut ascending = true;
        let mut last_end = 0;
        for (index, job) in jobs.iter().enumerate() {
            let refuse = |wrong| Err(Error::Job { index, wrong });
            let Some(suite) = suite_of(job.slot) else {
                return refuse(JobError::NoKey);
            };
            if usize::from(job.nonce_len) != suite.nonce_len() {
                return refuse(JobError::NonceLength);
            }
            if u64::from(job.src) + job.input_len() as u64 > src {
                return refuse(JobError::Input);
            }
            if u64::from(job.dst) + job.output_len() as u64 > dst {
                return refuse(JobError::Output);
            }
            if job.aad_len > 0 && u64::from(job.aad) + u64::from(job.aad_len) > aad {
                return refuse(JobError::AssociatedData);
            }
            if arenas.in_place && job.src != job.dst {
                return refuse(JobError::NotInPlace);
            }
            let span = span(job, index, arenas.in_place);
            ascending &= span.start >= last_end;
            last_end = span.end;
        }
        if ascending {
            Ok(())
        } else {
            check_overlap(jobs, arenas.in_place, &mut self.spans)
        }
    }
}

/// What a job claims for itself: its output, and in place its input too.
#[inline(always)]
fn span(job: &Job, index: usize, in_place: bool) -> Span {
    let claimed = if in_place {
        job.len as usize + Suite::TAG_LEN
    } else {
        job.output_len()
    };
    Span {
        start: u64::from(job.dst),
        end: u64::from(job.dst) + claimed as u64,
        job: index as u32,
    }
}

/// Sorts the spans and compares neighbours.
#[cold]
fn check_overlap(jobs: &[Job], in_place: bool, spans: &mut Vec<Span>) -> Result<(), Error> {
    spans.clear();
    // An empty output overlaps nothing, wherever it lies.
    spans.extend(
        jobs.iter()
            .enumerate()
            .map(|(index, job)| span(job, index, in_place))
            .filter(|span| span.start < span.end),
    );
    spans.sort_unstable_by_key(|span| (span.start, span.job));
    let clash = spans
        .windows(2)
        .filter(|pair| pair[1].start < pair[0].end)
        .map(|pair| pair[0].job.max(pair[1].job))
        .min();
    match clash {
        Some(job) => Err(Error::Job {
            index: job as usize,
            wrong: JobError::Overlap,
        }),
        None => Ok(()),
    }
}
