//! HTTP proxy, on both sides.

use std::sync::Arc;

use sealway_v2ray::http::client;
use sealway_v2ray::http::proxy::{
    BAD_REQUEST, CONNECTED, Command, Forward, LOGIN_REQUIRED, Request, UNAVAILABLE, decode,
};
use sealway_v2ray::{Destination, Step};
use tokio::time::{Instant, timeout_at};

use super::{Fresh, Inbound, Taken, UserRecord, socks};
use crate::Error;
use crate::engine::Engine;
use crate::exchange::{Exchange, Kept};
use crate::outbound::{Caller, Far};
use crate::settings::{HttpProxy, ProxyOut};
use crate::stream::Stream;

/// What a client asked for.
pub(crate) enum Asked {
    /// A tunnel.
    Tunnel(Taken),
    /// A request to be sent on, after which others may follow.
    Forward(Box<Session>),
}

/// A client that sends requests, each perhaps to another host.
pub(crate) struct Session {
    near: Stream,
    forward: Forward,
    settings: Arc<HttpProxy>,
    user: Arc<UserRecord>,
    pub(crate) caller: Caller,
}

/// Reads the first request.
pub(crate) async fn take(mut fresh: Fresh, settings: Arc<HttpProxy>, user: Arc<UserRecord>) -> Result<Asked, Error> {
    let asked = timeout_at(fresh.deadline, read(&mut fresh.accepted.stream, &settings)).await;
    let request = asked.map_err(|_| Error::TimedOut("HTTP request"))??;
    let caller = Caller {
        source: fresh.accepted.source,
        local: fresh.accepted.local,
        remote: fresh.remote,
        named: None,
    };
    let mut near = fresh.accepted.stream;
    match request.command {
        Command::Connect(to) => tunnel(near, to, user).await.map(Asked::Tunnel),
        Command::Forward(forward) => {
            near.trust();
            Ok(Asked::Forward(Box::new(Session {
                near,
                forward,
                settings,
                user,
                caller,
            })))
        }
    }
}

async fn tunnel(mut near: Stream, to: Destination, user: Arc<UserRecord>) -> Result<Taken, Error> {
    near.send(CONNECTED).await?;
    Ok(Taken::Stream {
        near: Box::new(near),
        to,
        user,
    })
}

/// Reads the head of a request. Who sends a wrong one, or may not send any, is told so.
async fn read(stream: &mut Stream, settings: &HttpProxy) -> Result<Request, Error> {
    let (request, used) = loop {
        match decode(stream.payload(), settings.allow_transparent) {
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
    let known = settings.accounts.is_empty()
        || request
            .login
            .as_ref()
            .is_some_and(|(user, pass)| socks::is_known(&settings.accounts, user, pass));
    if !known {
        stream.leave(LOGIN_REQUIRED).await;
        return Err(Error::Unauthentic("HTTP: wrong name or password, or none"));
    }
    stream.consume(used);
    Ok(request)
}

/// Sends requests on until the client has no more. If it asks for a tunnel after them, that is what there is left to carry.
pub(crate) async fn serve(engine: &Engine, inbound: &Inbound, session: Session) -> Result<Option<Taken>, Error> {
    let Session {
        mut near,
        mut forward,
        settings,
        user,
        mut caller,
    } = session;
    let ends = (caller.source, caller.local);
    loop {
        let route = engine.route(inbound, &forward.to, ends, &user.email).await;
        caller.named = route.named;
        let far = match route.outbound.connect(&forward.to, &caller).await {
            Ok(Far::Stream(far)) => *far,
            Ok(Far::Nowhere(answer)) => {
                near.leave(answer.unwrap_or_default()).await;
                return Ok(None);
            }
            Err(error @ Error::Forbidden { .. }) => {
                engine.hold(inbound, near, caller.source, &error).await;
                return Ok(None);
            }
            Err(error) => {
                near.leave(UNAVAILABLE).await;
                return Err(error);
            }
        };
        let idle = user.level.timeouts.idle;
        match Exchange::new(&mut near, far, &forward, user.level.timeouts, user.traffic.clone())
            .run()
            .await?
        {
            Kept::Open => {}
            Kept::Closed => {
                near.leave(&[]).await;
                return Ok(None);
            }
        }
        // The first byte of the next request may take as long as a connection may be idle, the rest as long as the first head.
        if near.payload().is_empty() {
            match timeout_at(Instant::now() + idle, near.more()).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) | Err(_) => {
                    near.leave(&[]).await;
                    return Ok(None);
                }
                Ok(Err(error)) => return Err(error),
            }
        }
        let deadline = Instant::now() + user.level.handshake;
        let next = timeout_at(deadline, read(&mut near, &settings)).await;
        match next.map_err(|_| Error::TimedOut("HTTP request"))??.command {
            Command::Connect(to) => return tunnel(near, to, user).await.map(Some),
            Command::Forward(next) => forward = next,
        }
    }
}

/// Asks an HTTP proxy for a tunnel.
pub(crate) async fn request(stream: &mut Stream, proxy: &ProxyOut, to: &Destination) -> Result<(), Error> {
    let headers: Vec<(&str, &str)> = proxy.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let login = proxy
        .account
        .as_ref()
        .map(|account| (account.user.as_str(), account.pass.as_str()));
    stream.send(&client::connect(to, login, &headers)?).await?;
    loop {
        if !stream.more().await? {
            return Err(Error::Closed);
        }
        if let Step::Done { used, .. } = client::parse_connected(stream.payload())? {
            stream.consume(used);
            return Ok(());
        }
    }
}
