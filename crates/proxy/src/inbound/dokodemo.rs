//! One target for everything that comes in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sealway_net::sock::unmapped;
use sealway_v2ray::{Address, Destination, Network};
use tokio::time::Instant;

use super::local::{Flow, Reply, Room};
use super::{Datagrams, Fresh, Protocol, Users};
use crate::dispatch::{Origin, Request, User};
use crate::error::{Error, Pending};
use crate::log::about_new;
use crate::settings;

/// Clients of a UDP port that are served at once.
const MAX_CLIENTS: usize = 4096;
/// Ended clients are looked for this often at most, when there is no room for new ones.
const SWEEP: Duration = Duration::from_secs(1);

/// A door to one target.
pub(super) struct Dokodemo {
    settings: settings::Dokodemo,
    anyone: Arc<User>,
}

impl Dokodemo {
    pub(super) fn new(settings: &settings::Dokodemo, users: &Users<'_>) -> Self {
        Dokodemo {
            settings: settings.clone(),
            anyone: users.anyone(settings.level),
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
        let target = target(&self.settings, Network::Udp, socket.local_addr().ok());
        let mut clients: HashMap<SocketAddr, Flow> = HashMap::new();
        let room = Room::new();
        let mut swept: Option<Instant> = None;
        let mut buffer = vec![0; 65_535];
        loop {
            let (len, client) = match socket.recv_from(&mut buffer).await {
                Ok(received) => received,
                Err(error) => {
                    tracing::debug!("[{}] receiving: {error}", origin.inbound);
                    continue;
                }
            };
            let Some(mut datagram) = room.keep(&buffer[..len], target.clone()) else {
                continue;
            };
            if let Some(flow) = clients.get(&client) {
                match flow.push(datagram) {
                    None => continue,
                    Some(back) => datagram = back,
                }
            }
            if clients.len() >= MAX_CLIENTS {
                // Looking through all of them for every stranger would be work that strangers can order.
                if swept.is_none_or(|last| last.elapsed() >= SWEEP) {
                    clients.retain(|_, flow| !flow.is_over());
                    swept = Some(Instant::now());
                }
                if clients.len() >= MAX_CLIENTS {
                    continue;
                }
            }
            let reply = Reply::Plain(Arc::clone(&socket), client);
            let (flow, near) = Flow::begin(datagram, reply, traffic.clone());
            clients.insert(client, flow);
            let request = Request::Datagrams {
                near,
                to: target.clone(),
                user: Arc::clone(&self.anyone),
            };
            let origin = Origin {
                source: Some(unmapped(client)),
                ..origin.clone()
            };
            let dispatcher = Arc::clone(&dispatcher);
            tokio::spawn(about_new(async move { dispatcher.serve(&origin, request).await }));
        }
    }
}

impl Protocol for Dokodemo {
    /// Nothing is read: the target is known.
    fn take<'a>(&'a self, mut fresh: Fresh) -> Pending<'a, Request> {
        Box::pin(async move {
            fresh.stream.trust();
            Ok(Request::Stream {
                to: target(&self.settings, Network::Tcp, fresh.listener),
                near: Box::new(fresh.stream),
                user: Arc::clone(&self.anyone),
            })
        })
    }

    fn serve_datagrams<'a>(&'a self, datagrams: Datagrams) -> Pending<'a, ()> {
        Box::pin(self.serve(datagrams))
    }
}

fn target(settings: &settings::Dokodemo, network: Network, listener: Option<SocketAddr>) -> Destination {
    let address = settings.address.clone().unwrap_or_else(|| match listener {
        Some(SocketAddr::V6(_)) => Address::from(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        _ => Address::from(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    });
    // Without either it can lead to a service of this program only. That nothing is sent to our own listeners is for whoever dials.
    let port = match (settings.port, listener) {
        (0, Some(listener)) => listener.port(),
        (port, _) => port,
    };
    Destination { network, address, port }
}
