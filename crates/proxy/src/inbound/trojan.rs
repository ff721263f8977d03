//! Trojan, as the server.

use std::sync::Arc;

use sealway_v2ray::Network;
use sealway_v2ray::trojan;
use sealway_v2ray::trojan::first::{First, Stranger, inspect};
use sealway_v2ray::vless::fallback::Fallbacks;

use super::fallback::{Entered, Knock, Strangers};
use super::{Fresh, Protocol, Users};
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::settings::TrojanIn;
use crate::udp::Addressed;

/// A Trojan inbound.
pub(super) struct Trojan {
    users: trojan::Users<Arc<User>>,
    strangers: Strangers,
}

impl Trojan {
    pub(super) fn new(settings: &TrojanIn, users: &mut Users<'_>) -> Result<Self, Error> {
        let mut known = trojan::Users::new();
        for user in &settings.users {
            let record = users.named(&user.email, user.level)?;
            known
                .insert(user.key.clone(), record)
                .map_err(|error| users.wrong(error))?;
        }
        Ok(Trojan {
            users: known,
            strangers: Strangers::new(Fallbacks::new(settings.fallbacks.iter().cloned()), users),
        })
    }

    /// Reads the request header; sends strangers to a fallback.
    async fn read(&self, fresh: Fresh) -> Result<Request, Error> {
        let knock = |first: &[u8]| match inspect(first, &self.users) {
            First::User(user) => Knock::User(Arc::clone(user)),
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
    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(self.read(fresh))
    }
}
