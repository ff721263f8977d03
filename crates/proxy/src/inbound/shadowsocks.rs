//! Shadowsocks, as the server.

mod datagrams;

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use sealway_v2ray::shadowsocks::classic::{self, Search};
use sealway_v2ray::shadowsocks::edition2022::{self, AnswerSealer, decode_target, open_request};
use sealway_v2ray::shadowsocks::salts::Salts;
use sealway_v2ray::shadowsocks::{ChunkOpener, ChunkSealer, Key, Opened as Chunk};
use sealway_v2ray::vmess::Drain;
use sealway_v2ray::{Destination, Step};
use tokio::task::yield_now;
use tokio::time::timeout_at;

use super::vmess::hear_out;
use super::{Datagrams, Fresh, Protocol, Users};
use crate::body::shadowsocks::{AnswerSeal, Salt, ShadowsocksOpen, ShadowsocksSeal};
use crate::clock::Clock;
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::settings::{ShadowsocksIn, ShadowsocksUser, ShadowsocksUsers};
use crate::stream::Stream;
use crate::{random, replay};

/// Keys that are tried before other connections have a turn: some 60 microseconds.
const TURN: usize = 64;

/// A Shadowsocks inbound.
pub(super) struct Shadowsocks {
    keys: Keys,
    clock: Clock,
}

/// Who may use it, by the rules of the method.
enum Keys {
    Classic(Arc<Classic>),
    Edition2022(edition2022::Users<Arc<User>>),
}

/// The users of 2017.
struct Classic {
    users: classic::Users<Arc<User>>,
    /// Salts may not come twice.
    once: bool,
}

/// Salts that came, of every inbound of the process: a request is refused wherever it comes again. Datagrams, of which one
/// user can send any number, push no stream out.
static STREAMS: LazyLock<Mutex<Salts>> = LazyLock::new(Mutex::default);
static DATAGRAMS: LazyLock<Mutex<Salts>> = LazyLock::new(Mutex::default);

impl Classic {
    /// Refuses a salt that came before.
    fn remember(&self, memory: &Mutex<Salts>, key: &Key, salt: &[u8]) -> Result<(), Error> {
        let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.once || memory.take(key, salt) {
            return Ok(());
        }
        Err(Error::Unauthentic(
            "Shadowsocks: this request was seen before; someone may replay it",
        ))
    }
}

impl Shadowsocks {
    pub(super) fn new(settings: &ShadowsocksIn, users: &mut Users<'_>) -> Result<Self, Error> {
        let mut known = |list: &[ShadowsocksUser]| -> Result<Vec<(Key, Arc<User>)>, Error> {
            let one = |user: &ShadowsocksUser| Ok((user.key.clone(), users.named(&user.email, user.level)?));
            list.iter().map(one).collect()
        };
        let keys = match &settings.users {
            ShadowsocksUsers::Classic(list) => {
                let known = classic::Users::from_list(known(list)?);
                known.map(|users| {
                    Keys::Classic(Arc::new(Classic {
                        users,
                        once: settings.once,
                    }))
                })
            }
            ShadowsocksUsers::One(user) => {
                let user = users
                    .named(&user.email, user.level)
                    .map(|named| (user.key.clone(), named))?;
                Ok(Keys::Edition2022(edition2022::Users::one(user.0, user.1)))
            }
            ShadowsocksUsers::Many(key, list) => {
                edition2022::Users::many(key.clone(), known(list)?).map(Keys::Edition2022)
            }
        };
        Ok(Shadowsocks {
            keys: keys.map_err(|error| users.wrong(error))?,
            clock: users.clock,
        })
    }

    async fn read(&self, fresh: Fresh) -> Result<Request, Error> {
        match &self.keys {
            Keys::Classic(classic) => classic.read(fresh).await,
            Keys::Edition2022(users) => {
                let mut stream = fresh.stream;
                let asked = timeout_at(fresh.deadline, read_2022(&mut stream, users, self.clock)).await;
                match asked.unwrap_or(Err(Error::TimedOut("Shadowsocks header"))) {
                    Ok((to, user)) => Ok(Request::Stream {
                        near: Box::new(stream),
                        to,
                        user,
                    }),
                    Err(error) => {
                        // Whatever is wrong, the connection ends in the same way, which is that of the other servers.
                        stream.carrier.reset_on_close();
                        Err(error)
                    }
                }
            }
        }
    }
}

