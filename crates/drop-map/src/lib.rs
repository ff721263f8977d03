//! Ports that the router of this network leads to this machine, for a direct path of the file drop.
//!
//! The router is asked by PCP (RFC 6887) and, where it does not know that, by NAT-PMP (RFC 6886), and beside them by UPnP; who
//! answers first counts. What it says is not authenticated: anybody on the network may answer, and lead the other end to an address of
//! theirs, where the secrets of the session are asked for as anywhere.

#![forbid(unsafe_code)]

mod route;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::num::NonZeroU16;
use std::time::Duration;

use crab_nat::{InternetProtocol, PortMapping, PortMappingOptions, PortMappingType, TimeoutConfig, natpmp};
use igd_next::aio::Gateway;
use igd_next::aio::tokio::{Tokio, search_gateway};
use igd_next::{PortMappingProtocol, SearchOptions};
use sealway_drop::link::direct::{Mapped, Mapper};
use tokio::runtime::{Builder, Runtime};

/// How long a router keeps a port that is not given back.
const LEASE: Duration = Duration::from_secs(2 * 3600);

/// How long a router may take to open a port, all ways together.
const ASKING: Duration = Duration::from_secs(4);

/// How long giving it back may take.
const ENDING: Duration = Duration::from_millis(500);

/// How often an end that is told to stop looks.
const TICK: Duration = Duration::from_millis(50);

/// What the port is for, in the lists of routers.
const NAME: &str = "sealway";

/// Asks the router of the network that this machine is in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Router;

impl Mapper for Router {
    fn map(&self, port: u16, stop: &dyn Fn() -> bool) -> Option<Mapped> {
        let port = NonZeroU16::new(port)?;
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let stopped = async {
            while !stop() {
                tokio::time::sleep(TICK).await;
            }
        };
        let (address, open) = runtime.block_on(async {
            tokio::select! {
                opened = tokio::time::timeout(ASKING, open(port)) => opened.ok().flatten(),
                () = stopped => None,
            }
        })?;
        tracing::debug!(by = open.name(), "the router leads a port here");
        let lasts = Lasts {
            runtime,
            open: Some(open),
        };
        Some(Mapped {
            address,
            lasts: Box::new(lasts),
        })
    }
}

/// A port that is open.
enum Open {
    Asked(Box<PortMapping>),
    Upnp(Box<Gateway<Tokio>>, u16),
}

impl Open {
    fn name(&self) -> &'static str {
        match self {
            Open::Asked(mapping) => match mapping.mapping_type() {
                PortMappingType::NatPmp => "NAT-PMP",
                PortMappingType::Pcp { .. } => "PCP",
            },
            Open::Upnp(..) => "UPnP",
        }
    }

    async fn close(self) {
        match self {
            Open::Asked(mapping) => drop(mapping.try_drop().await),
            Open::Upnp(gateway, port) => drop(gateway.remove_port(PortMappingProtocol::TCP, port).await),
        }
    }
}

/// Gives the port back when it is dropped.
struct Lasts {
    runtime: Runtime,
    open: Option<Open>,
}

impl Drop for Lasts {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            // A router that does not answer forgets it by itself.
            let _ = self
                .runtime
                .block_on(async { tokio::time::timeout(ENDING, open.close()).await });
        }
    }
}

/// The first way that works.
async fn open(port: NonZeroU16) -> Option<(SocketAddr, Open)> {
    let (asked, upnp) = (by_asking(port), by_upnp(port));
    tokio::pin!(asked, upnp);
    tokio::select! {
        Some(opened) = &mut asked => Some(opened),
        Some(opened) = &mut upnp => Some(opened),
        else => None,
    }
}

/// By PCP, or else NAT-PMP, of the router that the default route leads to.
async fn by_asking(port: NonZeroU16) -> Option<(SocketAddr, Open)> {
    let gateway = route::gateway()?;
    let own = towards(gateway)?;
    let timeouts = TimeoutConfig {
        initial_timeout: Duration::from_millis(250),
        max_retries: 2,
        max_retry_timeout: Some(Duration::from_secs(1)),
    };
    let options = PortMappingOptions {
        lifetime_seconds: u32::try_from(LEASE.as_secs()).ok(),
        timeout_config: Some(timeouts),
        ..PortMappingOptions::default()
    };
    let mapping = PortMapping::new(gateway.into(), own.into(), InternetProtocol::Tcp, port, options).await;
    let mapping = mapping
        .inspect_err(|error| tracing::debug!(%error, "neither PCP nor NAT-PMP"))
        .ok()?;
    let ip = match mapping.mapping_type() {
        PortMappingType::Pcp { external_ip, .. } => external_ip,
        PortMappingType::NatPmp => natpmp::external_address(gateway.into(), Some(timeouts))
            .await
            .ok()?
            .into(),
    };
    let address = SocketAddr::new(ip, mapping.external_port().get());
    Some((address, Open::Asked(Box::new(mapping))))
}

async fn by_upnp(port: NonZeroU16) -> Option<(SocketAddr, Open)> {
    let gateway = search_gateway(searching()).await;
    let gateway = gateway.inspect_err(|error| tracing::debug!(%error, "no UPnP")).ok()?;
    let IpAddr::V4(router) = gateway.addr.ip() else {
        return None;
    };
    let own = SocketAddrV4::new(towards(router)?, port.get()).into();
    let lease = u32::try_from(LEASE.as_secs()).ok()?;
    let address = gateway
        .get_any_address(PortMappingProtocol::TCP, own, lease, NAME)
        .await;
    let address = address
        .inspect_err(|error| tracing::debug!(%error, "UPnP opens no port"))
        .ok()?;
    Some((address, Open::Upnp(Box::new(gateway), address.port())))
}

fn searching() -> SearchOptions {
    let mut options = SearchOptions::default();
    options.timeout = Some(ASKING);
    options
}

/// The address of this machine by which it speaks to another. No packet is sent.
fn towards(other: Ipv4Addr) -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((other, crab_nat::GATEWAY_PORT)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(own) => Some(own),
        IpAddr::V6(_) => None,
    }
}
