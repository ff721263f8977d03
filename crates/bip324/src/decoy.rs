//! When to send packets that mean nothing, and how large.
//!
//! A decoy is a packet like any other, with its own number and one bit set inside its sealed part: on the wire nothing tells
//! it from a message of its length. Sizes of messages still show if decoys do not cover them; what is hidden depends on the
//! policy, and none here is claimed to withstand an analyst.

use core::fmt;

use sealway_aead::keystream;
use zeroize::Zeroizing;

use crate::{CONTENTS_MAX, Error};

/// Most decoys for one moment, whatever a shaper says.
pub const DECOYS_PER_MOMENT: usize = 64;

/// When a shaper is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Moment {
    /// A message of this many bytes of contents is about to be sealed.
    Before {
        /// Bytes of its contents.
        contents_len: usize,
    },
    /// A message of this many bytes of contents has been sealed.
    After {
        /// Bytes of its contents.
        contents_len: usize,
    },
    /// Nothing is to be sent. It is asked as often as the caller likes, by the caller's clock.
    Idle,
}

/// Says when decoys are sent.
pub trait Shaper {
    /// The length of the contents of a decoy to send now, in bytes, or `None` for no more. It is asked again after each, up
    /// to [`DECOYS_PER_MOMENT`] times. `random` is a random number of 64 bits, another at each call.
    fn decoy(&mut self, moment: Moment, random: u64) -> Option<usize>;
}

/// No decoys, as Bitcoin Core does.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDecoys;

impl Shaper for NoDecoys {
    fn decoy(&mut self, _: Moment, _: u64) -> Option<usize> {
        None
    }
}

/// Decoys at a rate: after each message one, with a probability, of a size drawn evenly from a range.
#[derive(Clone, Copy, Debug)]
pub struct DecoyPolicy {
    percent: u8,
    min: usize,
    max: usize,
    /// True between a decoy and the end of its moment.
    sent: bool,
}

impl DecoyPolicy {
    /// Decoys after `percent` of 100 messages, with `min` to `max` bytes of contents.
    ///
    /// # Errors
    /// [`Error::DecoyPolicy`] above 100 percent, for sizes in the wrong order or above 2^24 - 1.
    pub const fn new(percent: u8, min: usize, max: usize) -> Result<Self, Error> {
        let problem = if percent > 100 {
            "decoys follow at most 100 of 100 messages"
        } else if min > max {
            "the smallest decoy is larger than the largest"
        } else if max > CONTENTS_MAX {
            "a decoy has at most 16777215 bytes"
        } else {
            return Ok(DecoyPolicy {
                percent,
                min,
                max,
                sent: false,
            });
        };
        Err(Error::DecoyPolicy { problem })
    }

    /// Decides by one random number whether a decoy follows a message, and of how many bytes.
    pub const fn decide(&self, random: u64) -> Option<usize> {
        // The upper half says whether, the lower half how large.
        if ((random >> 32) * 100) >> 32 >= self.percent as u64 {
            return None;
        }
        Some(self.size(random))
    }

    /// A size of a decoy, by the lower half of a random number.
    const fn size(&self, random: u64) -> usize {
        // By multiplication: the unevenness is below 2^-32 times the size of the range.
        let sizes = (self.max - self.min) as u64 + 1;
        self.min + (((random & 0xffff_ffff) * sizes) >> 32) as usize
    }
}

impl Shaper for DecoyPolicy {
    fn decoy(&mut self, moment: Moment, random: u64) -> Option<usize> {
        let ask = matches!(moment, Moment::After { .. }) && !self.sent;
        let decoy = if ask { self.decide(random) } else { None };
        self.sent = decoy.is_some();
        decoy
    }
}

/// A policy with random numbers of its own, for a direction that sends decoys by itself: see
/// [`Outgoing::set_decoys`](crate::stream::Outgoing::set_decoys).
pub struct Decoys {
    policy: DecoyPolicy,
    numbers: Numbers,
}

impl Decoys {
    /// Decides by numbers that follow from `seed`: 32 bytes of a cryptographic generator, others for each direction of each
    /// connection. Whoever knows them knows which packets are decoys.
    ///
    /// A peer refuses decoys that are longer than the messages it takes: Bitcoin Core those above
    /// [`DEFAULT_CONTENTS_LIMIT`](crate::DEFAULT_CONTENTS_LIMIT).
    pub fn new(policy: DecoyPolicy, seed: &[u8; 32]) -> Self {
        let numbers = Numbers::new(seed);
        Decoys { policy, numbers }
    }

    /// Decides about one message: the bytes of contents of the decoy that follows it, if one does.
    ///
    /// # Errors
    /// [`Error::Aead`] if there are no random numbers.
    pub fn after_message(&mut self) -> Result<Option<usize>, Error> {
        Ok(self.policy.decide(self.numbers.next()?))
    }

