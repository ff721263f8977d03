//! VLESS, as the server.

use std::sync::{Arc, OnceLock};

use sealway_v2ray::vless::fallback::Fallbacks;
use sealway_v2ray::vless::first::{First, Stranger, inspect};
use sealway_v2ray::vless::vision::Seed;
use sealway_v2ray::vless::{self, Command, Flow, RESPONSE, check_flow};
use sealway_v2ray::{Network, UserId, mux};

use super::fallback::{Entered, Knock, Strangers};
use super::roster::{Roll, Roster, Table, Unchanged};
use super::{Fresh, Protocol, Users};
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::people::Member;
use crate::settings::{NewAccount, VlessIn};
use crate::udp::Framed;

/// A VLESS inbound.
pub(super) struct Vless {
    accounts: Arc<Roster<Accounts>>,
    strangers: Strangers,
}

/// Who may use it.
#[derive(Default)]
struct Accounts {
    known: vless::Users<Account>,
    /// How many accounts have the flow `xtls-rprx-vision`.
    padding: usize,
    /// That of the account that came last: most have the same.
    how: Arc<How>,
}

/// Who may use it, and how.
#[derive(Clone)]
struct Account {
    member: Arc<Member>,
    how: Arc<How>,
}

/// How payload goes.
#[derive(Debug, Default, Eq, PartialEq)]
struct How {
    flow: Flow,
    seed: Seed,
}

const OTHER: Unchanged = Unchanged::Other("this inbound knows its users by ids of VLESS");

impl Table for Accounts {
    type Name = UserId;

    fn name(&self, account: &NewAccount) -> Result<UserId, Unchanged> {
        match account {
            NewAccount::Vless(id, ..) => Ok(*id),
            _ => Err(OTHER),
        }
    }

    fn insert(&mut self, &id: &UserId, account: &NewAccount, member: Arc<Member>) -> Result<(), Unchanged> {
        let &NewAccount::Vless(_, flow, seed) = account else {
            return Err(OTHER);
        };
        let how = How { flow, seed };
        if *self.how != how {
            self.how = Arc::new(how);
        }
        let how = Arc::clone(&self.how);
        self.known.insert(id, Account { member, how })?;
        self.padding += usize::from(flow == Flow::Vision);
        Ok(())
    }

    fn remove(&mut self, id: &UserId) {
        if let Some(account) = self.known.remove(id) {
            self.padding -= usize::from(account.how.flow == Flow::Vision);
        }
    }
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
    pub(super) fn new(settings: &VlessIn, users: &Users<'_>) -> Result<Self, Error> {
        Ok(Vless {
            accounts: Roster::new(Accounts::default(), settings.users.iter().map(Into::into), users)?,
            strangers: Strangers::new(Fallbacks::new(settings.fallbacks.iter().cloned()), users),
        })
    }

    /// Reads the request header; sends strangers to a fallback.
    async fn read(&self, mut fresh: Fresh) -> Result<Request, Error> {
        let account = OnceLock::new();
        let knock = |first: &[u8]| {
            let accounts = self.accounts.read();
            match inspect(first, &accounts.known) {
                First::User(found) => {
                    let user = User {
                        vless_route: Some(found.route),
                        ..User::from(Arc::clone(&found.user.member))
                    };
                    // A user is found once.
                    let _ = account.set(found.user.clone());
                    Knock::User(Arc::new(user))
                }
                First::Stranger(Stranger::Short) => Knock::Short,
                First::Stranger(_) => Knock::Stranger,
            }
        };
        let words = ["VLESS: no such user", "VLESS header"];
        // Who pads may leave TLS with the first record behind the header.
        let carries = fresh.stream.carries_vision();
        fresh
            .stream
            .set_one_by_one(self.accounts.read().padding > 0 && carries.is_ok());
        let mut asked = None;
        let target = |request: vless::Request| {
            let account: Option<&Account> = account.get();
            let (flow, seed) = account.map_or_else(Default::default, |account| (account.how.flow, account.how.seed));
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
    fn users(&self) -> Option<&dyn Roll> {
        Some(&*self.accounts)
    }

    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(self.read(fresh))
    }
}
