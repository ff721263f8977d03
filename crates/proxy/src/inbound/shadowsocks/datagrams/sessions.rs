//! The clients of one socket, as many as there is room for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::shadowsocks::Window;
use sealway_v2ray::shadowsocks::edition2022::packet::SessionKey;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::answers::Answers;
use crate::inbound::local::Datagram;
use crate::people::Member;

/// Clients of one socket that are known at once.
pub(super) const MAX_SESSIONS: usize = 4096;
/// Clients of one user among them.
pub(super) const MAX_OF_USER: usize = 1024;
/// Sessions that had to go for others' sake and are refused until nothing of them is good any more.
const MAX_GONE: usize = 16_384;
/// Those that one user's own sessions have put there.
const MAX_GONE_OF_USER: usize = 4096;
/// Flows of one user, each of which may hold a socket.
const MAX_FLOWS_OF_USER: usize = 1024;
/// Flows of all users of one socket.
const MAX_FLOWS: usize = 4096;
/// How long a client is known that sends nothing.
const IDLE: Duration = Duration::from_secs(500);
/// How long it is known at least, or refused. Datagrams of 2022 are good for 30 seconds before their time and after it: what
/// came of a client that is forgotten sooner could come again.
const KEPT: Duration = Duration::from_secs(61);
/// Idle clients are looked for this often at most: to look at all of them for every datagram would be work that anyone can
/// order who has a key.
const LOOK: Duration = Duration::from_secs(1);

/// What tells clients apart.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Name {
    /// The user, and the address, with the methods of 2017.
    Address(usize, SocketAddr),
    /// The user, and the session's number, with the methods of 2022.
    Session(usize, u64),
}

impl Name {
    fn owner(&self) -> usize {
        match *self {
            Name::Address(owner, _) | Name::Session(owner, _) => owner,
        }
    }
}

/// What a client's datagrams are opened with.
pub(super) enum Opening {
    /// The key of the user with this number.
    Address(usize),
    /// A key of the session's own, if there is such, and the numbers that came.
    Session { key: Option<SessionKey>, window: Window },
}

/// A client.
pub(super) struct Session {
    pub(super) opening: Opening,
    /// Nobody else has what tells users apart, for as long as the name of one stands here.
    _member: Arc<Member>,
    answers: Arc<Answers>,
    pub(super) queue: mpsc::Sender<(Datagram, SocketAddr)>,
    heard: Instant,
}

impl Session {
    /// A client that was heard just now.
    pub(super) fn new(
        opening: Opening,
        member: Arc<Member>,
        answers: Arc<Answers>,
        queue: mpsc::Sender<(Datagram, SocketAddr)>,
    ) -> Session {
        Session {
            opening,
            _member: member,
            answers,
            queue,
            heard: Instant::now(),
        }
    }
}

/// What the clients of one user have together.
struct Owner {
    sessions: usize,
    flows: Arc<Semaphore>,
}

/// The clients of one socket.
pub(super) struct Sessions {
    all: HashMap<Name, Session>,
    owners: HashMap<usize, Owner>,
    /// The number of the user of 2017 who was heard last at an address.
    heard_at: HashMap<SocketAddr, usize>,
    /// Sessions that are refused, in the order in which they went, and when.
    gone: HashSet<Name>,
    order: VecDeque<(Instant, Name)>,
    flows: Arc<Semaphore>,
    looked: Option<Instant>,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions {
            all: HashMap::new(),
            owners: HashMap::new(),
            heard_at: HashMap::new(),
            gone: HashSet::new(),
            order: VecDeque::new(),
            flows: Arc::new(Semaphore::new(MAX_FLOWS)),
            looked: None,
        }
    }
}

impl Sessions {
    pub(super) fn get(&self, name: &Name) -> Option<&Session> {
        self.all.get(name)
    }

    /// The number that the user of 2017 had who was heard last at an address.
    pub(super) fn at(&self, address: SocketAddr) -> Option<usize> {
        self.heard_at.get(&address).copied()
    }

    fn remove(&mut self, name: &Name) {
        let Some(session) = self.all.remove(name) else { return };
        let owner = name.owner();
        if let Some(known) = self.owners.get_mut(&owner) {
            known.sessions -= 1;
            // Flows that come to their end later are counted no more, but by the socket.
            if known.sessions == 0 {
                self.owners.remove(&owner);
            }
        }
        if let (Name::Address(_, address), Opening::Address(number)) = (name, &session.opening)
            && self.heard_at.get(address) == Some(number)
        {
            self.heard_at.remove(address);
        }
    }

    /// Takes the number of a datagram. False if it came before.
    pub(super) fn take(&mut self, name: &Name, number: u64) -> bool {
        match self.all.get_mut(name).map(|session| &mut session.opening) {
            Some(Opening::Session { window, .. }) => window.take(number),
            Some(Opening::Address(_)) => true,
            None => false,
        }
    }

    /// A client was heard from an address.
    pub(super) fn heard(&mut self, name: &Name, from: SocketAddr, now: Instant) -> Option<&Session> {
        let session = self.all.get_mut(name)?;
        session.heard = now;
        session.answers.moved(from);
        if let (Name::Address(_, address), Opening::Address(number)) = (name, &session.opening) {
            self.heard_at.insert(*address, *number);
        }
        Some(session)
    }

