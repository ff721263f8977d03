//! Who may use a VMess inbound.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::atomic::{AtomicU32, Ordering};

use super::auth_id::{CommandKey, MAX_SKEW, Trial, plausible_times, try_key};
use super::drain::{Profile, Seed};
use super::keys::{GROUP, Keys};
use crate::{Error, Protocol, UserId};

/// How many groups of users in which one was last seen are tried first.
const RECENT: usize = 32;
/// Marks a free place among them.
const NOBODY: u32 = u32::MAX;

/// The users of an inbound.
///
/// An authentication id does not say whose it is: every user's key has to be tried, one AES block each. So the expanded
/// keys stand by themselves in groups of eight that are tried at once, and groups in which a user was seen lately are tried
/// before all others: a client that opens many connections costs at most [`Users::RECENT`] blocks, a stranger one block for
/// each user.
pub struct Users<T> {
    keys: Keys,
    entries: Vec<Entry<T>>,
    /// Where each stands, by id.
    numbers: HashMap<[u8; 16], usize>,
    /// Kept as users come and go: thousands of hashes are too much for each connection.
    drain: Seed,
    recent: [AtomicU32; RECENT],
    /// Where the next group goes among the recent ones.
    turn: AtomicU32,
}

struct Entry<T> {
    id: UserId,
    key: CommandKey,
    user: T,
}

/// A user found.
#[derive(Clone, Copy, Debug)]
pub struct Match<'a, T> {
    /// What was stored for the user.
    pub user: &'a T,
    /// The user's id.
    pub id: &'a UserId,
    /// The key of the user's headers.
    pub key: &'a CommandKey,
    /// When the authentication id was made, Unix time in seconds.
    pub time: i64,
    /// How many blocks were decrypted to find out.
    pub tried: usize,
}

impl<T> Users<T> {
    /// How many users are tried first, because they or their neighbours were seen lately.
    pub const RECENT: usize = RECENT * GROUP;

    /// No users yet.
    pub fn new() -> Self {
        Users {
            keys: Keys::default(),
            entries: Vec::new(),
            numbers: HashMap::new(),
            drain: Seed::default(),
            recent: [const { AtomicU32::new(NOBODY) }; RECENT],
            turn: AtomicU32::new(0),
        }
    }

    /// The users of a list.
    ///
    /// # Errors
    /// [`Error::DuplicateId`] if two have the same id.
    pub fn from_list(list: impl IntoIterator<Item = (UserId, T)>) -> Result<Self, Error> {
        let mut users = Self::new();
        for (id, user) in list {
            users.insert(id, user)?;
        }
        Ok(users)
    }

    /// Adds a user.
    ///
    /// # Errors
    /// [`Error::DuplicateId`] if the id is taken.
    pub fn insert(&mut self, id: UserId, user: T) -> Result<(), Error> {
        match self.numbers.entry(*id.as_bytes()) {
            Place::Occupied(_) => return Err(Error::DuplicateId),
            Place::Vacant(place) => place.insert(self.entries.len()),
        };
        let key = CommandKey::new(&id);
        self.keys.push(&key.auth_key());
        self.drain.toggle(&id);
        self.entries.push(Entry { id, key, user });
        Ok(())
    }

    /// Removes a user.
    pub fn remove(&mut self, id: &UserId) -> Option<T> {
        let at = self.numbers.remove(id.as_bytes())?;
        let removed = self.entries.swap_remove(at);
        // The last one has moved into the free place.
        if let Some(moved) = self.entries.get(at) {
            self.keys.set(at, &moved.key.auth_key());
            self.numbers.insert(*moved.id.as_bytes(), at);
        }
        self.keys.pop();
        self.drain.toggle(id);
        Some(removed.user)
    }

    /// How this server behaves towards strangers: see [`super::Drain`].
    pub fn drain_profile(&self) -> Profile {
        self.drain.profile()
    }

