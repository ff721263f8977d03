//! The rules of the firewall that a configuration's transparent inbounds need.
//!
//! They are only written, for somebody to read and apply: what they do to a machine's network is not undone by the end of a
//! program.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use sealway_v2ray::Network;

use crate::error::Error;
use crate::settings::{Capture, Inbound, Listen, Outbound, OutboundProtocol, Settings};

/// The name of the table that the rules are in.
const TABLE: &str = "sealway";
/// Networks that nothing is led away from: those that are not routed, and those that hosts of a site speak to each other in. The
/// pools of fake addresses are none of them.
const LOCAL: [&str; 2] = [
    "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16, 224.0.0.0/3",
    "::/127, fd00::/8, fe80::/10, ff00::/8",
];

/// What somebody wants of the rules.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// Interfaces that clients are behind. Empty: all.
    pub lan: Vec<String>,
    /// The mark of packets on their way to this machine instead of their target. Not 0.
    pub mark: u32,
    /// The routing table for packets with this mark.
    pub table: u32,
    /// Lead IPv6 to the proxy as well.
    pub ipv6: bool,
    /// Lead connections of this machine's own programs to the proxy as well.
    pub own: bool,
}

/// Commands for a shell, and what is to be known of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// The commands that apply the rules.
    pub apply: String,
    /// Those that undo them.
    pub undo: String,
    /// What would not work, or lead in a circle.
    pub warnings: Vec<String>,
}

/// Where packets of one network and one family are led.
struct Door<'a> {
    inbound: &'a Inbound,
    capture: Capture,
    to: SocketAddr,
    v6: bool,
}

impl Plan {
    /// The rules for these settings.
    ///
    /// # Errors
    /// [`Error::Config`] if nothing in the settings takes what the rules lead to it, or the mark is one of an outbound.
    pub fn new(settings: &Settings, wishes: &Wishes) -> Result<Plan, Error> {
        let families: &[bool] = if wishes.ipv6 { &[false, true] } else { &[false] };
        let doors = |network| -> Vec<Door<'_>> {
            let found = families.iter().filter_map(|&v6| door(settings, network, v6));
            found.collect()
        };
        let (tcp, udp) = (doors(Network::Tcp), doors(Network::Udp));
        if tcp.is_empty() && udp.is_empty() {
            return Err(Error::config(
                "inbounds",
                "none is transparent: add a dokodemo-door with `\"followRedirect\": true` that listens on a port",
            ));
        }
        for (at, outbound) in settings.outbounds.iter().enumerate() {
            if outbound.transport.socket.mark == Some(wishes.mark) {
                let what = format!(
                    "{} is the mark of packets on their way to this machine: choose another one here, or by --mark",
                    wishes.mark
                );
                return Err(Error::config(
                    format!("outbounds[{at}].streamSettings.sockopt.mark"),
                    what,
                ));
            }
        }
        let rules = Rules {
            settings,
            wishes,
            tcp,
            udp,
        };
        Ok(Plan {
            apply: rules.apply(),
            undo: rules.undo(),
            warnings: rules.warnings(),
        })
    }
}

/// The first inbound that takes packets of this network and family which were meant for others.
fn door(settings: &Settings, network: Network, v6: bool) -> Option<Door<'_>> {
    let takes = |inbound: &Inbound| match (network, inbound.protocol.networks()) {
        (Network::Tcp, (tcp, _)) => tcp,
        (Network::Udp, (_, udp)) => udp,
    };
    let transparent = settings.inbounds.iter().filter(|inbound| takes(inbound));
    let mut doors = transparent.filter_map(|inbound| {
        let capture = inbound.protocol.capture()?;
        // Datagrams that are redirected do not say for whom they were.
        let capture = if network == Network::Udp {
            Capture::Tproxy
        } else {
            capture
        };
        let to = inbound.listen.iter().find_map(|listen| {
            let at = match listen {
                Listen::Port(at) => *at,
                Listen::EveryAddress(port) => SocketAddr::from(([0; 16], *port)),
                Listen::Unix(_) => return None,
            };
            let any = at.ip().is_unspecified();
            let takes = at.is_ipv6() == v6 || any && at.is_ipv6() && !inbound.transport.socket.v6_only;
            takes.then_some(at)
        })?;
        Some(Door {
            inbound,
            capture,
            to,
            v6,
        })
    });
    doors.next()
}