    /// Bytes of contents of a decoy that follows no message.
    ///
    /// # Errors
    /// As [`Decoys::after_message`].
    pub fn size(&mut self) -> Result<usize, Error> {
        Ok(self.policy.size(self.numbers.next()?))
    }

    /// A random number of 64 bits, for the time of a decoy that follows no message.
    ///
    /// # Errors
    /// As [`Decoys::after_message`].
    pub fn random(&mut self) -> Result<u64, Error> {
        self.numbers.next()
    }
}

impl fmt::Debug for Decoys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoys({:?})", self.policy)
    }
}

/// Bytes of keystream that are made at a time.
const NUMBERS_LEN: usize = 256;

/// Random numbers out of a seed: the keystream of ChaCha20, another nonce for each stretch.
struct Numbers {
    seed: Zeroizing<[u8; 32]>,
    /// The stretch that is next.
    stretch: u64,
    bytes: Zeroizing<[u8; NUMBERS_LEN]>,
    /// Bytes of it that have been used.
    used: usize,
}

impl Numbers {
    fn new(seed: &[u8; 32]) -> Self {
        Numbers {
            seed: Zeroizing::new(*seed),
            stretch: 0,
            bytes: Zeroizing::new([0; NUMBERS_LEN]),
            used: NUMBERS_LEN,
        }
    }

    fn next(&mut self) -> Result<u64, Error> {
        if self.used == NUMBERS_LEN {
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&self.stretch.to_le_bytes());
            keystream::fill(&self.seed, &nonce, 0, &mut self.bytes[..])?;
            self.stretch = self.stretch.wrapping_add(1);
            self.used = 0;
        }
        let mut number = [0; 8];
        number.copy_from_slice(&self.bytes[self.used..self.used + 8]);
        self.used += 8;
        Ok(u64::from_le_bytes(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of fixed numbers (SplitMix64).
    fn numbers() -> impl FnMut() -> u64 {
        let mut state = 1u64;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }
    }

    #[test]
    fn rates_and_sizes_are_as_asked() {
        for (percent, min, max) in [(0, 0, 64), (5, 0, 64), (20, 10, 10), (100, 3, 5)] {
            let policy = DecoyPolicy::new(percent, min, max).unwrap();
            let mut random = numbers();
            let sizes: Vec<usize> = (0..100_000).filter_map(|_| policy.decide(random())).collect();
            let wanted = 1000 * usize::from(percent);
            assert!(sizes.len().abs_diff(wanted) <= 600, "{} of {wanted}", sizes.len());
            if percent > 0 {
                assert_eq!(sizes.iter().min(), Some(&min));
                assert_eq!(sizes.iter().max(), Some(&max));
            }
        }
        let all = DecoyPolicy::new(100, 0, CONTENTS_MAX).unwrap();
        assert_eq!(all.decide(u64::MAX), Some(CONTENTS_MAX));
        assert_eq!(all.decide(0), Some(0));
        let none = DecoyPolicy::new(0, 0, 0).unwrap();
        assert_eq!(none.decide(0), None);
    }

    #[test]
    fn one_decoy_a_message_at_most() {
        let mut policy = DecoyPolicy::new(100, 1, 1).unwrap();
        let after = Moment::After { contents_len: 9 };
        assert_eq!(policy.decoy(Moment::Before { contents_len: 9 }, 0), None);
        assert_eq!(policy.decoy(Moment::Idle, 0), None);
        for _ in 0..3 {
            assert_eq!(policy.decoy(after, 0), Some(1));
            assert_eq!(policy.decoy(after, 0), None);
        }
    }

    #[test]
    fn policies_that_mean_nothing() {
        assert!(DecoyPolicy::new(101, 0, 1).is_err());
        assert!(DecoyPolicy::new(1, 2, 1).is_err());
        assert!(DecoyPolicy::new(1, 0, CONTENTS_MAX + 1).is_err());
    }

    #[test]
    fn a_seed_gives_the_same_decoys_again_and_another_seed_others() {
        let policy = DecoyPolicy::new(5, 0, 300).unwrap();
        let decoys = |seed: u8| {
            let mut decoys = Decoys::new(policy, &[seed; 32]);
            let decided: Vec<_> = (0..10_000).map(|_| decoys.after_message().unwrap()).collect();
            assert!((0..100).all(|_| decoys.size().unwrap() <= 300));
            decided
        };
        let first = decoys(1);
        assert!(first == decoys(1) && first != decoys(2));
        let sizes: Vec<usize> = first.into_iter().flatten().collect();
        assert!((400..600).contains(&sizes.len()), "{}", sizes.len());
        assert!(sizes.iter().any(|size| *size < 20) && sizes.iter().any(|size| *size > 280));
    }

    #[test]
    fn numbers_do_not_come_again() {
        let mut numbers = Numbers::new(&[7; 32]);
        let drawn: std::collections::HashSet<u64> = (0..1000).map(|_| numbers.next().unwrap()).collect();
        assert_eq!(drawn.len(), 1000);
    }
}
