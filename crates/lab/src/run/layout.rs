//! Where memory lies, drawn anew for every window.
//!
//! Caches, branch predictors and the store buffer go by addresses. A process keeps its layout, so all rounds of a run would
//! share what one start happened to get, and a second run of the same program would differ by several per cent.

use std::hint::black_box;

use crate::stats::SplitMix64;

/// Most bytes that a layout is moved by: a page, after which low bits of addresses repeat.
const PAGE: usize = 4096;

/// Bytes that one step down the stack takes at least.
const STEP: usize = 64;

/// A generator whose draws nobody has to repeat.
pub(crate) fn random() -> SplitMix64 {
    SplitMix64::new(super::seed().unwrap_or_default())
}

/// Memory that pushes what is allocated next to another place, as long as it lives.
pub(crate) fn padding(random: &mut SplitMix64) -> Vec<Vec<u8>> {
    let sizes = [64, 256, 1024, PAGE].map(|most| 16 + random.below(most));
    sizes.map(|size| black_box(vec![0; size])).into()
}

/// Does `work` somewhere in a page of the stack.
pub(crate) fn somewhere<T>(random: &mut SplitMix64, work: &mut dyn FnMut() -> T) -> T {
    deeper(random.below(PAGE / STEP), work)
}

#[inline(never)]
fn deeper<T>(steps: usize, work: &mut dyn FnMut() -> T) -> T {
    let room = black_box([0_u8; STEP]);
    let done = match steps.checked_sub(1) {
        Some(left) => deeper(left, work),
        None => work(),
    };
    black_box(room);
    done
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn memory_lies_elsewhere_from_window_to_window() {
        let mut random = SplitMix64::new(7);
        let mut stacks = BTreeSet::new();
        for _ in 0..64 {
            let place = somewhere(&mut random, &mut || {
                let here = black_box(0_u8);
                std::ptr::from_ref(&here).addr() % PAGE
            });
            stacks.insert(place);
        }
        assert!(stacks.len() > 8, "{stacks:?}");
        let sizes: BTreeSet<usize> = (0..64)
            .map(|_| padding(&mut random).iter().map(Vec::len).sum())
            .collect();
        assert!(sizes.len() > 8, "{sizes:?}");
    }
}
