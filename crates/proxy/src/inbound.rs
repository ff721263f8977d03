//! Where connections come in: what each protocol makes of a fresh connection.

pub(crate) mod associate;
pub(crate) mod dokodemo;
pub(crate) mod fallback;
pub(crate) mod http;
pub(crate) mod socks;
pub(crate) mod vless;
pub(crate) mod vmess;

use std::net::SocketAddr;
use std::sync::Arc;

use sealway_v2ray::vless::fallback::Fallbacks;
use sealway_v2ray::{Destination, vless as vless_wire, vmess as vmess_wire};
use tokio::time::Instant;

use crate::Error;
use crate::relay::Relay;
use crate::settings::{self, FallbackTarget, InboundProtocol, Level};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::{Accepted, ServerSide};
use crate::udp::PacketEnd;

/// A user as connections see him.
#[derive(Debug)]
pub(crate) struct UserRecord {
    pub(crate) email: String,
    pub(crate) level: Level,
    pub(crate) traffic: Traffic,
}

/// What an inbound speaks, ready to accept.
pub(crate) enum Kind {
    Dokodemo(settings::Dokodemo),
    Socks(socks::Socks),
    Http(Arc<settings::HttpProxy>),
    Vless {
        users: vless_wire::Users<Arc<UserRecord>>,
        fallbacks: Fallbacks<FallbackTarget>,
    },
    Vmess {
        users: vmess_wire::Users<Arc<UserRecord>>,
        secure_only: bool,
    },
}

/// An inbound, ready to accept.
pub(crate) struct Inbound {
    pub(crate) tag: String,
    pub(crate) kind: Kind,
    pub(crate) side: ServerSide,
    pub(crate) traffic: Traffic,
    /// For connections of nobody in particular.
    pub(crate) anyone: Arc<UserRecord>,
    /// Others than this machine reach it, by what it speaks or by where it listens.
    pub(crate) remote: bool,
}

/// What an inbound made of a connection.
pub(crate) enum Taken {
    /// A stream to be carried.
    Stream {
        near: Box<Stream>,
        to: Destination,
        user: Arc<UserRecord>,
    },
    /// Datagrams to one target to be carried.
    Datagrams {
        near: Box<PacketEnd>,
        to: Destination,
        user: Arc<UserRecord>,
    },
    /// A stranger who was connected to a fallback.
    Elsewhere(Box<Relay>),
    /// A stranger whose fallback could not be reached, which has been said.
    Nowhere,
}

impl Inbound {
    /// True for a client from outside, who has no business on this machine's networks. Where a server in front says who the
    /// client is, that counts as well.
    pub(crate) fn is_remote(&self, client: Option<SocketAddr>) -> bool {
        self.remote || client.is_some_and(|client| !client.ip().to_canonical().is_loopback())
    }
}

/// Builds the lookup of users. `record` makes what connections see.
pub(crate) fn kind(
    place: &str,
    protocol: &InboundProtocol,
    record: &mut dyn FnMut(&settings::User) -> Arc<UserRecord>,
) -> Result<Kind, Error> {
    let twice = |error: sealway_v2ray::Error| Error::config(format!("{place}.settings"), error.to_string());
    let mut emails = std::collections::HashSet::new();
    let mut check = |user: &settings::User| {
        let email = user.email.to_lowercase();
        if !email.is_empty() && !emails.insert(email) {
            let what = format!("two users have the e-mail {:?}; each needs its own", user.email);
            return Err(Error::config(format!("{place}.settings"), what));
        }
        Ok(())
    };
    Ok(match protocol {
        InboundProtocol::Dokodemo(dokodemo) => Kind::Dokodemo(dokodemo.clone()),
        InboundProtocol::Socks(socks) => Kind::Socks(socks::Socks::new(socks)),
        InboundProtocol::Http(http) => Kind::Http(Arc::new(http.clone())),
        InboundProtocol::Vless(vless) => {
            let mut users = vless_wire::Users::new();
            for user in &vless.users {
                check(user)?;
                users.insert(user.id, record(user)).map_err(twice)?;
            }
            Kind::Vless {
                users,
                fallbacks: Fallbacks::new(vless.fallbacks.iter().cloned()),
            }
        }
        InboundProtocol::Vmess(vmess) => {
            let mut list = Vec::with_capacity(vmess.users.len());
            for user in &vmess.users {
                check(user)?;
                list.push((user.id, record(user)));
            }
            Kind::Vmess {
                users: vmess_wire::Users::from_list(list).map_err(twice)?,
                secure_only: vmess.secure_only,
            }
        }
    })
}

/// What every protocol is given.
pub(crate) struct Fresh {
    pub(crate) accepted: Accepted,
    /// The address that the listener has, for targets that depend on it.
    pub(crate) listener: Option<SocketAddr>,
    /// As [`Inbound::is_remote`] says.
    pub(crate) remote: bool,
    /// By when the client must have said what it wants.
    pub(crate) deadline: Instant,
}