    /// Finds whose authentication id this is. `now` is the Unix time in seconds.
    ///
    /// Whether the id was seen before is not asked here: see [`crate::replay::Seen`].
    ///
    /// # Errors
    /// [`Error::ClockSkew`] if it is a user's but more than 120 seconds off, [`Error::UnknownUser`] if it is nobody's.
    pub fn find(&self, auth_id: &[u8; 16], now: i64) -> Result<Match<'_, T>, Error> {
        let mut tried = 0;
        let mut skew = None;
        let wanted = plausible_times(now);
        let mut search = |group: usize| -> Option<(&Entry<T>, i64)> {
            tried += GROUP;
            let mut bits = self.keys.matches(group, auth_id, wanted);
            while bits != 0 {
                let lane = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                // A free place at the end of the last group has no entry.
                let Some(entry) = self.entries.get(group * GROUP + lane) else {
                    continue;
                };
                match try_key(&entry.key.decryptor(), auth_id, now) {
                    Trial::Other => {}
                    Trial::Fits(time) => return Some((entry, time)),
                    Trial::Skewed(seconds) => skew = Some(seconds),
                }
            }
            None
        };
        let recent = self
            .recent
            .iter()
            .find_map(|place| match place.load(Ordering::Relaxed) {
                NOBODY => None,
                group => search(usize::try_from(group).ok()?),
            });
        let found = recent.or_else(|| {
            (0..self.keys.groups()).find_map(|group| {
                let found = search(group)?;
                // Groups beyond 2^32 - 2 would merely never be recent.
                let number = u32::try_from(group).unwrap_or(NOBODY);
                let turn = self.turn.fetch_add(1, Ordering::Relaxed) as usize % RECENT;
                self.recent[turn].store(number, Ordering::Relaxed);
                Some(found)
            })
        });
        match (found, skew) {
            (Some((entry, time)), _) => Ok(Match {
                user: &entry.user,
                id: &entry.id,
                key: &entry.key,
                time,
                tried,
            }),
            (None, Some(seconds)) => Err(Error::ClockSkew {
                protocol: Protocol::Vmess,
                most: MAX_SKEW,
                seconds,
            }),
            (None, None) => Err(Protocol::Vmess.unknown_user()),
        }
    }
}

impl<T> Default for Users<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> std::fmt::Debug for Users<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Users({})", self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn id(n: u32) -> UserId {
        UserId::parse(&format!("user {n}")).unwrap()
    }

    fn auth_id(n: u32, time: i64) -> [u8; 16] {
        CommandKey::new(&id(n)).auth_id(time, n.to_be_bytes())
    }

    #[test]
    fn ten_thousand_users_and_what_finding_one_costs() {
        let users = Users::from_list((0..10_000).map(|n| (id(n), n))).unwrap();
        // A stranger costs one block a user.
        assert_eq!(
            users.find(&auth_id(10_000, NOW), NOW).unwrap_err(),
            Protocol::Vmess.unknown_user()
        );
        for n in [0, 1, 4_999, 9_999] {
            let found = users.find(&auth_id(n, NOW - 5), NOW).unwrap();
            assert_eq!((*found.user, *found.id), (n, id(n)));
            let before = n as usize / GROUP * GROUP;
            assert!(found.tried > before, "the first time by going through all of them");
            let again = users.find(&auth_id(n, NOW), NOW).unwrap();
            assert!(again.tried <= 3 * GROUP, "{} blocks for a user just seen", again.tried);
        }
        // However many are seen, users of the groups last seen cost no more than those groups.
        for n in (1000..1256).step_by(8) {
            users.find(&auth_id(n, NOW), NOW).unwrap();
        }
        for n in 1000..1256 {
            assert!(users.find(&auth_id(n, NOW), NOW).unwrap().tried <= Users::<u32>::RECENT);
        }
    }

    #[test]
    fn a_wrong_clock_is_told_from_a_wrong_id() {
        let users = Users::from_list((0..3).map(|n| (id(n), ()))).unwrap();
        assert_eq!(
            users.find(&auth_id(1, NOW - 3600), NOW).unwrap_err(),
            Error::ClockSkew {
                protocol: Protocol::Vmess,
                most: MAX_SKEW,
                seconds: -3600
            }
        );
        assert!(matches!(users.find(&[7; 16], NOW), Err(Error::UnknownUser { .. })));
        assert!(users.find(&auth_id(1, NOW - 3600), NOW - 3500).is_ok());
    }

    #[test]
    fn removed_users_are_gone_even_if_recent() {
        let mut users = Users::from_list((0..5).map(|n| (id(n), n))).unwrap();
        users.find(&auth_id(4, NOW), NOW).unwrap();
        users.find(&auth_id(1, NOW), NOW).unwrap();
        assert_eq!(users.remove(&id(1)), Some(1));
        assert_eq!(users.remove(&id(1)), None);
        assert!(users.find(&auth_id(1, NOW), NOW).is_err());
        assert_eq!(*users.find(&auth_id(4, NOW), NOW).unwrap().user, 4);
        assert_eq!(users.insert(id(4), 9), Err(Error::DuplicateId));
        users.insert(id(1), 7).unwrap();
        assert_eq!(*users.find(&auth_id(1, NOW), NOW).unwrap().user, 7);
        assert!(Users::from_list([(id(1), ()), (id(1), ())]).is_err());
    }
}
