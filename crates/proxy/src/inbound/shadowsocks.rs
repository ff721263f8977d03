//! Shadowsocks, as the server.

mod datagrams;

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use sealway_v2ray::shadowsocks::classic::{self, Search};
use sealway_v2ray::shadowsocks::edition2022::{self, AnswerSealer, decode_target, open_request};
use sealway_v2ray::shadowsocks::salts::Salts;
use sealway_v2ray::shadowsocks::{ChunkOpener, ChunkSealer, Key, Method, Opened as Chunk};
use sealway_v2ray::vmess::{Drain, Profile};
use sealway_v2ray::{Destination, Step};
use tokio::task::yield_now;
use tokio::time::timeout_at;

use super::roster::{Roll, Roster, Table, Unchanged};
use super::vmess::{drain, hear_out};
use super::{Datagrams, Fresh, Protocol, Users};
use crate::body::shadowsocks::{AnswerSeal, Salt, ShadowsocksOpen, ShadowsocksSeal};
use crate::clock::Clock;
use crate::dispatch::{Request, User};
use crate::error::{Error, Pending};
use crate::people::Member;
use crate::settings::{NewAccount, ShadowsocksIn, ShadowsocksUsers};
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
    Edition2022(Arc<Roster<Users2022>>),
}

/// The users of 2017.
struct Classic {
    users: Arc<Roster<Users2017>>,
    /// How it treats those it refuses, whoever comes and goes.
    drain: Profile,
    /// Salts may not come twice.
    once: bool,
}

/// Users of 2017 by their keys.
struct Users2017 {
    known: classic::Users<Arc<Member>>,
    /// That of who comes without one.
    method: Option<Method>,
}

/// Users of 2022 by their keys.
struct Users2022 {
    known: edition2022::Users<Arc<Member>>,
    /// They are told apart.
    many: bool,
}

fn key(account: &NewAccount, method: Option<Method>) -> Result<Key, Unchanged> {
    match account {
        NewAccount::Shadowsocks(key) => Ok(key.clone()),
        NewAccount::ShadowsocksPassword(own, password) => {
            let method = own
                .or(method)
                .ok_or(Unchanged::Other("a user of this inbound needs a method"))?;
            Ok(Key::new(method, password)?)
        }
        _ => Err(Unchanged::Other(
            "this inbound knows its users by passwords of Shadowsocks",
        )),
    }
}

impl Table for Users2017 {
    type Name = Key;

    fn name(&self, account: &NewAccount) -> Result<Key, Unchanged> {
        let key = key(account, self.method)?;
        if key.method().is_2022() {
            return Err(Unchanged::Other("this inbound takes methods of 2017 only"));
        }
        Ok(key)
    }

    fn insert(&mut self, key: &Key, _: &NewAccount, member: Arc<Member>) -> Result<(), Unchanged> {
        self.known.insert(key.clone(), member)?;
        self.method.get_or_insert(key.method());
        Ok(())
    }

    fn remove(&mut self, key: &Key) {
        self.known.remove(key);
    }
}

impl Table for Users2022 {
    type Name = Key;

    fn is_open(&self) -> bool {
        self.many
    }

    fn name(&self, account: &NewAccount) -> Result<Key, Unchanged> {
        let own = self.known.method();
        let key = key(account, Some(own))?;
        if key.method() != own {
            return Err(Unchanged::Other("all users of this inbound have its method"));
        }
        Ok(key)
    }

    fn insert(&mut self, key: &Key, _: &NewAccount, member: Arc<Member>) -> Result<(), Unchanged> {
        if self.many {
            self.known.insert(key.clone(), member)?;
        } else {
            self.known = edition2022::Users::one(key.clone(), member);
        }
        Ok(())
    }

    fn remove(&mut self, key: &Key) {
        self.known.remove(key);
    }
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
    pub(super) fn new(settings: &ShadowsocksIn, users: &Users<'_>) -> Result<Self, Error> {
        let keys = match &settings.users {
            ShadowsocksUsers::Classic(list) => {
                let table = Users2017 {
                    known: classic::Users::new(),
                    method: None,
                };
                let roster = Roster::new(table, list.iter().map(Into::into), users)?;
                Keys::Classic(Arc::new(Classic {
                    drain: drain(list.is_empty(), || roster.read().known.drain_profile())?,
                    users: roster,
                    once: settings.once,
                }))
            }
            ShadowsocksUsers::One(user) => {
                // Until he is entered nobody has the key.
                let nobody = users.stats.people().join("", 0, users.levels.get(0));
                let table = Users2022 {
                    known: edition2022::Users::one(user.id.clone(), nobody),
                    many: false,
                };
                Keys::Edition2022(Roster::new(table, [user.into()], users)?)
            }
            ShadowsocksUsers::Many(key, list) => {
                let known = edition2022::Users::many(key.clone(), []).map_err(|error| users.wrong(error))?;
                let table = Users2022 { known, many: true };
                Keys::Edition2022(Roster::new(table, list.iter().map(Into::into), users)?)
            }
        };
        Ok(Shadowsocks {
            keys,
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
        let mut drain = Drain::new(self.drain, u64::from_le_bytes(random::bytes()?));
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
        let (need, mut search) = {
            let users = self.users.read();
            (users.known.need(), Search::new(&users.known))
        };
        while stream.payload().len() < need {
            hear(stream, drain).await?;
        }
        let asked = self.open(stream, drain, &mut search).await;
        if asked.is_err() {
            // Whoever is refused waits until all keys were tried, as those do whom none fits.
            while search.stream(&self.users.read().known, stream.payload(), TURN).is_ok() {
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
        let (key, user) = loop {
            // Others come and go between two steps.
            let found = {
                let users = self.users.read();
                let found = search.stream(&users.known, stream.payload(), TURN)?;
                found.map(|found| (found.key.clone(), Arc::clone(found.user)))
            };
            match found {
                Some(found) => break found,
                None => yield_now().await,
            }
        };
        let salt_len = key.method().salt_len();
        let salt = &stream.payload()[..salt_len];
        self.remember(&STREAMS, &key, salt)?;
        let mut first = ChunkOpener::new(&key, salt)?;
        let chunks = ChunkOpener::new(&key, salt)?;
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
        let salt = Salt::draw(&key)?;
        stream.set_sealer(Box::new(ShadowsocksSeal(ChunkSealer::new(&key, salt.bytes())?)));
        stream.set_prefix(salt.bytes().to_vec());
        Ok((to, Arc::new(User::from(user))))
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
    users: &Roster<Users2022>,
    clock: Clock,
) -> Result<(Destination, Arc<User>), Error> {
    let head = loop {
        let step = open_request(stream.payload(), &users.read().known, clock())?;
        match step {
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
    Ok((to, Arc::new(User::from(head.user))))
}

impl Protocol for Shadowsocks {
    fn users(&self) -> Option<&dyn Roll> {
        match &self.keys {
            Keys::Classic(classic) => Some(&*classic.users),
            Keys::Edition2022(users) => Some(&**users),
        }
    }

    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(self.read(fresh))
    }

    fn serve_datagrams<'a>(&'a self, datagrams: Datagrams) -> Pending<'a, ()> {
        Box::pin(async { datagrams::serve(self, datagrams).await })
    }
}
