//! What jobs cost on the processor and elsewhere, and which of them are better done elsewhere.

use std::error::Error as StdError;
use std::fmt;
use std::str::FromStr;

/// First word of the line that [`Costs`] are written as: a name, and the version of what follows.
const HEAD: &str = "sealway-costs/1";

/// What such a line begins with in any version.
pub(super) const NAME: &str = "sealway-costs/";

/// A split must end sooner than the processor alone by this part of its time: costs are measured, and measurements waver.
const MARGIN: u128 = 16;

/// What a number of jobs takes, in picoseconds (10^-12 s).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Line {
    /// For any number of jobs but none.
    pub fixed: u64,
    /// For each job.
    pub job: u64,
    /// For each byte of messages, tags not counted.
    pub byte: u64,
}

impl Line {
    /// Picoseconds for so many jobs of so many bytes together, or the most that can be said; nothing for no jobs.
    pub const fn of(self, jobs: usize, bytes: usize) -> u128 {
        if jobs == 0 {
            return 0;
        }
        let (per_job, per_byte) = (self.job as u128 * jobs as u128, self.byte as u128 * bytes as u128);
        per_job.saturating_add(per_byte).saturating_add(self.fixed as u128)
    }
}

/// What jobs cost on the processor and on an executor. [`Costs::measure`] finds them out.
///
/// As text they are one line, so that they can be kept in a file and need not be measured at every start. They hold for what
/// they were measured with; keep beside them, and measure again when one of these changes: the model of the processor and the
/// name of the [`super::Backend`], the name and driver version of the device and the place it is plugged into, and the version of
/// the program.
///
/// ```
/// use sealway_bip324::batch::Costs;
///
/// let line = "sealway-costs/1 cpu 0 90000 450 thread 8000000 20000 120 executor 15000000 1500 40";
/// let costs: Costs = line.parse()?;
/// assert_eq!((costs.cpu.job, costs.executor.fixed), (90_000, 15_000_000));
/// assert_eq!(costs.to_string(), line);
/// # Ok::<(), sealway_bip324::batch::CostsError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Costs {
    /// The processor does the jobs, on one thread.
    pub cpu: Line,
    /// This thread gives the jobs to the executor and takes the results: it can do nothing else meanwhile.
    pub thread: Line,
    /// The executor works, and this thread is free.
    pub executor: Line,
}

/// A batch, as far as it matters where it is done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Load {
    pub(super) jobs: usize,
    pub(super) bytes: usize,
    /// How many of the first jobs the executor takes, and their bytes.
    pub(super) taken: usize,
    pub(super) taken_bytes: usize,
}

