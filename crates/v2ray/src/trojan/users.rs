//! Who may use a Trojan inbound.

use std::collections::HashMap;

use super::Key;
use crate::Error;

/// The users of an inbound, found by key in constant time however many there are.
#[derive(Clone, Debug)]
pub struct Users<T>(HashMap<Key, T>);

impl<T> Users<T> {
    /// No users yet.
    pub fn new() -> Self {
        Users(HashMap::new())
    }

    /// Adds a user.
    ///
    /// # Errors
    /// [`Error::DuplicatePassword`] if the key is taken.
    pub fn insert(&mut self, key: Key, user: T) -> Result<(), Error> {
        if self.0.contains_key(&key) {
            return Err(Error::DuplicatePassword);
        }
        self.0.insert(key, user);
        Ok(())
    }

    /// Removes a user.
    pub fn remove(&mut self, key: &Key) -> Option<T> {
        self.0.remove(key)
    }

    /// The user with this key.
    pub fn find(&self, key: &Key) -> Option<&T> {
        self.0.get(key)
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

    #[test]
    fn found_by_key() {
        let (a, b) = (Key::of_password("a"), Key::of_password("b"));
        let mut users = Users::new();
        users.insert(a.clone(), "a").unwrap();
        users.insert(b.clone(), "b").unwrap();
        assert_eq!(users.insert(b.clone(), "c"), Err(Error::DuplicatePassword));
        assert_eq!((users.find(&a), users.find(&b)), (Some(&"a"), Some(&"b")));
        assert_eq!(users.find(&Key::of_password("c")), None);
        assert_eq!((users.remove(&b), users.find(&b)), (Some("b"), None));
    }
}
