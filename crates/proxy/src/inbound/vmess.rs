//! VMess, as the server.

use std::sync::{Arc, Once};

use sealway_v2ray::vmess::{self, Command, Drain, Profile, RequestOpener, Security, Session};
use sealway_v2ray::{Destination, Network, Step, UserId, mux};
use tokio::time::timeout_at;

use super::roster::{Roll, Roster, Table, Unchanged};
use super::{Fresh, Protocol, Users};
use crate::body::vmess::{VmessOpen, VmessSeal};
use crate::clock::Clock;
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::people::Member;
use crate::settings::{NewAccount, VmessIn};
use crate::stream::Stream;
use crate::udp::Framed;
use crate::{random, replay};

/// Said once: the words `none` and `zero` leave the payload in the clear.
static CLEAR: Once = Once::new();

/// A VMess inbound.
pub(super) struct Vmess {
    users: Arc<Roster<vmess::Users<Arc<Member>>>>,
    /// How it treats those it refuses, whoever comes and goes.
    drain: Profile,
    secure_only: bool,
    clock: Clock,
}

impl Table for vmess::Users<Arc<Member>> {
    type Name = UserId;

    fn name(&self, account: &NewAccount) -> Result<UserId, Unchanged> {
        match account {
            NewAccount::Vmess(id) => Ok(*id),
            _ => Err(Unchanged::Other("this inbound knows its users by ids of VMess")),
        }
    }

    fn insert(&mut self, id: &UserId, _: &NewAccount, member: Arc<Member>) -> Result<(), Unchanged> {
        Ok(self.insert(*id, member)?)
    }

    fn remove(&mut self, id: &UserId) {
        self.remove(id);
    }
}

/// What a header says.
type Header = (Arc<Member>, Session, Command);

impl Vmess {
    pub(super) fn new(settings: &VmessIn, users: &Users<'_>) -> Result<Self, Error> {
        let known = vmess::Users::new();
        let roster = Roster::new(known, settings.users.iter().map(Into::into), users)?;
        Ok(Vmess {
            drain: drain(settings.users.is_empty(), || roster.read().drain_profile())?,
            users: roster,
            secure_only: settings.secure_only,
            clock: users.clock,
        })
    }

    /// Reads the request header. Whatever is wrong with it, the client is heard out before the connection closes.
    async fn read(&self, fresh: Fresh) -> Result<Request, Error> {
        let mut stream = fresh.stream;
        let mut drain = Drain::new(self.drain, u64::from_le_bytes(random::bytes()?));
        let in_time = async {
            let header = self.header(&mut stream, &mut drain).await;
            if header.is_err() {
                hear_out(&mut stream, &mut drain).await;
            }
            header
        };
        let refusal = match timeout_at(fresh.deadline, in_time).await {
            Ok(Ok((user, session, command))) => {
                let to = match command {
                    Command::Connect(to) => to,
                    Command::Mux => mux::target()?,
                };
                return welcome(stream, Arc::new(User::from(user)), &session, to);
            }
            Ok(Err(error)) => error,
            Err(_) => Error::TimedOut("VMess header"),
        };
        stream.leave(&[]).await;
        Err(refusal)
    }

    async fn header(&self, stream: &mut Stream, drain: &mut Drain) -> Result<Header, Error> {
        let mut opener = RequestOpener::new();
        loop {
            let had = stream.payload().len();
            if !stream.more().await? {
                return Err(Error::Closed);
            }
            drain.consume(stream.payload().len() - had);
            let now = (self.clock)();
            let mut remember = |seen| replay::remember(seen, now);
            let step = opener.handle(stream.payload(), now, &self.users.read(), &mut remember)?;
            match step {
                Step::More(_) => {}
                Step::Done { value, used } => {
                    if value.session.security == Security::None {
                        if self.secure_only {
                            return Err(Error::Unauthentic("VMess: security none is refused here"));
                        }
                        CLEAR.call_once(|| {
                            tracing::warn!("a VMess client sends its payload in the clear (security none or zero)");
                        });
                    }
                    stream.consume(used);
                    stream.trust();
                    return Ok((value.user, value.session, value.command));
                }
            }
        }
    }
}

impl Protocol for Vmess {
    fn users(&self) -> Option<&dyn Roll> {
        Some(&*self.users)
    }

    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(self.read(fresh))
    }
}

/// A stream whose header was right.
fn welcome(mut stream: Stream, user: Arc<User>, session: &Session, to: Destination) -> Result<Request, Error> {
    let opener = VmessOpen::request(session)?;
    let raw = opener.is_none();
    if let Some(opener) = opener {
        stream.set_opener(Box::new(opener));
    }
    stream.set_prefix(session.seal_response()?.to_vec());
    if let Some(sealer) = VmessSeal::response(session, !stream.has_tls())? {
        stream.set_sealer(Box::new(sealer));
    }
    Ok(match to.network {
        Network::Tcp => Request::Stream {
            near: Box::new(stream),
            to,
            user,
        },
        Network::Udp => Request::Datagrams {
            near: match raw {
                true => Framed::raw(stream, to.clone()),
                false => Framed::vmess(stream, to.clone()),
            },
            to,
            user,
        },
    })
}

/// How a server treats those it refuses: as its secrets have it, so that it is the same after a start. One that begins without
/// users draws lots.
pub(super) fn drain(empty: bool, of_users: impl FnOnce() -> Profile) -> Result<Profile, Error> {
    match empty {
        true => Ok(Profile::new(random::bytes()?)),
        false => Ok(of_users()),
    }
}

/// Reads on until as many bytes have come as for any other refusal.
pub(super) async fn hear_out(stream: &mut Stream, drain: &mut Drain) {
    let mut have = stream.payload().len();
    while drain.left() > 0 {
        stream.consume(have);
        match stream.more().await {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
        have = stream.payload().len();
        if drain.consume(have) {
            return;
        }
    }
}
