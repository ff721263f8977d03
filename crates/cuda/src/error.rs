//! What can go wrong, and whose fault it is.

use std::fmt;

use sealway_aead::{Fault, JobError};

/// Why the GPU did not do what it was asked to.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The driver's library is not on this machine.
    NoDriver,
    /// The driver sees no device.
    NoDevice,
    /// There is no device of this number.
    NoSuchDevice {
        /// The number asked for.
        ordinal: u32,
        /// Devices there are.
        devices: u32,
    },
    /// The driver is older than what the kernels were made for.
    DriverTooOld {
        /// The version of CUDA that the driver is for, major and minor; zeros if it does not say.
        have: (u32, u32),
        /// The oldest that will do.
        need: (u32, u32),
    },
    /// The device is older than what the kernels were made for.
    TooOldDevice {
        /// Its compute capability.
        have: (u32, u32),
        /// The least that will do.
        need: (u32, u32),
    },
    /// Memory ran out.
    OutOfMemory {
        /// Bytes asked for in one piece; 0 if it was for what the driver itself needs.
        asked: usize,
        /// Where they were to be.
        place: Place,
    },
    /// An option has a value that cannot be.
    Option {
        /// Which one.
        name: &'static str,
        /// What it may be.
        may_be: &'static str,
    },
    /// A batch cannot be sent again, because keys have changed since.
    KeysChanged,
    /// A slot outside the key table.
    NoSuchSlot {
        /// The slot.
        slot: u32,
        /// Slots there are.
        slots: usize,
    },
    /// A job breaks a rule; none of its batch was begun.
    Job {
        /// Its place in the batch, counted from 0.
        index: usize,
        /// The rule.
        wrong: Wrong,
    },
    /// As many statuses as jobs are needed.
    StatusCount {
        /// Jobs given.
        jobs: usize,
        /// Statuses given.
        statuses: usize,
    },
    /// The batch that is to be finished was not started, or is not the one that was.
    NotStarted,
    /// Every chunk of the ring belongs to a [`crate::Ticket`]; collect some first.
    Busy,
    /// The device or its driver failed.
    Device {
        /// What was being done.
        doing: &'static str,
        /// The driver's code; 0 if the driver said nothing was wrong.
        code: u32,
        /// The driver's name for it.
        name: String,
        /// True if nothing more can be done with the device in this process.
        lost: bool,
    },
    /// The device failed earlier in a way that leaves it unusable for this process; another engine must be opened, most
    /// likely in another process.
    Lost,
}

/// What is wrong with a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wrong {
    /// It breaks a rule of every batch.
    Rule(JobError),
    /// It needs more room than a chunk has: text, associated data and tables together.
    TooLong {
        /// Bytes it needs.
        bytes: usize,
        /// Bytes a chunk has.
        most: usize,
    },
}

/// Where memory is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// On the device.
    Device,
    /// Of the host, pinned so that the device can reach it.
    Host,
}

/// A batch that ended early. Its first `done` jobs are complete, the others untouched: their outputs, statuses and, in
/// place, their inputs are as they were.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stopped {
    /// Jobs that are complete, from the first.
    pub done: usize,
    /// Why there are no more.
    pub error: Error,
}

impl Error {
    /// Who is at fault.
    pub const fn fault(&self) -> Fault {
        match self {
            Error::Option { .. }
            | Error::NoSuchSlot { .. }
            | Error::Job { .. }
            | Error::StatusCount { .. }
            | Error::NotStarted
            | Error::KeysChanged
            | Error::Busy => Fault::Caller,
            _ => Fault::Environment,
        }
    }