impl Costs {
    /// Jobs of one length from which on the executor gets some of them, if there is such a number below 2^24.
    pub fn break_even(&self, message_len: usize) -> Option<usize> {
        let pays = |jobs: usize| {
            let bytes = jobs.saturating_mul(message_len);
            let load = Load {
                jobs,
                bytes,
                taken: jobs,
                taken_bytes: bytes,
            };
            self.share(&load) > 0
        };
        let mut high = (0..=24).map(|power| 1 << power).find(|&jobs| pays(jobs))?;
        let mut low = high / 2;
        while low + 1 < high {
            let middle = (low + high) / 2;
            if pays(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    /// How many of the first jobs the executor is to have, so that the batch ends soonest.
    ///
    /// With `k` of them there, this thread gives them away and does the rest while the executor works, then takes the results:
    /// `thread(k) + max(cpu(rest), executor(k))`. That is shortest where both end at one time, or with none. Jobs count as if
    /// those that the executor takes were of one length.
    pub(super) fn share(&self, load: &Load) -> usize {
        let alone = self.cpu.of(load.jobs, load.bytes);
        let (jobs, bytes) = (load.taken as u128, load.taken_bytes as u128);
        let sum = |of: fn(&Line) -> u64| u128::from(of(&self.cpu)) + u128::from(of(&self.executor));
        let both = sum(|line| line.job)
            .saturating_mul(jobs)
            .saturating_add(sum(|line| line.byte).saturating_mul(bytes));
        let left = alone.saturating_sub(u128::from(self.executor.fixed));
        let share = match jobs.saturating_mul(left).checked_div(both) {
            Some(share) => share.min(jobs) as usize,
            None => load.taken,
        };
        if self.split(load, share) < alone - alone / MARGIN {
            share
        } else {
            0
        }
    }

    /// True if a slab is better given to the executor, which still has those under way to do.
    ///
    /// If other packets come after it, this thread goes on with them for as long as it would have taken for these: of one slab,
    /// only what the executor needs beyond that is waited for. The next is given if it is done there before the processor would
    /// have done it. The last is waited for in any case.
    pub(super) fn pays(&self, jobs: usize, bytes: usize, under_way: &[(usize, usize)], more: bool) -> bool {
        let alone = self.cpu.of(jobs, bytes);
        let given = self.thread.of(jobs, bytes);
        let before = under_way.iter().map(|&(jobs, bytes)| self.executor.of(jobs, bytes));
        let before = before.fold(0, u128::saturating_add);
        let there = self.executor.of(jobs, bytes);
        let waited = if more && under_way.is_empty() {
            // As much again may be done here meanwhile.
            there.saturating_sub(alone)
        } else {
            before.saturating_add(there)
        };
        given.saturating_add(waited) < alone - alone / MARGIN
    }

    /// Picoseconds for a batch of which the executor has the first `share` jobs.
    fn split(&self, load: &Load, share: usize) -> u128 {
        let bytes = (share as u128 * load.taken_bytes as u128).checked_div(load.taken as u128);
        let bytes = bytes.unwrap_or(0) as usize;
        let rest = self
            .cpu
            .of(load.jobs.saturating_sub(share), load.bytes.saturating_sub(bytes));
        self.thread
            .of(share, bytes)
            .saturating_add(rest.max(self.executor.of(share, bytes)))
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for (name, line) in [("cpu", self.cpu), ("thread", self.thread), ("executor", self.executor)] {
            write!(f, " {name} {} {} {}", line.fixed, line.job, line.byte)?;
        }
        Ok(())
    }
}

/// What is wrong with a line of costs. It is the fault of whoever wrote it, or it is of another version: measure again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CostsError {
    /// It does not begin with the name and version of such a line.
    Version,
    /// A word is missing, or another stands in its place.
    Word {
        /// The word.
        expected: &'static str,
    },
    /// A number is missing, is none, or is too large.
    Number {
        /// The word before it and its two neighbours.
        of: &'static str,
    },
    /// Something follows the last number.
    Surplus,
}

impl fmt::Display for CostsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostsError::Version => write!(f, "the costs do not begin with {HEAD}"),
            CostsError::Word { expected } => write!(f, "the costs lack the word {expected} in its place"),
            CostsError::Number { of } => write!(f, "{of} of the costs is not followed by three numbers below 2^64"),
            CostsError::Surplus => f.write_str("something follows the costs"),
        }
    }
}

impl StdError for CostsError {}

impl FromStr for Costs {
    type Err = CostsError;

    /// Reads what is displayed. Any white space may stand between words, before and after them.
    fn from_str(text: &str) -> Result<Self, CostsError> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some(HEAD) {
            return Err(CostsError::Version);
        }
        let mut line = |name| {
            if words.next() != Some(name) {
                return Err(CostsError::Word { expected: name });
            }
            let mut number = || {
                let word = words.next().filter(|word| word.bytes().all(|c| c.is_ascii_digit()));
                word.and_then(|word| word.parse().ok())
                    .ok_or(CostsError::Number { of: name })
            };
            Ok(Line {
                fixed: number()?,
                job: number()?,
                byte: number()?,
            })
        };
        let costs = Costs {
            cpu: line("cpu")?,
            thread: line("thread")?,
            executor: line("executor")?,
        };
        match words.next() {
            Some(_) => Err(CostsError::Surplus),
            None => Ok(costs),
        }
    }
}
