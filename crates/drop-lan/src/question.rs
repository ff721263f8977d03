//! A question to everybody on the links of this machine, answered to this end alone (RFC 6762 sections 5.1 and 6.7).
//!
//! Who has just announced itself says so to all again after a second at the earliest, whoever asks (section 6). A question from a port
//! of its own is answered at once, and past what keeps multicast from coming through in one direction.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::{Name, RData, Record};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use socket2::SockRef;

use crate::near::{Network, network};
use crate::{Error, MDNS_PORT, SERVICE};

const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);
/// When it is asked, from the beginning on: datagrams get lost, and the other end may come up at the same time.
const ASKED: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_millis(1500),
];
/// Most interfaces that are asked on, IPv4 and IPv6 apart.
const MAX_LINKS: usize = 32;
/// Longest message of multicast DNS (section 17).
const MAX_DATAGRAM: usize = 9000;
/// Most datagrams that one look at one socket takes.
const MAX_DATAGRAMS: usize = 16;
/// Answers after which a look ends. What is left stays with the sockets until the next one.
const ENOUGH: usize = 64;
/// Most ends of one datagram that count.
const MAX_ENDS: usize = 16;

/// An end that answered, whoever it is.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    /// The name that it announces itself under.
    pub(crate) name: String,
    pub(crate) port: u16,
    /// Each with the number of the interface that the answer came by.
    pub(crate) addresses: Vec<(IpAddr, u32)>,
    /// Strings of the form `key=value`.
    text: Vec<Box<[u8]>>,
}

impl Answer {
    /// What it says of this.
    pub(crate) fn value(&self, key: &str) -> Option<&[u8]> {
        let mut entries = self.text.iter();
        entries.find_map(|entry| entry.strip_prefix(key.as_bytes())?.strip_prefix(b"="))
    }
}

/// A socket for one family of one interface.
struct Link {
    socket: UdpSocket,
    group: SocketAddr,
    interface: u32,
    /// Those of its family that the interface is in.
    networks: Vec<Network>,
}

impl Link {
    /// Whether this is a responder on this link: nobody else is listened to (section 11).
    fn has(&self, from: SocketAddr) -> bool {
        let is_here = match from {
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => v6.scope_id() == self.interface,
            _ => self.networks.iter().any(|network| network.has(from.ip())),
        };
        is_here && from.port() == MDNS_PORT
    }
}

/// The question who waits, asked again a few times.
pub(crate) struct Question {
    id: u16,
    links: Vec<Link>,
    began: Instant,
    asked: usize,
}

impl Question {
    /// A question on all interfaces that announcements go through: no loopback, no point-to-point links such as VPNs. One that cannot
    /// be asked on is left out.
    pub(crate) fn new() -> Result<Question, Error> {
        let mut id = [0; 2];
        getrandom::fill(&mut id).map_err(Error::Random)?;
        Ok(Question {
            id: u16::from_be_bytes(id),
            links: links(),
            began: Instant::now(),
            asked: 0,
        })
    }

    /// Who has answered since the last look, not many more than [`ENOUGH`]. Asks again if it is time.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        if ASKED.get(self.asked).is_some_and(|due| self.began.elapsed() >= *due) {
            self.asked += 1;
            self.ask();
        }
        // Another link comes first each time, so that a busy one does not hold the others up.
        if !self.links.is_empty() {
            self.links.rotate_left(1);
        }
        let mut answers = Vec::new();
        for link in &self.links {
            self.take(link, &mut answers);
        }
        answers
    }

    fn ask(&self) {
        let question = question(self.id);
        for link in &self.links {
            if let Err(error) = link.socket.send_to(&question, link.group) {
                tracing::debug!(%error, interface = link.interface, "nobody was asked there");
            }
        }
    }

    fn take(&self, link: &Link, answers: &mut Vec<Answer>) {
        let mut buffer = [0; MAX_DATAGRAM];
        for _ in 0..MAX_DATAGRAMS {
            if answers.len() >= ENOUGH {
                return;
            }
            let Ok((len, from)) = link.socket.recv_from(&mut buffer) else {
                return;
            };
            if link.has(from) {
                answers.extend(read(&buffer[..len], self.id, link.interface));
            }
        }
    }
}

/// Whether this end asks on an interface: where it would announce itself, too, and the other end does. Nobody at the far end of a VPN
/// is told that somebody looks here.
fn is_asked(name: &str, flags: InterfaceFlags) -> bool {
    let wanted = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_MULTICAST;
    let unwanted = InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_POINTOPOINT;
    // Apple's links between devices side by side.
    let is_apples = ["awdl", "llw"].iter().any(|prefix| name.starts_with(prefix));
    flags.contains(wanted) && !flags.intersects(unwanted) && !is_apples
}

