//! Where a connection goes, and for whom.

use std::net::SocketAddr;
use std::sync::Arc;

use sealway_v2ray::{Address, Destination, Network};

use super::Line;
use crate::error::Error;
use crate::roads::Caller;
use crate::stats::Traffic;
use crate::stream::Stream;

/// Where an outbound connects to.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// Host and port, by which TLS and requests call it.
    pub(crate) name: (Address, u16),
    /// For what the client has asked for: its addresses, which it may reach. None of them: the next outbound finds them.
    ///
    /// `None`: a server of the configuration, which is found when it is dialled.
    pub(crate) allowed: Option<Vec<SocketAddr>>,
}

impl Remote {
    /// A server of the configuration.
    pub(crate) fn server(name: &(Address, u16)) -> Remote {
        Remote {
            name: name.clone(),
            allowed: None,
        }
    }

    /// What another outbound is asked for: an address that was found, or the name.
    pub(super) fn onward(&self, found: Option<&SocketAddr>) -> Destination {
        let (host, port) = &self.name;
        Destination {
            network: Network::Tcp,
            address: found.map_or_else(|| host.clone(), |found| found.ip().into()),
            port: *port,
        }
    }
}

/// A stream that is to be made.
pub(super) struct Dial<'a> {
    pub(super) line: &'a Arc<Line>,
    pub(super) remote: &'a Remote,
    /// What is sent first.
    pub(super) first: &'a [u8],
    /// Counts the bytes of connections.
    pub(super) traffic: Traffic,
    /// Whom the stream is for; connections that many share are nobody's.
    pub(super) caller: &'a Caller,
}

impl Dial<'_> {
    /// A connection of the stream's own.
    pub(super) async fn alone(self) -> Result<Stream, Error> {
        self.line.dial(self.remote, self.traffic, self.caller).await
    }
}
