//! The rules a batch keeps, checked before anything is touched.

use crate::low::Memory;
use crate::{Error, JobError, Suite};

use super::{Job, Keys};

/// Where the output of a job lies, for finding overlaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: u64,
    end: u64,
    job: u32,
}

/// Refuses a batch that breaks a rule; names the first job that does.
///
/// `spans` is scratch: it is used only when the outputs do not ascend.
pub(super) fn check(
    keys: &Keys,
    jobs: &[Job],
    memory: &Memory<'_>,
    aad: &[u8],
    spans: &mut Vec<Span>,
) -> Result<(), Error> {
    let (src, dst) = (memory.src().len() as u64, memory.dst_ref().len() as u64);
    let in_place = matches!(memory, Memory::InPlace(_));
    let mut ascending = true;
    let mut last_end = 0;
    for (index, job) in jobs.iter().enumerate() {
        let refuse = |wrong| Err(Error::Job { index, wrong });
        let Some(suite) = keys.suite(job.slot) else {
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
        if job.aad_len > 0 && u64::from(job.aad) + u64::from(job.aad_len) > aad.len() as u64 {
            return refuse(JobError::AssociatedData);
        }
        if in_place && job.src != job.dst {
            return refuse(JobError::NotInPlace);
        }
        let span = span(job, index, in_place);
        ascending &= span.start >= last_end;
        last_end = span.end;
    }
    if ascending {
        Ok(())
    } else {
        check_overlap(jobs, in_place, spans)
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
