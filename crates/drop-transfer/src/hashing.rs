//! How much of what is sent both ends hash, and what of it is compared.
//!
//! Every record is authenticated, so what a hash adds is about the ends: the memory, the kernel and the program between a file and a
//! record. A fault there is rarely one of a single byte that nothing else shows, so a sample finds it at a fraction of the cost. A disk's
//! own faults are for its file system: what is read back comes from the page cache.

use std::collections::BTreeMap;
use std::ops::Range;

use sealway_drop::Error;
use sealway_drop::wire::control::{Accept, Offer};

use crate::groups::{GroupHash, GroupHashes};

/// One group in so many is hashed where a sample is.
pub const ONE_IN: u64 = 64;

/// How much an end wants hashed. Of what the two ends want the more is done.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Hashing {
    /// Nothing.
    Off,
    /// One group in [`ONE_IN`], which nobody knows before the transfer; the receiver hashes what it reads back from its file.
    #[default]
    Sampled,
    /// All of every file, the receiver as it comes.
    All,
}

/// Which groups of which files are hashed where a sample is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sample {
    key: [u8; 32],
}

impl Sample {
    /// A new one, of which nobody knows anything before.
    fn draw() -> Result<Self, Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|error| Error::Usage(format!("the system gives no random bytes: {error}")))?;
        Ok(Self { key })
    }

    /// Whether this group of this file belongs to it. A small file is one group, 0.
    pub(crate) fn takes(&self, file: u32, group: u64) -> bool {
        let mut place = [0; 12];
        place[..4].copy_from_slice(&file.to_be_bytes());
        place[4..].copy_from_slice(&group.to_be_bytes());
        let hash = blake3::keyed_hash(&self.key, &place);
        u64::from(hash.as_bytes()[0]) < 256 / ONE_IN
    }
}

/// What the two ends do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Agreed {
    Off,
    Sampled(Sample),
    All,
}

impl Agreed {
    /// What a receiver that wants this answers to an offer. An end that knows no samples and hashes, hashes all.
    pub(crate) fn answer(wanted: Hashing, offer: &Offer) -> Result<Self, Error> {
        match (wanted, offer.hash, offer.sample) {
            (Hashing::Off, false, _) => Ok(Self::Off),
            (Hashing::Off | Hashing::Sampled, _, true) => Ok(Self::Sampled(Sample::draw()?)),
            _ => Ok(Self::All),
        }
    }

    /// The same in the answer.
    pub(crate) fn accept(&self, by_map: bool) -> Accept {
        Accept {
            hash: *self == Self::All,
            by_map,
            sample: match self {
                Self::Sampled(sample) => sample.key.to_vec(),
                Self::Off | Self::All => Vec::new(),
            },
        }
    }

    /// What the answer to a sender that wants this says.
    pub(crate) fn answered(wanted: Hashing, accept: &Accept) -> Result<Self, Error> {
        let key = accept.sample.as_slice().try_into();
        match (accept.hash, key) {
            (true, Err(_)) if accept.sample.is_empty() => Ok(Self::All),
            (false, Err(_)) if accept.sample.is_empty() && wanted == Hashing::Off => Ok(Self::Off),
            (false, Ok(key)) if wanted != Hashing::All => Ok(Self::Sampled(Sample { key })),
            _ => Err(Error::Protocol("an answer about hashes that fits no offer")),
        }
    }

    /// Whether the hash of a small file follows it in its pack.
    pub(crate) fn takes_small(&self, file: u32) -> bool {
        match self {
            Self::Off => false,
            Self::Sampled(sample) => sample.takes(file, 0),
            Self::All => true,
        }
    }
}

/// What is hashed of one larger file, filled in any order.
pub(crate) enum FileHash {
    Off,
    Sampled {
        sample: Sample,
        file: u32,
        groups: BTreeMap<u64, GroupHash>,
    },
    All(GroupHashes),
}

impl FileHash {
    /// Of a file of `size` bytes.
    pub(crate) fn new(agreed: &Agreed, file: u32, size: u64) -> Self {
        match agreed {
            Agreed::Off => Self::Off,
            Agreed::Sampled(sample) => Self::Sampled {
                sample: *sample,
                file,
                groups: BTreeMap::new(),
            },
            Agreed::All => Self::All(GroupHashes::new(size)),
        }
    }

    /// Whether a group belongs to the sample.
    pub(crate) fn samples(&self, group: u64) -> bool {
        matches!(self, Self::Sampled { sample, file, .. } if sample.takes(*file, group))
    }

    /// Notes the value of a group, if it is wanted.
    pub(crate) fn set(&mut self, group: u64, hash: GroupHash) {
        if self.samples(group)
            && let Self::Sampled { groups, .. } = self
        {
            groups.insert(group, hash);
        } else if let Self::All(hashes) = self {
            hashes.set(group, hash);
        }
    }

