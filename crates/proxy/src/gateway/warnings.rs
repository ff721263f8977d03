//! What would not work, or lead in a circle.

use std::net::IpAddr;

use super::{Door, Rules};
use crate::settings::{Capture, DnsAddress, Outbound, OutboundProtocol};

impl Rules<'_> {
    pub(super) fn warnings(&self) -> Vec<String> {
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
        let mut doors = self.tcp.iter().chain(&self.udp);
        if !doors.any(|door| self.answers(door)) {
            found.push(
                "no rule leads port 53 of every server to a `dns` outbound: questions to DNS servers in local networks, such as this \
                 machine, pass the proxy by, and others go where everything goes"
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
        for (at, server) in self.settings.dns.servers.iter().enumerate() {
            match &server.address {
                DnsAddress::System => found.push(format!(
                    "dns.servers[{at}] is the system's resolver, whose questions have no mark and come to the proxy, which needs the \
                     answers to pass them on; name a server, and lead what comes from `dns` to an outbound with a mark"
                )),
                DnsAddress::Server { local: true, host, .. } => found.push(format!(
                    "dns.servers[{at}], {host}, is asked straight from here (`+local`), and the question has no mark, so it would come \
                     back to the proxy: leave `+local` out, and lead what comes from `dns` to an outbound with a mark"
                )),
                _ => {}
            }
        }
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
