//! The rules of the firewall that a configuration's transparent inbounds need.
//!
//! They are only written, for somebody to read and apply: what they do to a machine's network is not undone by the end of a
//! program.

mod questions;
mod warnings;

use std::fmt::Write;
use std::net::SocketAddr;

use sealway_v2ray::Network;

use crate::error::Error;
use crate::settings::{Capture, Inbound, Listen, Settings};

/// The name of the table that the rules are in.
const TABLE: &str = "sealway";
/// Networks that nothing is led away from: those that are not routed, and those that hosts of a site speak to each other in. The
/// pools of fake addresses are none of them.
const LOCAL: [&str; 2] = [
    "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16, 224.0.0.0/3",
    "::/127, ::ffff:0.0.0.0/96, fd00::/8, fe80::/10, ff00::/8",
];
/// Where a client uses one port towards two servers, as systems do, both connections are redirected to one address, and the kernel
/// gives the second one another port. It does so only after it has looked for the socket, with early demultiplexing on, and hands
/// packets of the second connection to the first one.
const DEMUX_OFF: &str = "\
# Without this, one of two connections that a client has from one port to two servers may hang.
echo 0 > /proc/sys/net/ipv4/tcp_early_demux
";
const DEMUX_ON: &str = "\
# As the kernel has it by default.
echo 1 > /proc/sys/net/ipv4/tcp_early_demux
";

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
    network: Network,
    capture: Capture,
    to: SocketAddr,
    v6: bool,
}

impl Plan {
    /// The rules for these settings.
    ///
    /// # Errors
    /// [`Error::Config`] if nothing in the settings takes what the rules lead to it, or the mark is one of an outbound or
    /// of an inbound.
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
        let outbounds = settings.outbounds.iter().map(|one| one.transport.socket.mark);
        let outbounds = outbounds.enumerate().map(|(at, mark)| ("outbounds", at, mark));
        let inbounds = settings.inbounds.iter().map(|one| one.transport.socket.mark);
        let inbounds = inbounds.enumerate().map(|(at, mark)| ("inbounds", at, mark));
        if let Some((side, at, _)) = outbounds.chain(inbounds).find(|one| one.2 == Some(wishes.mark)) {
            let what = format!(
                "{} is the mark of packets on their way to this machine: choose another one here, or by --mark",
                wishes.mark
            );
            return Err(Error::config(format!("{side}[{at}].streamSettings.sockopt.mark"), what));
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
                Listen::Unix(..) => return None,
            };
            let any = at.ip().is_unspecified();
            let takes = at.is_ipv6() == v6 || any && at.is_ipv6() && !inbound.transport.socket.v6_only;
            takes.then_some(at)
        })?;
        Some(Door {
            inbound,
            network,
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

    fn apply(&self) -> String {
        let mut out = String::from("# Applies the rules. Run it as root, once the proxy runs.\nset -e\n");
        if self.has(Capture::Tproxy) {
            out.push_str("# Packets with the mark come to this machine, whomever they are meant for.\n");
            self.routes(&mut out, true);
        }
        if self.has(Capture::Redirect) {
            out.push_str(DEMUX_OFF);
        }
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
        out
    }

    fn undo(&self) -> String {
        let mut out = format!("# Undoes the rules. Run it as root.\nnft delete table inet {TABLE}\n");
        if self.has(Capture::Tproxy) {
            self.routes(&mut out, false);
        }
        if self.has(Capture::Redirect) {
            out.push_str(DEMUX_ON);
        }
        out
    }

    /// Commands for the routing. What they set is set once, however often they run, and nothing of others is replaced.
    fn routes(&self, out: &mut String, sets: bool) {
        let Wishes { mark, table, .. } = self.wishes;
        for v6 in [false, true] {
            if self.doors(Capture::Tproxy).any(|(_, door)| door.v6 == v6) {
                let ip = if v6 { "ip -6" } else { "ip" };
                let rule = format!("fwmark {mark} lookup {table}");
                let route = format!("local default dev lo table {table}");
                let _ = writeln!(out, "while {ip} rule del {rule} 2>/dev/null; do :; done");
                let _ = writeln!(out, "{ip} route del {route} 2>/dev/null || :");
                if sets {
                    let _ = writeln!(out, "{ip} route add {route}");
                    let _ = writeln!(out, "{ip} rule add {rule}");
                }
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
        let lead = |line: &mut dyn FnMut(&str), what: &str, door: &Door<'_>| {
            let family = if door.v6 { "ipv6" } else { "ipv4" };
            let verdict = if own {
                self.own_verdict(door)
            } else {
                door.verdict(mark)
            };
            line(&format!("meta nfproto {family} {what} {verdict}"));
            // Where nobody listens, the line before does nothing.
            if !own && capture == Capture::Tproxy {
                line(&format!("meta nfproto {family} {what} drop"));
            }
        };
        let dns = |line: &mut dyn FnMut(&str)| {
            let doors: Vec<_> = self.doors(capture).filter(|(_, door)| self.answers(door)).collect();
            if !doors.is_empty() {
                line("# Questions to DNS servers.");
            }
            for (network, door) in doors {
                lead(line, &format!("{network} dport 53"), door);
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
        if own && self.doors(capture).any(|(network, _)| network == "tcp") {
            line("# Connections that are open already stay as they are.");
            if capture == Capture::Tproxy {
                line(&format!(
                    "tcp flags & (fin | syn | rst | ack) == syn ct mark set {mark}"
                ));
                line(&format!("meta l4proto tcp ct mark != {mark} return"));
            } else {
                line("tcp flags & (fin | syn | rst | ack) != syn return");
            }
        }
        if !of_clients {
            dns(&mut line);
        }
        line("# Local networks.");
        line("ip daddr @local4 return");
        line("ip6 daddr @local6 return");
        line(if own || capture == Capture::Redirect {
            "# Everything else comes to the proxy."
        } else {
            "# Everything else comes to the proxy, or nowhere if it does not run."
        });
        for (network, door) in self.doors(capture) {
            lead(&mut line, &format!("meta l4proto {network}"), door);
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
}
