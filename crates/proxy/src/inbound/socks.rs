//! SOCKS, on both sides. A port for SOCKS serves HTTP proxy clients too.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use sealway_v2ray::socks::{Client, ClientEvent, Command, Event, Reply, Server, udp};
use sealway_v2ray::{Destination, Network, Step};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::{Fresh, Inbound, Taken, UserRecord, dokodemo, http};
use crate::Error;
use crate::engine::Engine;
use crate::settings::{self, Account, HttpProxy};
use crate::sock::unmapped;
use crate::stream::Stream;
use crate::udp::{Datagram, PacketEnd, Reply as UdpReply};

/// Targets of one association that are served at once, where each needs a connection of its own.
const MAX_TARGETS: usize = 256;

/// What a client asked for.
pub(crate) enum Asked {
    /// A stream.
    Stream(Taken),
    /// Datagrams, while the connection lives.
    Associate(Box<Association>),
}

/// An association for datagrams.
pub(crate) struct Association {
    control: Stream,
    socket: Arc<UdpSocket>,
    /// The only address datagrams are taken from; the port is pinned by the first one.
    owner: SocketAddr,
    user: Arc<UserRecord>,
    local: Option<SocketAddr>,
}

/// True if one of the accounts has this name and password. Takes the same time whichever differs.
pub(crate) fn is_known(accounts: &[Account], user: &[u8], pass: &[u8]) -> bool {
    let mut known = false;
    for account in accounts {
        let same = same(account.user.as_bytes(), user) & same(account.pass.as_bytes(), pass);
        known |= same;
    }
    known
}

fn same(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    (a.len() == b.len()) & (differ == 0)
}

/// Negotiates.
pub(crate) async fn take(fresh: Fresh, settings: &settings::Socks, user: Arc<UserRecord>) -> Result<Asked, Error> {
    let deadline = fresh.deadline;
    let negotiating = negotiate(fresh, settings, user);
    tokio::time::timeout_at(deadline, negotiating)
        .await
        .map_err(|_| Error::TimedOut("SOCKS request"))?
}

async fn negotiate(mut fresh: Fresh, settings: &settings::Socks, user: Arc<UserRecord>) -> Result<Asked, Error> {
    let stream = &mut fresh.accepted.stream;
    if !stream.more().await? {
        return Err(Error::Closed);
    }
    if stream.payload().first().is_some_and(|&first| !Server::speaks(first)) {
        let http = HttpProxy {
            accounts: settings.accounts.clone(),
            allow_transparent: false,
            level: settings.level,
        };
        return http::take(fresh, &http, user).await.map(Asked::Stream);
    }
    let mut server = Server::new(!settings.accounts.is_empty(), settings.udp);
    loop {
        let (event, used) = match server.handle(stream.payload())? {
            Step::Done { value, used } => (value, used),
            Step::More(_) => {
                if !stream.more().await? {
                    return Err(Error::Closed);
                }
                continue;
            }
        };
        stream.consume(used);
        match event {
            Event::Send(bytes) => stream.send(&bytes).await?,
            Event::Login { user, password } => {
                let right = is_known(&settings.accounts, &user, &password);
                stream.send(&server.login(right)?).await?;
                if !right {
                    return Err(Error::Unauthentic("SOCKS: wrong name or password"));
                }
            }
            Event::Refuse { reply, error } => {
                stream.send(&reply).await?;
                return Err(error.into());
            }
            Event::Request { command, version } => {
                let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                let here = fresh.accepted.local.unwrap_or(unspecified);
                return match command {
                    Command::Connect(to) => {
                        stream.send(&Reply::Succeeded.encode(version, unspecified)).await?;
                        Ok(Asked::Stream(Taken::Stream {
                            near: Box::new(fresh.accepted.stream),
                            to,
                            user,
                        }))
                    }
                    Command::UdpAssociate(_) => {
                        let Some(owner) = fresh.accepted.source else {
                            return Err(Error::Unsupported("SOCKS datagrams on a unix socket"));
                        };
                        let socket = UdpSocket::bind(SocketAddr::new(here.ip(), 0)).await?;
                        let mut bound = unmapped(socket.local_addr()?);
                        if let Some(ip) = settings.udp_address {
                            bound.set_ip(ip);
                        }
                        stream.send(&Reply::Succeeded.encode(version, bound)).await?;
                        Ok(Asked::Associate(Box::new(Association {
                            socket: Arc::new(socket),
                            owner: SocketAddr::new(owner.ip(), 0),
                            user,
                            local: fresh.accepted.local,
                            control: fresh.accepted.stream,
                        })))
                    }
                };
            }
        }
    }
}

