//! VLESS, as the server.

use std::sync::Arc;

use sealway_v2ray::vless::fallback::Fallbacks;
use sealway_v2ray::vless::first::{First, Stranger, inspect};
use sealway_v2ray::vless::{self, Command, Flow, RESPONSE, check_flow};
use sealway_v2ray::{Network, mux};

use super::fallback::{Entered, Knock, Strangers};
use super::{Fresh, Protocol, Users};
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::settings::VlessIn;
use crate::udp::Framed;

/// A VLESS inbound.
pub(super) struct Vless {
    users: vless::Users<Arc<User>>,
    strangers: Strangers,
}

impl Vless {
    pub(super) fn new(settings: &VlessIn, users: &mut Users<'_>) -> Result<Self, Error> {
        let mut known = vless::Users::new();
        for user in &settings.users {
            let record = users.user(user)?.by_route(user.id.route());
            known.insert(user.id, record).map_err(|error| users.wrong(error))?;
        }
        Ok(Vless {
            users: known,
            strangers: Strangers::new(Fallbacks::new(settings.fallbacks.iter().cloned()), users),
        })
    }

    /// Reads the request header; sends strangers to a fallback.
    async fn read(&self, fresh: Fresh) -> Result<Request, Error> {
        let knock = |first: &[u8]| match inspect(first, &self.users) {
            First::User(found) => Knock::User(found.user.by_route(found.route)),
            First::Stranger(Stranger::Short) => Knock::Short,
            First::Stranger(_) => Knock::Stranger,
        };
        let words = ["VLESS: no such user", "VLESS header"];
        let target = |request: vless::Request| {
            check_flow(request.flow, Flow::None, &request.command)?;
            match request.command {
                Command::Connect(to) => Ok(to),
                Command::Mux => mux::target().map_err(Into::into),
                Command::Reverse => Err(Error::Unsupported("VLESS reverse tunnels")),
            }
        };
        let entered = self
            .strangers
            .let_in(fresh, words, knock, vless::Request::decode, target);
        let (mut fresh, user, to) = match entered.await? {
            Entered::User(fresh, user, to) => (fresh, user, to),
            Entered::Stranger(request) => return Ok(request),
        };
        fresh.stream.set_prefix(RESPONSE.to_vec());
        Ok(match to.network {
            Network::Tcp => Request::Stream {
                near: Box::new(fresh.stream),
                to,
                user,
            },
            Network::Udp => Request::Datagrams {
                near: Framed::vless(fresh.stream, to.clone()),
                to,
                user,
            },
        })
    }
}

impl Protocol for Vless {
    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(self.read(fresh))
    }
}
