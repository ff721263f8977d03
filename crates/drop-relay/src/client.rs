//! What happens to one connection: its request, its waiting, its pair.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sealway_net::options::{self, Patience};
use sealway_net::{Alive, Sock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::carry::{Ended, carry};
use super::limits::{Limits, Source, Sources};
use super::stats::{Counters, Now, add};
use super::waiting::{Key, Paired, Ticket, WaitingRoom};
use sealway_drop::lock;
use sealway_drop::relay::PATIENCE;
use sealway_drop::relay::wire::{Answer, BadRequest, REQUEST_LEN, Request, encode_seen, may_begin_request};

/// What all connections share.
pub(super) struct Shared {
    limits: Limits,
    pub(super) counters: Arc<Counters>,
    sources: Mutex<Sources>,
    room: Mutex<WaitingRoom<Client>>,
    /// The end of the relay waits until the last connection has let go of all this.
    alive: Alive,
}

impl Shared {
    pub(super) fn new(limits: Limits, counters: Arc<Counters>, alive: Alive) -> Self {
        let sources = Mutex::new(Sources::new(&limits));
        Shared {
            limits,
            counters,
            sources,
            room: Mutex::new(WaitingRoom::new()),
            alive,
        }
    }
}

/// A place in the books, for as long as the connection lasts.
pub(super) struct Admission {
    shared: Arc<Shared>,
    source: Source,
}

impl Admission {
    /// `None` if there is no room.
    pub(super) fn enter(shared: &Arc<Shared>, ip: IpAddr) -> Option<Self> {
        let source = lock(&shared.sources).enter(ip, Instant::now())?;
        Some(Admission {
            shared: Arc::clone(shared),
            source,
        })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        lock(&self.shared.sources).leave(self.source, Instant::now());
    }
}

/// A place among those who wait.
struct Waiting<'a> {
    shared: &'a Shared,
    source: Source,
    _now: Now<'a>,
}

impl<'a> Waiting<'a> {
    /// `None` if there is no room.
    fn begin(shared: &'a Shared, source: Source) -> Option<Self> {
        lock(&shared.sources).wait(source).then(|| Waiting {
            shared,
            source,
            _now: Now::one(&shared.counters.waiting_now),
        })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.shared.sources).wait_over(self.source);
    }
}

/// A connection that has said what it wants.
pub(super) struct Client {
    tcp: TcpStream,
    admission: Admission,
    request: Request,
}

impl Client {
    /// Says `answer`. It fits into the send buffer of a socket that has said one thing before, so nobody waits here long.
    async fn tell(&mut self, answer: Answer) -> io::Result<()> {
        let limit = self.admission.shared.limits.request;
        timeout(limit, self.tcp.write_all(&answer.encode())).await?
    }

    /// Says `answer` and ends.
    async fn dismiss(mut self, answer: Answer) {
        // Whoever is gone already needs no answer.
        let _ = self.tell(answer).await;
    }

    /// Whether the client has ended or broken the connection, or spoken before its time.
    fn is_gone(&self) -> bool {
        !matches!(self.tcp.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A new connection.
pub(super) async fn receive(mut tcp: TcpStream, admission: Admission) {
    let shared = Arc::clone(&admission.shared);
    if options::prepare(&tcp, PATIENCE).is_err() {
        return;
    }
    let read = tokio::select! {
        biased;
        () = shared.alive.draining() => return,
        read = timeout(shared.limits.request, read_request(&mut tcp)) => read,
    };
    match read.ok().flatten().map(|bytes| Request::parse(&bytes)) {
        Some(Ok(request)) => {
            settle(Client {
                tcp,
                admission,
                request,
            })
            .await
        }
        Some(Err(BadRequest::Unsupported)) => {
            add(&shared.counters.junk, 1);
            let _ = timeout(shared.limits.request, tcp.write_all(&Answer::Refused.encode())).await;
        }
        Some(Err(BadRequest::Foreign)) | None => add(&shared.counters.junk, 1),
    }
}

/// A request's bytes; `None` as soon as it cannot become one.
async fn read_request(tcp: &mut TcpStream) -> Option<[u8; REQUEST_LEN]> {
    let mut bytes = [0; REQUEST_LEN];
    let mut have = 0;
    while have < REQUEST_LEN {
        match tcp.read(&mut bytes[have..]).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => have += read,
        }
        if !may_begin_request(&bytes[..have]) {
            return None;
        }
    }
    Some(bytes)
}

/// Does what a client wants. A boxed future, since one that waits in vain for another settles that one anew.
fn settle(client: Client) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let shared = Arc::clone(&client.admission.shared);
        let source = client.admission.source;
        match client.request {
            Request::Open => {
                let Some(waiting) = Waiting::begin(&shared, source) else {
                    return limited(client).await;
                };
                let opened = lock(&shared.room).open(&mut || getrandom::u64().ok());
                match opened {
                    Some(ticket) => wait(client, ticket, waiting, shared.limits.nameplate).await,
                    None => client.dismiss(Answer::Busy).await,
                }
            }
            Request::Claim(nameplate) => {
                if !lock(&shared.sources).claim(source, Instant::now()) {
                    return limited(client).await;
                }
                let claimed = lock(&shared.room).claim(nameplate, client);
                if let Err(client) = claimed {
                    unknown(client).await;
                }
            }
            Request::Seen => seen(client).await,
            Request::Pair { token, role } => {
                let paired = lock(&shared.room).pair(&token, role, client);
                let Paired::Waits(client, ticket) = paired else { return };
                match Waiting::begin(&shared, source) {
                    Some(waiting) => wait(client, ticket, waiting, shared.limits.token).await,
                    None => {
                        let other = lock(&shared.room).leave(ticket);
                        limited(client).await;
                        give_back(other);
                    }
                }
            }
        }
    })
}

