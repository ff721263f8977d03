//! One target for everything that comes in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::{Address, Destination, Network};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Fresh, Inbound, Taken, UserRecord};
use crate::Error;
use crate::engine::Engine;
use crate::settings::Dokodemo;
use crate::sock::unmapped;
use crate::udp::{Datagram, Muted, PacketEnd, Reply, Room};

/// Clients of a UDP port that are served at once.
pub(crate) const MAX_CLIENTS: usize = 4096;
/// Ended clients are looked for this often at most, when there is no room for new ones.
const SWEEP: Duration = Duration::from_secs(1);
/// Datagrams of one client that may wait. More are dropped, as a full socket would.
pub(crate) const QUEUE: usize = 128;

/// The target of a listener.
fn target(settings: &Dokodemo, network: Network, listener: Option<SocketAddr>) -> Result<Destination, Error> {
    let address = settings.address.clone().unwrap_or_else(|| match listener {
        Some(SocketAddr::V6(_)) => Address::from(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        _ => Address::from(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    });
    let port = match (settings.port, listener) {
        (0, Some(listener)) => listener.port(),
        (0, None) => {
            return Err(Error::config(
                "dokodemo-door",
                "needs a port, for the listener has none",
            ));
        }
        (port, _) => port,
    };
    // A target that is the listener itself would connect to itself until nothing is left.
    if let (Some(listener), Some(ip)) = (listener, address.ip())
        && listener.port() == port
        && (listener.ip() == ip || ip.is_loopback() && listener.ip().is_unspecified())
    {
        return Err(Error::Forbidden {
            target: format!("{ip}:{port}"),
            rule: "the guard against loops: a dokodemo-door may not lead to itself",
        });
    }
    Ok(Destination { network, address, port })
}

/// Nothing is read: the target is known.
pub(crate) fn take(fresh: Fresh, settings: &Dokodemo, user: Arc<UserRecord>) -> Result<Taken, Error> {
    Ok(Taken::Stream {
        to: target(settings, Network::Tcp, fresh.listener)?,
        near: Box::new(fresh.accepted.stream),
        user,
    })
}

/// Serves a UDP port until the server stops: one association a client address.
pub(crate) async fn serve_udp(engine: Arc<Engine>, inbound: Arc<Inbound>, settings: Dokodemo, socket: Arc<UdpSocket>) {
    let target = match target(&settings, Network::Udp, socket.local_addr().ok()) {
        Ok(target) => target,
        Err(error) => return tracing::error!("[{}] {error}", inbound.tag),
    };
    let mut clients: HashMap<SocketAddr, mpsc::Sender<Datagram>> = HashMap::new();
    let room = Room::new();
    let mut swept: Option<Instant> = None;
    let mut buffer = vec![0; 65_535];
    loop {
        let (len, client) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!("[{}] receiving: {error}", inbound.tag);
                continue;
            }
        };
        let Some(mut datagram) = room.keep(&buffer[..len], target.clone()) else {
            continue;
        };
        if let Some(queue) = clients.get(&client) {
            match queue.try_send(datagram) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => continue,
                Err(mpsc::error::TrySendError::Closed(back)) => datagram = back,
            }
        }
        if clients.len() >= MAX_CLIENTS {
            // Looking through all of them for every stranger would be work that strangers can order.
            if swept.is_none_or(|last| last.elapsed() >= SWEEP) {
                clients.retain(|_, queue| !queue.is_closed());
                swept = Some(Instant::now());
            }
            if clients.len() >= MAX_CLIENTS {
                continue;
            }
        }
        let (queue, waiting) = mpsc::channel(QUEUE);
        let near = PacketEnd::Local(
            waiting,
            Reply::Plain(Arc::clone(&socket), client),
            inbound.traffic.clone(),
            Muted::default(),
        );
        let _ = queue.try_send(datagram);
        clients.insert(client, queue);
        let taken = Taken::Datagrams {
            near: Box::new(near),
            to: target.clone(),
            user: Arc::clone(&inbound.anyone),
        };
        let source = unmapped(client);
        let (engine, inbound) = (Arc::clone(&engine), Arc::clone(&inbound));
        let local = socket.local_addr().ok();
        tokio::spawn(async move { engine.carry_on(&inbound, taken, Some(source), local).await });
    }
}
