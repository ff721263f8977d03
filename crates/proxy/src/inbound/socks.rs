//! SOCKS, on both sides. A port for SOCKS serves HTTP proxy clients too.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use sealway_v2ray::socks::{Client, ClientEvent, Command, Event, Reply, Server};
use sealway_v2ray::{Address, Destination, Step};
use sha2::{Digest, Sha256};
use tokio::net::UdpSocket;

use super::associate::Association;
use super::{Fresh, Taken, UserRecord, http};
use crate::Error;
use crate::settings::{self, Account, HttpProxy};
use crate::sock::unmapped;
use crate::stream::Stream;

/// What a client asked for.
pub(crate) enum Asked {
    /// A stream.
    Stream(Taken),
    /// Datagrams, while the connection lives.
    Associate(Box<Association>),
    /// The client does not speak SOCKS but HTTP.
    Http(http::Asked),
}

/// True if one of the accounts has this name and password. Takes the same time whichever differs, and wherever: digests are
/// compared, so that not even the length of a password shows.
pub(crate) fn is_known(accounts: &[Account], user: &[u8], pass: &[u8]) -> bool {
    let (user, pass) = (Sha256::digest(user), Sha256::digest(pass));
    let mut known = false;
    for account in accounts {
        let differ = |ours: &str, theirs: &[u8]| {
            let ours = Sha256::digest(ours.as_bytes());
            ours.iter().zip(theirs).fold(0, |sum, (a, b)| sum | (a ^ b))
        };
        known |= differ(&account.user, &user) | differ(&account.pass, &pass) == 0;
    }
    known
}

/// A SOCKS inbound, and what it is to clients that speak HTTP.
pub(crate) struct Socks {
    pub(crate) settings: settings::Socks,
    http: Arc<HttpProxy>,
}

impl Socks {
    pub(crate) fn new(settings: &settings::Socks) -> Self {
        let http = HttpProxy {
            accounts: settings.accounts.clone(),
            allow_transparent: false,
            level: settings.level,
        };
        Socks {
            settings: settings.clone(),
            http: Arc::new(http),
        }
    }
}

/// Negotiates.
pub(crate) async fn take(fresh: Fresh, settings: &Socks, user: Arc<UserRecord>) -> Result<Asked, Error> {
    let deadline = fresh.deadline;
    let negotiating = negotiate(fresh, settings, user);
    tokio::time::timeout_at(deadline, negotiating)
        .await
        .map_err(|_| Error::TimedOut("SOCKS request"))?
}

async fn negotiate(mut fresh: Fresh, Socks { settings, http }: &Socks, user: Arc<UserRecord>) -> Result<Asked, Error> {
    let stream = &mut fresh.accepted.stream;
    if !stream.more().await? {
        return Err(Error::Closed);
    }
    if stream.payload().first().is_some_and(|&first| !Server::speaks(first)) {
        return http::take(fresh, Arc::clone(http), user).await.map(Asked::Http);
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
                let answer = server.login(right)?;
                if right {
                    stream.send(&answer).await?;
                } else {
                    stream.leave(&answer).await;
                    return Err(Error::Unauthentic("SOCKS: wrong name or password"));
                }
            }
            Event::Refuse { reply, error } => {
                stream.leave(&reply).await;
                return Err(error.into());
            }
            Event::Request { command, version } => {
                let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
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
                        // Of this machine, also where a PROXY header says how the client came to the one before.
                        let own = stream.sock.local().unwrap_or(unspecified);
                        let socket = UdpSocket::bind(SocketAddr::new(own.ip(), 0)).await?;
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

/// Asks a SOCKS 5 server for a stream.
pub(crate) async fn request(stream: &mut Stream, account: Option<&Account>, to: &Destination) -> Result<(), Error> {
    ask(stream, account, &Command::Connect(to.clone())).await.map(drop)
}

/// Asks a SOCKS 5 server to relay datagrams for as long as `stream` lives. Returns where they must be sent.
pub(crate) async fn associate(stream: &mut Stream, account: Option<&Account>) -> Result<(Address, u16), Error> {
    let unknown = Destination::udp(Address::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), 0);
    ask(stream, account, &Command::UdpAssociate(unknown)).await
}

async fn ask(stream: &mut Stream, account: Option<&Account>, command: &Command) -> Result<(Address, u16), Error> {
    let login = account.map(|account| (account.user.as_bytes(), account.pass.as_bytes()));
    let (mut client, first) = Client::new(command, login)?;
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
                    ClientEvent::Ready { address, port } => return Ok((address, port)),
                }
            }
        }
    }
}
