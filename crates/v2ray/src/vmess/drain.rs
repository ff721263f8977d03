//! What a server does with a connection whose header it refuses.
//!
//! To close at once would tell a prober, byte by byte, how far the header got. So the server reads on and throws away until
//! a number of bytes has come since the connection began, whatever was wrong with them. The number has a part that is fixed
//! for the server, so that asking again tells nothing new, and a part that is drawn for each connection.

use sha2::{Digest, Sha256};

use crate::UserId;

/// Bytes of authentication id, sealed length and nonce, and the shortest sealed header behind them.
const BASE: u64 = 16 + 38;
/// The fixed part is below this.
const FIXED: u64 = 3266;
/// The drawn part is at most as long as a number that is fixed for the server and at most this.
const DRAWN: u64 = 64;

/// What a [`Profile`] is made of: digests of the users' ids, combined by XOR, so that the order of the users in a file does
/// not matter and one who goes takes theirs along.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Seed([u8; 32]);

impl Seed {
    /// Adds a user, or takes one away again.
    pub(super) fn toggle(&mut self, id: &UserId) {
        #[cfg(test)]
        tests::HASHED.set(tests::HASHED.get() + 1);
        let digest = Sha256::new()
            .chain_update(b"sealway vmess drain")
            .chain_update(id.as_bytes())
            .finalize();
        self.0.iter_mut().zip(digest).for_each(|(seed, byte)| *seed ^= byte);
    }

    pub(super) fn profile(&self) -> Profile {
        let [a, b, c, d, e, f, g, h, i, j, ..] = self.0;
        Profile {
            fixed: u64::from_be_bytes([a, b, c, d, e, f, g, h]) % FIXED,
            drawn: u64::from(u16::from_be_bytes([i, j])) % DRAWN + 1,
        }
    }
}

/// The fixed part of a server's behaviour, made from the ids of its users in any order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Profile {
    fixed: u64,
    drawn: u64,
}

impl Profile {
    /// The profile that follows from a digest of everybody's secrets, or from random bytes where there are none.
    pub fn new(digest: [u8; 32]) -> Self {
        Seed(digest).profile()
    }
}

/// How many bytes of a refused connection are still to be thrown away before it is closed.
///
/// Made when the connection begins and told of every byte that comes, before and after the refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Drain {
    left: u64,
}

impl Drain {
    /// Begins to count. `random` is any random number.
    pub fn new(profile: Profile, random: u64) -> Self {
        Drain {
            left: BASE + profile.fixed + random % profile.drawn,
        }
    }

    /// Tells of bytes that came. True if the connection may now be closed.
    pub fn consume(&mut self, bytes: usize) -> bool {
        self.left = self.left.saturating_sub(bytes as u64);
        self.left == 0
    }

    /// How many bytes are left.
    pub fn left(&self) -> u64 {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::Users;
    use super::*;

    thread_local! {
        /// How many ids were hashed.
        pub(super) static HASHED: Cell<usize> = const { Cell::new(0) };
    }

    fn profile(names: &[&str]) -> Profile {
        let mut seed = Seed::default();
        for id in ids(names) {
            seed.toggle(&id);
        }
        seed.profile()
    }

    fn ids(names: &[&str]) -> Vec<UserId> {
        names.iter().map(|n| UserId::parse(n).unwrap()).collect()
    }

    #[test]
    fn stable_for_a_server_and_within_bounds() {
        let a = profile(&["a", "b", "c"]);
        assert_eq!(a, profile(&["c", "a", "b"]));
        assert_ne!(a, profile(&["a", "b", "d"]));
        for n in 0..500 {
            let profile = profile(&[&format!("u{n}")]);
            for random in [0, 1, 77, u64::MAX] {
                let left = Drain::new(profile, random).left();
                assert!((BASE..BASE + FIXED + DRAWN).contains(&left), "{left}");
            }
        }
    }

    /// Every connection to an inbound with 20,000 users cost 1.25 ms of hashing, a stranger's too.
    #[test]
    fn users_are_hashed_when_they_come_and_go_and_not_for_each_connection() {
        let ids: Vec<_> = (0..200).map(|n| UserId::parse(&format!("u{n}")).unwrap()).collect();
        let before = HASHED.get();
        let mut users = Users::from_list(ids.iter().map(|id| (*id, ()))).unwrap();
        assert_eq!(HASHED.get() - before, ids.len());
        let all = users.drain_profile();
        for _ in 0..1000 {
            assert_eq!(users.drain_profile(), all);
        }
        assert_eq!(HASHED.get() - before, ids.len());
        users.remove(&ids[7]).unwrap();
        assert_ne!(users.drain_profile(), all);
        users.insert(ids[7], ()).unwrap();
        assert_eq!(users.drain_profile(), all);
    }

    /// A server that closed at the first wrong byte told probers how far they got (v2ray-core 2523). Now the same number of
    /// bytes is taken whether they come at once or one by one, and whatever was wrong with them.
    #[test]
    fn bug_v2ray_2523_refusals_come_after_a_number_of_bytes() {
        let profile = profile(&["a"]);
        let mut one = Drain::new(profile, 5);
        let total = one.left();
        for n in 1..=total {
            assert_eq!(one.consume(1), n == total);
        }
        let mut all = Drain::new(profile, 5);
        assert!(!all.consume(total as usize - 1));
        assert!(all.consume(1000));
    }
}