/// A socket for each interface and family that is asked.
fn links() -> Vec<Link> {
    let mut found: BTreeMap<(u32, bool), (IpAddr, Vec<Network>)> = BTreeMap::new();
    let interfaces = getifaddrs().into_iter().flatten();
    for one in interfaces.filter(|one| is_asked(&one.interface_name, one.flags)) {
        let (Ok(index), Some(address)) = (if_nametoindex(one.interface_name.as_str()), one.address) else {
            continue;
        };
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        if let Some(ip) = v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip()))) {
            let of_link = found.entry((index, ip.is_ipv6())).or_insert((ip, Vec::new()));
            of_link.1.extend(network(&one));
        }
    }
    let links = found.into_iter().take(MAX_LINKS);
    let links = links.filter_map(|((index, _), (ip, networks))| link(index, ip, networks).ok());
    links.collect()
}

fn link(interface: u32, own: IpAddr, networks: Vec<Network>) -> std::io::Result<Link> {
    let (socket, group) = match own {
        IpAddr::V4(own) => {
            let socket = UdpSocket::bind((own, 0))?;
            SockRef::from(&socket).set_multicast_if_v4(&own)?;
            (socket, SocketAddr::from((GROUP_V4, MDNS_PORT)))
        }
        IpAddr::V6(_) => {
            let group = SocketAddrV6::new(GROUP_V6, MDNS_PORT, 0, interface);
            (UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?, group.into())
        }
    };
    socket.set_nonblocking(true)?;
    Ok(Link {
        socket,
        group,
        interface,
        networks,
    })
}

/// The question for all records of type PTR that the service's name has.
fn question(id: u16) -> Vec<u8> {
    let mut datagram = id.to_be_bytes().to_vec();
    // No flags, one question, and none of the other records.
    datagram.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in SERVICE.split_terminator('.') {
        datagram.push(u8::try_from(label.len()).unwrap_or(0));
        datagram.extend(label.as_bytes());
    }
    // The root; PTR, Internet.
    datagram.extend([0, 0, 12, 0, 1]);
    datagram
}

