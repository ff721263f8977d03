//! Who may use an inbound, while it serves: users come and go, and connections look for theirs.
//!
//! Connections look into a table that is locked for one look only. What a change takes does not grow with the number of users.

use std::any::Any;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use super::{Levels, Users};
use crate::Error;
use crate::people::{Member, People};
use crate::settings::{NewAccount, NewUser};

/// What connections of one protocol look for their user in.
pub(super) trait Table: Send + Sync + 'static {
    /// What a user is found by: his credentials.
    type Name: Clone + Eq + Hash + Send + Sync;

    /// Whether two users may have one e-mail, if the configuration has it so: logins differ by their passwords too.
    const SHARES_EMAILS: bool = false;

    /// Users may come and go.
    fn is_open(&self) -> bool {
        true
    }

    /// What the user with this account is found by.
    ///
    /// # Errors
    /// [`Unchanged::Other`] for an account that is none of this protocol, [`Unchanged::Wire`] for one that does not work.
    fn name(&self, account: &NewAccount) -> Result<Self::Name, Unchanged>;

    /// Enters a user.
    ///
    /// # Errors
    /// [`Unchanged::Wire`] for an account that is taken.
    fn insert(&mut self, name: &Self::Name, account: &NewAccount, member: Arc<Member>) -> Result<(), Unchanged>;

    /// Takes a user out.
    fn remove(&mut self, name: &Self::Name);
}

/// Why nothing was changed.
#[derive(Debug)]
pub(crate) enum Unchanged {
    /// Somebody has this e-mail.
    Taken,
    /// Nobody has it.
    Unknown,
    /// Who has no e-mail cannot be named.
    NoEmail,
    /// The account is of another kind: what this inbound takes.
    Other(&'static str),
    /// Somebody else has this id or password, or it is none.
    Wire(sealway_v2ray::Error),
}

impl From<sealway_v2ray::Error> for Unchanged {
    fn from(error: sealway_v2ray::Error) -> Unchanged {
        Unchanged::Wire(error)
    }
}

/// A member by his e-mail, in lower case.
struct ByEmail(Arc<Member>);

impl Borrow<str> for ByEmail {
    fn borrow(&self) -> &str {
        self.0.lower()
    }
}

impl Hash for ByEmail {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.lower().hash(state);
    }
}

impl PartialEq for ByEmail {
    fn eq(&self, other: &Self) -> bool {
        self.0.lower() == other.0.lower()
    }
}

impl Eq for ByEmail {}

/// The users of an inbound, for whoever changes them.
pub(crate) trait Roll: Any + Send + Sync {
    /// They may come and go.
    fn is_open(&self) -> bool;

    /// Adds a user. Without an e-mail he stays for as long as the inbound does.
    ///
    /// # Errors
    /// [`Unchanged`] says why he was not added.
    fn add(&self, user: &NewUser) -> Result<(), Unchanged>;

    /// Removes the user with this e-mail, in any case. What is carried for him here ends.
    ///
    /// # Errors
    /// [`Unchanged::NoEmail`] and [`Unchanged::Unknown`].
    fn remove(&self, email: &str) -> Result<(), Unchanged>;

    /// The user with this e-mail, in any case: as it was given, and his level.
    fn find(&self, email: &str) -> Option<(String, u32)>;

    /// All users with e-mails, in no order: e-mails and levels.
    fn list(&self) -> Vec<(String, u32)>;

    /// How many users have e-mails.
    fn count(&self) -> usize;

    /// They may take from now on what their settings say, for what is carried already as well.
    fn limit(&self);

    /// Those of other inbounds stand in the place of these. Whoever is none of them is removed, and what is carried for him ends.
    fn hand_over(&self, heirs: &[&dyn Roll]);
}

/// The users of an inbound.
pub(super) struct Roster<T: Table> {
    table: RwLock<T>,
    entries: Mutex<Entries<T>>,
    people: Arc<People>,
    levels: Levels,
}

/// Everybody of a table.
struct Entries<T: Table> {
    /// Those who are found by their e-mails.
    emails: HashMap<ByEmail, T::Name>,
    others: HashMap<T::Name, Arc<Member>>,
    /// What is to stand in the place of these: changes from then on count for both.
    heir: Weak<Roster<T>>,
}

impl<T: Table> Default for Entries<T> {
    fn default() -> Self {
        Entries {
            emails: HashMap::new(),
            others: HashMap::new(),
            heir: Weak::new(),
        }
    }
}

impl<T: Table> Entries<T> {
    /// Who has this e-mail, in lower case, and these credentials.
    fn get(&self, lower: &str, name: &T::Name) -> Option<&Arc<Member>> {
        let by_email = self.emails.get_key_value(lower).filter(|(_, own)| *own == name);
        let other = || self.others.get(name).filter(|member| member.lower() == lower);
        by_email.map(|(ByEmail(member), _)| member).or_else(other)
    }

    /// Whether a member of the roster before is one of these.
    fn has(&self, member: &Member, name: &T::Name) -> bool {
        self.get(member.lower(), name).is_some_and(|own| own.is(member))
    }
}

impl<T: Table> Roster<T> {
    /// Those of the settings. Who was among those before is the same one.
    ///
    /// # Errors
    /// [`Error::Config`] for users of whom each needs what another has.
    pub(super) fn new(
        table: T,
        settings: impl IntoIterator<Item = NewUser>,
        users: &Users<'_>,
    ) -> Result<Arc<Self>, Error> {
        let roster = Roster {
            table: RwLock::new(table),
            entries: Mutex::default(),
            people: Arc::clone(users.stats.people()),
            levels: users.levels.clone(),
        };
        // Nobody comes or goes there meanwhile.
        let mut before = Self::before(users).map(Self::entries);
        for user in settings {
            let entered = roster.enter(&user, T::SHARES_EMAILS, before.as_deref());
            entered.map_err(|why| match why {
                Unchanged::Wire(error) => users.wrong(error),
                Unchanged::Other(what) => users.wrong(what),
                _ => users.wrong(format!(
                    "two users have the e-mail {:?}; each needs its own",
                    user.email
                )),
            })?;
        }
        let roster = Arc::new(roster);
        if let Some(before) = &mut before {
            before.heir = Arc::downgrade(&roster);
        }
        Ok(roster)
    }

