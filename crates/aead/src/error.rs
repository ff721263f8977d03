//! The one error of this crate, sorted by who is at fault.

use alloc::string::String;
use core::error::Error as StdError;
use core::fmt;
use core::str::FromStr;

use crate::Suite;

/// Longest part of a peer's text that an error repeats, in characters.
const QUOTED_CHARS: usize = 40;

/// Who has to change something. Every crate of the workspace sorts its errors by it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The other end, or someone in between, sent something wrong.
    Peer,
    /// The user's configuration, command or name is wrong. Nothing of this crate is.
    User,
    /// The calling code broke a rule of a library.
    Caller,
    /// The machine or the network could not do it.
    Environment,
}

/// Why a call failed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The message did not authenticate: wrong key, nonce, AAD, tag or ciphertext. It says no more on purpose.
    Unauthentic,
    /// An offer of suites was empty.
    EmptyOffer,
    /// A suite was named twice in one offer.
    RepeatedSuite {
        /// The suite.
        suite: Suite,
    },
    /// A name is not one of the four suites.
    UnknownSuite {
        /// The name, shortened and with control characters replaced.
        name: String,
    },
    /// No suite may be used by both ends.
    NoCommonSuite,
    /// A key of a suite that this build does not have, see [`Suite::is_built`].
    NotBuilt {
        /// The suite.
        suite: Suite,
    },
    /// A key of the wrong length.
    KeyLength {
        /// The suite the key was meant for.
        suite: Suite,
        /// Bytes given.
        got: usize,
    },
    /// A nonce of the wrong length.
    NonceLength {
        /// Bytes needed.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// A nonce sequence whose fixed field and counter do not make a nonce of the suite.
    NonceLayout {
        /// The suite.
        suite: Suite,
        /// Bytes of the fixed field.
        fixed: usize,
        /// Bytes of the counter.
        counter: usize,
    },
    /// A nonce sequence made for another suite than the key.
    SuiteMismatch {
        /// Suite of the key.
        key: Suite,
        /// Suite of the sequence.
        nonces: Suite,
    },
    /// A nonce sequence told to go back.
    NonceBehind {
        /// Number of its next nonce.
        next: u64,
        /// Number asked for.
        got: u64,
    },
    /// A message longer than one nonce of the suite may seal.
    TooLong {
        /// The suite.
        suite: Suite,
        /// Bytes given.
        len: u64,
    },
    /// More keystream than there is from a block on: the block counter has 32 bits.
    KeystreamEnd {
        /// Number of the first block asked for.
        counter: u32,
        /// Bytes asked for.
        len: u64,
    },
    /// An output buffer of the wrong length.
    OutputLength {
        /// Bytes needed, exactly.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// A sealed message shorter than its tag.
    TooShort {
        /// Bytes given.
        got: usize,
    },
    /// The key or the nonce sequence is used up: derive new keys, then go on.
    Exhausted,
    /// A pseudorandom key that has not the length of the hash's output.
    SecretLength {
        /// Bytes needed.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// More key material than the hash can expand (RFC 5869: 255 times its output length).
    DerivedLength {
        /// Bytes asked for.
        got: usize,
    },
    /// A label longer than its length field can say.
    LabelLength {
        /// Bytes given.
        got: usize,
    },
    /// A batch was refused before anything was read or written, because of one of its jobs.
    Job {
        /// Which job, counted from 0.
        index: usize,
        /// What is wrong with it.
        wrong: JobError,
    },
    /// As many statuses as jobs are needed.
    StatusCount {
        /// Jobs given.
        jobs: usize,
        /// Statuses given.
        statuses: usize,
    },
    /// A key slot outside the table.
    NoSuchSlot {
        /// The slot.
        slot: u32,
        /// Slots there are.
        slots: usize,
    },
    /// The cryptographic library refused; on a healthy machine this means memory ran out.
    Backend,
}

/// What is wrong with a job of a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum JobError {
    /// Its key slot is outside the table or empty.
    NoKey,
    /// Its nonce has not the length that the suite of its key needs.
    NonceLength,
    /// Its input ends outside the arena.
    Input,
    /// Its output, with the tag if it seals, ends outside the arena.
    Output,
    /// Its associated data end outside their arena.
    AssociatedData,
    /// It is to work in place, but its input does not start where its output does.
    NotInPlace,
    /// Its output overlaps that of another job.
    Overlap,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobError::NoKey => "its key slot is empty or outside the table",
            JobError::NonceLength => "its nonce has not the length of its suite's",
            JobError::Input => "its input ends outside the arena",
            JobError::Output => "its output, tag included, ends outside the arena",
            JobError::AssociatedData => "its associated data end outside their arena",
            JobError::NotInPlace => "in place, its input must start where its output does",
            JobError::Overlap => "its output overlaps that of another job",
        })
    }
}

