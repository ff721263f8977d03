//! Trojan, as the server.

use std::sync::Arc;

use sealway_v2ray::Network;
use sealway_v2ray::trojan;
use sealway_v2ray::trojan::first::{First, Stranger, inspect};
use sealway_v2ray::vless::fallback::Fallbacks;

use super::fallback::{Entered, Knock, Strangers};
use super::roster::{Roll, Roster, Table, Unchanged};
use super::{Fresh, Protocol, Users};
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::people::Member;
use crate::settings::{NewAccount, TrojanIn};
use crate::udp::Addressed;

/// A Trojan inbound.
pub(super) struct Trojan {
    users: Arc<Roster<trojan::Users<Arc<Member>>>>,
    strangers: Strangers,
}

impl Table for trojan::Users<Arc<Member>> {
    type Name = trojan::Key;

    fn name(&self, account: &NewAccount) -> Result<trojan::Key, Unchanged> {
        match account {
            NewAccount::Trojan(key) => Ok(key.clone()),
            _ => Err(Unchanged::Other("this inbound knows its users by passwords of Trojan")),
        }
    }

    fn insert(&mut self, key: &trojan::Key, _: &NewAccount, member: Arc<Member>) -> Result<(), Unchanged> {
        Ok(self.insert(key.clone(), member)?)
    }

    fn remove(&mut self, key: &trojan::Key) {
        self.remove(key);
    }
}

impl Trojan {
    pub(super) fn new(settings: &TrojanIn, users: &Users<'_>) -> Result<Self, Error> {
        Ok(Trojan {
            users: Roster::new(trojan::Users::new(), settings.users.iter().map(Into::into), users)?,
            strangers: Strangers::new(Fallbacks::new(settings.fallbacks.iter().cloned()), users),
        })
    }

    /// Reads the request header; sends strangers to a fallback.
    async fn read(&self, fresh: Fresh) -> Result<Request, Error> {
        let knock = |first: &[u8]| match inspect(first, &self.users.read()) {
            First::User(member) => Knock::User(Arc::new(User::from(Arc::clone(member)))),
            First::Stranger(Stranger::Short) => Knock::Short,
            First::Stranger(_) => Knock::Stranger,
        };
        let words = ["Trojan: no such user", "Trojan header"];
        let target = |request: trojan::Request| Ok(request.to);
        let entered = self
            .strangers
            .let_in(fresh, words, knock, trojan::Request::decode, target);
        let (fresh, user, to) = match entered.await? {
            Entered::User(fresh, user, to) => (fresh, user, to),
            Entered::Stranger(request) => return Ok(request),
        };
        Ok(match to.network {
            Network::Tcp => Request::Stream {
                near: Box::new(fresh.stream),
                to,
                user,
            },
            // Each datagram says where it goes, so what the header says makes no difference.
            Network::Udp => Request::Packets {
                near: Addressed::new(fresh.stream),
                user,
            },
        })
    }
}

impl Protocol for Trojan {
    fn users(&self) -> Option<&dyn Roll> {
        Some(&*self.users)
    }

    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(self.read(fresh))
    }
}
