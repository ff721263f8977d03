//! The way to the target.

use std::net::SocketAddr;

use sealway_net::sock::Sock;

use crate::Error;
use crate::dial::fallback::{dial, name};
use crate::log::Limit;
use crate::settings::{FallbackDial, SocketOptions};

/// Lines a second about a target that cannot be reached: every connection brings one.
static DEAD: Limit = Limit::new(5);

/// The server whose handshake is borrowed.
pub(super) struct Target {
    pub(super) to: FallbackDial,
    options: SocketOptions,
}

impl Target {
    pub(super) fn new(to: FallbackDial, options: SocketOptions) -> Self {
        Target { to, options }
    }

    /// A fresh connection.
    pub(super) async fn dial(&self, listener: Option<SocketAddr>) -> Result<Sock, Error> {
        dial(&self.to, listener, &self.options).await
    }

    /// Says that it cannot be reached, which ends every connection.
    pub(super) fn unreachable(&self, error: &Error) {
        if let Some(kept) = DEAD.pass() {
            let to = name(&self.to);
            tracing::warn!("the target {to} of REALITY cannot be reached, and nobody is let in: {error}{kept}");
        }
    }
}
