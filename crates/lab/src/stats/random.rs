//! A small generator for shuffles and draws, so that a recorded seed replays a run on any version.

/// SplitMix64 (Steele, Lea and Flood, 2014): 64 bits of state, period 2^64, the same sequence everywhere and for ever.
///
/// For schedules and made-up data only; never for keys, nonces or anything secret.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator at the start of the sequence of `seed`.
    pub const fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// A generator for part `stream` of a run: equal seeds with different streams give unrelated sequences.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut outer = SplitMix64(stream);
        let offset = outer.next_u64();
        SplitMix64(seed ^ offset)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, every one equally likely; 0 when `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        if bound == 0 {
            return 0;
        }
        // The multiply-shift method; the few products below `threshold` would favour some results and are redrawn.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }

    /// Puts `items` into an order in which every permutation is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sequence() {
        let mut random = SplitMix64::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317_u64,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for value in expected {
            assert_eq!(random.next_u64(), value);
        }
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut random = SplitMix64::new(7);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[random.below(6)] += 1;
        }
        // Five standard deviations of a binomial with p = 1/6.
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 460), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn shuffles_reach_every_order_and_replay() {
        let mut random = SplitMix64::new(3);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..500 {
            let mut items = [0, 1, 2, 3];
            random.shuffle(&mut items);
            seen.insert(items);
        }
        assert_eq!(seen.len(), 24);
        let draw = |seed, stream| SplitMix64::stream(seed, stream).next_u64();
        assert_eq!(draw(5, 1), draw(5, 1));
        assert_ne!(draw(5, 1), draw(5, 2));
        assert_ne!(draw(5, 1), draw(6, 1));
    }
}
