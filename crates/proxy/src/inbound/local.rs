//! Clients that send datagrams to a socket of ours: those of dokodemo-door, and of SOCKS.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_v2ray::Destination;
use tokio::net::UdpSocket;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use crate::Error;
use crate::dispatch::Peeked;
use crate::mux::Turn;
use crate::stats::Traffic;
use crate::udp::{PacketEnd, Slot};

/// Datagrams of one client that may wait. More are dropped, as a full socket would.
const QUEUE: usize = 512;

/// How long a target that could not be reached is not tried again, while datagrams to it keep coming.
const RETRY: Duration = Duration::from_secs(10);

/// A datagram on its way, and the other end of it: where it goes, or where it came from.
pub(super) struct Datagram {
    bytes: Vec<u8>,
    to: Destination,
    /// Its share of the [`Room`] it waits in.
    _room: OwnedSemaphorePermit,
}

impl Datagram {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where it goes, or where it came from.
    pub(super) fn to(&self) -> &Destination {
        &self.to
    }
}

/// Bytes that may wait in the queues of one listener or one association together, while outbounds are dialled: what is
/// counted in datagrams alone could be gigabytes.
const ROOM: usize = 16 << 20;
/// The same for all associations of one carrier of a mux.
const CARRIER_ROOM: usize = 4 << 20;

/// The memory that waiting datagrams share.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

impl Room {
    pub(super) fn new() -> Self {
        Room(Arc::new(Semaphore::new(ROOM)))
    }

    /// For all associations of a carrier.
    pub(super) fn of_carrier() -> Self {
        Room(Arc::new(Semaphore::new(CARRIER_ROOM)))
    }

    /// A copy of a datagram that has just come; none while there is no room, as with a full socket.
    pub(super) fn keep(&self, bytes: &[u8], to: Destination) -> Option<Datagram> {
        // What a datagram of no bytes takes counts too.
        let size = u32::try_from(bytes.len() + size_of::<Datagram>()).ok()?;
        let room = Arc::clone(&self.0).try_acquire_many_owned(size).ok()?;
        Some(Datagram {
            bytes: bytes.to_vec(),
            to,
            _room: room,
        })
    }
}

/// A client that is answered when there is room for it.
pub(super) trait AnswerInTurn: Send + Sync {
    /// Sends a datagram that came from `from`, when it is the `turn` of the flow that it came by.
    fn poll_answer(
        &self,
        cx: &mut Context<'_>,
        turn: &mut Turn,
        bytes: &[u8],
        from: &Destination,
    ) -> Poll<Result<(), Error>>;
}

/// How a client is answered.
pub(super) enum Reply {
    /// As it is, from the socket the client sent to.
    Plain(Arc<UdpSocket>, SocketAddr),
    /// With a SOCKS header that names the source.
    Socks(Arc<UdpSocket>, SocketAddr),
    /// As a protocol does it.
    Sealed(Arc<dyn Answer>),
    /// In the carrier that the client is on now.
    Session(Arc<dyn AnswerInTurn>),
    /// By whoever takes datagrams out of a queue, with their source. They wait in this room.
    Queue(mpsc::Sender<Datagram>, Room),
}

/// Answers a client as its protocol has it.
pub(super) trait Answer: Send + Sync {
    /// Sends a datagram that comes from `peer`, at once or not at all. Returns how many bytes went out.
    fn send(&self, bytes: &[u8], peer: &Destination) -> Result<usize, Error>;
}

/// Our end of a flow: where its datagrams are put.
pub(super) struct Flow {
    queue: mpsc::Sender<Datagram>,
    muted: Arc<AtomicBool>,
}

impl Flow {
    /// A flow that begins with this datagram, and the client's end of it. `traffic` is the inbound's, which has no stream of
    /// its own to count.
    pub(super) fn begin(first: Datagram, reply: Reply, traffic: Traffic) -> (Flow, Box<LocalClient>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let _ = queue.try_send(first);
        let muted = Arc::<AtomicBool>::default();
        let client = LocalClient {
            waiting,
            peeked: VecDeque::new(),
            reply,
            turn: Turn::default(),
            traffic,
            muted: Arc::clone(&muted),
        };
        (Flow { queue, muted }, Box::new(client))
    }

    /// Hands a datagram on, which is dropped if too many wait. Returned if the flow is over.
    pub(super) fn push(&self, datagram: Datagram) -> Option<Datagram> {
        match self.queue.try_send(datagram) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => None,
            Err(mpsc::error::TrySendError::Closed(back)) => Some(back),
        }
    }

    /// Nothing is carried any more.
    pub(super) fn is_over(&self) -> bool {
        self.queue.is_closed()
    }

    /// What comes is thrown away, so that its place is free for a flow that carries something.
    pub(super) fn is_muted(&self) -> bool {
        self.muted.load(Ordering::Relaxed)
    }
}

/// A client of a local inbound, as one end of an association.
pub(super) struct LocalClient {
    waiting: mpsc::Receiver<Datagram>,
    /// What has been looked at, and comes first.
    peeked: VecDeque<Datagram>,
    reply: Reply,
    turn: Turn,
    traffic: Traffic,
    muted: Arc<AtomicBool>,
}