impl Error {
    pub(crate) fn unknown_suite(name: &str) -> Self {
        let mut quoted: String = name
            .chars()
            .take(QUOTED_CHARS)
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        if name.chars().nth(QUOTED_CHARS).is_some() {
            quoted.push('…');
        }
        Error::UnknownSuite { name: quoted }
    }

    /// Who is at fault.
    pub const fn fault(&self) -> Fault {
        match self {
            Error::Unauthentic
            | Error::EmptyOffer
            | Error::RepeatedSuite { .. }
            | Error::UnknownSuite { .. }
            | Error::NoCommonSuite
            | Error::TooShort { .. } => Fault::Peer,
            Error::NotBuilt { .. }
            | Error::KeyLength { .. }
            | Error::NonceLength { .. }
            | Error::NonceLayout { .. }
            | Error::SuiteMismatch { .. }
            | Error::NonceBehind { .. }
            | Error::SecretLength { .. }
            | Error::TooLong { .. }
            | Error::KeystreamEnd { .. }
            | Error::OutputLength { .. }
            | Error::Exhausted
            | Error::DerivedLength { .. }
            | Error::LabelLength { .. }
            | Error::Job { .. }
            | Error::StatusCount { .. }
            | Error::NoSuchSlot { .. } => Fault::Caller,
            Error::Backend => Fault::Environment,
        }
    }
}

impl FromStr for Suite {
    type Err = Error;

