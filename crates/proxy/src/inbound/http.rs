//! HTTP proxy, as the server: tunnels, and requests that are sent on.

pub(crate) mod exchange;

use std::sync::Arc;

use sealway_v2ray::http::proxy::{
    BAD_REQUEST, CONNECTED, Command, Forward, LOGIN_REQUIRED, Request as Asked, UNAVAILABLE, decode,
};
use sealway_v2ray::{Destination, Step};
use tokio::time::{Instant, timeout_at};

use super::accounts::Accounts;
use super::roster::Roll;
use super::{Fresh, Protocol, Users};
use crate::dispatch::{Dispatcher, Origin, Request, Session, User};
use crate::error::{Error, Pending};
use crate::outbound::Far;
use crate::settings::HttpProxy;
use crate::stream::Stream;

use exchange::{Exchange, Kept};

/// An HTTP inbound.
#[derive(Clone)]
pub(super) struct Http(Arc<Proxy>);

struct Proxy {
    accounts: Accounts,
    allow_transparent: bool,
}

impl Http {
    pub(super) fn new(settings: &HttpProxy, users: &Users<'_>) -> Result<Self, Error> {
        let accounts = Accounts::new(&settings.accounts, settings.level, users)?;
        Ok(Http::with(accounts, settings.allow_transparent))
    }

    /// What another inbound is to clients that speak HTTP.
    pub(super) fn with(accounts: Accounts, allow_transparent: bool) -> Self {
        Http(Arc::new(Proxy {
            accounts,
            allow_transparent,
        }))
    }

    /// Reads the first request.
    pub(super) async fn read(&self, fresh: Fresh) -> Result<Request, Error> {
        let mut near = fresh.stream;
        let asked = timeout_at(fresh.deadline, read(&mut near, &self.0)).await;
        let (asked, user) = asked.map_err(|_| Error::TimedOut("HTTP request"))??;
        match asked.command {
            Command::Connect(to) => tunnel(near, to, user).await,
            Command::Forward(forward) => Ok(Request::Session(Box::new(Requests {
                near,
                forward,
                user,
                proxy: Arc::clone(&self.0),
            }))),
        }
    }
}

impl Protocol for Http {
    fn users(&self) -> Option<&dyn Roll> {
        self.0.accounts.roll()
    }

    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(self.read(fresh))
    }
}

async fn tunnel(mut near: Stream, to: Destination, user: Arc<User>) -> Result<Request, Error> {
    near.send(CONNECTED).await?;
    Ok(Request::Stream {
        near: Box::new(near),
        to,
        user,
    })
}

/// Reads the head of a request, and whose it is. Who sends a wrong one, or may not send any, is told so.
async fn read(stream: &mut Stream, proxy: &Proxy) -> Result<(Asked, Arc<User>), Error> {
    let (request, used) = loop {
        match decode(stream.payload(), proxy.allow_transparent) {
            Ok(Step::Done { value, used }) => break (value, used),
            Ok(Step::More(_)) => {
                if !stream.more().await? {
                    return Err(Error::Closed);
                }
            }
            Err(error) => {
                stream.leave(BAD_REQUEST).await;
                return Err(error.into());
            }
        }
    };
    let login = request.login.as_ref();
    let known = match login {
        _ if proxy.accounts.are_none() => Some(Arc::clone(proxy.accounts.anyone())),
        Some((user, pass)) => proxy.accounts.find(user, pass),
        None => None,
    };
    let Some(user) = known else {
        stream.leave(LOGIN_REQUIRED).await;
        return Err(Error::Unauthentic("HTTP: wrong name or password, or none"));
    };
    stream.consume(used);
    stream.trust();
    Ok((request, user))
}

/// A client that sends requests, each perhaps to another host.
struct Requests {
    near: Stream,
    forward: Forward,
    /// Who sent the first request. He may send others as somebody else.
    user: Arc<User>,
    proxy: Arc<Proxy>,
}

impl Requests {
    /// Sends requests on until the client has no more. If it asks for a tunnel after them, that is what there is left to
    /// carry.
    async fn send_on(self, dispatcher: &Dispatcher, origin: &Origin) -> Result<Option<Request>, Error> {
        let Requests {
            mut near,
            mut forward,
            mut user,
            proxy,
        } = self;
        loop {
            let presence = match user.enter(origin) {
                Ok(presence) => presence,
                Err(error) => {
                    near.leave(UNAVAILABLE).await;
                    dispatcher.rejected(origin, &error);
                    return Ok(None);
                }
            };
            let far = match dispatcher.connect_http(origin, &forward.to, &forward.head, &user).await {
                Ok(Far::Stream(far)) => *far,
                Ok(Far::Nowhere(answer)) => {
                    near.leave(answer.unwrap_or_default()).await;
                    return Ok(None);
                }
                Err(error @ Error::Forbidden { .. }) => {
                    dispatcher.refuse(origin, near, &error).await;
                    return Ok(None);
                }
                Err(error) => {
                    near.leave(UNAVAILABLE).await;
                    return Err(error);
                }
            };
            let timeouts = user.level.timeouts;
            let exchange = Exchange::new(&mut near, far, &forward, timeouts, presence);
            if exchange.run().await? == Kept::Closed {
                near.leave(&[]).await;
                return Ok(None);
            }
            // The first byte of the next request may take as long as a connection may be idle, the rest as long as the first
            // head.
            if near.payload().is_empty() {
                match timeout_at(Instant::now() + timeouts.idle, near.more()).await {
                    Ok(Ok(true)) => {}
                    Ok(Ok(false)) | Err(_) => {
                        near.leave(&[]).await;
                        return Ok(None);
                    }
                    Ok(Err(error)) => return Err(error),
                }
            }
            let deadline = Instant::now() + user.level.handshake;
            let next = timeout_at(deadline, read(&mut near, &proxy)).await;
            let (next, by) = next.map_err(|_| Error::TimedOut("HTTP request"))??;
            user = by;
            match next.command {
                Command::Connect(to) => return tunnel(near, to, user).await.map(Some),
                Command::Forward(next) => forward = next,
            }
        }
    }
}

impl Session for Requests {
    fn user(&self) -> &User {
        &self.user
    }

    fn serve(self: Box<Self>, dispatcher: Arc<Dispatcher>, origin: Origin) -> Pending<'static, Option<Request>> {
        Box::pin(async move { self.send_on(&dispatcher, &origin).await })
    }
}
