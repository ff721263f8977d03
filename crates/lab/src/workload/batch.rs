//! Packets in batches: what is done with them, how long they are, and how long a batch takes.

use std::time::Instant;

use sealway_aead::batch::Lanes;

use crate::plan::Profile;
use crate::stats::SplitMix64;
use crate::stats::latency::Latency;

/// What is done with messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Op {
    /// Sealed.
    Seal,
    /// Opened.
    Open,
    /// Sealed and then opened by the other end, which has keys of its own; one operation.
    Pair,
}

impl Op {
    /// The case's word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Op::Seal => "seal",
            Op::Open => "open",
            Op::Pair => "pair",
        }
    }

    /// Whether something is sealed.
    pub(crate) fn seals(self) -> bool {
        self != Op::Open
    }

    /// Whether something is opened.
    pub(crate) fn opens(self) -> bool {
        self != Op::Seal
    }
}

/// Longest packet of the mix, bytes.
const LONGEST: usize = 4096;

/// How long packets are. The shortest have one byte, or none where that makes a packet too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Sizes {
    /// 40 % uniform up to 32 B, 30 % in 33 to 128, 20 % in 129 to 512, 10 % in 513 to 4096.
    Mix,
    /// Uniform up to 32 B.
    Tiny,
    /// All alike.
    Fixed(usize),
}

impl Sizes {
    /// The case's word for it: `mix`, `tiny`, or the bytes.
    pub(crate) fn name(self) -> String {
        match self {
            Sizes::Mix => "mix".to_owned(),
            Sizes::Tiny => "tiny".to_owned(),
            Sizes::Fixed(bytes) => bytes.to_string(),
        }
    }

    /// The next length, bytes; `least` is the shortest of the mix and of tiny packets.
    pub(crate) fn draw(self, least: usize, random: &mut SplitMix64) -> usize {
        let between = |random: &mut SplitMix64, low: usize, high: usize| low + random.below(high - low + 1);
        match self {
            Sizes::Fixed(bytes) => bytes,
            Sizes::Tiny => between(random, least, 32),
            Sizes::Mix => match random.below(10) {
                0..=3 => between(random, least, 32),
                4..=6 => between(random, 33, 128),
                7..=8 => between(random, 129, 512),
                _ => between(random, 513, LONGEST),
            },
        }
    }
}

/// Packets that there are: 131,072, and 16,384 in a quick run, where a window is too short to see more.
pub(crate) const fn packets(profile: Profile) -> usize {
    match profile {
        Profile::Quick => 16_384,
        Profile::Standard | Profile::Full => 131_072,
    }
}

/// Leaves the first of every case that occurs more than once.
pub(crate) fn keep_first<S: PartialEq + Copy>(specs: &mut Vec<S>) {
    let mut seen: Vec<S> = Vec::new();
    specs.retain(|spec| {
        let new = !seen.contains(spec);
        seen.push(*spec);
        new
    });
}

/// Part of a window, added to it, in which each batch is timed on its own.
pub(crate) const LATENCY_SHARE: u32 = 3;

/// Does one batch, and notes how long it took where somebody wants to know.
#[inline(always)]
pub(crate) fn clocked<T>(times: &mut Option<Latency>, batch: impl FnOnce() -> T) -> T {
    let Some(times) = times else { return batch() };
    let start = Instant::now();
    let done = batch();
    times.record(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    done
}

/// How full the lanes of the cipher and of the authenticator were, where there were any.
pub(crate) fn lane_figures(lanes: [Lanes; 2]) -> impl Iterator<Item = (&'static str, f64)> {
    ["lane_use", "lane_use_mac"]
        .into_iter()
        .zip(lanes)
        .filter(|(_, lanes)| lanes.offered > 0)
        .map(|(name, lanes)| (name, lanes.utilisation()))
}
