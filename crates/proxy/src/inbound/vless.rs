//! VLESS, as the server.

use std::sync::Arc;

use sealway_v2ray::vless::fallback::Fallbacks;
use sealway_v2ray::vless::first::{First, Stranger, inspect};
use sealway_v2ray::vless::{self, Command, Flow, RESPONSE, check_flow};
use sealway_v2ray::{Network, mux};
use tokio::time::timeout_at;

use super::{Fresh, Protocol, Users, fallback};
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::settings::{FallbackTarget, VlessIn};
use crate::stream::Stream;
use crate::udp::Framed;

/// A VLESS inbound.
pub(super) struct Vless {
    users: vless::Users<Arc<User>>,
    fallbacks: Fallbacks<FallbackTarget>,
    /// A stranger as far as limits go.
    anyone: Arc<User>,
}

impl Vless {
    pub(super) fn new(settings: &VlessIn, users: &mut Users<'_>) -> Result<Self, Error> {
        let mut known = vless::Users::new();
        for user in &settings.users {
            let record = users.user(user)?;
            known.insert(user.id, record).map_err(|error| users.wrong(error))?;
        }
        Ok(Vless {
            users: known,
            fallbacks: Fallbacks::new(settings.fallbacks.iter().cloned()),
            anyone: users.anyone(0),
        })
    }

    /// Reads until it shows who this is. `None`: a stranger, for whom there is a fallback.
    async fn meet(&self, stream: &mut Stream) -> Result<Option<Arc<User>>, Error> {
        loop {
            if !stream.more().await? {
                return Err(Error::Closed);
            }
            match inspect(stream.payload(), &self.users) {
                First::User(found) => return Ok(Some(Arc::clone(found.user))),
                First::Stranger(_) if !self.fallbacks.is_empty() => return Ok(None),
                First::Stranger(Stranger::Short) => {}
                First::Stranger(_) => return Err(Error::Unauthentic("VLESS: no such user")),
            }
        }
    }

    /// Reads the request header; sends strangers to a fallback.
    async fn read(&self, mut fresh: Fresh) -> Result<Request, Error> {
        let deadline = fresh.deadline;
        let stream = &mut fresh.stream;
        let asked = timeout_at(deadline, async {
            let Some(user) = self.meet(stream).await? else {
                return Ok(None);
            };
            stream.trust();
            let request = stream.read(vless::Request::decode).await?;
            check_flow(request.flow, Flow::None, &request.command)?;
            match request.command {
                Command::Connect(to) => Ok(Some((user, to))),
                Command::Mux => Ok(Some((user, mux::target()?))),
                Command::Reverse => Err(Error::Unsupported("VLESS reverse tunnels")),
            }
        });
        let (user, to) = match asked.await.unwrap_or(Err(Error::TimedOut("VLESS header"))) {
            Ok(Some(asked)) => asked,
            Ok(None) => return fallback::take(fresh, &self.fallbacks, &self.anyone.level).await,
            Err(error) => {
                // Whatever is wrong, the connection ends in the same way.
                stream.leave(&[]).await;
                return Err(error);
            }
        };
        stream.set_prefix(RESPONSE.to_vec());
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