/// Says from where the request comes.
async fn seen(mut client: Client) {
    let Ok(from) = client.tcp.peer_addr() else { return };
    let limit = client.admission.shared.limits.request;
    let told = [&Answer::Seen(from.port()).encode()[..], &encode_seen(from.ip())].concat();
    // Whoever is gone already needs no answer.
    let _ = timeout(limit, client.tcp.write_all(&told)).await;
}

async fn limited(client: Client) {
    add(&client.admission.shared.counters.limited, 1);
    client.dismiss(Answer::Busy).await;
}

async fn unknown(client: Client) {
    add(&client.admission.shared.counters.unknown, 1);
    client.dismiss(Answer::Unknown).await;
}

/// A client who was sent to somebody who is gone.
fn give_back(client: Option<Client>) {
    if let Some(client) = client {
        match client.request {
            // The nameplate died with the one who opened it.
            Request::Claim(_) | Request::Open | Request::Seen => drop(tokio::spawn(unknown(client))),
            Request::Pair { .. } => drop(tokio::spawn(settle(client))),
        }
    }
}

/// Why waiting ended.
enum Why {
    Called(Client),
    /// The same end came again, on another connection.
    Replaced,
    Gone,
    Expired,
    Ending,
}

async fn wait(mut client: Client, mut ticket: Ticket<Client>, waiting: Waiting<'_>, limit: Duration) {
    let shared = waiting.shared;
    let number = match ticket.key {
        Key::Nameplate(nameplate) => nameplate,
        Key::Token(_) => 0,
    };
    let mut early = [0];
    let why = match client.tell(Answer::Waiting(number)).await {
        Err(_) => Why::Gone,
        Ok(()) => tokio::select! {
            biased;
            called = &mut ticket.called => called.map_or(Why::Replaced, Why::Called),
            // Readable before its time: the client has ended, broke, or does not keep to the protocol.
            _ = client.tcp.peek(&mut early) => Why::Gone,
            () = sleep(limit) => Why::Expired,
            () = shared.alive.draining() => Why::Ending,
        },
    };
    drop(waiting);
    let expired = matches!(why, Why::Expired);
    let other = match why {
        Why::Called(other) => Some(other),
        Why::Replaced => return client.dismiss(Answer::Refused).await,
        // Somebody may have come in this very moment.
        Why::Gone | Why::Expired | Why::Ending => lock(&shared.room).leave(ticket),
    };
    match other {
        Some(other) if !client.is_gone() => join(client, other).await,
        Some(other) => give_back(Some(other)),
        None if expired => add(&shared.counters.expired, 1),
        None => {}
    }
}

/// Two ends that have found each other.
async fn join(mut one: Client, mut two: Client) {
    let shared = Arc::clone(&one.admission.shared);
    if one.tell(Answer::Ready).await.is_err() || two.tell(Answer::Ready).await.is_err() {
        return;
    }
    // From here on nothing may move for longer than between requests and answers.
    let patience = Patience {
        unread: shared.limits.idle,
        ..PATIENCE
    };
    let _ = options::prepare(&one.tcp, patience);
    let _ = options::prepare(&two.tcp, patience);
    add(&shared.counters.pairs, 1);
    // Dropped from the last to the first: the end of the relay waits for these two places.
    let _places = (one.admission, two.admission);
    let _now = Now::one(&shared.counters.pairs_now);
    let mut ends = (Sock::Tcp(one.tcp), Sock::Tcp(two.tcp));
    let carrying = carry(&mut ends, shared.limits.idle, &shared.counters.bytes);
    if let Some(Ok(Ended::Idle)) = shared.alive.run(carrying).await {
        add(&shared.counters.idle, 1);
    }
}
