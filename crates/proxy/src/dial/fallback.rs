//! Reaching who answers strangers.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use sealway_net::sock::Sock;
use sealway_v2ray::Network;

use super::{connect_any, connect_to, connect_unix, resolve, unix_name};
use crate::Error;
use crate::loops::Listener;
use crate::settings::{DomainStrategy, FallbackDial, SocketOptions};

/// A target as the configuration writes it.
pub(crate) fn name(to: &FallbackDial) -> String {
    match to {
        FallbackDial::Tcp(host, port) => format!("{host}:{port}"),
        FallbackDial::Local(port) => format!("{port}"),
        FallbackDial::Unix(name) => unix_name(name),
    }
}

/// Where it may be.
pub(crate) async fn addresses(to: &FallbackDial) -> Result<Vec<SocketAddr>, Error> {
    match to {
        FallbackDial::Tcp(host, port) => resolve(host, *port, DomainStrategy::default()).await,
        FallbackDial::Local(port) => Ok(vec![
            SocketAddr::from((Ipv4Addr::LOCALHOST, *port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, *port)),
        ]),
        FallbackDial::Unix(_) => Ok(Vec::new()),
    }
}

/// Connects to the web server, which must not be the inbound itself: there the stranger would be one again.
pub(crate) async fn dial(
    to: &FallbackDial,
    listener: Option<SocketAddr>,
    options: &SocketOptions,
) -> Result<Sock, Error> {
    dial_at(to, addresses(to).await?, listener, options).await
}

/// The same at these addresses.
pub(crate) async fn dial_at(
    to: &FallbackDial,
    mut addresses: Vec<SocketAddr>,
    listener: Option<SocketAddr>,
    options: &SocketOptions,
) -> Result<Sock, Error> {
    if let FallbackDial::Unix(name) = to {
        return connect_unix(name);
    }
    let itself = listener.map(|address| Listener {
        address,
        network: Network::Tcp,
        v6_only: false,
    });
    let found = addresses.first().copied();
    addresses.retain(|&to| itself.is_none_or(|itself| !itself.is_at(to)));
    if let (Some(found), true) = (found, addresses.is_empty()) {
        return Err(Error::forbidden(
            &found,
            "the guard against loops: a fallback may not lead to its own inbound",
        ));
    }
    // Not beside each other at first: what listens on the second may be something else.
    if let (FallbackDial::Local(_), Some(&first)) = (to, addresses.first())
        && let Ok(sock) = connect_to(first, options, None).await
    {
        return Ok(sock);
    }
    connect_any(&addresses, options, None).await
}