    /// True if the engine that gave this cannot be used again.
    pub const fn is_lost(&self) -> bool {
        matches!(self, Error::Lost | Error::Device { lost: true, .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoDriver => f.write_str("no NVIDIA driver on this machine; install one to use the GPU"),
            Error::NoDevice => f.write_str("the NVIDIA driver sees no device"),
            Error::NoSuchDevice { ordinal, devices } => {
                write!(
                    f,
                    "there is no GPU {ordinal}; the driver sees {devices}, counted from 0"
                )
            }
            Error::DriverTooOld { have: (0, 0), need } => {
                write!(
                    f,
                    "the NVIDIA driver is too old: update it to one for CUDA {}.{}",
                    need.0, need.1
                )
            }
            Error::DriverTooOld { have, need } => write!(
                f,
                "the NVIDIA driver is for CUDA {}.{}: update it to one for {}.{} or newer",
                have.0, have.1, need.0, need.1
            ),
            Error::TooOldDevice { have, need } => write!(
                f,
                "the GPU has compute capability {}.{}, {}.{} is needed",
                have.0, have.1, need.0, need.1
            ),
            Error::OutOfMemory {
                asked: 0,
                place: Place::Device,
            } => f.write_str("the GPU has no room left for another program"),
            Error::OutOfMemory {
                asked,
                place: Place::Device,
            } => write!(f, "the GPU has no {asked} bytes left: ask for fewer or smaller chunks"),
            Error::OutOfMemory {
                asked,
                place: Place::Host,
            } => write!(
                f,
                "no {asked} bytes of host memory could be pinned: ask for fewer or smaller chunks"
            ),
            Error::Option { name, may_be } => write!(f, "option `{name}` must be {may_be}"),
            Error::NoSuchSlot { slot, slots } => write!(f, "there is no key slot {slot}: the table has {slots}"),
            Error::Job { index, wrong } => write!(f, "job {index}: {wrong}"),
            Error::StatusCount { jobs, statuses } => {
                write!(f, "{jobs} jobs need as many statuses; {statuses} were given")
            }
            Error::NotStarted => f.write_str("the batch to be finished is not the one that was started"),
            Error::Busy => f.write_str("every chunk belongs to a ticket; collect some first"),
            Error::Device {
                doing,
                code,
                name,
                lost,
            } => {
                write!(f, "the GPU failed while {doing}: {name}")?;
                // Not of a call that could not be made.
                if *code != 0 {
                    write!(f, " ({code})")?;
                }
                if *lost {
                    f.write_str("; this process cannot use it any more")?;
                }
                Ok(())
            }
            Error::KeysChanged => f.write_str("keys have changed since the batch was sent; fill another"),
            Error::Lost => f.write_str("the GPU failed earlier; this process cannot use it any more"),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Rule(wrong) => wrong.fmt(f),
            Wrong::TooLong { bytes, most } => {
                write!(
                    f,
                    "it needs {bytes} bytes of a chunk, which has {most}: use larger chunks"
                )
            }
        }
    }
}

impl From<JobError> for Wrong {
    fn from(wrong: JobError) -> Self {
        Wrong::Rule(wrong)
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped after {} jobs: {}", self.done, self.error)
    }
}

impl std::error::Error for Stopped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped { done: 0, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_and_whose_fault() {
        let wrong = Wrong::Rule(JobError::NoKey);
        let error = Error::Job { index: 3, wrong };
        assert_eq!(error.to_string(), "job 3: its key slot is empty or outside the table");
        assert_eq!(error.fault(), Fault::Caller);
        assert_eq!(Error::NoDriver.fault(), Fault::Environment);
        let error = Error::Device {
            doing: "copying in",
            code: 700,
            name: "CUDA_ERROR_ILLEGAL_ADDRESS".into(),
            lost: true,
        };
        assert!(error.is_lost() && Error::Lost.is_lost() && !Error::NoDevice.is_lost());
        let stopped = Stopped { done: 7, error };
        assert_eq!(
            stopped.to_string(),
            "stopped after 7 jobs: the GPU failed while copying in: CUDA_ERROR_ILLEGAL_ADDRESS (700); this process \
             cannot use it any more"
        );
    }
}
