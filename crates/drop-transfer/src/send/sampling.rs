//! The sample at the sender: what is sealed of it is compared with a reading of its own, which is what is hashed.
//!
//! Size and time of a file do not tell of every change: stores through a mapping and two writes within one tick of the clock leave them as
//! they are. A file that gives one thing and then another was changed while it was sent, and nothing is at fault. So what the receiver
//! finds to differ is never that.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::groups::{GROUP, GroupHash, GroupHasher, group_len};
use crate::hashing::Agreed;
use sealway_drop::lock;

/// What groups of files were hashed to, so that parts that are sent again are of the same content.
#[derive(Default)]
pub(super) struct Sampled(Mutex<HashMap<(u32, u64), GroupHash>>);

impl Sampled {
    /// Notes the value of a group of a file. False if it had another one before.
    fn note(&self, file: u32, group: u64, hash: GroupHash) -> bool {
        *lock(&self.0).entry((file, group)).or_insert(hash) == hash
    }
}

/// A group of the sample in a reading of its own.
struct Reading {
    group: u64,
    bytes: Vec<u8>,
    hash: GroupHash,
}

/// Goes along a file, whose pieces are sealed in rising order.
pub(super) struct Sampling<'a> {
    sampled: &'a Sampled,
    agreed: Agreed,
    file: u32,
    size: u64,
    reading: Option<Reading>,
}

impl<'a> Sampling<'a> {
    /// Of a file of `size` bytes.
    pub(super) fn new(sampled: &'a Sampled, agreed: Agreed, file: u32, size: u64) -> Self {
        Self {
            sampled,
            agreed,
            file,
            size,
            reading: None,
        }
    }

    /// Whether these bytes, which are to be sealed and are of one group, are what was or is hashed of the file there. What is not of the
    /// sample agrees. `read` reads the file once more.
    pub(super) fn agrees<E>(
        &mut self,
        at: u64,
        bytes: &[u8],
        read: impl FnOnce(&mut [u8], u64) -> Result<(), E>,
    ) -> Result<bool, E> {
        let group = at / GROUP;
        match self.agreed {
            Agreed::Sampled(sample) if sample.takes(self.file, group) => {}
            _ => return Ok(true),
        }
        let reading = match self.reading.take().filter(|reading| reading.group == group) {
            Some(reading) => reading,
            None => self.read(group, read)?,
        };
        let from = (at - group * GROUP) as usize;
        let same = reading.bytes.get(from..from + bytes.len()) == Some(bytes);
        let as_before = self.sampled.note(self.file, group, reading.hash);
        self.reading = Some(reading);
        Ok(same && as_before)
    }

    fn read<E>(&self, group: u64, read: impl FnOnce(&mut [u8], u64) -> Result<(), E>) -> Result<Reading, E> {
        let mut bytes = vec![0; group_len(self.size, group) as usize];
        read(&mut bytes, group * GROUP)?;
        let mut hasher = GroupHasher::new(self.size, group);
        hasher.update(&bytes);
        let hash = hasher.finish();
        Ok(Reading { group, bytes, hash })
    }

    /// The value of the group that was sealed last, if it is of the sample.
    pub(super) fn take(&mut self) -> Option<GroupHash> {
        self.reading.take().map(|reading| reading.hash)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::hashing::Hashing;
    use sealway_drop::wire::control::Offer;

    const SIZE: u64 = 4096 * GROUP;
    const HALF: usize = GROUP as usize / 2;

    /// A sample, one of its groups and one that is not of it.
    fn sample() -> (Agreed, u64, u64) {
        let offer = Offer {
            hash: true,
            sample: true,
            ..Offer::default()
        };
        let agreed = Agreed::answer(Hashing::Sampled, &offer).unwrap();
        let Agreed::Sampled(sample) = agreed else {
            panic!("{agreed:?}")
        };
        let find = |wanted| (0..SIZE / GROUP).find(|group| sample.takes(7, *group) == wanted);
        (agreed, find(true).unwrap(), find(false).unwrap())
    }

    /// Whether half a group of this content is the same in a reading of the group that gives `second`.
    fn agrees(sampling: &mut Sampling<'_>, at: u64, first: u8, second: u8) -> bool {
        let read = |bytes: &mut [u8], _: u64| {
            bytes.fill(second);
            Ok::<(), Infallible>(())
        };
        sampling.agrees(at, &[first; HALF], read).unwrap()
    }

    #[test]
    fn two_readings_of_a_sampled_group_are_the_same_or_it_has_changed() {
        let (agreed, group, other) = sample();
        let at = group * GROUP;
        let sampled = Sampled::default();
        let new = || Sampling::new(&sampled, agreed, 7, SIZE);
        let mut sampling = new();
        assert!(agrees(&mut sampling, other * GROUP, 1, 2), "not of the sample");
        assert_eq!(sampling.take(), None);
        assert!(agrees(&mut sampling, at, 1, 1));
        // The group is not read again for its second half, whatever the file has by now.
        assert!(agrees(&mut sampling, at + HALF as u64, 1, 9));
        let mut hasher = GroupHasher::new(SIZE, group);
        hasher.update(&vec![1; GROUP as usize]);
        assert_eq!(sampling.take(), Some(hasher.finish()));
        // The first reading, or the one of its own, is of something newer.
        let fresh = Sampled::default();
        assert!(!agrees(&mut Sampling::new(&fresh, agreed, 7, SIZE), at, 1, 2));
        let mut sampling = new();
        assert!(agrees(&mut sampling, at, 1, 1));
        assert!(!agrees(&mut sampling, at + HALF as u64, 2, 2));
    }

    #[test]
    fn what_is_sent_again_is_what_was_hashed() {
        let (agreed, group, _) = sample();
        let at = group * GROUP + HALF as u64;
        let sampled = Sampled::default();
        let again = |file, content| agrees(&mut Sampling::new(&sampled, agreed, file, SIZE), at, content, content);
        assert!(again(7, 1) && again(7, 1));
        assert!(!again(7, 2), "both readings are of the new content");
    }

    #[test]
    fn a_group_that_cannot_be_read_is_an_error() {
        let (agreed, group, _) = sample();
        let sampled = Sampled::default();
        let mut sampling = Sampling::new(&sampled, agreed, 7, SIZE);
        assert!(sampling.agrees(group * GROUP, &[1; HALF], |_, _| Err(())).is_err());
    }
}