/// The ends that one datagram tells of, if it answers our question.
fn read(datagram: &[u8], id: u16, interface: u32) -> Vec<Answer> {
    let Ok(message) = Message::from_vec(datagram) else {
        return Vec::new();
    };
    if message.metadata.id != id || message.metadata.message_type != MessageType::Response {
        return Vec::new();
    }
    let records: Vec<&Record> = message.answers.iter().chain(&message.additionals).collect();
    let ends = records.iter().filter_map(|record| match &record.data {
        RData::PTR(end) if record.name.to_string().eq_ignore_ascii_case(SERVICE) => Some(&end.0),
        _ => None,
    });
    let answer = |end: &Name| {
        let of_end = || records.iter().filter(|record| record.name == *end);
        let service = of_end().find_map(|record| match &record.data {
            RData::SRV(service) => Some(service),
            _ => None,
        })?;
        let text = of_end().find_map(|record| match &record.data {
            RData::TXT(text) => Some(text.txt_data.to_vec()),
            _ => None,
        })?;
        let of_host = records.iter().filter(|record| record.name == service.target);
        let addresses = of_host.filter_map(|record| Some((record.data.ip_addr()?, interface)));
        Some(Answer {
            name: end.to_string(),
            port: service.port,
            addresses: addresses.collect(),
            text,
        })
    };
    ends.take(MAX_ENDS).filter_map(answer).collect()
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::OpCode;
    use hickory_proto::rr::RecordType;
    use hickory_proto::rr::rdata::{A, AAAA, PTR, SRV, TXT};

    use super::*;

    const ID: u16 = 0xabcd;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn record(of: &str, data: RData) -> Record {
        Record::from_rdata(name(of), 10, data)
    }

    fn pointer(service: &str, end: &str) -> Record {
        record(service, RData::PTR(PTR(name(end))))
    }

    /// What is said of an end beside its name.
    fn details(end: &str, port: u16) -> Vec<Record> {
        vec![
            record(end, RData::SRV(SRV::new(0, 0, port, name("host.local.")))),
            record(
                end,
                RData::TXT(TXT::from_bytes(vec![b"txtvers=1", b"nn=8", b"n=7", b"s=\xff\x00"])),
            ),
            record("host.local.", RData::A(A::new(10, 77, 0, 1))),
            record("host.local.", RData::AAAA(AAAA::new(0xfe80, 0, 0, 0, 0, 0, 0, 1))),
            record("other.local.", RData::A(A::new(10, 77, 0, 9))),
        ]
    }

    fn message(answers: Vec<Record>, additionals: Vec<Record>) -> Vec<u8> {
        let mut message = Message::new(ID, MessageType::Response, OpCode::Query);
        (message.answers, message.additionals) = (answers, additionals);
        message.to_vec().unwrap()
    }

    const END: &str = "0123._sealway._tcp.local.";

    #[test]
    fn the_question_is_for_the_service() {
        let asked = Message::from_vec(&question(ID)).unwrap();
        assert_eq!(
            (asked.metadata.id, asked.metadata.message_type),
            (ID, MessageType::Query)
        );
        assert_eq!(asked.queries.len(), 1);
        assert_eq!(asked.queries[0].name(), &name(SERVICE));
        assert_eq!(asked.queries[0].query_type(), RecordType::PTR);
    }

    #[test]
    fn neither_loopback_nor_point_to_point_links_are_asked() {
        let up = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_MULTICAST;
        assert!(is_asked("eth0", up | InterfaceFlags::IFF_BROADCAST));
        for (name, flags) in [
            ("eth0", InterfaceFlags::IFF_UP),
            ("eth0", InterfaceFlags::IFF_MULTICAST),
            ("lo", up | InterfaceFlags::IFF_LOOPBACK),
            ("tun0", up | InterfaceFlags::IFF_POINTOPOINT),
            ("awdl0", up),
            ("llw0", up),
        ] {
            assert!(!is_asked(name, flags), "{name} {flags:?}");
        }
    }

    #[test]
    fn only_responders_on_the_link_itself_are_heard() {
        let link = Link {
            socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            group: (GROUP_V4, MDNS_PORT).into(),
            interface: 3,
            networks: vec![Network::V4 {
                address: Ipv4Addr::new(192, 168, 1, 7).to_bits(),
                mask: u32::MAX << 8,
            }],
        };
        let v4 = |port, last: [u8; 2]| SocketAddr::from(([192, 168, last[0], last[1]], port));
        assert!(link.has(v4(MDNS_PORT, [1, 5])));
        assert!(!link.has(v4(MDNS_PORT, [2, 5])));
        assert!(!link.has(v4(4000, [1, 5])));
        let v6 = |interface| SocketAddr::from(SocketAddrV6::new("fe80::5".parse().unwrap(), MDNS_PORT, 0, interface));
        assert!(link.has(v6(3)));
        assert!(!link.has(v6(2)) && !link.has(v6(0)));
    }

    #[test]
    fn an_answer_says_where_and_what() {
        let datagram = message(vec![pointer("_Sealway._TCP.local.", END)], details(END, 4000));
        let answers = read(&datagram, ID, 3);
        assert_eq!(answers.len(), 1);
        let answer = &answers[0];
        assert_eq!((answer.name.as_str(), answer.port), (END, 4000));
        let addresses = ["10.77.0.1", "fe80::1"].map(|ip| (ip.parse().unwrap(), 3));
        assert_eq!(answer.addresses, addresses);
        assert_eq!(answer.value("n"), Some(&b"7"[..]));
        assert_eq!(answer.value("s"), Some(&b"\xff\x00"[..]));
        assert_eq!(answer.value("t"), None);
        // What answers another question, and what is a question.
        assert!(read(&datagram, ID + 1, 3).is_empty());
        let mut asks = datagram.clone();
        asks[2] &= 0x7f;
        assert!(read(&asks, ID, 3).is_empty());
    }

    #[test]
    fn what_is_broken_or_of_others_is_nothing() {
        let details = || details(END, 4000);
        let whole = message(vec![pointer(SERVICE, END)], details());
        for len in 0..whole.len() {
            assert!(read(&whole[..len], ID, 3).is_empty(), "{len}");
        }
        for (answers, additionals) in [
            (vec![pointer("_other._tcp.local.", END)], details()),
            (vec![pointer(SERVICE, "4567._sealway._tcp.local.")], details()),
            (vec![pointer(SERVICE, END)], details().split_off(1)),
            (vec![], details()),
        ] {
            assert_eq!(read(&message(answers, additionals), ID, 3), []);
        }
        let many = (0..100).map(|_| pointer(SERVICE, END)).collect();
        assert_eq!(read(&message(many, details()), ID, 3).len(), MAX_ENDS);
    }
}
