//! VLESS, as the server.

use std::sync::Arc;

use sealway_v2ray::vless::fallback::Fallbacks;
use sealway_v2ray::vless::first::{First, Stranger, inspect};
use sealway_v2ray::vless::vision::Seed;
use sealway_v2ray::vless::{self, Command, Flow, RESPONSE, check_flow};
use sealway_v2ray::{Network, UserId, mux};

use super::fallback::{Entered, Knock, Strangers};
use super::{Fresh, Protocol, Users};
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::settings::VlessIn;
use crate::udp::Framed;

/// A VLESS inbound.
pub(super) struct Vless {
    accounts: vless::Users<Account>,
    strangers: Strangers,
    /// Some account has the flow `xtls-rprx-vision`.
    pads: bool,
}

/// Who may use it, and how.
struct Account {
    user: Arc<User>,
    flow: Flow,
    seed: Seed,
}

/// What of a request and its account makes a difference to what follows.
struct Asked {
    id: UserId,
    flow: Flow,
    seed: Seed,
    /// It is a mux, in which the account may have datagrams only.
    datagrams_only: bool,
}

impl Vless {
    pub(super) fn new(settings: &VlessIn, users: &mut Users<'_>) -> Result<Self, Error> {
        let mut accounts = vless::Users::new();
        for settings in &settings.users {
            let account = Account {
                user: users.user(&settings.user)?.by_route(settings.user.id.route()),
                flow: settings.flow,
                seed: settings.seed,
            };
            let inserted = accounts.insert(settings.user.id, account);
            inserted.map_err(|error| users.wrong(error))?;
        }
        Ok(Vless {
            accounts,
            strangers: Strangers::new(Fallbacks::new(settings.fallbacks.iter().cloned()), users),
            pads: settings.users.iter().any(|user| user.flow == Flow::Vision),
        })
    }

    /// Reads the request header; sends strangers to a fallback.
    async fn read(&self, mut fresh: Fresh) -> Result<Request, Error> {
        let knock = |first: &[u8]| match inspect(first, &self.accounts) {
            First::User(found) => Knock::User(found.user.user.by_route(found.route)),
            First::Stranger(Stranger::Short) => Knock::Short,
            First::Stranger(_) => Knock::Stranger,
        };
        let words = ["VLESS: no such user", "VLESS header"];
        // Who pads may leave TLS with the first record behind the header.
        let carries = fresh.stream.carries_vision();
        fresh.stream.set_one_by_one(self.pads && carries.is_ok());
        let mut asked = None;
        let target = |request: vless::Request| {
            let found = self.accounts.find(&request.id);
            let (flow, seed) = found.map_or_else(Default::default, |found| (found.user.flow, found.user.seed));
            check_flow(request.flow, flow, &request.command)?;
            if request.flow == Flow::Vision {
                carries?;
            }
            let is_mux = match &request.command {
                Command::Connect(to) => mux::is_mux(to),
                Command::Mux => true,
                Command::Reverse => false,
            };
            asked = Some(Asked {
                id: request.id,
                flow: request.flow,
                seed,
                datagrams_only: flow == Flow::Vision && is_mux,
            });
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
        let asked = asked.ok_or(Error::protocol("VLESS", "a target without a request"))?;
        fresh.stream.set_prefix(RESPONSE.to_vec());
        match asked.flow {
            Flow::Vision => fresh.stream.set_vision(asked.id, asked.seed, !asked.datagrams_only),
            Flow::None => fresh.stream.set_one_by_one(false),
        }
        if asked.datagrams_only {
            return Ok(super::mux::of_datagrams(fresh.stream, user, fresh.associations));
        }
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
