//! Who may use an inbound of 2022.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::shadowsocks::key::BlockCipher;
use crate::shadowsocks::{Key, Method};
use crate::{Error, Protocol};

/// The keys of an inbound: its own, and those of its users, if it tells users apart.
///
/// An identity header names the user's key, so finding one costs one block and one look into a table, however many there are.
pub struct Users<T> {
    pub(super) key: Key,
    /// The cipher of headers of datagrams.
    pub(super) block: BlockCipher,
    who: Who<T>,
}

enum Who<T> {
    /// Whoever has the inbound's own key.
    One(T),
    /// By the names of their keys.
    Many(HashMap<[u8; 16], (Key, T)>),
}

impl<T> Users<T> {
    /// Whoever has this key.
    pub fn one(key: Key, user: T) -> Self {
        Users {
            block: key.block_cipher(),
            key,
            who: Who::One(user),
        }
    }

    /// Users with keys of their own behind the inbound's.
    ///
    /// # Errors
    /// [`Error::KeyCount`] for a method that cannot tell users apart, [`Error::DuplicatePassword`] if two have the same key.
    pub fn many(key: Key, list: impl IntoIterator<Item = (Key, T)>) -> Result<Self, Error> {
        let method = key.method();
        if !method.has_identities() {
            return Err(Error::KeyCount { method: method.name() });
        }
        let mut users = Users {
            block: key.block_cipher(),
            key,
            who: Who::Many(HashMap::new()),
        };
        for (own, user) in list {
            users.insert(own, user)?;
        }
        Ok(users)
    }

    /// Adds a user.
    ///
    /// # Errors
    /// [`Error::KeyCount`] if users are not told apart here or the key is of another method, [`Error::DuplicatePassword`] if it is
    /// taken.
    pub fn insert(&mut self, own: Key, user: T) -> Result<(), Error> {
        let method = self.method();
        match &mut self.who {
            Who::Many(known) if own.method() == method => match known.entry(own.name()) {
                Entry::Occupied(_) => Err(Error::DuplicatePassword),
                Entry::Vacant(place) => {
                    place.insert((own, user));
                    Ok(())
                }
            },
            _ => Err(Error::KeyCount { method: method.name() }),
        }
    }

    /// Removes a user, of whom there are many.
    pub fn remove(&mut self, own: &Key) -> Option<T> {
        match &mut self.who {
            Who::One(_) => None,
            Who::Many(known) => known.remove(&own.name()).map(|(_, user)| user),
        }
    }

    /// The method.
    pub const fn method(&self) -> Method {
        self.key.method()
    }

    /// Bytes of the identity header.
    pub(super) fn identity_len(&self) -> usize {
        match self.who {
            Who::One(_) => 0,
            Who::Many(_) => 16,
        }
    }

    /// Whose a request is: `identity` opens the identity header, if there is one.
    pub(super) fn find(&self, identity: impl FnOnce() -> [u8; 16]) -> Result<(&Key, &T), Error> {
        match &self.who {
            Who::One(user) => Ok((&self.key, user)),
            Who::Many(known) => {
                let found = known.get(&identity()).ok_or(Protocol::Shadowsocks.unknown_user())?;
                Ok((&found.0, &found.1))
            }
        }
    }
}
