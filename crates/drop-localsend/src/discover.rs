//! Who is around: announcements to and from the groups, one socket an interface and family, and answers to them.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use sealway_drop::lock;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol as Layer, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::message::{Info, MAX_DATAGRAM, PORT, Protocol};
use crate::node::Node;
use crate::stream::Place;

const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 167);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0xfd3a, 0xe420);
/// When an announcement is said: datagrams get lost.
const BURST: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1500),
];
/// How often the interfaces are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// Devices that are answered at a time, and the least time between two answers to one.
const ANSWERS: usize = 16;
const AGAIN: Duration = Duration::from_secs(1);
/// Answers that are remembered for that.
const RECENT: usize = 256;
/// Interfaces whose neighbours are asked one by one, and how many at a time.
const SCANNED: usize = 3;
const SCANS: usize = 50;
const SCAN_PATIENCE: Duration = Duration::from_millis(800);

/// An interface with its networks.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Interface {
    index: u32,
    name: String,
    /// Addresses with the lengths of their networks' prefixes.
    networks: Vec<(IpAddr, u8)>,
}

impl Interface {
    /// Whether an address is that of a neighbour: nobody else is answered.
    fn is_near(&self, address: IpAddr) -> bool {
        let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        link_local || self.networks.iter().any(|(own, bits)| is_within(address, *own, *bits))
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            (a.to_bits() ^ b.to_bits()) & mask == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            (a.to_bits() ^ b.to_bits()) & mask == 0
        }
        _ => false,
    }
}

/// The interfaces that multicast goes through.
fn interfaces() -> Result<Vec<Interface>, nix::Error> {
    let mut found: HashMap<String, Interface> = HashMap::new();
    for one in getifaddrs()? {
        let wanted = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_MULTICAST;
        if !one.flags.contains(wanted) || one.flags.contains(InterfaceFlags::IFF_LOOPBACK) {
            continue;
        }
        let Ok(index) = if_nametoindex(one.interface_name.as_str()) else {
            continue;
        };
        let (Some(address), Some(mask)) = (one.address, one.netmask) else {
            continue;
        };
        let network = match (address.as_sockaddr_in(), mask.as_sockaddr_in()) {
            (Some(address), Some(mask)) => Some((IpAddr::V4(address.ip()), mask.ip().to_bits().count_ones())),
            _ => match (address.as_sockaddr_in6(), mask.as_sockaddr_in6()) {
                (Some(address), Some(mask)) => Some((IpAddr::V6(address.ip()), mask.ip().to_bits().count_ones())),
                _ => None,
            },
        };
        let Some((address, bits)) = network else { continue };
        let interface = found.entry(one.interface_name.clone()).or_insert_with(|| Interface {
            index,
            name: one.interface_name,
            networks: vec![],
        });
        interface
            .networks
            .push((address, u8::try_from(bits).unwrap_or_default()));
    }
    Ok(found.into_values().collect())
}

/// A socket that hears the group on this interface and on no other.
fn open(interface: &Interface, v6: bool) -> io::Result<UdpSocket> {
    let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Layer::UDP))?;
    // The app may be running here too.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    let index = interface.index;
    if v6 {
        socket.set_only_v6(true)?;
        socket.set_multicast_all_v6(false)?;
        socket.set_multicast_hops_v6(1)?;
        socket.set_multicast_loop_v6(true)?;
        socket.set_multicast_if_v6(index)?;
        socket.join_multicast_v6(&GROUP_V6, index)?;
        socket.bind(&SocketAddrV6::new(GROUP_V6, PORT, 0, index).into())?;
    } else {
        socket.set_multicast_all_v4(false)?;
        socket.set_multicast_ttl_v4(1)?;
        socket.set_multicast_loop_v4(true)?;
        let first = interface.networks.iter().find_map(|(address, _)| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        socket.join_multicast_v4_n(&GROUP_V4, &InterfaceIndexOrAddress::Index(index))?;
        socket.set_multicast_if_v4(&first.unwrap_or(Ipv4Addr::UNSPECIFIED))?;
        socket.bind(&SocketAddr::from((GROUP_V4, PORT)).into())?;
    }
    UdpSocket::from_std(socket.into())
}

/// Announces this end and answers others, for as long as the node stands.
pub(crate) async fn run(node: Arc<Node>) {
    let answers = Arc::new(Semaphore::new(ANSWERS));
    let mut sockets: HashMap<(Interface, bool), (Arc<UdpSocket>, tokio::task::AbortHandle)> = HashMap::new();
    let mut tasks = JoinSet::new();
    let mut warned = std::collections::HashSet::new();
    loop {
        let found = match interfaces() {
            Ok(found) => found,
            Err(error) => {
                if warned.insert(String::new()) {
                    node.warn(&format!(
                        "the network interfaces cannot be listed, so no device is found: {error}"
                    ));
                }
                vec![]
            }
        };
        sockets.retain(|(interface, _), (_, task)| {
            let stays = found.contains(interface);
            if !stays {
                task.abort();
            }
            stays
        });
        let mut new = Vec::new();
        for interface in found {
            for v6 in [false, true] {
                let has = interface.networks.iter().any(|(address, _)| address.is_ipv6() == v6);
                let key = (interface.clone(), v6);
                if !has || sockets.contains_key(&key) {
                    continue;
                }
                match open(&interface, v6) {
                    Ok(socket) => {
                        let socket = Arc::new(socket);
                        let task = tasks.spawn(hear(node.clone(), interface.clone(), socket.clone(), answers.clone()));
                        new.push(socket.clone());
                        sockets.insert(key, (socket, task));
                    }
                    // One odd interface is no reason to be deaf on the others.
                    Err(error) => {
                        if warned.insert(format!("{}{v6}", interface.name)) {
                            node.warn(&format!("{}: no devices are found there: {error}", interface.name));
                        }
                    }
                }
            }
        }
        if !new.is_empty() {
            tasks.spawn(burst(node.clone(), new));
        }
        let look = tokio::time::sleep(LOOK);
        tokio::pin!(look);
        loop {
            tokio::select! {
                () = &mut look => break,
                () = node.announce.notified() => {
                    let all = sockets.values().map(|(socket, _)| socket.clone()).collect();
                    tasks.spawn(burst(node.clone(), all));
                }
                Some(_) = tasks.join_next() => {}
            }
        }
    }
}

