//! Outbounds that dial through other outbounds: every chain has an end.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::context::{Cx, quoted};
use super::outbound::{Outbound, SendThrough};
use super::routing::near_tag;
use super::schema::Loses;
use super::sockopt::{DomainStrategy, Tproxy};
use super::transport::Transport;
use crate::problem::At;

/// Outbounds that one dials through, one after another.
const MAX_CHAIN: usize = 8;

/// The key of an outbound that names another one, and the tag.
type Link<'a> = (&'static [&'static str], &'a At<String>);

/// What an outbound dials through.
fn links(outbound: &Outbound) -> Vec<Link<'_>> {
    let stream = &outbound.stream;
    let mut links: Vec<Link<'_>> = Vec::new();
    let by_socket = stream.sockopt.dialer_proxy.as_ref();
    match (&outbound.proxy, by_socket) {
        (Some(proxy), _) => links.push((&["proxySettings", "tag"], &proxy.tag)),
        (None, Some(other)) => links.push((&["streamSettings", "sockopt", "dialerProxy"], other)),
        (None, None) => {}
    }
    if let Some(download) = &stream.download
        && let Some(other) = &download.stream.sockopt.dialer_proxy
    {
        let keys = &[
            "streamSettings",
            "xhttpSettings",
            "downloadSettings",
            "sockopt",
            "dialerProxy",
        ];
        links.push((keys, other));
    }
    links
}

/// Tells of chains that lead nowhere, that come back to where they began, or that are too long; and of transports that are
/// left out.
pub(crate) fn check(outbounds: &[(usize, Outbound)], cx: &mut Cx<'_>) {
    let all: Vec<Vec<Link<'_>>> = outbounds.iter().map(|(_, one)| links(one)).collect();
    // Of those that could not be read nothing is known but the tag.
    let places = outbounds.iter().enumerate();
    let places: HashMap<&str, usize> = places.map(|(at, (_, one))| (one.tag.as_str(), at)).collect();
    let place = |tag: &str| places.get(tag).copied();
    let next: Vec<Vec<usize>> = all
        .iter()
        .map(|links| links.iter().filter_map(|(_, tag)| place(tag)).collect())
        .collect();
    cx.within("outbounds", |cx| {
        for (at, (i, outbound)) in outbounds.iter().enumerate() {
            cx.at_index(*i, |cx| {
                for (keys, tag) in &all[at] {
                    let found = match cx.tags.outbounds.contains_key(&tag.value) {
                        false => {
                            let text = format!("no outbound has the tag {}", quoted(tag));
                            Err((text, near_tag(tag, cx.tags.outbounds.keys())))
                        }
                        true => place(tag).map_or(Ok(()), |first| {
                            let source = outbounds[first].1.send_through;
                            if source.is_some_and(SendThrough::is_the_clients) && outbound.shares_connections() {
                                let what = "a chain in which many clients share a connection, to an outbound with an address of \
                                            the client's connection as `sendThrough`";
                                within(keys, cx, &mut |cx| cx.later(Loses::Protection, tag.at, what));
                            }
                            walk(outbounds, &next, at, first)
                        }),
                    };
                    if let Err((text, hint)) = found {
                        within(keys, cx, &mut |cx| cx.error(tag.at, text.clone(), hint.clone()));
                    }
                }
                left_out(outbound, cx);
            });
        }
    });
}

/// The most outbounds that are dialled through from here, one after another, up to one more than there may be. What comes back
/// to `path` is told elsewhere.
fn longest(next: &[Vec<usize>], path: &mut Vec<usize>, at: usize) -> usize {
    if path.contains(&at) || path.len() > MAX_CHAIN + 1 {
        return path.len() - 1;
    }
    path.push(at);
    let further = next[at].iter().map(|to| longest(next, path, *to)).max();
    let most = further.unwrap_or(path.len() - 1);
    path.pop();
    most
}

/// Follows a chain from an outbound by the first that it dials through.
fn walk(
    outbounds: &[(usize, Outbound)],
    next: &[Vec<usize>],
    from: usize,
    first: usize,
) -> Result<(), (String, String)> {
    // Of the ways there the shortest is followed, so that what is told is a circle and nothing beside it.
    let mut before: HashMap<usize, Option<usize>> = HashMap::from([(first, None)]);
    let mut layer = vec![first];
    while !layer.is_empty() {
        if layer.contains(&from) {
            let mut names = vec![&outbounds[from].1.tag];
            let mut at = from;
            while let Some(Some(earlier)) = before.get(&at) {
                names.push(&outbounds[*earlier].1.tag);
                at = *earlier;
            }
            names.push(&outbounds[from].1.tag);
            names.reverse();
            let names: Vec<String> = names.into_iter().map(|name| quoted(name)).collect();
            let text = format!("outbounds dial through each other in a circle: {}", names.join(" → "));
            return Err((text, "one of them has to dial by itself".into()));
        }
        let mut further = Vec::new();
        for &at in &layer {
            for &to in &next[at] {
                if let Entry::Vacant(new) = before.entry(to) {
                    new.insert(Some(at));
                    further.push(to);
                }
            }
        }
        layer = further;
    }
    if longest(next, &mut vec![from], first) > MAX_CHAIN {
        let text = format!("more than {MAX_CHAIN} outbounds are dialled through, one after another");
        return Err((text, "make the chain shorter".into()));
    }
    Ok(())
}

