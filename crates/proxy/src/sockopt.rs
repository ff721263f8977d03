//! Options of sockets, tried out before anything depends on them.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::dial::{set_common_options, set_options};
use crate::settings::{SocketOptions, Transparent};
use crate::{Error, transparent};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// What this system refuses of the options of an inbound or outbound at `place`. An interface that is not there yet is
/// refused to who listens; who dials may wait for it, and is warned.
pub(crate) fn problems(place: &str, options: &SocketOptions, listens: bool) -> Vec<Error> {
    let place = format!("{place}.streamSettings.sockopt");
    let mut found = Vec::new();
    type Set<'a> = &'a dyn Fn(&mut SocketOptions);
    let mut check = |key: &str, set: Set<'_>, words: &dyn Fn(&io::Error) -> Option<String>| {
        let mut one = SocketOptions::default();
        set(&mut one);
        if let Err(error) = try_out(&one)
            && let Some(words) = words(&error)
        {
            found.push(Error::config(format!("{place}.{key}"), words));
        }
    };
    if let Some(name) = &options.congestion {
        check("tcpCongestion", &|one| one.congestion = Some(name.clone()), &|error| {
            Some(congestion_words(name, error))
        });
    }
    if let Some(mark) = options.mark {
        check("mark", &|one| one.mark = Some(mark), &|error| {
            Some(needs("a mark", "CAP_NET_ADMIN", error))
        });
    }
    if options.transparent == Transparent::Yes {
        check("tproxy", &|one| one.transparent = Transparent::Yes, &|error| {
            Some(needs("transparent proxying", "CAP_NET_ADMIN", error))
        });
    }
    if let Some(name) = &options.interface {
        check("interface", &|one| one.interface = Some(name.clone()), &|error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                return Some(needs("an interface", "CAP_NET_RAW", error));
            }
            let words = format!("{name:?} cannot be used: {error}; `ip link` lists the interfaces");
            if listens {
                return Some(words);
            }
            tracing::warn!("{place}.interface: {words}; connections fail until it is there");
            None
        });
    }
    if let Some(most) = options.max_segment {
        check("tcpMaxSeg", &|one| one.max_segment = Some(most), &|error| {
            Some(format!(
                "the system refuses segments of {most} bytes: {error}; 88 to 32767 are usual"
            ))
        });
    }
    let time_words = |error: &io::Error| {
        Some(format!(
            "the system refuses this time: {error}; 1 to 32767 seconds are usual"
        ))
    };
    let (idle, interval) = (options.keep_alive_idle, options.keep_alive_interval);
    check("tcpKeepAliveIdle", &|one| one.keep_alive_idle = idle, &time_words);
    check(
        "tcpKeepAliveInterval",
        &|one| one.keep_alive_interval = interval,
        &time_words,
    );
    let set_rest = |one: &mut SocketOptions| {
        one.user_timeout = options.user_timeout;
        one.receive_buffer = options.receive_buffer;
        one.send_buffer = options.send_buffer;
    };
    check("tcpUserTimeout", &set_rest, &|error| {
        Some(format!(
            "the system refuses this, or `rxBufSize` or `txBufSize`: {error}"
        ))
    });
    if options.takes_up_datagrams
        && let Err(error) = answer_for_others()
    {
        let what = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "datagrams for others need root, or the capabilities CAP_NET_ADMIN and, for answers from ports below 1024, \
                 CAP_NET_BIND_SERVICE; without them, only \"tcp\" can be the `network`, and only by rules that `redirect`"
                    .to_owned()
            }
            _ => format!("the system takes no datagrams for others: {error}"),
        };
        found.push(Error::config(format!("{place}.tproxy"), what));
    }
    found
}

/// Tries out what datagrams for others take, with an address for documentation and the port of DNS.
fn answer_for_others() -> io::Result<()> {
    transparent::take_up(&Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?)?;
    transparent::in_the_name_of(SocketAddr::from(([192, 0, 2, 1], 53)), None).map(drop)
}

/// Sets options on a socket that nobody uses.
fn try_out(options: &SocketOptions) -> io::Result<()> {
    let new = |domain| Socket::new(domain, Type::STREAM, Some(Protocol::TCP));
    let socket = new(Domain::IPV4).or_else(|_| new(Domain::IPV6))?;
    set_common_options(&SockRef::from(&socket), options)?;
    set_options(SockRef::from(&socket), options)
}

fn needs(what: &str, right: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{what} needs root, or the capability {right}"),
        _ => format!("the system refuses it: {error}"),
    }
}

fn congestion_words(name: &str, error: &io::Error) -> String {
    let list = |file: &str| std::fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "this kernel has no congestion control {name:?}; it has {} ({AVAILABLE}), and `modprobe tcp_{name}` may add it",
            list(AVAILABLE)
        ),
        io::ErrorKind::PermissionDenied => format!(
            "the congestion control {name:?} needs the capability CAP_NET_ADMIN; everybody may use {} ({ALLOWED})",
            list(ALLOWED)
        ),
        _ => format!(
            "the congestion control {name:?} cannot be used: {error}; this kernel has {}",
            list(AVAILABLE)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_named_with_what_it_has() {
        let options = SocketOptions {
            congestion: Some("no-such-thing".into()),
            max_segment: Some(1),
            interface: Some("no-such-if".into()),
            ..SocketOptions::default()
        };
        let told = |listens| -> Vec<String> {
            let found = problems("outbounds[3]", &options, listens);
            found.iter().map(ToString::to_string).collect()
        };
        let outbound = told(false);
        let place = "outbounds[3].streamSettings.sockopt.tcpCongestion: ";
        assert!(
            outbound[0].starts_with(place) && outbound[0].contains("reno"),
            "{outbound:?}"
        );
        assert!(outbound[1].contains(".tcpMaxSeg: "), "{outbound:?}");
        assert_eq!(outbound.len(), 2, "an interface may come later: {outbound:?}");
        assert!(told(true).iter().any(|line| line.contains(".interface: ")));
    }

    #[test]
    fn what_the_kernel_has_is_no_problem() {
        let options = SocketOptions {
            congestion: Some("reno".into()),
            max_segment: Some(1400),
            user_timeout: Some(std::time::Duration::from_secs(10)),
            keep_alive_idle: Some(std::time::Duration::from_secs(10)),
            send_buffer: Some(1 << 20),
            ..SocketOptions::default()
        };
        let found = problems("inbounds[0]", &options, true);
        assert!(found.is_empty(), "{found:?}");
        assert!(problems("inbounds[0]", &SocketOptions::default(), true).is_empty());
    }
}