/// Announces this end a few times.
async fn burst(node: Arc<Node>, sockets: Vec<Arc<UdpSocket>>) {
    let said = Info {
        announce: Some(true),
        announcement: Some(true),
        ..node.info().clone()
    }
    .write();
    for pause in BURST {
        tokio::time::sleep(pause).await;
        for socket in &sockets {
            let group: SocketAddr = match socket.local_addr() {
                Ok(own) if own.is_ipv6() => own,
                _ => (GROUP_V4, PORT).into(),
            };
            // An interface that is gone is noticed elsewhere.
            let _ = socket.send_to(&said, group).await;
        }
    }
}

/// Hears what comes to one socket.
async fn hear(node: Arc<Node>, interface: Interface, socket: Arc<UdpSocket>, answers: Arc<Semaphore>) {
    let mut buffer = vec![0; MAX_DATAGRAM + 1];
    loop {
        let Ok((len, mut from)) = socket.recv_from(&mut buffer).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let datagram = buffer.get(..len).filter(|datagram| datagram.len() <= MAX_DATAGRAM);
        let Some(info) = datagram.and_then(|datagram| Info::read(datagram).ok()) else {
            continue;
        };
        from.set_ip(from.ip().to_canonical());
        if node.is_own(&info) || !interface.is_near(from.ip()) {
            continue;
        }
        heard(&node, info, from, &answers);
    }
}

/// A device announced itself: it is told of this end over a connection on which it shows the certificate that it claims, and only
/// then it is taken down (CVE-2025-54792).
fn heard(node: &Arc<Node>, info: Info, from: SocketAddr, answers: &Arc<Semaphore>) {
    let mut address = from;
    address.set_port(info.port.unwrap_or(PORT));
    if address.port() == 0 {
        return;
    }
    if info.protocol == Some(Protocol::Http) {
        // Nothing shows who that is.
        node.hear(info, from, None);
        return;
    }
    let Some(claimed) = info.claimed() else { return };
    let now = Instant::now();
    {
        let mut recent = lock(&node.recent);
        recent.retain(|_, at| now.saturating_duration_since(*at) < AGAIN);
        if recent.len() >= RECENT || recent.contains_key(&(claimed, from.ip())) {
            return;
        }
        recent.insert((claimed, from.ip()), now);
    }
    let Ok(turn) = answers.clone().try_acquire_owned() else {
        return;
    };
    let node = node.clone();
    tokio::spawn(async move {
        let _turn = turn;
        let place = Place {
            address,
            protocol: Protocol::Https,
            pin: Some(claimed),
        };
        // One that does not answer so is not there.
        let _ = node.register(&place, "").await;
    });
}

/// Asks every address of the own networks, a few at a time, for devices that hear no announcements. Only those at the port of this
/// end are found, as in the app.
pub async fn scan(node: &Arc<Node>) {
    let mut hosts = Vec::new();
    for interface in interfaces().unwrap_or_default().into_iter().take(SCANNED) {
        for (address, _) in interface.networks {
            if let IpAddr::V4(own) = address {
                let [a, b, c, d] = own.octets();
                hosts.extend(
                    (1..255)
                        .filter(|last| *last != d)
                        .map(|last| Ipv4Addr::new(a, b, c, last)),
                );
            }
        }
    }
    let mut asking = JoinSet::new();
    for host in hosts {
        if asking.len() >= SCANS {
            asking.join_next().await;
        }
        let node = node.clone();
        asking.spawn(async move {
            let place = Place {
                address: (host, PORT).into(),
                protocol: node.protocol(),
                pin: None,
            };
            let _ = tokio::time::timeout(SCAN_PATIENCE, node.register(&place, "")).await;
        });
    }
    while asking.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbours_are_answered() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let interface = Interface {
            networks: vec![(at("10.1.2.3"), 20), (at("2001:db8::1"), 64)],
            ..Interface::default()
        };
        for (address, near) in [
            ("10.1.15.255", true),
            ("10.1.16.0", false),
            ("192.168.1.1", false),
            ("fe80::1", true),
            ("2001:db8::ffff", true),
            ("2001:db8:0:1::1", false),
        ] {
            assert_eq!(interface.is_near(at(address)), near, "{address}");
        }
        assert!(is_within(at("1.2.3.4"), at("9.9.9.9"), 0));
        assert!(!is_within(at("1.2.3.4"), at("1.2.3.5"), 32));
    }
}