/// Goes down to where the last of the keys stands.
fn within(keys: &[&str], cx: &mut Cx<'_>, then: &mut dyn FnMut(&mut Cx<'_>)) {
    match keys {
        [key, rest @ ..] => cx.within(key, |cx| within(rest, cx, then)),
        [] => then(cx),
    }
}

/// Tells of what an outbound that dials through another one leaves out.
fn left_out(outbound: &Outbound, cx: &mut Cx<'_>) {
    no_socket(outbound, cx);
    let stream = &outbound.stream;
    let by_socket = stream.sockopt.dialer_proxy.as_ref();
    let Some(proxy) = &outbound.proxy else {
        if let (Some(other), Some(download)) = (by_socket, &stream.download)
            && download.stream.sockopt.dialer_proxy.is_none()
            && !stream.sockopt.penetrate.value
        {
            let text = "what comes down does not go through this outbound: its server sees the address of this machine";
            let hint = "write `dialerProxy` in the `sockopt` of `downloadSettings` too, or `penetrate`";
            cx.within("streamSettings", |cx| {
                cx.within("sockopt", |cx| cx.warn_in("dialerProxy", other.at, text, hint));
            });
        }
        return;
    };
    if let Some(other) = by_socket {
        let text = "`proxySettings` counts instead of `dialerProxy`";
        cx.within("streamSettings", |cx| {
            cx.within("sockopt", |cx| {
                cx.warn_in("dialerProxy", other.at, text, "remove one of them")
            });
        });
    }
    if !proxy.transport_layer && stream.transport != Transport::Raw {
        let text = "the transport of this outbound is left out: through another outbound only its TLS is spoken";
        let hint = "write \"transportLayer\": true, or `dialerProxy` in `sockopt`, for the transport to be spoken";
        cx.within("proxySettings", |cx| cx.warn_in("tag", proxy.tag.at, text, hint));
    }
}

/// Tells of options for sockets where another outbound has the socket.
fn no_socket(outbound: &Outbound, cx: &mut Cx<'_>) {
    let sockopt = &outbound.stream.sockopt;
    let other = match (&outbound.proxy, &sockopt.dialer_proxy) {
        (Some(proxy), _) => &proxy.tag,
        (None, Some(other)) => other,
        (None, None) => return,
    };
    let text = |key: &str| {
        let other = quoted(other);
        format!("`{key}` has no effect: this outbound dials through {other} and has no socket of its own")
    };
    let hint = "set it on the outbound that is dialled through";
    if outbound.send_through.is_some() {
        cx.warn_in("sendThrough", outbound.at, text("sendThrough"), hint);
    }
    let resolves = sockopt.domain_strategy.value != DomainStrategy::AsIs;
    let set = [
        ("mark", sockopt.mark != 0),
        ("tproxy", sockopt.tproxy != Tproxy::Off),
        ("tcpKeepAliveInterval", sockopt.tcp_keep_alive_interval != 0),
        ("tcpKeepAliveIdle", sockopt.tcp_keep_alive_idle != 0),
        ("tcpUserTimeout", sockopt.tcp_user_timeout != 0),
        ("tcpCongestion", !sockopt.tcp_congestion.is_empty()),
        ("tcpMaxSeg", sockopt.tcp_max_seg != 0),
        ("tcpMptcp", sockopt.tcp_mptcp),
        ("interface", !sockopt.interface.is_empty()),
        ("rxBufSize", sockopt.rx_buf_size != 0),
        ("txBufSize", sockopt.tx_buf_size != 0),
    ];
    cx.within("streamSettings", |cx| {
        cx.within("sockopt", |cx| {
            for (key, _) in set.into_iter().filter(|(_, set)| *set) {
                cx.warn_in(key, outbound.stream.at, text(key), hint);
            }
            if resolves && outbound.proxy.is_some() {
                let text =
                    "`domainStrategy` has no effect with `proxySettings`: names go to the other outbound as they are";
                let hint = "write `dialerProxy` instead of `proxySettings`";
                cx.warn_in("domainStrategy", sockopt.domain_strategy.at, text, hint);
            }
        });
    });
}
