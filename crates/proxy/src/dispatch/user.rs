//! Who a connection belongs to.

use std::sync::Arc;

use super::Origin;
use crate::error::Error;
use crate::people::{Member, Presence, Watch};
use crate::settings::Level;

/// A user as connections see him.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    /// Who it is. `None`: nobody in particular.
    pub(crate) member: Option<Arc<Member>>,
    pub(crate) level: Arc<Level>,
    /// The number in the id by which a client of VLESS said who this is.
    pub(crate) vless_route: Option<u16>,
}

impl From<Arc<Member>> for User {
    fn from(member: Arc<Member>) -> User {
        User {
            level: Arc::clone(&member.level),
            member: Some(member),
            vless_route: None,
        }
    }
}

impl User {
    /// His name in rules and the access log. Empty: he has none.
    pub(crate) fn email(&self) -> &str {
        self.member.as_ref().map_or("", |member| member.email())
    }

    /// Begins to carry something of his. Held until that ends.
    ///
    /// # Errors
    /// [`Error::Refused`] if he may not have another connection.
    pub(crate) fn enter(&self, origin: &Origin) -> Result<Presence, Error> {
        match &self.member {
            Some(member) => Ok(member.enter(origin.source.map(|source| source.ip()))?),
            None => Ok(Presence::nobody()),
        }
    }

    /// Waits for his removal, without being counted.
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(self.member.clone())
    }

    /// What tells users apart for as long as this one is held.
    pub(crate) fn key(self: &Arc<Self>) -> usize {
        match &self.member {
            Some(member) => Arc::as_ptr(member) as usize,
            None => Arc::as_ptr(self) as usize,
        }
    }
}
