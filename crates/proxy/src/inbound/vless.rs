//! VLESS, as the server.

use std::sync::Arc;

use sealway_v2ray::vless::fallback::Fallbacks;
use sealway_v2ray::vless::first::{First, inspect};
use sealway_v2ray::vless::{Command, Flow, RESPONSE, Request, Users, check_flow};
use sealway_v2ray::{Network, Step};

use super::{Fresh, Taken, UserRecord, fallback};
use crate::Error;
use crate::settings::{FallbackTarget, Level};
use crate::stream::Stream;
use crate::transport::Accepted;
use crate::udp::PacketEnd;

/// Whatever is wrong, the connection ends in the same way.
async fn refuse(mut stream: Stream, error: Error) -> Result<Taken, Error> {
    stream.leave(&[]).await;
    Err(error)
}

/// Reads the request header; sends strangers to a fallback.
pub(crate) async fn take(
    fresh: Fresh,
    users: &Users<Arc<UserRecord>>,
    fallbacks: &Fallbacks<FallbackTarget>,
    level: &Level,
) -> Result<Taken, Error> {
    let Fresh {
        accepted,
        listener,
        deadline,
        ..
    } = fresh;
    let Accepted {
        mut stream,
        source,
        local,
        agreed,
    } = accepted;
    let in_time = tokio::time::timeout_at(deadline, async {
        loop {
            if !stream.more().await? {
                return Err(Error::Closed);
            }
            match inspect(stream.payload(), users) {
                First::User(found) => return Ok(Some(Arc::clone(found.user))),
                First::Stranger(_) if !fallbacks.is_empty() => return Ok(None),
                First::Stranger(sealway_v2ray::vless::first::Stranger::Short) => {}
                First::Stranger(_) => return Err(Error::Unauthentic("VLESS: no such user")),
            }
        }
    });
    let user = match in_time.await {
        Ok(Ok(user)) => user,
        Ok(Err(error)) => return refuse(stream, error).await,
        Err(_) => return refuse(stream, Error::TimedOut("VLESS header")).await,
    };
    let Some(user) = user else {
        let stranger = fallback::Stranger {
            stream,
            source,
            local,
            agreed,
            listener,
            deadline,
        };
        return fallback::take(stranger, fallbacks, level).await;
    };
    let in_time = tokio::time::timeout_at(deadline, async {
        loop {
            match Request::decode(stream.payload())? {
                Step::Done { value, used } => {
                    stream.consume(used);
                    return Ok(value);
                }
                Step::More(_) => {
                    if !stream.more().await? {
                        return Err(Error::Closed);
                    }
                }
            }
        }
    });
    let request = match in_time.await {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => return refuse(stream, error).await,
        Err(_) => return refuse(stream, Error::TimedOut("VLESS header")).await,
    };
    if let Err(error) = check_flow(request.flow, Flow::None, &request.command) {
        return refuse(stream, error.into()).await;
    }
    let to = match request.command {
        Command::Connect(to) => to,
        Command::Mux => return refuse(stream, Error::Unsupported("Mux.Cool on a VLESS inbound")).await,
        Command::Reverse => return refuse(stream, Error::Unsupported("VLESS reverse tunnels")).await,
    };
    stream.set_prefix(RESPONSE.to_vec());
    Ok(match to.network {
        Network::Tcp => Taken::Stream {
            near: Box::new(stream),
            to,
            user,
        },
        Network::Udp => Taken::Datagrams {
            near: Box::new(PacketEnd::framed(stream, to.clone(), true)),
            to,
            user,
        },
    })
}
