//! Users and accounts.

use std::collections::HashMap;
use std::fmt;

use zeroize::Zeroize;

use crate::UserId;
use crate::config::context::{Cx, quoted};
use crate::config::limits::Limits;
use crate::config::scalar::Name;
use crate::config::table::object;
use crate::problem::{At, Position};

/// A user of an inbound, by a secret id or by what stands for one.
#[derive(Clone, Debug, PartialEq)]
pub struct User<K = UserId> {
    /// What the user is recognised by.
    pub id: K,
    /// The name in counters, rules and logs, as it was written. Empty: none. Letter case makes no difference.
    pub email: String,
    /// The level, which the policy gives a meaning.
    pub level: u32,
    /// Limits of this user, before those of the level.
    pub limits: Limits,
    /// Where the user is configured.
    pub at: Position,
}

object! {
    /// A user's name and password.
    pub struct Account: "accounts[]", Debug by hand {
        /// The name.
        user: String = "user" | "username", required;
        /// The password.
        pass: String = "pass" | "password", required;
    }
    other {
        Accepted "level": "The key userLevel beside the accounts counts.";
        Accepted "email": "";
    }
}

/// Shows how long the password is, and not the password.
impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Account {{ user: {:?}, pass: {} bytes }}",
            self.user,
            self.pass.len()
        )
    }
}

/// Tells of users of one inbound with the same secret or e-mail.
pub(crate) struct Distinct {
    /// The key that holds the secret.
    key: &'static str,
    hint: &'static str,
    /// Wiped when it is dropped.
    secrets: HashMap<Vec<u8>, Position>,
    emails: HashMap<String, Position>,
}

impl Drop for Distinct {
    fn drop(&mut self) {
        for (mut secret, _) in self.secrets.drain() {
            secret.zeroize();
        }
    }
}

impl Distinct {
    pub(crate) fn new(key: &'static str, hint: &'static str) -> Self {
        Distinct {
            key,
            hint,
            secrets: HashMap::new(),
            emails: HashMap::new(),
        }
    }

    /// Looks at one user.
    pub(crate) fn check(&mut self, (secret, at): (&[u8], Position), email: &At<Name>, cx: &mut Cx<'_>) {
        if let Some(first) = self.secrets.get(secret) {
            let text = format!("the user on line {} has the same {}", first.line, self.key);
            cx.error_in(self.key, at, text, self.hint);
        } else {
            self.secrets.insert(secret.to_vec(), at);
        }
        let lower = email.to_lowercase();
        if let Some(first) = self.emails.get(&lower) {
            let text = format!("the user on line {} has the same e-mail {}", first.line, quoted(email));
            cx.error_in("email", email.at, text, "counters and rules tell users apart by it");
        } else if !lower.is_empty() {
            self.emails.insert(lower, email.at);
        }
    }
}

impl<K> User<K> {
    /// A user by an id, and by the e-mail, the level and the limits that were read.
    pub(crate) fn new(id: At<K>, (email, level, limits): (At<Name>, u32, Limits)) -> Self {
        User {
            id: id.value,
            email: email.value.0,
            level,
            limits,
            at: id.at,
        }
    }
}

/// A user's id, e-mail, level and limits, as read.
pub(crate) type Entry = (At<UserId>, At<Name>, u32, Limits);

/// The users of an inbound by id, e-mail and level. Tells of those with the same id or e-mail.
pub(crate) fn distinct(users: impl Iterator<Item = Entry>, cx: &mut Cx<'_>) -> Vec<User> {
    let mut seen = Distinct::new("id", "give each user an id of their own: `sealway uuid` makes one");
    let one = |(i, (id, email, level, limits)): (usize, Entry)| {
        cx.at_index(i, |cx| seen.check((id.value.as_bytes(), id.at), &email, cx));
        User::new(id, (email, level, limits))
    };
    users.enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_a_password() {
        let account = Account {
            user: "ann".to_owned(),
            pass: "secret".to_owned(),
        };
        assert_eq!(format!("{account:?}"), "Account { user: \"ann\", pass: 6 bytes }");
    }
}