    /// Parses the exact lower-case name.
    ///
    /// # Errors
    /// [`Error::UnknownSuite`] for anything else; its text lists the names.
    fn from_str(text: &str) -> Result<Self, Error> {
        Suite::ALL
            .into_iter()
            .find(|suite| suite.name() == text)
            .ok_or_else(|| Error::unknown_suite(text))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unauthentic => f.write_str("the message is not authentic"),
            Error::EmptyOffer => f.write_str("an offer of cipher suites is empty; offer at least one"),
            Error::RepeatedSuite { suite } => write!(f, "the offer names {suite} twice; name each suite once"),
            Error::UnknownSuite { name } => {
                write!(f, "unknown cipher suite \"{name}\"; the suites are ")?;
                for (i, suite) in Suite::ALL.iter().enumerate() {
                    let separator = if i == 0 { "" } else { ", " };
                    write!(f, "{separator}{suite}")?;
                }
                Ok(())
            }
            Error::NoCommonSuite => {
                f.write_str("the two offers have no suite that both ends may use; offer chacha20-poly1305 on both")
            }
            Error::NotBuilt { suite } => write!(
                f,
                "{suite} is not in this build: it takes feature `aes` of sealway-aead"
            ),
            Error::KeyLength { suite, got } => write!(f, "{suite} takes a key of {} bytes, not {got}", suite.key_len()),
            Error::NonceLength { need, got } => write!(f, "a nonce of {need} bytes is needed, not {got}"),
            Error::NonceLayout { suite, fixed, counter } => write!(
                f,
                "a fixed field of {fixed} bytes and a counter of {counter} (at most 8) do not make the nonce of {suite}, \
                 which has {} bytes",
                suite.nonce_len()
            ),
            Error::SuiteMismatch { key, nonces } => {
                write!(
                    f,
                    "the key is for {key}, the nonce sequence for {nonces}; make both for one suite"
                )
            }
            Error::NonceBehind { next, got } => write!(
                f,
                "the nonce sequence stands at number {next} and cannot go back to {got}; a number is used once"
            ),
            Error::SecretLength { need, got } => write!(
                f,
                "a pseudorandom key of {need} bytes is needed, not {got}; extract one from a secret of another length"
            ),
            Error::TooLong { suite, len } => {
                write!(
                    f,
                    "{suite} seals at most {} bytes a message, not {len}",
                    suite.max_message_len()
                )
            }
            Error::KeystreamEnd { counter, len } => {
                let left = ((1 << 32) - u64::from(*counter)) * 64;
                write!(
                    f,
                    "from block {counter} on a keystream has {left} bytes, not {len}; take another nonce"
                )
            }
            Error::OutputLength { need, got } => write!(f, "the output must have {need} bytes, not {got}"),
            Error::TooShort { got } => {
                write!(f, "a sealed message has at least {} bytes, not {got}", Suite::TAG_LEN)
            }
            Error::Exhausted => f.write_str("this key has sealed all it may; derive the next key and go on with that"),
            Error::DerivedLength { got } => {
                write!(
                    f,
                    "{got} bytes are more than one derivation can give (255 times the length of the hash)"
                )
            }
            Error::LabelLength { got } => {
                write!(f, "a purpose may have 255 bytes and a context 65535, not {got}")
            }
            Error::Job { index, wrong } => write!(f, "the batch was refused because of job {index}: {wrong}"),
            Error::StatusCount { jobs, statuses } => {
                write!(f, "a batch of {jobs} jobs needs as many statuses, not {statuses}")
            }
            Error::NoSuchSlot { slot, slots } => write!(f, "key slot {slot} is outside the table of {slots} slots"),
            Error::Backend => f.write_str("the cryptographic library refused the call, probably for want of memory"),
        }
    }
}

impl StdError for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_and_what_to_do() {
        let text = "aes-512".parse::<Suite>().unwrap_err().to_string();
        assert_eq!(
            text,
            "unknown cipher suite \"aes-512\"; the suites are aes-128-gcm, aes-256-gcm, chacha20-poly1305, \
             xchacha20-poly1305"
        );
        let text = Error::KeyLength {
            suite: Suite::Aes128Gcm,
            got: 32,
        }
        .to_string();
        assert_eq!(text, "aes-128-gcm takes a key of 16 bytes, not 32");
        assert_eq!(Error::Unauthentic.to_string(), "the message is not authentic");
        let text = Error::SuiteMismatch {
            key: Suite::Aes128Gcm,
            nonces: Suite::Aes256Gcm,
        }
        .to_string();
        assert_eq!(
            text,
            "the key is for aes-128-gcm, the nonce sequence for aes-256-gcm; make both for one suite"
        );
        let text = Error::NonceBehind { next: 7, got: 5 }.to_string();
        assert_eq!(
            text,
            "the nonce sequence stands at number 7 and cannot go back to 5; a number is used once"
        );
    }

    #[test]
    fn hostile_names_are_shortened_and_cleaned() {
        let text = format!("\u{1b}[31m{}", "x".repeat(10_000))
            .parse::<Suite>()
            .unwrap_err()
            .to_string();
        assert!(text.len() < 250, "{}", text.len());
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn fault_is_with_the_right_party() {
        assert_eq!(Error::Unauthentic.fault(), Fault::Peer);
        assert_eq!(Error::Exhausted.fault(), Fault::Caller);
        assert_eq!(Error::Backend.fault(), Fault::Environment);
    }
}
