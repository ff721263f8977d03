//! Trojan, as the server.

use std::sync::Arc;

use sealway_v2ray::Network;
use sealway_v2ray::trojan;
use sealway_v2ray::trojan::first::{First, Stranger, inspect};
use sealway_v2ray::vless::fallback::Fallbacks;
use tokio::time::timeout_at;

use super::{Fresh, Protocol, Users, fallback};
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::settings::{FallbackTarget, TrojanIn};
use crate::stream::Stream;
use crate::udp::Addressed;

/// A Trojan inbound.
pub(super) struct Trojan {
    users: trojan::Users<Arc<User>>,
    fallbacks: Fallbacks<FallbackTarget>,
    /// A stranger as far as limits go.
    anyone: Arc<User>,
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
                First::User(user) => return Ok(Some(Arc::clone(user))),
                First::Stranger(_) if !self.fallbacks.is_empty() => return Ok(None),
                First::Stranger(Stranger::Short) => {}
                First::Stranger(_) => return Err(Error::Unauthentic("Trojan: no such user")),
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
            let request = stream.read(trojan::Request::decode).await?;
            Ok(Some((user, request.to)))
        });
        let (user, to) = match asked.await.unwrap_or(Err(Error::TimedOut("Trojan header"))) {
            Ok(Some(asked)) => asked,
            Ok(None) => return fallback::take(fresh, &self.fallbacks, &self.anyone.level).await,
            Err(error) => {
                // Whatever is wrong, the connection ends in the same way.
                stream.leave(&[]).await;
                return Err(error);
            }
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
