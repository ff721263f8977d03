//! Numbers of datagrams that came, in a window that slides.

/// Bits of a word.
const BITS: u64 = u64::BITS as u64;
/// Words of the ring.
const WORDS: u64 = 128;

/// Remembers which of the last [`Window::SIZE`] numbers were used. What is older than that is refused.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The highest number that came, if any did.
    last: Option<u64>,
    ring: Box<[u64]>,
}

impl Window {
    /// How far behind the highest number another one may be.
    pub const SIZE: u64 = (WORDS - 1) * BITS;

    /// Takes a number. False if it came before or is too old.
    pub fn take(&mut self, number: u64) -> bool {
        if self.ring.is_empty() {
            self.ring = vec![0; WORDS as usize].into();
        }
        let word = number / BITS;
        match self.last {
            Some(last) if number <= last && last - number >= Self::SIZE => return false,
            Some(last) if number <= last => {}
            Some(last) => {
                // Words that the window slides over are new.
                let (from, to) = (last / BITS, word);
                for fresh in (from + 1..=to).take(WORDS as usize) {
                    self.ring[(fresh % WORDS) as usize] = 0;
                }
                self.last = Some(number);
            }
            None => self.last = Some(number),
        }
        let bit = 1 << (number % BITS);
        let word = &mut self.ring[(word % WORDS) as usize];
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn size() {
        assert_eq!(Window::SIZE, 8128);
        let mut window = Window::default();
        assert!(window.take(10_000));
        assert!(!window.take(10_000));
        assert!(!window.take(10_000 - 8128));
        assert!(window.take(10_000 - 8127));
        assert!(!window.take(10_000 - 8127));
        assert!(window.take(u64::MAX));
        assert!(!window.take(u64::MAX) && !window.take(10_001));
        assert!(window.take(u64::MAX - 8127) && !window.take(u64::MAX - 8128));
        let mut window = Window::default();
        assert!(window.take(0) && !window.take(0) && window.take(1));
    }

    proptest! {
        /// Against a set of all numbers that came.
        #[test]
        fn as_a_set_would(steps in prop::collection::vec((0u64..20_000, any::<bool>()), 1..300)) {
            let (mut window, mut seen, mut last) = (Window::default(), HashSet::new(), 0u64);
            for (step, ahead) in steps {
                let number = if ahead { last + step } else { last.saturating_sub(step) };
                let new = !seen.contains(&number) && (seen.is_empty() || number > last || last - number < Window::SIZE);
                prop_assert_eq!(window.take(number), new, "{} after {}", number, last);
                if new {
                    seen.insert(number);
                    last = last.max(number);
                }
            }
        }
    }
}
