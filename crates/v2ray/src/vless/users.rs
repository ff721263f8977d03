//! Who may use a VLESS inbound.

use std::collections::HashMap;

use crate::{Error, UserId};

/// The users of an inbound, found by id in constant time however many there are.
#[derive(Clone, Debug)]
pub struct Users<T> {
    exact: HashMap<[u8; 16], T>,
    /// Ids by what is left of them without bytes 6 and 7, in the order they came.
    masked: HashMap<[u8; 16], Vec<UserId>>,
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

impl<T> Users<T> {
    /// No users yet.
    pub fn new() -> Self {
        Users {
            exact: HashMap::new(),
            masked: HashMap::new(),
        }
    }

    /// Adds a user.
    ///
    /// # Errors
    /// [`Error::DuplicateId`] if the id is taken.
    pub fn insert(&mut self, id: UserId, user: T) -> Result<(), Error> {
        if self.exact.contains_key(id.as_bytes()) {
            return Err(Error::DuplicateId);
        }
        self.exact.insert(*id.as_bytes(), user);
        self.masked.entry(mask(&id)).or_default().push(id);
        Ok(())
    }

    /// Removes a user.
    pub fn remove(&mut self, id: &UserId) -> Option<T> {
        let user = self.exact.remove(id.as_bytes())?;
        let key = mask(id);
        if let Some(ids) = self.masked.get_mut(&key) {
            ids.retain(|other| other != id);
            if ids.is_empty() {
                self.masked.remove(&key);
            }
        }
        Some(user)
    }

    /// Finds the user a client means: the one with exactly this id or, failing that, the first one whose id differs in
    /// no other bytes than 6 and 7.
    pub fn find(&self, sent: &UserId) -> Option<Match<'_, T>> {
        let bytes = sent.as_bytes();
        let route = sent.route();
        if let Some(user) = self.exact.get(bytes) {
            let exact = true;
            return Some(Match { user, route, exact });
        }
        let id = self.masked.get(&mask(sent))?.first()?;
        let user = self.exact.get(id.as_bytes())?;
        let exact = false;
        Some(Match { user, route, exact })
    }

    /// How many users there are.
    pub fn len(&self) -> usize {
        self.exact.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
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
        assert!(users.is_empty() && users.masked.is_empty());
    }
}
