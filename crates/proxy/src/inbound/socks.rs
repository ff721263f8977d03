//! SOCKS, as the server. A port for SOCKS serves HTTP proxy clients too.

mod associate;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use sealway_net::sock::unmapped;
use sealway_v2ray::socks::{Command, Event, Reply, Server};
use tokio::net::UdpSocket;
use tokio::time::timeout_at;

use super::accounts::Accounts;
use super::http::Http;
use super::roster::Roll;
use super::{Fresh, Protocol, Users};
use crate::dispatch::Request;
use crate::error::{Error, Pending};
use crate::settings;

use associate::Association;

/// A SOCKS inbound, and what it is to clients that speak HTTP.
pub(super) struct Socks {
    accounts: Accounts,
    udp: bool,
    /// Address told to clients for their datagrams; that of the TCP connection if there is none.
    udp_address: Option<IpAddr>,
    http: Http,
}

impl Socks {
    pub(super) fn new(settings: &settings::Socks, users: &Users<'_>) -> Result<Self, Error> {
        let accounts = Accounts::new(&settings.accounts, settings.level, users)?;
        Ok(Socks {
            udp: settings.udp,
            udp_address: settings.udp_address,
            http: Http::with(accounts.clone(), false),
            accounts,
        })
    }

    async fn negotiate(&self, mut fresh: Fresh) -> Result<Request, Error> {
        let stream = &mut fresh.stream;
        if !stream.more().await? {
            return Err(Error::Closed);
        }
        if stream.payload().first().is_some_and(|&first| !Server::speaks(first)) {
            return self.http.read(fresh).await;
        }
        let mut known = Arc::clone(self.accounts.anyone());
        let mut server = Server::new(!self.accounts.are_none(), self.udp);
        loop {
            match stream.read(|bytes| server.handle(bytes)).await? {
                Event::Send(bytes) => stream.send(&bytes).await?,
                Event::Login { user, password } => {
                    let found = self.accounts.find(&user, &password);
                    let answer = server.login(found.is_some())?;
                    if let Some(user) = found {
                        known = user;
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
                    stream.trust();
                    let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                    return match command {
                        Command::Connect(to) => {
                            stream.send(&Reply::Succeeded.encode(version, unspecified)).await?;
                            Ok(Request::Stream {
                                near: Box::new(fresh.stream),
                                to,
                                user: known,
                            })
                        }
                        Command::UdpAssociate(_) => {
                            let Some(owner) = fresh.origin.source else {
                                return Err(Error::Unsupported("SOCKS datagrams on a unix socket"));
                            };
                            // Of this machine, also where a PROXY header says how the client came to the one before.
                            let own = stream.carrier.local().unwrap_or(unspecified);
                            let socket = UdpSocket::bind(SocketAddr::new(own.ip(), 0)).await?;
                            let mut bound = unmapped(socket.local_addr()?);
                            if let Some(ip) = self.udp_address {
                                bound.set_ip(ip);
                            }
                            stream.send(&Reply::Succeeded.encode(version, bound)).await?;
                            Ok(Request::Session(Box::new(Association {
                                socket: Arc::new(socket),
                                owner: SocketAddr::new(owner.ip(), 0),
                                user: known,
                                traffic: fresh.traffic,
                                control: fresh.stream,
                            })))
                        }
                    };
                }
            }
        }
    }
}

impl Protocol for Socks {
    fn users(&self) -> Option<&dyn Roll> {
        self.accounts.roll()
    }

    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(async move {
            let negotiating = timeout_at(fresh.deadline, self.negotiate(fresh));
            negotiating.await.map_err(|_| Error::TimedOut("SOCKS request"))?
        })
    }
}