    /// Those in whose place these will stand.
    pub(super) fn before<'a>(users: &Users<'a>) -> Option<&'a Self> {
        let before: &dyn Any = users.before?;
        before.downcast_ref()
    }

    /// The table, for one look.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> MutexGuard<'_, Entries<T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, user: &NewUser, shares: bool, before: Option<&Entries<T>>) -> Result<Arc<Member>, Unchanged> {
        let name = self.read().name(&user.account)?;
        let same = before.and_then(|before| before.get(&user.email.to_lowercase(), &name));
        let level = self.levels.get(user.level);
        let member = self.people.join_again(&user.email, user.level, level, same);
        let entered = self.enter_as(&member, name, &user.account, shares);
        if !matches!(entered, Ok(true)) {
            self.people.leave(&member);
        }
        entered.map(|_| member)
    }

    fn limit_one(&self, member: &Member) {
        let limits = self.levels.limits(member.lower(), member.level_number);
        self.people.limit(member, &limits);
    }

    /// False: he is not found by his e-mail.
    fn enter_as(
        &self,
        member: &Arc<Member>,
        name: T::Name,
        account: &NewAccount,
        shares: bool,
    ) -> Result<bool, Unchanged> {
        let Entries { emails, others, .. } = &mut *self.entries();
        let insert = || self.write().insert(&name, account, Arc::clone(member));
        if !member.lower().is_empty() {
            match emails.entry(ByEmail(Arc::clone(member))) {
                Entry::Occupied(_) if shares => {}
                Entry::Occupied(_) => return Err(Unchanged::Taken),
                Entry::Vacant(place) => {
                    insert()?;
                    place.insert(name);
                    return Ok(true);
                }
            }
        }
        insert()?;
        others.insert(name, Arc::clone(member));
        Ok(false)
    }
}

impl<T: Table> Roll for Roster<T> {
    fn is_open(&self) -> bool {
        self.read().is_open()
    }

    fn add(&self, user: &NewUser) -> Result<(), Unchanged> {
        self.limit_one(&*self.enter(user, false, None)?);
        let entries = self.entries();
        if let Some(heir) = entries.heir.upgrade() {
            // Who has the e-mail or the account there already is whom the new settings mean.
            let _ = heir.enter(user, false, Some(&entries));
        }
        Ok(())
    }

    fn remove(&self, email: &str) -> Result<(), Unchanged> {
        if email.is_empty() {
            return Err(Unchanged::NoEmail);
        }
        let mut entries = self.entries();
        let found = entries.emails.remove_entry(email.to_lowercase().as_str());
        if let Some((ByEmail(member), name)) = &found {
            self.write().remove(name);
            member.end();
            self.people.leave(member);
        }
        let heir = entries.heir.upgrade();
        drop(entries);
        let too = heir.map(|heir| heir.remove(email));
        match found {
            Some(_) => Ok(()),
            None => too.unwrap_or(Err(Unchanged::Unknown)),
        }
    }

    fn find(&self, email: &str) -> Option<(String, u32)> {
        let entries = self.entries();
        let (ByEmail(member), _) = entries.emails.get_key_value(email.to_lowercase().as_str())?;
        Some((member.email().to_owned(), member.level_number))
    }

    fn list(&self) -> Vec<(String, u32)> {
        let entries = self.entries();
        let one = |ByEmail(member): &ByEmail| (member.email().to_owned(), member.level_number);
        entries.emails.keys().map(one).collect()
    }

    fn count(&self) -> usize {
        self.entries().emails.len()
    }

    fn limit(&self) {
        let entries = self.entries();
        let by_email = entries.emails.keys().map(|ByEmail(member)| member);
        by_email
            .chain(entries.others.values())
            .for_each(|member| self.limit_one(member));
    }

    fn hand_over(&self, heirs: &[&dyn Roll]) {
        let heirs: Vec<&Self> = heirs
            .iter()
            .filter_map(|heir| (*heir as &dyn Any).downcast_ref())
            .collect();
        let mut entries = self.entries();
        let theirs: Vec<_> = heirs.iter().map(|heir| heir.entries()).collect();
        let is_gone = |member: &Arc<Member>, name: &T::Name| {
            let mut theirs = theirs.iter();
            !theirs.any(|heir| heir.has(member, name))
        };
        let by_email = entries.emails.extract_if(|ByEmail(member), name| is_gone(member, name));
        let by_email: Vec<_> = by_email.map(|(ByEmail(member), name)| (name, member)).collect();
        let others: Vec<_> = entries
            .others
            .extract_if(|name, member| is_gone(member, name))
            .collect();
        drop(theirs);
        for (_, member) in &by_email {
            self.people.leave(member);
        }
        let mut table = self.write();
        for (name, member) in by_email.into_iter().chain(others) {
            table.remove(&name);
            member.end();
        }
    }
}

impl<T: Table> Drop for Roster<T> {
    /// Nobody is found here any more. What is carried goes on.
    fn drop(&mut self) {
        for (ByEmail(member), _) in self.entries().emails.drain() {
            self.people.leave(&member);
        }
    }
}

#[cfg(test)]
mod tests;
