//! Who reaches an inbound, and what follows from that.

use std::net::IpAddr;

use super::context::Cx;
use super::inbound::{Inbound, Listen};
use super::net::is_private;
use super::outbound::Outbound;
use super::protocol::{InboundProtocol, Open, OutboundProtocol};
use super::routing::{Routing, Rule};

/// Tells of proxies that anyone can use who reaches their port.
pub(crate) fn check_open(inbounds: &[(usize, Inbound)], cx: &mut Cx<'_>) {
    cx.within("inbounds", |cx| {
        for (at, inbound) in inbounds {
            cx.at_index(*at, |cx| is_open(inbound, cx));
        }
    });
}

fn is_open(inbound: &Inbound, cx: &mut Cx<'_>) {
    let Some(Open { key, at, hint }) = inbound.protocol.open() else {
        return;
    };
    // Certificates of clients are accounts of another kind.
    if inbound.listen.is_this_machine() || inbound.stream.tls.as_ref().is_some_and(|tls| tls.verify_client) {
        return;
    }
    let place = match &inbound.listen {
        Listen::Ip { ip: Some(ip), .. } if !ip.is_unspecified() => format!("at {ip}"),
        _ => "on every address of this machine".to_owned(),
    };
    let text = format!("whoever reaches the port may use this proxy: it listens {place} and asks for no account");
    cx.within("settings", |cx| cx.warn_in(key, at.unwrap_or(inbound.at), text, hint));
}

/// Tells of tunnels to private addresses that the guard would refuse.
pub(crate) fn check_doors(
    inbounds: &[(usize, Inbound)],
    outbounds: &[(usize, Outbound)],
    routing: &Routing,
    cx: &mut Cx<'_>,
) {
    let Some((
        0,
        Outbound {
            protocol: OutboundProtocol::Freedom(freedom),
            ..
        },
    )) = outbounds.first()
    else {
        return;
    };
    if !freedom.final_rules.is_empty() {
        return;
    }
    for (i, inbound) in inbounds {
        let InboundProtocol::Dokodemo(door) = &inbound.protocol else {
            continue;
        };
        if door.follow_redirect {
            continue;
        }
        // Without an address it leads to loopback.
        let private = match &door.address {
            Some(address) => address.ip().filter(|ip| is_private(*ip)),
            None => Some(IpAddr::from([127, 0, 0, 1])),
        };
        let Some(ip) = private.filter(|_| !inbound.listen.is_this_machine()) else {
            continue;
        };
        let led =
            |rule: &Rule| rule.ips.matches(ip) || !inbound.tag.is_empty() && rule.inbound_tags.contains(&inbound.tag);
        if routing.rules.iter().any(led) {
            continue;
        }
        let text =
            format!("{ip} is a private address, which clients from outside may not reach: connections are refused");
        let hint =
            "allow it by `finalRules` of the freedom outbound, or by a rule with this `ip`; or listen on 127.0.0.1";
        cx.within("inbounds", |cx| {
            cx.at_index(*i, |cx| {
                cx.within("settings", |cx| cx.warn_in("address", inbound.at, text, hint));
            });
        });
    }
}
