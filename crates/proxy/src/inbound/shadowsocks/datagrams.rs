//! Datagrams that come to an inbound's socket.
//!
//! A client's datagrams belong together by its address (2017) or by the session that they name (2022). Each such client has a
//! task that asks the rules and sends them on their way, so that a name that resolves slowly holds up nobody else.

mod answers;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_net::sock::unmapped;
use sealway_v2ray::shadowsocks::Key;
use sealway_v2ray::shadowsocks::classic::Search;
use sealway_v2ray::shadowsocks::edition2022::{self, packet::PacketSealer, packet::SessionKey};
use sealway_v2ray::{Destination, Protocol};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use super::{Classic, DATAGRAMS, Keys, Shadowsocks, TURN, Users2017};
use crate::clock::Clock;
use crate::dispatch::{Dispatcher, Origin, User};
use crate::inbound::Datagrams;
use crate::inbound::flows::Flows;
use crate::inbound::local::{Datagram, Reply, Room};
use crate::log::about_new;
use crate::people::Member;
use crate::stats::Traffic;
use crate::{Error, random, replay};

use answers::{Answers, How};
use sessions::{Name, Opening, Session, Sessions};

/// Datagrams of one client that may wait for their turn. More are dropped, as a full socket would.
const QUEUE: usize = 128;

/// Datagrams of which it is not known whose they are that wait for all keys to be tried. More are dropped.
const SEARCHES: usize = 64;

/// How long nothing is received after an error.
const PAUSE: Duration = Duration::from_millis(100);

/// A datagram of which it is not known whose it is.
struct Wanted {
    search: Search,
    datagram: Vec<u8>,
    from: SocketAddr,
}

/// A datagram of which it is.
struct Found {
    whose: Whose,
    to: Destination,
    plain: Vec<u8>,
    /// Where the payload begins in that.
    at: usize,
    /// What begins with its salt.
    salt: Vec<u8>,
    from: SocketAddr,
}

/// A user of 2017. Numbers pass from those who go to those who come.
struct Whose {
    number: usize,
    member: Arc<Member>,
    key: Key,
}

impl Whose {
    fn of(users: &Users2017, number: usize) -> Option<Whose> {
        let found = users.known.user(number)?;
        Some(Whose {
            number,
            member: Arc::clone(found.user),
            key: found.key.clone(),
        })
    }
}

/// Tries all keys on one datagram after the other.
async fn search(classic: Arc<Classic>, mut wanted: mpsc::Receiver<Wanted>, found: mpsc::Sender<Found>) {
    while let Some(Wanted {
        mut search,
        datagram: salt,
        from,
    }) = wanted.recv().await
    {
        let mut plain = Vec::new();
        let opened = loop {
            let step = {
                let users = classic.users.read();
                let step = search.packet(&users.known, &salt, &mut plain, TURN);
                step.map(|found| found.map(|(number, to, at)| (Whose::of(&users, number), to, at)))
            };
            match step {
                Ok(Some((Some(whose), to, at))) => break Ok((whose, to, at)),
                Ok(_) => yield_now().await,
                Err(error) => break Err(error),
            }
        };
        match opened {
            Ok((whose, to, at)) => {
                let one = Found {
                    whose,
                    to,
                    plain,
                    at,
                    salt,
                    from,
                };
                if found.send(one).await.is_err() {
                    return;
                }
            }
            Err(error) => tracing::debug!("datagram of {from} dropped: {error}"),
        }
    }
}

/// What the tasks of clients need.
struct Shared {
    dispatcher: Arc<Dispatcher>,
    origin: Origin,
    traffic: Traffic,
}

