//! The packets of the records: 40 % of U[least,32] bytes of contents, 30 % U[33,128], 20 % U[129,512], 10 % U[513,4096].

/// splitmix64.
pub(crate) struct Generator(pub(crate) u64);

impl Generator {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn between(&mut self, low: u64, high: u64) -> usize {
        (low + self.next() % (high - low + 1)) as usize
    }

    pub(crate) fn contents_len(&mut self, least: u64) -> usize {
        match self.next() % 10 {
            0..=3 => self.between(least, 32),
            4..=6 => self.between(33, 128),
            7..=8 => self.between(129, 512),
            _ => self.between(513, 4096),
        }
    }
}
