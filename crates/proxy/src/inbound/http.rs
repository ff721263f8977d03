//! HTTP proxy, on both sides.

use std::sync::Arc;

use sealway_v2ray::http::client;
use sealway_v2ray::http::proxy::{BAD_REQUEST, CONNECTED, Command, LOGIN_REQUIRED, decode};
use sealway_v2ray::{Destination, Step};

use super::{Fresh, Taken, UserRecord, socks};
use crate::Error;
use crate::settings::{Account, HttpProxy};
use crate::stream::Stream;

/// Reads a request. A CONNECT becomes a tunnel; any other is sent on, one to a connection.
pub(crate) async fn take(fresh: Fresh, settings: &HttpProxy, user: Arc<UserRecord>) -> Result<Taken, Error> {
    let deadline = fresh.deadline;
    let mut stream = fresh.accepted.stream;
    let asked = tokio::time::timeout_at(deadline, negotiate(&mut stream, settings)).await;
    let to = asked.map_err(|_| Error::TimedOut("HTTP request"))??;
    Ok(Taken::Stream {
        near: Box::new(stream),
        to,
        user,
    })
}

async fn refuse(stream: &mut Stream, answer: &[u8], error: Error) -> Result<Destination, Error> {
    stream.send(answer).await?;
    Err(error)
}

async fn negotiate(stream: &mut Stream, settings: &HttpProxy) -> Result<Destination, Error> {
    let (request, used) = loop {
        match decode(stream.payload(), settings.allow_transparent) {
            Ok(Step::Done { value, used }) => break (value, used),
            Ok(Step::More(_)) => {
                if !stream.more().await? {
                    return Err(Error::Closed);
                }
            }
            Err(error) => return refuse(stream, BAD_REQUEST, error.into()).await,
        }
    };
    if !settings.accounts.is_empty() {
        let known = request
            .login
            .as_ref()
            .is_some_and(|(user, pass)| socks::is_known(&settings.accounts, user, pass));
        if !known {
            let error = Error::Unauthentic("HTTP: wrong name or password, or none");
            return refuse(stream, LOGIN_REQUIRED, error).await;
        }
    }
    stream.consume(used);
    match request.command {
        Command::Connect(to) => {
            stream.send(CONNECTED).await?;
            Ok(to)
        }
        Command::Forward(forward) => {
            stream.unread(&forward.head)?;
            Ok(forward.to)
        }
    }
}

/// Asks an HTTP proxy for a tunnel.
pub(crate) async fn request(stream: &mut Stream, account: Option<&Account>, to: &Destination) -> Result<(), Error> {
    let login = account.map(|account| (account.user.as_str(), account.pass.as_str()));
    stream.send(&client::connect(to, login, &[])?).await?;
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