impl Door<'_> {
    fn family(&self) -> &'static str {
        if self.v6 { "ip6" } else { "ip" }
    }

    /// The statement that leads packets here.
    fn verdict(&self, mark: u32) -> String {
        let any = self.to.ip().is_unspecified();
        match self.capture {
            Capture::Tproxy if any => format!(
                "tproxy {} to :{} meta mark set {mark} accept",
                self.family(),
                self.to.port()
            ),
            Capture::Tproxy => format!("tproxy {} to {} meta mark set {mark} accept", self.family(), self.to),
            Capture::Redirect if any => format!("redirect to :{}", self.to.port()),
            Capture::Redirect => format!("dnat {} to {}", self.family(), self.to),
        }
    }

    fn is_called(&self) -> String {
        match self.inbound.tag.as_str() {
            "" => format!("the inbound on port {}", self.to.port()),
            tag => format!("the inbound [{tag}]"),
        }
    }
}

/// What the rules are made of.
struct Rules<'a> {
    settings: &'a Settings,
    wishes: &'a Wishes,
    tcp: Vec<Door<'a>>,
    udp: Vec<Door<'a>>,
}

impl Rules<'_> {
    fn doors(&self, capture: Capture) -> impl Iterator<Item = (&'static str, &Door<'_>)> {
        let tcp = self.tcp.iter().map(|door| ("tcp", door));
        let udp = self.udp.iter().map(|door| ("udp", door));
        tcp.chain(udp).filter(move |(_, door)| door.capture == capture)
    }

    fn has(&self, capture: Capture) -> bool {
        self.doors(capture).next().is_some()
    }

    /// Marks of sockets that this program opens itself, in order.
    fn marks(&self) -> Vec<u32> {
        let outbounds = self
            .settings
            .outbounds
            .iter()
            .map(|outbound| &outbound.transport.socket);
        let inbounds = self.settings.inbounds.iter().map(|inbound| &inbound.transport.socket);
        let mut marks: Vec<u32> = outbounds.chain(inbounds).filter_map(|socket| socket.mark).collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }

    /// Whether a rule of the configuration is about the port of DNS, so that questions to it can go anywhere.
    fn answers_dns(&self) -> bool {
        let of_dns = |&(from, to): &(u16, u16)| from <= 53 && 53 <= to && to - from < 1024;
        self.settings.rules.iter().any(|rule| rule.ports.iter().any(of_dns))
    }

    fn apply(&self) -> String {
        let mut out = String::from("# Applies the rules. Run it as root, once the proxy runs.\n");
        out.push_str("nft -f - <<'END'\n");
        // An older table is replaced in one step.
        let _ = writeln!(
            out,
            "table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{"
        );
        for (family, networks) in ["ipv4_addr", "ipv6_addr"].into_iter().zip(LOCAL) {
            let name = if family == "ipv4_addr" { "local4" } else { "local6" };
            let _ = writeln!(
                out,
                "    set {name} {{\n        type {family}\n        flags interval\n        elements = {{ {networks} }}\n    }}"
            );
        }
        if self.has(Capture::Tproxy) {
            self.chain(
                &mut out,
                "prerouting",
                "filter hook prerouting priority mangle",
                Capture::Tproxy,
                false,
            );
        }
        if self.has(Capture::Redirect) {
            self.chain(
                &mut out,
                "redirected",
                "nat hook prerouting priority dstnat",
                Capture::Redirect,
                false,
            );
        }
        if self.wishes.own && self.has(Capture::Tproxy) {
            self.chain(
                &mut out,
                "output",
                "route hook output priority mangle",
                Capture::Tproxy,
                true,
            );
        }
        if self.wishes.own && self.has(Capture::Redirect) {
            self.chain(
                &mut out,
                "own",
                "nat hook output priority -100",
                Capture::Redirect,
                true,
            );
        }
        out.push_str("}\nEND\n");
        if self.has(Capture::Tproxy) {
            out.push_str("# Packets with the mark come to this machine, whomever they are meant for.\n");
            self.routes(&mut out, "add");
        }
        out
    }

    fn undo(&self) -> String {
        let mut out = format!("# Undoes the rules. Run it as root.\nnft delete table inet {TABLE}\n");
        if self.has(Capture::Tproxy) {
            self.routes(&mut out, "del");
        }
        out
    }

    fn routes(&self, out: &mut String, verb: &str) {
        let Wishes { mark, table, .. } = self.wishes;
        for v6 in [false, true] {
            if self.doors(Capture::Tproxy).any(|(_, door)| door.v6 == v6) {
                let ip = if v6 { "ip -6" } else { "ip" };
                let route = if verb == "add" { "replace" } else { verb };
                let _ = writeln!(out, "{ip} rule {verb} fwmark {mark} lookup {table}");
                let _ = writeln!(out, "{ip} route {route} local default dev lo table {table}");
            }
        }
    }

    fn chain(&self, out: &mut String, name: &str, hook: &str, capture: Capture, own: bool) {
        let mark = self.wishes.mark;
        let _ = writeln!(out, "    chain {name} {{\n        type {hook}; policy accept;");
        let mut line = |text: &str| {
            let _ = writeln!(out, "        {text}");
        };
        if own {
            let marks: Vec<String> = self.marks().iter().map(ToString::to_string).collect();
            if !marks.is_empty() {
                line("# What the proxy sends itself goes out.");
                line(&format!("meta mark {{ {} }} return", marks.join(", ")));
            }
            if capture == Capture::Tproxy {
                line("# So do its answers in the name of others.");
                line("socket transparent 1 return");
            }
        } else {
            if !self.wishes.lan.is_empty() {
                let lan: Vec<String> = self.wishes.lan.iter().map(|name| format!("\"{name}\"")).collect();
                let lo = if self.wishes.own && capture == Capture::Tproxy {
                    ", \"lo\""
                } else {
                    ""
                };
                line("# Clients are behind these interfaces.");
                line(&format!("iifname != {{ {}{lo} }} return", lan.join(", ")));
            }
            if capture == Capture::Tproxy {
                line("# Of this machine, only what the chain output has marked.");
                line(&format!("iifname \"lo\" meta mark != {mark} return"));
            }
        }
        line("# Answers to connections that the other side has begun.");
        line("ct direction reply return");
        let dns = |line: &mut dyn FnMut(&str)| {
            if !self.answers_dns() {
                return;
            }
            line("# Questions to DNS servers.");
            for (network, door) in self.doors(capture) {
                let family = if door.v6 { "ipv6" } else { "ipv4" };
                let verdict = if own {
                    self.own_verdict(door)
                } else {
                    door.verdict(mark)
                };
                line(&format!("meta nfproto {family} {network} dport 53 {verdict}"));
            }
        };
        // Those of clients to this machine as well; a resolver of this machine that its own programs ask is left to them, and nobody
        // on the Internet finds a resolver here.
        let of_clients = !own && !self.wishes.lan.is_empty();
        if of_clients {
            dns(&mut line);
        }
        line("# What this machine is asked for itself.");
        line("fib daddr type { local, broadcast, anycast, multicast } return");
        if !of_clients {
            dns(&mut line);
        }
        line("# Local networks.");
        line("ip daddr @local4 return");
        line("ip6 daddr @local6 return");
        line("# Everything else comes to the proxy.");
        for (network, door) in self.doors(capture) {
            let family = if door.v6 { "ipv6" } else { "ipv4" };
            let verdict = if own {
                self.own_verdict(door)
            } else {
                door.verdict(mark)
            };
            line(&format!("meta nfproto {family} meta l4proto {network} {verdict}"));
        }
        out.push_str("    }\n");
    }

    /// What is done to packets of this machine's programs: with the mark, they come in again.
    fn own_verdict(&self, door: &Door<'_>) -> String {
        match door.capture {
            Capture::Tproxy => format!("meta mark set {}", self.wishes.mark),
            Capture::Redirect => door.verdict(self.wishes.mark),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut missing = |doors: &[Door<'_>], network: &str| {
            let wants: &[bool] = if self.wishes.ipv6 { &[false, true] } else { &[false] };
            for v6 in wants {
                if !doors.iter().any(|door| door.v6 == *v6) {
                    let (family, advice) = match v6 {
                        true => ("IPv6", "; listen on \"::\", or leave IPv6 out by --no-ipv6"),
                        false => ("IPv4", "; listen on \"0.0.0.0\" or \"::\""),
                    };
                    let advice = if doors.is_empty() { "" } else { advice };
                    found.push(format!(
                        "no transparent inbound takes {network} over {family}: it passes the proxy by{advice}"
                    ));
                }
            }
        };
        missing(&self.tcp, "TCP");
        missing(&self.udp, "UDP, which QUIC and most of DNS are,");
        if !self.answers_dns() {
            found.push(
                "no rule is about port 53: questions to DNS servers in local networks, such as this machine, pass the proxy by, and \
                 others go where everything goes; a rule that leads port 53 to an outbound of its own changes both"
                    .to_owned(),
            );
        }
        for (network, door) in self.doors(Capture::Redirect) {
            if door.to.ip().is_loopback() {
                found.push(format!(
                    "{} listens on {}, where nothing of other machines can be redirected to ({network}): listen on every address",
                    door.is_called(),
                    door.to.ip()
                ));
            }
        }
        if self.wishes.lan.is_empty() {
            found.push(
                "packets that come in by any interface are led to the proxy: name those of your clients by --lan"
                    .to_owned(),
            );
        }
        if self.wishes.own {
            self.loops(&mut found);
        }
        found
    }

    /// What of this machine's own connections would come back.
    fn loops(&self, found: &mut Vec<String>) {
        for (at, outbound) in self.settings.outbounds.iter().enumerate() {
            if matches!(outbound.protocol, OutboundProtocol::Blackhole { .. }) {
                continue;
            }
            let name = match outbound.tag.as_str() {
                "" => format!("outbounds[{at}]"),
                tag => format!("the outbound [{tag}]"),
            };
            if outbound.transport.socket.mark.is_none() {
                found.push(format!(
                    "{name} has no mark, so its connections would come back to the proxy: write `\"sockopt\": {{\"mark\": 255}}` in its \
                     `streamSettings`"
                ));
            }
            let host = server(outbound).map(|(host, _)| host.to_string());
            let hosts = self.settings.dns.hosts.entries();
            let fixed = |host: &str| hosts.iter().any(|(condition, _)| condition.matches(host));
            let asked = host.filter(|host| host.parse::<IpAddr>().is_err() && !fixed(host));
            if let Some(host) = asked {
                found.push(format!(
                    "{name} has its server by name: the system's question for {host} has no mark and comes to the proxy, which needs the \
                     answer to pass it on; write its address, or put the name into `dns.hosts`"
                ));
            }
        }
    }
}

/// The next server of an outbound.
fn server(outbound: &Outbound) -> Option<&(sealway_v2ray::Address, u16)> {
    match &outbound.protocol {
        OutboundProtocol::Shadowsocks(to) => Some(&to.server),
        OutboundProtocol::Trojan(to) => Some(&to.server),
        OutboundProtocol::Vless(to) => Some(&to.server),
        OutboundProtocol::Vmess(to) => Some(&to.server),
        OutboundProtocol::Socks(to) | OutboundProtocol::Http(to) => Some(&to.server),
        _ => None,
    }
}
