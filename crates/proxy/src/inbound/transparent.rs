//! What the firewall leads here that was meant for others.
//!
//! A connection goes on to where it was meant to go, by the rules. Datagrams of a client share an association, each with its
//! own target, and what comes back is sent in the name of whoever it comes from.

mod answers;
mod clients;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::{Destination, Network};
use tokio::time::Instant;

use super::local::{Flow, Reply, Room};
use super::{Datagrams, Fresh, Protocol, Users};
use crate::dispatch::{Origin, Request, User};
use crate::error::{Error, Pending};
use crate::log::{Limit, about_new};
use crate::loops::{Listener, own};
use crate::settings::{self, Capture};
use crate::transparent::{self, Came};

use answers::{Answers, Asked, ToClient};
use clients::Clients;

/// Sockets for answers that nobody needs any more are looked for this often.
const SWEEP: Duration = Duration::from_secs(10);

const STRAIGHT: &str = "the guard against loops: it came straight to a transparent inbound, not by a rule of the firewall (where \
                        the rules say `redirect`, `sockopt` has to say so too)";

/// A door to wherever it was meant to go.
pub(super) struct Transparent {
    capture: Capture,
    /// The target of what came straight here.
    otherwise: Option<Destination>,
    /// The mark of answers.
    mark: Option<u32>,
    anyone: Arc<User>,
}

impl Transparent {
    pub(super) fn new(settings: &settings::Dokodemo, capture: Capture, users: &Users<'_>) -> Self {
        let otherwise = settings.address.clone().filter(|_| settings.port != 0);
        Transparent {
            capture,
            otherwise: otherwise.map(|address| Destination {
                network: Network::Tcp,
                address,
                port: settings.port,
            }),
            mark: users.mark,
            anyone: users.anyone(settings.level),
        }
    }

    /// Where a connection was meant to go.
    fn target(&self, fresh: &Fresh) -> Result<Destination, Error> {
        let sock = fresh.stream.carrier.sock();
        let came_to = fresh.stream.carrier.local();
        let meant = match self.capture {
            Capture::Tproxy => came_to,
            // With rules of the other kind nothing was changed, and it came to where it was meant to go.
            Capture::Redirect => sock.and_then(transparent::meant_for).or(came_to),
        };
        self.checked(meant, fresh.listener, fresh.stream.carrier.peer(), Network::Tcp)
    }

    /// The target, unless it is the inbound itself, or asked for by a connection of this process.
    fn checked(
        &self,
        meant: Option<SocketAddr>,
        listener: Option<SocketAddr>,
        from: Option<SocketAddr>,
        network: Network,
    ) -> Result<Destination, Error> {
        let meant = meant.ok_or(Error::Unsupported("a transparent inbound below another transport"))?;
        let itself = listener.map(|address| Listener {
            address,
            network,
            v6_only: false,
        });
        if itself.is_some_and(|itself| itself.is_at(meant)) {
            let otherwise = self.otherwise.clone().ok_or_else(|| Error::forbidden(&meant, STRAIGHT));
            return otherwise.map(|to| Destination { network, ..to });
        }
        let mark = from.and_then(|from| match network {
            Network::Tcp => own::stream(from, meant),
            Network::Udp => own::datagram(from),
        });
        if meant.ip().is_loopback() || meant.ip().is_unspecified() {
            return Err(Error::forbidden(
                &meant,
                "a transparent inbound: nothing on the wire is meant for such an address",
            ));
        }
        match mark {
            Some(mark) => Err(Error::Loop {
                target: meant.to_string(),
                mark,
            }),
            None => Ok(Destination {
                network,
                address: meant.ip().into(),
                port: meant.port(),
            }),
        }
    }

    /// One association a client address.
    async fn serve(&self, datagrams: Datagrams) -> Result<(), Error> {
        let Datagrams {
            socket,
            dispatcher,
            origin,
            traffic,
            ..
        } = datagrams;
        let listener = socket.local_addr().ok();
        let answers = Arc::new(Answers::new(self.mark));
        let mut clients: Clients<(Flow, Arc<Asked>)> = Clients::default();
        let room = Room::new();
        let quiet = Limit::new(1);
        let mut swept = Instant::now();
        let mut buffer = vec![0; 65_535];
        loop {
            if swept.elapsed() >= SWEEP {
                swept = Instant::now();
                answers.sweep(swept.into_std());
            }
            let came = tokio::time::timeout(SWEEP, transparent::receive(&socket, &mut buffer)).await;
            let Came { len, from, to } = match came {
                Ok(Ok(came)) => came,
                Ok(Err(error)) => {
                    tracing::debug!("[{}] receiving: {error}", origin.inbound);
                    continue;
                }
                Err(_) => continue,
            };
            let known = clients.get(from, Instant::now());
            // Whose first datagram was not our own does not become one of us later.
            let asks = if known.is_some() { None } else { Some(from) };
            let to = match self.checked(to, listener, asks, Network::Udp) {
                Ok(to) => to,
                Err(error) => {
                    if let Some(kept) = quiet.pass() {
                        let origin = Origin {
                            source: Some(from),
                            ..origin.clone()
                        };
                        tracing::debug!("[{}] a datagram was refused{kept}", origin.inbound);
                        dispatcher.rejected(&origin, &error);
                    }
                    continue;
                }
            };
            let Some(mut datagram) = room.keep(&buffer[..len], to.clone()) else {
                continue;
            };
            if let Some((flow, asked)) = known {
                asked.note(&to);
                match flow.push(datagram) {
                    None => continue,
                    Some(back) => datagram = back,
                }
            }
            let asked = Arc::new(Asked::default());
            let to_client = ToClient::new(Arc::clone(&answers), from, &to, Arc::clone(&asked));
            let reply = Reply::Sealed(Arc::new(to_client));
            let (flow, near) = Flow::begin(datagram, reply, traffic.clone());
            clients.put(from, (flow, asked), Instant::now());
            let request = Request::Packets {
                near,
                user: Arc::clone(&self.anyone),
            };
            let origin = Origin {
                source: Some(from),
                ..origin.clone()
            };
            let dispatcher = Arc::clone(&dispatcher);
            tokio::spawn(about_new(async move { dispatcher.serve(&origin, request).await }));
        }
    }
}

impl Protocol for Transparent {
    /// Nothing is read: the system knows the target.
    fn take<'a>(&'a self, mut fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(async move {
            fresh.stream.trust();
            Ok(Request::Stream {
                to: self.target(&fresh)?,
                near: Box::new(fresh.stream),
                user: Arc::clone(&self.anyone),
            })
        })
    }

    fn serve_datagrams<'a>(&'a self, datagrams: Datagrams) -> Pending<'a, ()> {
        Box::pin(self.serve(datagrams))
    }
}