    /// Notes that groups are in a hole. There is nothing to hash of them in a sample.
    pub(crate) fn set_holes(&mut self, groups: Range<u64>) {
        if let Self::All(hashes) = self {
            hashes.set_holes(groups);
        }
    }

    /// What is compared; `None` where nothing is, or something is missing that is known to be.
    pub(crate) fn value(&self) -> Option<[u8; 32]> {
        match self {
            Self::Off => None,
            Self::Sampled { groups, .. } => {
                let mut hasher = blake3::Hasher::new();
                for (group, hash) in groups {
                    hasher.update(&group.to_be_bytes()).update(hash);
                }
                Some(*hasher.finalize().as_bytes())
            }
            Self::All(hashes) => hashes.root(),
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }
}

/// Reads an answer for each offer that it may be one to: what was understood is said the same way.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(accept: &Accept) {
    for wanted in [Hashing::Off, Hashing::Sampled, Hashing::All] {
        if let Ok(agreed) = Agreed::answered(wanted, accept) {
            assert!(agreed.accept(accept.by_map) == *accept);
            assert!(wanted != Hashing::All || agreed == Agreed::All);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn offer(hash: bool, sample: bool) -> Offer {
        Offer {
            hash,
            sample,
            ..Offer::default()
        }
    }

    #[test]
    fn a_sample_is_a_64th_and_another_one_with_another_key() {
        fn takes(key: u8, file: u32, group: u64) -> bool {
            Sample { key: [key; 32] }.takes(file, group)
        }
        let count = (0..64_000).filter(|group| takes(1, 7, *group)).count();
        assert!((850..1150).contains(&count), "{count} of 64,000");
        for other in [|group: u64| takes(2, 7, group), |group: u64| takes(1, 8, group)] {
            let both = (0..64_000).filter(|group| takes(1, 7, *group) && other(*group)).count();
            assert!(both < 60, "{both} of both");
        }
        assert_ne!(Sample::draw().unwrap(), Sample::draw().unwrap());
    }

    #[test]
    fn the_more_is_done_and_all_with_an_end_that_knows_no_samples() {
        use Hashing::{All, Off, Sampled};
        for (wanted, hash, sample, expected) in [
            (Off, false, true, Off),
            (Off, true, true, Sampled),
            (Off, true, false, All),
            (Sampled, false, true, Sampled),
            (Sampled, true, true, Sampled),
            (Sampled, true, false, All),
            (All, false, true, All),
            (All, true, false, All),
            // A sender of before.
            (Off, false, false, Off),
            (Sampled, false, false, All),
        ] {
            let agreed = Agreed::answer(wanted, &offer(hash, sample)).unwrap();
            let done = match agreed {
                Agreed::Off => Off,
                Agreed::Sampled(_) => Sampled,
                Agreed::All => All,
            };
            assert_eq!(done, expected, "{wanted:?} {hash} {sample}");
            // Understood by the sender that offered this.
            let theirs = match (hash, sample) {
                (false, _) => Off,
                (true, true) => Sampled,
                (true, false) => All,
            };
            assert_eq!(Agreed::answered(theirs, &agreed.accept(true)).unwrap(), agreed);
        }
    }

    #[test]
    fn an_answer_that_fits_no_offer_is_refused() {
        let accept = |hash, len| Accept {
            hash,
            by_map: true,
            sample: vec![3; len],
        };
        for (wanted, hash, len) in [
            (Hashing::All, false, 0),
            (Hashing::All, false, 32),
            (Hashing::Sampled, false, 0),
            (Hashing::Sampled, true, 32),
            (Hashing::Sampled, false, 31),
            (Hashing::Off, false, 33),
            (Hashing::Off, true, 1),
        ] {
            let answer = Agreed::answered(wanted, &accept(hash, len));
            assert!(answer.is_err(), "{wanted:?} {hash} {len}: {answer:?}");
        }
    }

    #[test]
    fn a_sampled_group_counts_by_its_place_and_its_value() {
        let sample = Sample { key: [5; 32] };
        let sampled: Vec<u64> = (0..).filter(|group| sample.takes(3, *group)).take(2).collect();
        let &[first, second] = sampled.as_slice() else {
            panic!("two were asked for")
        };
        let value = |set: &[(u64, u8)]| {
            let mut hash = FileHash::new(&Agreed::Sampled(sample), 3, u64::MAX >> 1);
            hash.set_holes(0..9);
            for (group, value) in set {
                hash.set(*group, [*value; 32]);
            }
            hash.value().unwrap()
        };
        let one = value(&[(first, 1)]);
        assert_ne!(one, value(&[]));
        assert_ne!(one, value(&[(first, 2)]));
        assert_ne!(one, value(&[(second, 1)]));
        assert_eq!(one, value(&[(first, 1), (first + 1, 9)]), "not of the sample");
        assert_eq!(value(&[(second, 2), (first, 1)]), value(&[(first, 1), (second, 2)]));
    }
}
