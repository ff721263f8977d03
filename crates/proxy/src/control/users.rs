//! Users of running inbounds: they come and go, and it is asked who they are and where they are connected from.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Control, Refusal};
use crate::inbound::Inbound;
use crate::inbound::roster::{Roll, Unchanged};
use crate::settings::NewUser;

/// A user of an inbound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UserName {
    /// The e-mail, as it was given.
    pub email: String,
    /// The level, as it was asked for.
    pub level: u32,
}

/// A user who is connected.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OnlineUser {
    /// The e-mail, as it was first given.
    pub email: String,
    /// The addresses that he is connected from, each with the time when the last connection from it began, Unix time in seconds.
    pub addresses: Vec<(IpAddr, i64)>,
    /// What he has sent and received, bytes, as far as that is counted and was asked for.
    pub traffic: [Option<u64>; 2],
}

/// Which counters are shown, and what becomes of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Show {
    /// None.
    Nothing,
    /// Those that there are, which go on.
    AsTheyAre,
    /// The same, which start again at 0; no byte is lost or counted twice.
    AndReset,
}

const NOBODY: &str = "users of an inbound that knows none";

impl Control {
    fn with_users<T>(&self, tag: &str, act: impl FnOnce(&dyn Roll) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let inbound = self.inbound(tag)?;
        act(inbound.users().ok_or(Refusal::Unsupported(NOBODY))?)
    }

    fn inbound(&self, tag: &str) -> Result<Arc<Inbound>, Refusal> {
        let found = self.running()?.engine.inbound(tag);
        found.ok_or_else(|| Refusal::NoHandler(tag.to_owned()))
    }

    /// Adds a user to an inbound, for connections from now on. Without an e-mail he cannot be removed.
    ///
    /// # Errors
    /// [`Refusal::NoHandler`], [`Refusal::UserTaken`] for an e-mail, in any case, or an id or a password that somebody has there,
    /// [`Refusal::Unsupported`] for an account of another protocol and for an inbound that tells no users apart, and
    /// [`Refusal::Unusable`] for a password that the method does not take.
    pub fn add_user(&self, inbound: &str, user: &NewUser) -> Result<(), Refusal> {
        self.with_users(inbound, |users| {
            users.add(user).map_err(|why| refusal(why, &user.email))
        })
    }

    /// Removes the user with this e-mail, in any case, from an inbound. What is carried for him there ends at once.
    ///
    /// His counters are dropped ten minutes later at the earliest, and not before they were read.
    ///
    /// # Errors
    /// [`Refusal::NoHandler`], [`Refusal::EmptyEmail`], [`Refusal::NoUser`] and [`Refusal::Unsupported`].
    pub fn remove_user(&self, inbound: &str, email: &str) -> Result<(), Refusal> {
        self.with_users(inbound, |users| users.remove(email).map_err(|why| refusal(why, email)))
    }

    /// The users of an inbound that have e-mails, in no order.
    ///
    /// # Errors
    /// [`Refusal::NoHandler`] and [`Refusal::Unsupported`].
    pub fn users(&self, inbound: &str) -> Result<Vec<UserName>, Refusal> {
        let name = |(email, level)| UserName { email, level };
        self.with_users(inbound, |users| Ok(users.list().into_iter().map(name).collect()))
    }

    /// The user of an inbound that has this e-mail, in any case.
    ///
    /// # Errors
    /// [`Refusal::NoHandler`], [`Refusal::NoUser`] and [`Refusal::Unsupported`].
    pub fn user(&self, inbound: &str, email: &str) -> Result<UserName, Refusal> {
        self.with_users(inbound, |users| {
            let (email, level) = users.find(email).ok_or_else(|| Refusal::NoUser(email.to_owned()))?;
            Ok(UserName { email, level })
        })
    }

    /// How many users of an inbound have e-mails.
    ///
    /// # Errors
    /// [`Refusal::NoHandler`] and [`Refusal::Unsupported`].
    pub fn count_users(&self, inbound: &str) -> Result<usize, Refusal> {
        self.with_users(inbound, |users| Ok(users.count()))
    }

    /// All users who are connected from addresses that are listed, in no order. One pass, which holds up no connection.
    pub fn online_users(&self, counters: Show) -> Vec<OnlineUser> {
        let mut all = Vec::new();
        self.stats.people().each(|person| {
            if person.addresses() == 0 {
                return;
            }
            let traffic = person.counters().map(|tally| match counters {
                Show::Nothing => None,
                Show::AsTheyAre => tally.map(|tally| tally.get()),
                Show::AndReset => tally.map(|tally| tally.take()),
            });
            all.push(OnlineUser {
                email: person.email().to_owned(),
                addresses: person.seen(),
                traffic,
            });
        });
        all
    }
}

fn refusal(why: Unchanged, email: &str) -> Refusal {
    use sealway_v2ray::Error::{DuplicateId, DuplicatePassword};
    match why {
        Unchanged::Taken | Unchanged::Wire(DuplicateId | DuplicatePassword) => Refusal::UserTaken(email.to_owned()),
        Unchanged::Unknown => Refusal::NoUser(email.to_owned()),
        Unchanged::NoEmail => Refusal::EmptyEmail,
        Unchanged::Other(what) => Refusal::Unsupported(what),
        Unchanged::Wire(error) => Refusal::Unusable(error.into()),
    }
}

#[cfg(test)]
mod tests;
