//! VMess, as the server.

use std::sync::{Arc, Once};

use sealway_v2ray::vmess::{Command, Drain, RequestOpener, Security, Session, Users};
use sealway_v2ray::{Destination, Network, Step};

use super::{Fresh, Taken, UserRecord};
use crate::body::{VmessOpen, VmessSeal};
use crate::clock::unix_time;
use crate::stream::Stream;
use crate::udp::PacketEnd;
use crate::{Error, random, replay};

/// Said once: the words `none` and `zero` leave the payload in the clear.
static CLEAR: Once = Once::new();

/// Reads the request header. Whatever is wrong with it, the client is heard out before the connection closes.
pub(crate) async fn take(fresh: Fresh, users: &Users<Arc<UserRecord>>, secure_only: bool) -> Result<Taken, Error> {
    let mut stream = fresh.accepted.stream;
    let mut drain = Drain::new(users.drain_profile(), u64::from_le_bytes(random::bytes()?));
    let in_time = async {
        let header = read(&mut stream, &mut drain, users, secure_only).await;
        if header.is_err() {
            hear_out(&mut stream, &mut drain).await;
        }
        header
    };
    let header = tokio::time::timeout_at(fresh.deadline, in_time).await;
    let refusal = match header {
        Ok(Ok((user, session, Command::Connect(to)))) => return welcome(stream, user, &session, to),
        Ok(Ok(_)) => Error::Unsupported("Mux.Cool on a VMess inbound"),
        Ok(Err(error)) => error,
        Err(_) => Error::TimedOut("VMess header"),
    };
    stream.leave(&[]).await;
    Err(refusal)
}

/// A stream whose header was right.
fn welcome(mut stream: Stream, user: Arc<UserRecord>, session: &Session, to: Destination) -> Result<Taken, Error> {
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
        Network::Tcp => Taken::Stream {
            near: Box::new(stream),
            to,
            user,
        },
        Network::Udp => Taken::Datagrams {
            near: Box::new(if raw {
                PacketEnd::raw(stream, to.clone())
            } else {
                PacketEnd::framed(stream, to.clone(), false)
            }),
            to,
            user,
        },
    })
}

type Header = (Arc<UserRecord>, Session, Command);

async fn read(
    stream: &mut Stream,
    drain: &mut Drain,
    users: &Users<Arc<UserRecord>>,
    secure_only: bool,
) -> Result<Header, Error> {
    let mut opener = RequestOpener::new();
    loop {
        let had = stream.payload().len();
        if !stream.more().await? {
            return Err(Error::Closed);
        }
        drain.consume(stream.payload().len() - had);
        let now = unix_time();
        let mut remember = |seen| replay::remember(seen, now);
        match opener.handle(stream.payload(), now, users, &mut remember)? {
            Step::More(_) => {}
            Step::Done { value, used } => {
                if value.session.security == Security::None {
                    if secure_only {
                        return Err(Error::Unauthentic("VMess: security none is refused here"));
                    }
                    CLEAR.call_once(|| {
                        tracing::warn!("a VMess client sends its payload in the clear (security none or zero)");
                    });
                }
                stream.consume(used);
                return Ok((value.user, value.session, value.command));
            }
        }
    }
}

/// Reads on until as many bytes have come as for any other refusal.
async fn hear_out(stream: &mut Stream, drain: &mut Drain) {
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
