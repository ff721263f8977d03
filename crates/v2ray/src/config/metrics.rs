//! `metrics`: numbers for whoever watches the server, and whether it is alive and ready.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::context::{Cx, quoted};
use super::endpoint::{UnixName, host_port, unix_with_mode};
use super::scalar::{Name, texts};
use super::table::{FromKeys, object};
use crate::Address;
use crate::problem::{At, Position};

/// Where a service of the program itself listens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ServiceListen {
    /// On a port.
    Ip(SocketAddr),
    /// On a unix socket, with the mode that its file is given. `None`: it is for its owner alone.
    Unix(UnixName, Option<u32>),
}

impl ServiceListen {
    /// Whether only this machine reaches it.
    pub fn is_this_machine(&self) -> bool {
        match self {
            ServiceListen::Ip(address) => address.ip().to_canonical().is_loopback(),
            ServiceListen::Unix(..) => true,
        }
    }
}

texts! {
    ServiceListen = "`address:port`, path of a unix socket with its mode as in `/path,0660`, or `@` and an abstract name", |text| {
        if let Some(unix) = unix_with_mode(text) {
            return unix.map(|(name, mode)| ServiceListen::Unix(name, mode));
        }
        if let Some(port) = text.strip_prefix(':') {
            let (_, port) = host_port(port)?;
            return Ok(ServiceListen::Ip((Ipv6Addr::UNSPECIFIED, port).into()));
        }
        match host_port(text)? {
            (Some(host), port) => match host.ip() {
                Some(ip) => Ok(ServiceListen::Ip((ip, port).into())),
                None if host == Address::parse("localhost").map_err(|error| error.to_string())? => {
                    Ok(ServiceListen::Ip((Ipv4Addr::LOCALHOST, port).into()))
                }
                None => Err(format!("{} is a name, and what is listened on is an address", quoted(text))),
            },
            (None, _) => Err(format!("{} has no address in front of its port", quoted(text))),
        }
    }, "write 127.0.0.1:9500, [::1]:9500, /path/of/a/socket, /path,0660 or @abstract";
}

object! {
    /// Numbers for whoever watches the server: `/metrics` (OpenMetrics, as Prometheus reads them) and `/debug/vars` (JSON, as
    /// panels read them); `/healthz` says whether it is alive, and `/readyz` whether new connections are welcome.
    pub(crate) struct MetricsSettings: "metrics" {
        /// The tag that rules lead to who asks by an inbound.
        tag: At<Name> = "tag", default "\"\"";
        /// Where it is asked. The file of a unix socket is for its owner alone if no mode stands behind its path.
        listen: Option<At<ServiceListen>> = "listen";
        /// Listen where other machines reach it. Whoever does reads all numbers; let a firewall say who.
        allow_remote: bool = "allowRemote", default "false";
        /// Also tell the bytes of each user, by e-mail, of 10,000 users at most.
        users: bool = "users", default "false";
    }
}

/// Numbers for whoever watches the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// The tag that rules lead to who asks by an inbound. Empty: none.
    pub tag: String,
    /// Where it is asked.
    pub listen: Option<ServiceListen>,
    /// Tell the bytes of each user.
    pub users: bool,
}

impl FromKeys for Metrics {
    type Keys = MetricsSettings;

    fn from_keys(s: MetricsSettings, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
        if let Some(listen) = &s.listen
            && !listen.value.is_this_machine()
            && !s.allow_remote
        {
            let text = "other machines reach this address, and whoever asks there is told everything";
            let hint = "listen on 127.0.0.1, [::1] or a unix socket, or write \"allowRemote\": true and let a firewall say who may ask";
            cx.error_in("listen", listen.at, text, hint);
            return None;
        }
        if s.listen.is_none() && s.tag.value.0.is_empty() {
            let text = "neither `listen` nor `tag` says where the numbers can be asked for";
            cx.error(at, text, "add \"listen\": \"127.0.0.1:9500\"");
            return None;
        }
        Some(Metrics {
            tag: s.tag.value.0,
            listen: s.listen.map(|listen| listen.value),
            users: s.users,
        })
    }
}