    /// Makes room for another client, for which those go that are idle, or the one of its user that was not heard for longest,
    /// if the user has as many as may be; of the user who has most, if the table is full.
    ///
    /// False if there is no room, or if the client had to go before.
    pub(super) fn make_room(&mut self, name: &Name, now: Instant) -> bool {
        if self.looked.is_none_or(|last| now.duration_since(last) >= LOOK) {
            let idle = |session: &Session| now.duration_since(session.heard) >= IDLE;
            let idle: Vec<Name> = self
                .all
                .iter()
                .filter(|(_, s)| idle(s))
                .map(|(name, _)| *name)
                .collect();
            idle.iter().for_each(|name| self.remove(name));
            self.looked = Some(now);
        }
        while let Some((when, old)) = self.order.front().copied()
            && now.duration_since(when) >= KEPT
        {
            self.order.pop_front();
            self.gone.remove(&old);
        }
        if self.gone.contains(name) {
            return false;
        }
        let owner = name.owner();
        if self
            .owners
            .get(&owner)
            .is_some_and(|known| known.sessions >= MAX_OF_USER)
        {
            let gone = self.gone.iter().filter(|gone| gone.owner() == owner).count();
            return gone < MAX_GONE_OF_USER && self.evict(owner, now);
        }
        if self.all.len() < MAX_SESSIONS {
            return true;
        }
        let most = self.owners.iter().max_by_key(|(_, known)| known.sessions);
        most.map(|(owner, _)| *owner)
            .is_some_and(|owner| self.evict(owner, now))
    }

    /// Lets go of the client of a user that was not heard for longest. False if there is no room to remember it.
    fn evict(&mut self, owner: usize, now: Instant) -> bool {
        let all = self.all.iter().filter(|(name, _)| name.owner() == owner);
        let Some((name, heard)) = all.min_by_key(|(_, s)| s.heard).map(|(name, s)| (*name, s.heard)) else {
            return false;
        };
        // Salts say what came of a client of 2017.
        if matches!(name, Name::Session(..)) && now.duration_since(heard) < KEPT {
            if self.gone.len() >= MAX_GONE {
                return false;
            }
            self.gone.insert(name);
            self.order.push_back((now, name));
        }
        self.remove(&name);
        true
    }

    /// Enters a client. Returns the shares that its flows take of what its user and all users have.
    pub(super) fn insert(&mut self, name: Name, session: Session) -> Vec<Arc<Semaphore>> {
        let fresh = self.all.insert(name, session).is_none();
        let owner = self.owners.entry(name.owner()).or_insert_with(|| Owner {
            sessions: 0,
            flows: Arc::new(Semaphore::new(MAX_FLOWS_OF_USER)),
        });
        owner.sessions += usize::from(fresh);
        vec![Arc::clone(&owner.flows), Arc::clone(&self.flows)]
    }
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::shadowsocks::edition2022::packet::PacketSealer;
    use sealway_v2ray::shadowsocks::{Key, Method};
    use tokio::net::UdpSocket;
    use tokio::time::advance;

    use super::super::answers::How;
    use super::*;
    use crate::people::People;

    async fn begin(sessions: &mut Sessions, socket: &Arc<UdpSocket>, owner: usize, number: u64) -> bool {
        let name = Name::Session(owner, number);
        if !sessions.make_room(&name, Instant::now()) {
            return false;
        }
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        let key = Key::new(Method::Blake3Aes128Gcm, "AAECAwQFBgcICQoLDA0ODw==").unwrap();
        let how = How::Edition2022(PacketSealer::server(&key, 1, number).unwrap());
        let answers = Arc::new(Answers::new(Arc::clone(socket), from, how, || 0));
        let opening = Opening::Session {
            key: None,
            window: Window::default(),
        };
        let (queue, _) = mpsc::channel(1);
        let member = People::default().join("", 0, Arc::default());
        sessions.insert(name, Session::new(opening, member, answers, queue));
        true
    }

    /// One user takes no room from others, and what had to go cannot come again while it is good.
    #[tokio::test(start_paused = true)]
    async fn a_user_gives_way_to_others() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let mut sessions = Sessions::default();
        for number in 0..MAX_OF_USER as u64 + 10 {
            assert!(begin(&mut sessions, &socket, 1, number).await);
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(sessions.all.len(), MAX_OF_USER);
        for number in 0..10 {
            assert!(!begin(&mut sessions, &socket, 1, number).await);
        }
        assert!(begin(&mut sessions, &socket, 2, 0).await);
        // Sessions are refused sooner than forgotten.
        let mut taken = 0;
        for number in 5000..15_000 {
            taken += usize::from(begin(&mut sessions, &socket, 1, number).await);
        }
        assert_eq!((taken, sessions.gone.len()), (MAX_GONE_OF_USER - 10, MAX_GONE_OF_USER));
        for owner in 3..8 {
            for number in 0..MAX_OF_USER as u64 {
                assert!(begin(&mut sessions, &socket, owner, number).await);
            }
        }
        assert_eq!(sessions.all.len(), MAX_SESSIONS);
        assert!(sessions.get(&Name::Session(2, 0)).is_some());
        advance(KEPT).await;
        assert!(begin(&mut sessions, &socket, 1, 0).await);
        assert!(sessions.gone.is_empty() && sessions.order.is_empty());
        advance(IDLE).await;
        assert!(begin(&mut sessions, &socket, 1, 1).await);
        assert_eq!((sessions.all.len(), sessions.owners.len()), (1, 1));
    }
}