impl Classic {
    /// Reads a request. Whatever is wrong with it, the client is heard out before the connection closes.
    async fn read(&self, fresh: Fresh) -> Result<Request, Error> {
        let mut stream = fresh.stream;
        let mut drain = Drain::new(self.users.drain_profile(), u64::from_le_bytes(random::bytes()?));
        let in_time = async {
            let asked = self.request(&mut stream, &mut drain).await;
            if asked.is_err() {
                hear_out(&mut stream, &mut drain).await;
            }
            asked
        };
        let asked = timeout_at(fresh.deadline, in_time).await;
        match asked.unwrap_or(Err(Error::TimedOut("Shadowsocks header"))) {
            Ok((to, user)) => Ok(Request::Stream {
                near: Box::new(stream),
                to,
                user,
            }),
            Err(error) => {
                stream.leave(&[]).await;
                Err(error)
            }
        }
    }

    async fn request(&self, stream: &mut Stream, drain: &mut Drain) -> Result<(Destination, Arc<User>), Error> {
        while stream.payload().len() < self.users.need() {
            hear(stream, drain).await?;
        }
        let mut search = Search::new(&self.users);
        let asked = self.open(stream, drain, &mut search).await;
        if asked.is_err() {
            // Whoever is refused waits until all keys were tried, as those do whom none fits.
            while search.stream(&self.users, stream.payload(), TURN).is_ok() {
                yield_now().await;
            }
        }
        asked
    }

    /// Finds out whose a request is and where it goes. Until that is known nothing is taken off the stream, so that whoever is
    /// refused can be heard out.
    async fn open(
        &self,
        stream: &mut Stream,
        drain: &mut Drain,
        search: &mut Search,
    ) -> Result<(Destination, Arc<User>), Error> {
        let found = loop {
            match search.stream(&self.users, stream.payload(), TURN)? {
                Some(found) => break found,
                None => yield_now().await,
            }
        };
        let salt_len = found.key.method().salt_len();
        let salt = &stream.payload()[..salt_len];
        self.remember(&STREAMS, found.key, salt)?;
        let mut first = ChunkOpener::new(found.key, salt)?;
        let chunks = ChunkOpener::new(found.key, salt)?;
        let (mut at, mut want) = (salt_len, 0);
        let mut address = Vec::new();
        while let Step::More(_) = classic::decode_target(&address)? {
            let Some(wire) = stream.payload().get(at..at + want) else {
                hear(stream, drain).await?;
                continue;
            };
            let mut wire = wire.to_vec();
            match first.open_next(&mut wire)? {
                Chunk::Chunk { payload, used } => {
                    address.extend_from_slice(&wire[payload]);
                    (at, want) = (at + used, 0);
                }
                Chunk::More(more) => want += more,
            }
        }
        stream.consume(salt_len);
        stream.set_opener(Box::new(ShadowsocksOpen::request(chunks)));
        let to = stream.read(classic::decode_target).await?;
        stream.trust();
        let salt = Salt::draw(found.key)?;
        stream.set_sealer(Box::new(ShadowsocksSeal(ChunkSealer::new(found.key, salt.bytes())?)));
        stream.set_prefix(salt.bytes().to_vec());
        Ok((to, Arc::clone(found.user)))
    }
}

/// Waits for more of a request, and tells `drain` of it.
async fn hear(stream: &mut Stream, drain: &mut Drain) -> Result<(), Error> {
    let had = stream.payload().len();
    if !stream.more().await? {
        return Err(Error::Closed);
    }
    drain.consume(stream.payload().len() - had);
    Ok(())
}

/// Reads a request of 2022.
async fn read_2022(
    stream: &mut Stream,
    users: &edition2022::Users<Arc<User>>,
    clock: Clock,
) -> Result<(Destination, Arc<User>), Error> {
    let head = loop {
        match open_request(stream.payload(), users, clock())? {
            Step::Done { value, used } => {
                stream.consume(used);
                break value;
            }
            Step::More(_) => {
                if !stream.more().await? {
                    return Err(Error::Closed);
                }
            }
        }
    };
    replay::remember(head.seen(), clock())?;
    let salt = Salt::draw(&head.key)?;
    let sealer = AnswerSealer::new(&head.key, salt.bytes(), head.salt())?;
    stream.set_opener(Box::new(ShadowsocksOpen::request(head.opener)));
    let second = head.second;
    let to = stream.read(|opened| decode_target(opened, second)).await?;
    stream.trust();
    stream.set_sealer(Box::new(AnswerSeal { sealer, clock }));
    Ok((to, head.user))
}

impl Protocol for Shadowsocks {
    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(self.read(fresh))
    }

    fn serve_datagrams<'a>(&'a self, datagrams: Datagrams) -> Pending<'a, ()> {
        Box::pin(async { datagrams::serve(self, datagrams).await })
    }
}