/// Relays datagrams until the connection that asked for it ends.
pub(crate) async fn serve_udp(
    engine: &Arc<Engine>,
    inbound: &Arc<Inbound>,
    association: Association,
) -> Result<(), Error> {
    let Association {
        mut control,
        socket,
        mut owner,
        user,
        local,
    } = association;
    // An outbound that reaches every target serves all with one socket; others need a connection for each.
    let mut flows: HashMap<Option<Destination>, mpsc::Sender<Datagram>> = HashMap::new();
    let mut buffer = vec![0; 65_535];
    loop {
        let (len, from) = tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok(received) => received,
                Err(_) => continue,
            },
            more = control.more() => match more {
                Ok(true) => {
                    let len = control.payload().len();
                    control.consume(len);
                    continue;
                }
                _ => return Ok(()),
            },
        };
        let from = unmapped(from);
        if from.ip() != owner.ip() || owner.port() != 0 && owner.port() != from.port() {
            continue;
        }
        let Ok((mut to, payload)) = udp::decode(&buffer[..len]) else {
            continue;
        };
        owner.set_port(from.port());
        to.network = Network::Udp;
        let mut datagram = Datagram {
            bytes: buffer[payload].to_vec(),
            to: to.clone(),
        };
        let flow = flows.get(&Some(to.clone())).or_else(|| flows.get(&None));
        if let Some(queue) = flow {
            match queue.try_send(datagram) {
                // What does not fit is dropped, as a full socket would.
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => continue,
                Err(mpsc::error::TrySendError::Closed(back)) => datagram = back,
            }
        }
        flows.retain(|_, queue| !queue.is_closed());
        if flows.len() >= MAX_TARGETS {
            continue;
        }
        let outbound = engine.route(inbound, &to, (Some(owner), local), &user.email).await;
        let key = if outbound.is_open_to_all() {
            None
        } else {
            Some(to.clone())
        };
        let (queue, waiting) = mpsc::channel(dokodemo::QUEUE);
        let _ = queue.try_send(datagram);
        flows.insert(key, queue);
        let near = PacketEnd::Local(waiting, UdpReply::Socks(Arc::clone(&socket), from));
        let (engine, inbound, user) = (Arc::clone(engine), Arc::clone(inbound), Arc::clone(&user));
        tokio::spawn(async move {
            engine
                .carry_flow(&inbound, &outbound, near, to, user, Some(owner), local)
                .await
        });
    }
}

/// Asks a SOCKS 5 server for a stream.
pub(crate) async fn request(stream: &mut Stream, account: Option<&Account>, to: &Destination) -> Result<(), Error> {
    let login = account.map(|account| (account.user.as_bytes(), account.pass.as_bytes()));
    let (mut client, first) = Client::new(&Command::Connect(to.clone()), login)?;
    stream.send(&first).await?;
    loop {
        match client.handle(stream.payload())? {
            Step::More(_) => {
                if !stream.more().await? {
                    return Err(Error::Closed);
                }
            }
            Step::Done { value, used } => {
                stream.consume(used);
                match value {
                    ClientEvent::Send(bytes) => stream.send(&bytes).await?,
                    ClientEvent::Ready { .. } => return Ok(()),
                }
            }
        }
    }
}
