//! Names and passwords of those who may use an inbound.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sealway_v2ray::same_secret;
use sha2::{Digest, Sha256};

use super::Users;
use super::roster::{Roll, Roster, Table, Unchanged};
use crate::dispatch::User;
use crate::people::Member;
use crate::settings::{Account, NewAccount, NewUser};
use crate::{Error, random};

/// What a name and a password are found by. Whoever does not know the inbound's secret cannot tell what it will be, so nothing is
/// learnt from the time that looking for it takes.
type Digests = [u8; 32];

/// Who may use an inbound.
#[derive(Clone)]
pub(super) struct Accounts {
    /// `None`: anyone.
    roster: Option<Arc<Roster<Logins>>>,
    anyone: Arc<User>,
}

/// Users by name and password.
pub(super) struct Logins {
    secret: [u8; 32],
    known: HashMap<[u8; 16], (Digests, Arc<Member>)>,
}

impl Logins {
    fn digest(&self, user: &[u8], pass: &[u8]) -> Digests {
        // Hashes of the same length stand for texts of any: none goes over into the next.
        let [user, pass] = [user, pass].map(Sha256::digest);
        Sha256::new()
            .chain_update(self.secret)
            .chain_update(user)
            .chain_update(pass)
            .finalize()
            .into()
    }

    fn find(&self, user: &[u8], pass: &[u8]) -> Option<&Arc<Member>> {
        let asked = self.digest(user, pass);
        let (own, member) = self.known.get(&front(&asked))?;
        same_secret(own, &asked).then_some(member)
    }
}

fn front(digest: &Digests) -> [u8; 16] {
    let mut front = [0; 16];
    front.copy_from_slice(&digest[..16]);
    front
}

impl Table for Logins {
    type Name = Digests;
    const SHARES_EMAILS: bool = true;

    fn name(&self, account: &NewAccount) -> Result<Digests, Unchanged> {
        match account {
            NewAccount::Login(account) => Ok(self.digest(account.user.as_bytes(), account.pass.as_bytes())),
            _ => Err(Unchanged::Other("this inbound knows its users by name and password")),
        }
    }

    fn insert(&mut self, name: &Digests, _: &NewAccount, member: Arc<Member>) -> Result<(), Unchanged> {
        let front = front(name);
        if self.known.contains_key(&front) {
            return Err(sealway_v2ray::Error::DuplicatePassword.into());
        }
        self.known.insert(front, (*name, member));
        Ok(())
    }

    fn remove(&mut self, name: &Digests) {
        self.known.remove(&front(name));
    }
}

impl Accounts {
    /// Those of the settings, who are known by their names. Without any, anyone may use the inbound for as long as it is there.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(accounts: &[Account], level: u32, users: &Users<'_>) -> Result<Self, Error> {
        let anyone = users.anyone(level);
        if accounts.is_empty() {
            return Ok(Accounts { roster: None, anyone });
        }
        let mut seen = HashSet::new();
        let logins = accounts
            .iter()
            .filter(|account| seen.insert((&account.user, &account.pass)));
        let logins = logins.map(|account| NewUser {
            email: account.user.clone(),
            level,
            account: NewAccount::Login(account.clone()),
        });
        let table = Logins {
            // Who is who must be seen where another inbound stood here before.
            secret: match Roster::<Logins>::before(users) {
                Some(before) => before.read().secret,
                None => random::bytes()?,
            },
            known: HashMap::new(),
        };
        Ok(Accounts {
            roster: Some(Roster::new(table, logins, users)?),
            anyone,
        })
    }

    /// Anyone may.
    pub(super) fn are_none(&self) -> bool {
        self.roster.is_none()
    }

    /// Who has this name and password. Takes the same time whichever differs, and wherever.
    pub(super) fn find(&self, user: &[u8], pass: &[u8]) -> Option<Arc<User>> {
        match &self.roster {
            None => None,
            Some(roster) => {
                let member = roster.read().find(user, pass).map(Arc::clone)?;
                Some(Arc::new(User::from(member)))
            }
        }
    }

    /// Whoever comes, where anyone may.
    pub(super) fn anyone(&self) -> &Arc<User> {
        &self.anyone
    }

    /// For whoever changes them.
    pub(super) fn roll(&self) -> Option<&dyn Roll> {
        self.roster.as_deref().map(|roster| roster as &dyn Roll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::Levels;
    use crate::stats::Stats;

    fn account(user: &str, pass: &str) -> Account {
        Account {
            user: user.into(),
            pass: pass.into(),
        }
    }

    fn accounts(list: &[Account]) -> Accounts {
        Accounts::new(list, 0, &Users::of(&Levels::default(), &Stats::default())).unwrap()
    }

    #[test]
    fn name_and_password_belong_together() {
        let accounts = accounts(&[account("a", "1"), account("b", "2"), account("", ""), account("b", "3")]);
        for (user, pass, known) in [
            ("a", "1", true),
            ("b", "2", true),
            ("b", "3", true),
            ("", "", true),
            ("a", "2", false),
            ("b", "1", false),
            ("a", "", false),
            ("", "1", false),
            ("a", "11", false),
            ("a1", "", false),
        ] {
            let found = accounts.find(user.as_bytes(), pass.as_bytes());
            assert_eq!(
                found.as_deref().map(User::email),
                known.then_some(user),
                "{user:?} {pass:?}"
            );
        }
    }

    #[test]
    fn an_inbound_that_has_had_accounts_is_never_open_to_anyone() {
        let closed = accounts(&[account("a", "1")]);
        let roll = closed.roll().unwrap();
        roll.remove("A").unwrap();
        assert!(!closed.are_none() && roll.count() == 0 && closed.find(b"a", b"1").is_none());
        let open = accounts(&[]);
        assert!(open.are_none() && open.roll().is_none() && open.find(b"", b"").is_none());
    }
}
