//! Ranges that numbers are drawn from.

/// A range of numbers, both ends included, out of which one is drawn anew each time.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Span {
    /// The least.
    pub from: u32,
    /// The most.
    pub to: u32,
}

impl Span {
    /// From `from` to `to`, whichever is larger.
    pub const fn new(from: u32, to: u32) -> Self {
        if from <= to {
            Span { from, to }
        } else {
            Span { from: to, to: from }
        }
    }

    /// One number only.
    pub const fn just(n: u32) -> Self {
        Span { from: n, to: n }
    }

    /// One of its numbers, by 32 random bits.
    pub fn pick(self, random: u32) -> u32 {
        let width = u64::from(self.to - self.from) + 1;
        self.from + ((u64::from(random) * width) >> 32) as u32
    }

    /// Whether it says anything: 0 to 0 means that a key is not set.
    pub fn is_zero(self) -> bool {
        self.to == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_span_is_drawn_and_no_other() {
        let span = Span::new(7, 5);
        let drawn: Vec<u32> = [0, u32::MAX / 2, u32::MAX].map(|r| span.pick(r)).to_vec();
        assert_eq!(drawn, [5, 6, 7]);
        assert_eq!(Span::just(9).pick(u32::MAX), 9);
        assert_eq!(Span::new(0, u32::MAX).pick(u32::MAX), u32::MAX);
    }
}