/// Serves a socket until the server stops.
pub(super) async fn serve(inbound: &Shadowsocks, datagrams: Datagrams) -> Result<(), Error> {
    let Datagrams {
        socket,
        dispatcher,
        origin,
        traffic,
        since,
    } = datagrams;
    let shared = Arc::new(Shared {
        dispatcher,
        origin,
        traffic,
    });
    let mut table = Table {
        sessions: Sessions::default(),
        shared,
        room: Room::new(),
        since,
        clock: inbound.clock,
        socket: Arc::clone(&socket),
    };
    let (searches, asked) = mpsc::channel(SEARCHES);
    let (found, mut answered) = mpsc::channel(SEARCHES);
    if let Keys::Classic(classic) = &inbound.keys {
        tokio::spawn(search(Arc::clone(classic), asked, found.clone()));
    }
    let mut buffer = vec![0; 65_535];
    loop {
        let (from, taken) = tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok((len, from)) => {
                    let received = &mut buffer[..len];
                    let taken = match &inbound.keys {
                        Keys::Classic(classic) => table.take_classic(classic, received, from, &searches),
                        Keys::Edition2022(users) => table.take_2022(&users.read().known, received, from),
                    };
                    (from, taken)
                }
                Err(error) => {
                    tracing::debug!("[{}] receiving: {error}", table.shared.origin.inbound);
                    // What does not pass would be asked for without end.
                    sleep(PAUSE).await;
                    continue;
                }
            },
            Some(Found { whose, to, plain, at, salt, from }) = answered.recv() => match &inbound.keys {
                Keys::Classic(classic) => (from, table.found(classic, &whose, to, &plain[at..], &salt, from)),
                Keys::Edition2022(_) => continue,
            },
        };
        if let Err(error) = taken {
            // Whatever is wrong, nothing is answered. Nor does it stand in the access log: who bans by that would ban whomever
            // a stranger names as the source.
            tracing::debug!("[{}] datagram of {from} dropped: {error}", table.shared.origin.inbound);
        }
    }
}

/// The clients of one socket.
struct Table {
    sessions: Sessions,
    shared: Arc<Shared>,
    room: Room,
    /// What was made up to this time may have been taken by another table.
    since: Option<i64>,
    clock: Clock,
    socket: Arc<tokio::net::UdpSocket>,
}

impl Table {
    /// A datagram of 2017: the user who was seen at its address is tried first, then those who were seen lately. To try all of
    /// them is for another task, so that strangers hold up nobody who is known.
    fn take_classic(
        &mut self,
        classic: &Classic,
        datagram: &[u8],
        from: SocketAddr,
        searches: &mpsc::Sender<Wanted>,
    ) -> Result<(), Error> {
        let mut plain = Vec::new();
        let (opened, search) = {
            let all = classic.users.read();
            let users = &all.known;
            let opened = self.sessions.at(from).and_then(|number| {
                let (to, at) = users.open_packet(number, datagram, &mut plain).ok()?;
                Some((number, to, at))
            });
            let mut search = Search::new(users);
            let opened = match opened {
                None => search.packet(users, datagram, &mut plain, search.recent())?,
                known => known,
            };
            let opened = opened.and_then(|(number, to, at)| Some((Whose::of(&all, number)?, to, at)));
            (opened, search)
        };
        match opened {
            Some((whose, to, at)) => self.found(classic, &whose, to, &plain[at..], datagram, from),
            None => {
                let datagram = datagram.to_vec();
                let sent = searches.try_send(Wanted { search, datagram, from });
                sent.map_err(|_| Error::protocol("Shadowsocks", "too many datagrams of unknown clients"))
            }
        }
    }

    /// A datagram of 2017 that is open, and begins with this salt.
    fn found(
        &mut self,
        classic: &Classic,
        whose: &Whose,
        to: Destination,
        payload: &[u8],
        salt: &[u8],
        from: SocketAddr,
    ) -> Result<(), Error> {
        let Whose { number, member, key } = whose;
        let salt = salt.get(..key.method().salt_len()).unwrap_or_default();
        classic.remember(&DATAGRAMS, key, salt)?;
        let name = Name::Address(Arc::as_ptr(member) as usize, from);
        if self.sessions.get(&name).is_none() {
            let how = How::Classic(key.clone());
            self.begin(&name, Opening::Address(*number), how, member, from)?;
        }
        self.hand_on(&name, to, payload, from);
        Ok(())
    }

