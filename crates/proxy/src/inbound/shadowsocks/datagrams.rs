//! Datagrams that come to an inbound's socket.
//!
//! A client's datagrams belong together by its address (2017) or by the session that they name (2022). Each such client has a
//! task that asks the rules and sends them on their way, so that a name that resolves slowly holds up nobody else.

mod answers;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;

use sealway_net::sock::unmapped;
use sealway_v2ray::shadowsocks::classic::Search;
use sealway_v2ray::shadowsocks::edition2022::{self, packet::PacketSealer, packet::SessionKey};
use sealway_v2ray::{Destination, Protocol};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::{Classic, Keys, Shadowsocks, TURN};
use crate::clock::Clock;
use crate::dispatch::{Dispatcher, Origin, User};
use crate::inbound::Datagrams;
use crate::inbound::flows::Flows;
use crate::inbound::local::{Datagram, Reply, Room};
use crate::stats::Traffic;
use crate::{Error, random};

use answers::{Answers, How};
use sessions::{Name, Opening, Sessions};

/// Datagrams of one client that may wait for their turn. More are dropped, as a full socket would.
const QUEUE: usize = 128;

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
        clock: inbound.clock,
        socket: Arc::clone(&socket),
    };
    let mut buffer = vec![0; 65_535];
    loop {
        let (len, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!("[{}] receiving: {error}", table.shared.origin.inbound);
                continue;
            }
        };
        let received = &mut buffer[..len];
        let taken = match &inbound.keys {
            Keys::Classic(classic) => table.take_classic(classic, received, from).await,
            Keys::Edition2022(users) => table.take_2022(users, received, from),
        };
        if let Err(error) = taken {
            // Whatever is wrong, nothing is answered.
            tracing::debug!("[{}] datagram of {from} dropped: {error}", table.shared.origin.inbound);
        }
    }
}

/// The clients of one socket.
struct Table {
    sessions: Sessions,
    shared: Arc<Shared>,
    room: Room,
    clock: Clock,
    socket: Arc<tokio::net::UdpSocket>,
}

impl Table {
    /// A datagram of 2017: the user who was seen at its address is tried first, then the others.
    async fn take_classic(&mut self, classic: &Classic, datagram: &[u8], from: SocketAddr) -> Result<(), Error> {
        let name = Name::Address(from);
        let users = &classic.users;
        let mut plain = Vec::new();
        let known = self.sessions.get(&name).map(|session| session.user);
        let opened = known.and_then(|number| {
            let (to, at) = users.open_packet(number, datagram, &mut plain).ok()?;
            Some((number, to, at))
        });
        let (number, to, at) = match opened {
            Some(opened) => opened,
            None => {
                let mut search = Search::new(users);
                loop {
                    match search.packet(users, datagram, &mut plain, TURN)? {
                        Some(found) => break found,
                        None => yield_now().await,
                    }
                }
            }
        };
        let unknown = Error::Unauthentic("Shadowsocks: no such user");
        let found = users.user(number).ok_or(unknown)?;
        classic.remember(datagram.get(..found.key.method().salt_len()).unwrap_or_default())?;
        if known.is_some_and(|known| known != number) {
            // Somebody else has the address now.
            self.sessions.remove(&name);
        }
        if self.sessions.get(&name).is_none() {
            let how = How::Classic(found.key.clone());
            self.begin(&name, number, Opening::Address, how, found.user, from)?;
        }
        self.hand_on(&name, to, &plain[at..], from);
        Ok(())
    }

    /// A datagram of 2022, which names its session.
    fn take_2022(
        &mut self,
        users: &edition2022::Users<Arc<User>>,
        datagram: &mut [u8],
        from: SocketAddr,
    ) -> Result<(), Error> {
        let front = users.front(datagram)?;
        let (key, user) = (front.key, front.user);
        let owner = Arc::as_ptr(user) as usize;
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
            let own = PacketSealer::server(key, u64::from_ne_bytes(random::bytes()?), packet.session)?;
            // A key that all sessions have is not kept by each.
            let kept = fresh.filter(|_| users.method().has_identities());
            let opening = Opening::Session {
                key: kept,
                window: Default::default(),
            };
            self.begin(&name, 0, opening, How::Edition2022(own), user, from)?;
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
        number: usize,
        opening: Opening,
        how: How,
        user: &Arc<User>,
        from: SocketAddr,
    ) -> Result<(), Error> {
        if !self.sessions.make_room(Instant::now()) {
            return Err(Error::protocol(
                "Shadowsocks",
                "more clients at once than there is room for",
            ));
        }
        let answers = Arc::new(Answers::new(Arc::clone(&self.socket), from, how, self.clock));
        let (queue, waiting) = mpsc::channel(QUEUE);
        let task = carry(
            Arc::clone(&self.shared),
            Arc::clone(user),
            Arc::clone(&answers),
            waiting,
        );
        tokio::spawn(task);
        self.sessions.insert(*name, number, opening, answers, queue);
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
    shared: Arc<Shared>,
    user: Arc<User>,
    answers: Arc<Answers>,
    mut waiting: mpsc::Receiver<(Datagram, SocketAddr)>,
) {
    let idle = user.level.timeouts.idle;
    let mut origin = shared.origin.clone();
    let mut flows = Flows::new(Arc::clone(&shared.dispatcher), user, shared.traffic.clone());
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
