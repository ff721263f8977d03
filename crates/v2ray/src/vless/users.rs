//! Who may use a VLESS inbound.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::{Error, UserId};

/// The users of an inbound, found by id in constant time however many there are, and added and removed as fast.
#[derive(Clone, Debug)]
pub struct Users<T> {
    /// By what is left of ids without bytes 6 and 7.
    masked: HashMap<[u8; 16], Alike<T>>,
}

/// Users whose ids differ in no other bytes than 6 and 7, by these, in the order they came.
#[derive(Clone, Debug)]
enum Alike<T> {
    One(u16, T),
    #[expect(
        clippy::box_collection,
        reason = "those who have nobody beside them take no more room than they need"
    )]
    Several(Box<Vec<(u16, T)>>),
}

/// A user found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Match<'a, T> {
    /// What was stored for the user.
    pub user: &'a T,
    /// Bytes 6 and 7 of the id as the client sent them. They do not take part in recognising the user, so a client may
    /// put a number for the routing rules there (`vlessRoute`).
    pub route: u16,
    /// Whether the client sent all 16 bytes as the account has them.
    pub exact: bool,
}

fn mask(id: &UserId) -> [u8; 16] {
    let mut bytes = *id.as_bytes();
    bytes[6] = 0;
    bytes[7] = 0;
    bytes
}

impl<T> Alike<T> {
    fn position(&self, route: u16) -> Option<usize> {
        match self {
            Alike::One(own, _) => (*own == route).then_some(0),
            Alike::Several(all) => all.iter().position(|(own, _)| *own == route),
        }
    }

    fn get(&self, at: usize) -> Option<&T> {
        match self {
            Alike::One(_, user) => Some(user),
            Alike::Several(all) => all.get(at).map(|(_, user)| user),
        }
    }

    fn push(self, route: u16, user: T) -> Alike<T> {
        let mut all = match self {
            Alike::One(first, other) => vec![(first, other)],
            Alike::Several(all) => *all,
        };
        all.push((route, user));
        Alike::Several(Box::new(all))
    }
}

impl<T> Users<T> {
    /// No users yet.
    pub fn new() -> Self {
        Users { masked: HashMap::new() }
    }

    /// Adds a user.
    ///
    /// # Errors
    /// [`Error::DuplicateId`] if the id is taken.
    pub fn insert(&mut self, id: UserId, user: T) -> Result<(), Error> {
        let (key, route) = (mask(&id), id.route());
        match self.masked.remove(&key) {
            None => {
                self.masked.insert(key, Alike::One(route, user));
            }
            Some(alike) if alike.position(route).is_some() => {
                self.masked.insert(key, alike);
                return Err(Error::DuplicateId);
            }
            Some(alike) => {
                self.masked.insert(key, alike.push(route, user));
            }
        }
        Ok(())
    }

    /// Removes a user.
    pub fn remove(&mut self, id: &UserId) -> Option<T> {
        let Entry::Occupied(mut entry) = self.masked.entry(mask(id)) else {
            return None;
        };
        let at = entry.get().position(id.route())?;
        if let Alike::Several(all) = entry.get_mut() {
            let (_, user) = all.remove(at);
            if !all.is_empty() {
                return Some(user);
            }
            entry.remove();
            return Some(user);
        }
        match entry.remove() {
            Alike::One(_, user) => Some(user),
            Alike::Several(_) => None,
        }
    }

    /// Finds the user a client means: the one with exactly this id or, failing that, the first one whose id differs in
    /// no other bytes than 6 and 7.
    pub fn find(&self, sent: &UserId) -> Option<Match<'_, T>> {
        let alike = self.masked.get(&mask(sent))?;
        let route = sent.route();
        let at = alike.position(route);
        Some(Match {
            user: alike.get(at.unwrap_or(0))?,
            route,
            exact: at.is_some(),
        })
    }
}

impl<T> Default for Users<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(seed: u8, six: u8, seven: u8) -> UserId {
        let mut bytes = [seed; 16];
        bytes[6] = six;
        bytes[7] = seven;
        UserId::from_bytes(bytes)
    }

    #[test]
    fn exact_first_then_masked() {
        let mut users = Users::new();
        users.insert(id(1, 0, 0), "a").unwrap();
        users.insert(id(1, 0, 9), "b").unwrap();
        users.insert(id(2, 5, 5), "c").unwrap();
        assert_eq!(users.insert(id(2, 5, 5), "d"), Err(Error::DuplicateId));
        let found = |id| users.find(&id).map(|m| (*m.user, m.route, m.exact));
        assert_eq!(found(id(1, 0, 9)), Some(("b", 9, true)));
        assert_eq!(found(id(1, 0, 0)), Some(("a", 0, true)));
        assert_eq!(found(id(1, 1, 2)), Some(("a", 0x0102, false)));
        assert_eq!(found(id(2, 0, 7)), Some(("c", 7, false)));
        assert_eq!(found(id(3, 0, 0)), None);
        let mut other = *id(2, 5, 5).as_bytes();
        other[8] ^= 1;
        assert_eq!(found(UserId::from_bytes(other)), None);
    }

    #[test]
    fn removal_lets_the_next_one_answer() {
        let mut users = Users::new();
        users.insert(id(1, 0, 0), "a").unwrap();
        users.insert(id(1, 0, 9), "b").unwrap();
        assert_eq!(users.remove(&id(1, 0, 0)), Some("a"));
        assert_eq!(users.remove(&id(1, 0, 0)), None);
        assert_eq!(users.find(&id(1, 7, 7)).unwrap().user, &"b");
        assert_eq!(users.remove(&id(1, 0, 9)), Some("b"));
        assert_eq!(users.find(&id(1, 7, 7)), None);
        assert!(users.masked.is_empty());
    }
}