    /// A datagram of 2022, which names its session.
    fn take_2022(
        &mut self,
        users: &edition2022::Users<Arc<Member>>,
        datagram: &mut [u8],
        from: SocketAddr,
    ) -> Result<(), Error> {
        let front = users.front(datagram)?;
        let (key, member) = (front.key, front.user);
        let owner = Arc::as_ptr(member) as usize;
        // Where the session does not show, all of them have one key, and the number here is 0.
        let shown = Name::Session(owner, front.session);
        let now = (self.clock)();
        let (packet, fresh) = match self.sessions.get(&shown).map(|session| &session.opening) {
            Some(Opening::Session { key: Some(known), .. }) => (front.open(known, datagram, now)?, None),
            _ => {
                let opening = SessionKey::new(key, front.session)?;
                (front.open(&opening, datagram, now)?, Some(opening))
            }
        };
        let name = Name::Session(owner, packet.session);
        if self.sessions.get(&name).is_none() {
            // Nobody knows what a process before this one has taken of it.
            replay::check_start(packet.time)?;
            if let Some(since) = self.since.filter(|since| packet.time <= *since) {
                let seconds = since.abs_diff(packet.time);
                return Err(Error::Wire(sealway_v2ray::Error::BeforeStart { seconds }));
            }
            let own = PacketSealer::server(key, u64::from_ne_bytes(random::bytes()?), packet.session)?;
            // A key that all sessions have is not kept by each.
            let kept = fresh.filter(|_| users.method().has_identities());
            let opening = Opening::Session {
                key: kept,
                window: Default::default(),
            };
            self.begin(&name, opening, How::Edition2022(own), member, from)?;
        }
        if !self.sessions.take(&name, packet.packet) {
            return Err(Error::Wire(sealway_v2ray::Error::Replayed {
                protocol: Protocol::Shadowsocks,
            }));
        }
        self.hand_on(&name, packet.peer, &datagram[packet.payload], from);
        Ok(())
    }

    /// A client that was not known.
    fn begin(
        &mut self,
        name: &Name,
        opening: Opening,
        how: How,
        member: &Arc<Member>,
        from: SocketAddr,
    ) -> Result<(), Error> {
        if !self.sessions.make_room(name, Instant::now()) {
            return Err(Error::protocol(
                "Shadowsocks",
                "more clients at once than there is room for",
            ));
        }
        let answers = Arc::new(Answers::new(Arc::clone(&self.socket), from, how, self.clock));
        let (queue, waiting) = mpsc::channel(QUEUE);
        let session = Session::new(opening, Arc::clone(member), Arc::clone(&answers), queue);
        let limits = self.sessions.insert(*name, session);
        let (dispatcher, traffic) = (Arc::clone(&self.shared.dispatcher), self.shared.traffic.clone());
        let user = Arc::new(User::from(Arc::clone(member)));
        let idle = user.level.timeouts.idle;
        let mut watch = user.watch();
        let flows = Flows::new(dispatcher, user, traffic).within(limits);
        let carrying = carry(self.shared.origin.clone(), flows, idle, answers, waiting);
        tokio::spawn(about_new(async move { watch.unless_gone(carrying).await }));
        Ok(())
    }

    /// Hands a datagram to its client's task.
    fn hand_on(&mut self, name: &Name, to: Destination, payload: &[u8], from: SocketAddr) {
        if let Some(session) = self.sessions.heard(name, from, Instant::now())
            && let Some(datagram) = self.room.keep(payload, to)
        {
            // Full: dropped. Closed: the task has ended with the server.
            let _ = session.queue.try_send((datagram, from));
        }
    }
}

/// Sends the datagrams of one client on their way, until its place in the table is given up.
async fn carry(
    mut origin: Origin,
    mut flows: Flows,
    idle: Duration,
    answers: Arc<Answers>,
    mut waiting: mpsc::Receiver<(Datagram, SocketAddr)>,
) {
    loop {
        match timeout(idle, waiting.recv()).await {
            Ok(Some((datagram, from))) => {
                origin.source = Some(unmapped(from));
                let answers = Arc::clone(&answers);
                flows.carry(&origin, datagram, Reply::Sealed(answers)).await;
            }
            Ok(None) => return,
            Err(_) => flows.forget(),
        }
    }
}