impl LocalClient {
    /// Gives up what waits, in order, and how the client is answered. What its flow still hands on is refused.
    pub(super) fn into_waiting(mut self) -> (Vec<Datagram>, Reply) {
        self.waiting.close();
        let mut all = Vec::from(self.peeked);
        while let Ok(datagram) = self.waiting.try_recv() {
            all.push(datagram);
        }
        (all, self.reply)
    }
}

impl Peeked for LocalClient {
    fn poll_peek(&mut self, cx: &mut Context<'_>, nth: usize) -> Poll<Option<&[u8]>> {
        while self.peeked.len() <= nth {
            match ready!(self.waiting.poll_recv(cx)) {
                Some(datagram) => self.peeked.push_back(datagram),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(self.peeked[nth].bytes()))
    }
}

impl PacketEnd for LocalClient {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        let datagram = match self.peeked.pop_front() {
            Some(datagram) => datagram,
            None => match ready!(self.waiting.poll_recv(cx)) {
                Some(datagram) => datagram,
                None => return Poll::Ready(Ok(false)),
            },
        };
        self.traffic.received(datagram.bytes.len());
        slot.copy(&datagram.bytes, datagram.to);
        Poll::Ready(Ok(true))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        let sent = match &self.reply {
            Reply::Session(client) => return client.poll_answer(cx, &mut self.turn, bytes, peer),
            Reply::Queue(queue, room) => {
                // One that does not fit is lost, as in a full socket.
                if let Some(answer) = room.keep(bytes, peer.clone()) {
                    let _ = queue.try_send(answer);
                }
                return Poll::Ready(Ok(()));
            }
            Reply::Plain(socket, client) => socket.try_send_to(bytes, *client).map_err(Error::from),
            Reply::Socks(socket, client) => {
                let mut whole = vec![0, 0, 0];
                sealway_v2ray::address::write_type_first(&peer.address, peer.port, &mut whole);
                whole.extend_from_slice(bytes);
                socket.try_send_to(&whole, *client).map_err(Error::from)
            }
            Reply::Sealed(answer) => answer.send(bytes, peer),
        };
        match sent {
            Ok(_) => self.traffic.sent(bytes.len()),
            Err(error) => tracing::debug!("datagram to the client dropped: {error}"),
        }
        Poll::Ready(Ok(()))
    }

    /// As long as the flow lasts: if each datagram were asked about anew, each would be a line in the logs. One whose target
    /// was refused lasts until nothing has come for `idle`, any other is tried again after ten seconds.
    fn discard(mut self: Box<Self>, idle: Duration, refused: bool) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.muted.store(true, Ordering::Relaxed);
        let most = if refused { Duration::MAX } else { RETRY };
        Box::pin(async move {
            let all = async { while let Ok(Some(_)) = timeout(idle, self.waiting.recv()).await {} };
            let _ = timeout(most, all).await;
        })
    }
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::{Address, Network};

    use super::*;

    #[test]
    fn waiting_datagrams_share_a_bounded_room() {
        let room = Room::new();
        let to = || Destination {
            network: Network::Udp,
            address: Address::from(std::net::IpAddr::from([127, 0, 0, 1])),
            port: 53,
        };
        let bytes = vec![0; 65_535];
        let mut kept: Vec<Datagram> = std::iter::from_fn(|| room.keep(&bytes, to())).collect();
        assert_eq!(kept.len(), ROOM / (65_535 + size_of::<Datagram>()));
        assert!(room.keep(&bytes, to()).is_none());
        // What has gone on its way makes room.
        kept.pop();
        assert!(room.keep(&bytes, to()).is_some());
        // Nothing at all is not free either.
        let room = Room::new();
        let most = ROOM / size_of::<Datagram>();
        assert_eq!(
            std::iter::from_fn(|| room.keep(&[], to()))
                .take(2 * most)
                .collect::<Vec<_>>()
                .len(),
            most
        );
    }

    #[test]
    fn answers_that_wait_share_the_room_of_their_carrier() {
        let room = Room::of_carrier();
        let peer = || Destination::udp(std::net::IpAddr::from([127, 0, 0, 1]), 53);
        let bytes = vec![0; 65_507];
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut sessions = Vec::new();
        for _ in 0..256 {
            let (answers, waiting) = mpsc::channel(128);
            let first = Room::new().keep(b"x", peer()).unwrap();
            let reply = Reply::Queue(answers, room.clone());
            let (flow, mut client) = Flow::begin(first, reply, Traffic::default());
            for _ in 0..200 {
                assert!(client.poll_send(&mut cx, &bytes, &peer()).is_ready());
            }
            sessions.push((flow, client, waiting));
        }
        let mut held = 0;
        for (_, _, waiting) in &mut sessions {
            while let Ok(answer) = waiting.try_recv() {
                held += answer.bytes().len();
            }
        }
        assert!(held <= CARRIER_ROOM && held > CARRIER_ROOM / 2, "{held}");
    }
}
