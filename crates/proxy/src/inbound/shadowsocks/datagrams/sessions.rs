//! The clients of one socket, as many as there is room for.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::shadowsocks::Window;
use sealway_v2ray::shadowsocks::edition2022::packet::SessionKey;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answers::Answers;
use crate::inbound::local::Datagram;

/// Clients of one socket that are known at once.
pub(super) const MAX_SESSIONS: usize = 4096;
/// How long a client is known that sends nothing.
const IDLE: Duration = Duration::from_secs(500);
/// How long it is known at least, however many others come. Datagrams of 2022 are good for 30 seconds before their time and
/// after it: what came of a client that is forgotten sooner could come again.
const KEPT: Duration = Duration::from_secs(61);
/// Idle clients are looked for this often at most: to look at all of them for every datagram would be work that anyone can
/// order who has a key.
const LOOK: Duration = Duration::from_secs(1);

/// What tells clients apart.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Name {
    /// The address, with the methods of 2017.
    Address(SocketAddr),
    /// The user, and the session's number, with the methods of 2022.
    Session(usize, u64),
}

/// What a client's datagrams are opened with.
pub(super) enum Opening {
    /// The user's key.
    Address,
    /// A key of the session's own, if there is such, and the numbers that came.
    Session { key: Option<SessionKey>, window: Window },
}

/// A client.
pub(super) struct Session {
    /// The user's number, with the methods of 2017.
    pub(super) user: usize,
    pub(super) opening: Opening,
    answers: Arc<Answers>,
    pub(super) queue: mpsc::Sender<(Datagram, SocketAddr)>,
    heard: Instant,
}

/// The clients of one socket.
#[derive(Default)]
pub(super) struct Sessions {
    all: HashMap<Name, Session>,
    looked: Option<Instant>,
}

impl Sessions {
    pub(super) fn get(&self, name: &Name) -> Option<&Session> {
        self.all.get(name)
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.all.remove(name);
    }

    /// Takes the number of a datagram. False if it came before.
    pub(super) fn take(&mut self, name: &Name, number: u64) -> bool {
        match self.all.get_mut(name).map(|session| &mut session.opening) {
            Some(Opening::Session { window, .. }) => window.take(number),
            Some(Opening::Address) => true,
            None => false,
        }
    }

    /// A client was heard from an address.
    pub(super) fn heard(&mut self, name: &Name, from: SocketAddr, now: Instant) -> Option<&Session> {
        let session = self.all.get_mut(name)?;
        session.heard = now;
        session.answers.moved(from);
        Some(session)
    }

    /// Forgets clients that are idle; sooner than else if there is no room for another one. False if there is none then either.
    pub(super) fn make_room(&mut self, now: Instant) -> bool {
        if self.looked.is_none_or(|last| now.duration_since(last) >= LOOK) {
            let full = self.all.len() >= MAX_SESSIONS;
            let most = if full { KEPT } else { IDLE };
            self.all.retain(|_, session| now.duration_since(session.heard) < most);
            self.looked = Some(now);
        }
        self.all.len() < MAX_SESSIONS
    }

    pub(super) fn insert(
        &mut self,
        name: Name,
        user: usize,
        opening: Opening,
        answers: Arc<Answers>,
        queue: mpsc::Sender<(Datagram, SocketAddr)>,
    ) {
        let session = Session {
            user,
            opening,
            answers,
            queue,
            heard: Instant::now(),
        };
        self.all.insert(name, session);
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

    async fn begin(sessions: &mut Sessions, socket: &Arc<UdpSocket>, number: u64) -> bool {
        if !sessions.make_room(Instant::now()) {
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
        sessions.insert(Name::Session(0, number), 0, opening, answers, queue);
        true
    }

    /// What is forgotten could come again, so nobody is forgotten for others' sake whose datagrams are still good.
    #[tokio::test(start_paused = true)]
    async fn a_full_table_refuses_rather_than_forgets_what_could_come_again() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let mut sessions = Sessions::default();
        for number in 0..MAX_SESSIONS as u64 {
            assert!(begin(&mut sessions, &socket, number).await);
        }
        let first = Name::Session(0, 0);
        assert!(sessions.take(&first, 5) && !sessions.take(&first, 5));
        for seconds in [0, 30, 30] {
            advance(Duration::from_secs(seconds)).await;
            assert!(!begin(&mut sessions, &socket, 9999).await);
            assert!(!sessions.take(&first, 5));
        }
        // Two of them were heard meanwhile, and stay.
        let from = SocketAddr::from(([127, 0, 0, 1], 10));
        for number in [0, 7] {
            assert!(
                sessions
                    .heard(&Name::Session(0, number), from, Instant::now())
                    .is_some()
            );
        }
        advance(Duration::from_secs(2)).await;
        assert!(begin(&mut sessions, &socket, 9999).await);
        assert_eq!(sessions.all.len(), 3);
        assert!(!sessions.take(&first, 5));
        advance(IDLE).await;
        assert!(begin(&mut sessions, &socket, 1).await);
        assert_eq!(sessions.all.len(), 1);
    }
}
