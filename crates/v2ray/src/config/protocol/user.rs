//! Users and accounts.

use std::collections::HashMap;

use crate::UserId;
use crate::config::context::{Cx, quoted};
use crate::config::scalar::Name;
use crate::config::table::object;
use crate::problem::{At, Position};

/// A user of an inbound.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct User {
    /// The secret id.
    pub id: UserId,
    /// The name in counters, rules and logs, as it was written. Empty: none. Letter case makes no difference.
    pub email: String,
    /// The level, which the policy gives a meaning.
    pub level: u32,
    /// Where the user is configured.
    pub at: Position,
}

object! {
    /// A user's name and password.
    pub struct Account: "accounts[]" {
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

/// The users of an inbound by id, e-mail and level. Tells of those with the same id or e-mail.
pub(crate) fn distinct(users: impl Iterator<Item = (At<UserId>, At<Name>, u32)>, cx: &mut Cx<'_>) -> Vec<User> {
    let mut ids: HashMap<[u8; 16], Position> = HashMap::new();
    let mut emails: HashMap<String, Position> = HashMap::new();
    let one = |(i, (id, email, level)): (usize, (At<UserId>, At<Name>, u32))| {
        cx.at_index(i, |cx| {
            if let Some(first) = ids.get(id.value.as_bytes()) {
                let text = format!("the user on line {} has the same id", first.line);
                let hint = "give each user an id of their own: `sealway uuid` makes one";
                cx.error_in("id", id.at, text, hint);
            } else {
                ids.insert(*id.value.as_bytes(), id.at);
            }
            let lower = email.to_lowercase();
            if let Some(first) = emails.get(&lower) {
                let text = format!("the user on line {} has the same e-mail {}", first.line, quoted(&email));
                cx.error_in("email", email.at, text, "counters and rules tell users apart by it");
            } else if !lower.is_empty() {
                emails.insert(lower, email.at);
            }
        });
        User {
            id: id.value,
            email: email.value.0,
            level,
            at: id.at,
        }
    };
    users.enumerate().map(one).collect()
}
