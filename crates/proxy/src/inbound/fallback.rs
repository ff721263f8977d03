//! Strangers on a VLESS or Trojan inbound are led to a web server, who answers them as if nothing else were here.

use std::sync::Arc;

use sealway_v2ray::vless::fallback::Fallbacks;
use sealway_v2ray::{Destination, Step};
use tokio::time::{Instant, timeout_at};

use super::{Fresh, Users};
use crate::Error;
use crate::dial::fallback::{dial, name};
use crate::dispatch::{Request, User};
use crate::log::Limit;
use crate::people::Presence;
use crate::proxy_protocol;
use crate::relay::Relay;
use crate::settings::{FallbackTarget, SocketOptions};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::tls::handshake::Agreed;

/// Lines a second about fallbacks that cannot be reached: every stranger brings one.
static DEAD: Limit = Limit::new(5);

/// Who asks to be let in, as far as what has come shows.
pub(super) enum Knock {
    User(Arc<User>),
    /// Too little has come to tell.
    Short,
    Stranger,
}

/// Whom [`Strangers::let_in`] has let in.
pub(super) enum Entered {
    /// A user, and where he wants to go.
    User(Box<Fresh>, Arc<User>, Destination),
    /// A stranger, who is led elsewhere.
    Stranger(Request),
}

/// What an inbound does about strangers.
pub(super) struct Strangers {
    fallbacks: Fallbacks<FallbackTarget>,
    /// A stranger as far as limits go.
    anyone: Arc<User>,
    /// Of the sockets that lead to fallbacks.
    options: SocketOptions,
}

impl Strangers {
    /// Those of an inbound with these fallbacks.
    pub(super) fn new(fallbacks: Fallbacks<FallbackTarget>, users: &Users<'_>) -> Self {
        Strangers {
            fallbacks,
            anyone: users.anyone(0),
            // So that the firewall knows them as this program's own.
            options: SocketOptions {
                mark: users.mark,
                ..SocketOptions::default()
            },
        }
    }

    /// Waits until it shows who this is. `None`: a stranger, for whom there is a fallback.
    async fn meet(
        &self,
        stream: &mut Stream,
        knock: impl Fn(&[u8]) -> Knock,
        unknown: &'static str,
    ) -> Result<Option<Arc<User>>, Error> {
        loop {
            if !stream.more().await? {
                return Err(Error::Closed);
            }
            match knock(stream.payload()) {
                Knock::User(user) => return Ok(Some(user)),
                // More has come than has been opened.
                Knock::Short if stream.wants_open() => {}
                _ if !self.fallbacks.is_empty() => return Ok(None),
                Knock::Short => {}
                Knock::Stranger => return Err(Error::Unauthentic(unknown)),
            }
        }
    }

    /// Reads the request of a user, by the deadline, and leads strangers to a fallback. `words` are those of the errors for a
    /// stranger and for a header that comes too late.
    pub(super) async fn let_in<T>(
        &self,
        mut fresh: Fresh,
        words: [&'static str; 2],
        knock: impl Fn(&[u8]) -> Knock,
        decode: impl FnMut(&[u8]) -> Result<Step<T>, sealway_v2ray::Error>,
        target: impl FnOnce(T) -> Result<Destination, Error>,
    ) -> Result<Entered, Error> {
        let [unknown, late] = words;
        let stream = &mut fresh.stream;
        let asked = timeout_at(fresh.deadline, async {
            let Some(user) = self.meet(stream, knock, unknown).await? else {
                return Ok(None);
            };
            stream.trust();
            Ok(Some((user, target(stream.read(decode).await?)?)))
        });
        match asked.await.unwrap_or(Err(Error::TimedOut(late))) {
            Ok(Some((user, to))) => Ok(Entered::User(Box::new(fresh), user, to)),
            Ok(None) => self.take(fresh).await.map(Entered::Stranger),
            Err(error) => {
                // Whatever is wrong, the connection ends in the same way.
                stream.leave(&[]).await;
                Err(error)
            }
        }
    }

    /// Chooses a fallback and connects to it. What was read goes there exactly as it came.
    async fn take(&self, fresh: Fresh) -> Result<Request, Error> {
        let Fresh {
            mut stream,
            origin,
            agreed,
            listener,
            deadline,
            ..
        } = fresh;
        stream.set_one_by_one(false);
        let reaching = async {
            let target = choose(&mut stream, &agreed, &self.fallbacks, deadline).await?;
            let mut sock = match dial(&target.to, listener, &self.options).await {
                Ok(sock) => sock,
                Err(error) => {
                    if let Some(kept) = DEAD.pass() {
                        let to = name(&target.to);
                        tracing::warn!(
                            "the fallback {to} cannot be reached, and strangers are shown nothing: {error}{kept}"
                        );
                    }
                    return Ok(None);
                }
            };
            if target.xver > 0 {
                proxy_protocol::write(&mut sock, target.xver, origin.source, origin.local).await?;
            }
            Ok::<_, Error>(Some(sock))
        };
        match reaching.await {
            Ok(Some(sock)) => {
                let far = Stream::new(sock, Traffic::default());
                let relay = Relay::new(stream, far, self.anyone.level.timeouts, Presence::nobody());
                Ok(Request::Fallback(Box::new(relay)))
            }
            Ok(None) => {
                stream.leave(&[]).await;
                Ok(Request::Nothing)
            }
            Err(error) => {
                stream.leave(&[]).await;
                Err(error)
            }
        }
    }
}

async fn choose<'a>(
    stream: &mut Stream,
    agreed: &Agreed,
    fallbacks: &'a Fallbacks<FallbackTarget>,
    deadline: Instant,
) -> Result<&'a FallbackTarget, Error> {
    let (name, alpn) = (agreed.sni.as_str(), agreed.alpn.as_str());
    while fallbacks.wants_more(name, alpn, stream.payload()) {
        match timeout_at(deadline, stream.more()).await {
            Ok(Ok(true)) => {}
            // Whatever has come so far is what the web server gets to see.
            Ok(Ok(false)) | Err(_) => break,
            Ok(Err(error)) => return Err(error),
        }
    }
    fallbacks
        .choose(name, alpn, stream.payload())
        .map_err(|_| Error::Unauthentic("no such user, and no fallback fits; add one with neither name, alpn nor path"))
}
