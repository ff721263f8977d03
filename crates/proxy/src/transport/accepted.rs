//! Who came, and over what.

use std::net::{IpAddr, SocketAddr};

use crate::reality;
use crate::stream::Stream;
use crate::tls::handshake::Agreed;

/// A stream that has been accepted and is ready for the protocol.
pub(crate) struct Accepted {
    pub(crate) stream: Stream,
    /// Who the client is.
    pub(crate) source: Option<SocketAddr>,
    /// Where it came in.
    pub(crate) local: Option<SocketAddr>,
    /// A server in front has said who the client is: by the PROXY protocol, or in a header.
    pub(crate) forwarded: bool,
    pub(crate) agreed: Agreed,
}

impl Accepted {
    /// Notes whom a trusted server in front names as the client, whose port it does not say.
    pub(super) fn forwarded_for(&mut self, client: Option<IpAddr>) {
        if let Some(client) = client {
            (self.source, self.forwarded) = (Some(SocketAddr::new(client, 0)), true);
        }
    }
}

/// Who the two ends of a connection are.
pub(super) struct Ends {
    pub(super) source: Option<SocketAddr>,
    pub(super) local: Option<SocketAddr>,
    pub(super) forwarded: bool,
}

impl Ends {
    pub(super) fn reality(&self) -> reality::Ends {
        reality::Ends {
            source: self.source,
            local: self.local,
        }
    }

    pub(super) fn accepted(self, stream: Stream, agreed: Agreed) -> Accepted {
        Accepted {
            stream,
            source: self.source,
            local: self.local,
            forwarded: self.forwarded,
            agreed,
        }
    }
}
