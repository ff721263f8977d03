//! How many lines of one kind are written, where others decide how often there is something to say.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Lets so many lines through a second, and counts the rest.
#[derive(Debug)]
pub struct Limit {
    per_second: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the second began.
    since: Option<Instant>,
    said: u32,
    kept: u64,
}

/// Lines that were left out before one that is written. Shows as nothing if there were none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Kept(pub u64);

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            n => write!(f, " ({n} more like it were left out)"),
        }
    }
}

impl Limit {
    /// So many lines a second.
    pub const fn new(per_second: u32) -> Self {
        Limit {
            per_second,
            state: Mutex::new(State {
                since: None,
                said: 0,
                kept: 0,
            }),
        }
    }

    /// Whether a line may be written now, and how many were left out since the last.
    pub fn pass(&self) -> Option<Kept> {
        self.pass_at(Instant::now())
    }

    fn pass_at(&self, now: Instant) -> Option<Kept> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= SECOND)
        {
            state.since = Some(now);
            state.said = 0;
        }
        if state.said >= self.per_second {
            state.kept += 1;
            return None;
        }
        state.said += 1;
        Some(Kept(std::mem::take(&mut state.kept)))
    }

    /// Counts lines that passed here and were left out by another limit.
    pub(crate) fn put_back(&self, kept: Kept) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.kept += kept.0;
    }

    /// How many lines were left out since the last that was written, to be said at the end.
    pub(crate) fn take(&self) -> Kept {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Kept(std::mem::take(&mut state.kept))
    }
}

/// A limit for each network that clients come from, in a fixed amount of memory.
///
/// Of many sources some share a limit; which ones, nobody outside can choose.
pub(crate) struct Limits {
    cells: Box<[Limit]>,
    hasher: RandomState,
}

impl Limits {
    const CELLS: usize = 1024;

    pub(crate) fn new(per_second: u32) -> Self {
        Limits {
            cells: (0..Self::CELLS).map(|_| Limit::new(per_second)).collect(),
            hasher: RandomState::new(),
        }
    }

    /// The limit of a source: an IPv4 address, a /64 of IPv6, or all who have no address.
    pub(crate) fn of(&self, source: Option<IpAddr>) -> &Limit {
        let network = source.map(|ip| match ip {
            IpAddr::V4(v4) => u64::from(v4.to_bits()),
            IpAddr::V6(v6) => v6
                .to_ipv4_mapped()
                .map_or((v6.to_bits() >> 64) as u64, |v4| v4.to_bits().into()),
        });
        &self.cells[(self.hash(network) % self.cells.len() as u64) as usize]
    }

    fn hash(&self, network: impl Hash) -> u64 {
        self.hasher.hash_one(network)
    }

    /// How many lines were left out and never said.
    pub(crate) fn take(&self) -> Kept {
        Kept(self.cells.iter().map(|cell| cell.take().0).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second_and_the_rest_is_counted() {
        let limit = Limit::new(2);
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(limit.pass_at(at(0)), Some(Kept(0)));
        assert_eq!(limit.pass_at(at(1)), Some(Kept(0)));
        for ms in 2..900 {
            assert_eq!(limit.pass_at(at(ms)), None);
        }
        assert_eq!(limit.pass_at(at(1000)), Some(Kept(898)));
        assert_eq!(limit.pass_at(at(1001)), Some(Kept(0)));
        assert_eq!(limit.pass_at(at(1002)), None);
        limit.put_back(Kept(4));
        assert_eq!(limit.take(), Kept(5));
        assert_eq!(limit.take().to_string(), "");
        assert_eq!(Kept(5).to_string(), " (5 more like it were left out)");
    }

    #[test]
    fn a_network_shares_one_limit_and_memory_is_fixed() {
        let limits = Limits::new(1);
        let of = |text: &str| std::ptr::from_ref(limits.of(Some(text.parse().unwrap())));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        let cells: std::collections::HashSet<_> = (0..4000u32)
            .map(|n| std::ptr::from_ref(limits.of(Some(IpAddr::from(n.to_be_bytes())))))
            .collect();
        assert!((900..=Limits::CELLS).contains(&cells.len()), "{}", cells.len());
        for _ in 0..3 {
            limits.of(None).pass();
        }
        assert_eq!(limits.take(), Kept(2));
    }
}
