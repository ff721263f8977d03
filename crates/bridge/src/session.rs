//! What happens to a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_bip324::V1_PREFIX_LEN;
use sealway_bip324::tokio::{Accepted, TransportError, accept};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::carry::{CLIENT, carry};
use crate::dial::dial;
use crate::stats::{Stats, add};
use crate::wire::{Side, fresh};
use crate::{Error, Incoming, SessionId, Settings};

/// Serves one connection to its end.
pub(crate) async fn serve(tcp: TcpStream, from: SocketAddr, settings: Arc<Settings>, stats: Arc<Stats>) {
    let client = match begin(tcp, &settings, &stats, from).await {
        Ok(client) => client,
        Err(error) => {
            add(&stats.incoming_failed, 1);
            tracing::info!("{from}: {error}");
            return;
        }
    };
    let node = match dial(&settings, &stats, from).await {
        Ok(node) => node,
        Err(error) => {
            add(&stats.outgoing_failed, 1);
            tracing::warn!("{from}: {error}");
            return;
        }
    };
    match carry(client, node, &settings, &stats).await {
        Ok(()) => tracing::info!("{from}: ended"),
        Err(error) => {
            add(&stats.broken, 1);
            tracing::info!("{from}: {error}");
        }
    }
}

/// Finds out what a connection speaks. Nothing is dialled before: whoever says nothing costs nobody else anything.
async fn begin(mut tcp: TcpStream, settings: &Settings, stats: &Stats, from: SocketAddr) -> Result<Side, Error> {
    let failed = |source: TransportError| Error::Handshake { with: CLIENT, source };
    tcp.set_nodelay(true).map_err(|error| failed(error.into()))?;
    if settings.incoming == Incoming::V1 {
        let received = prefix(&mut tcp, settings.handshake_limit).await?;
        if received != settings.network.v1_prefix() {
            let what = "the client does not speak v1 of this network, and nothing else may come in";
            return Err(Error::Refused { what });
        }
        add(&stats.incoming_v1, 1);
        tracing::info!("{from}: v1 from the client");
        return Ok(Side::v1(tcp, settings.network, received.to_vec(), settings.patience));
    }
    let (key, options) = fresh()?;
    let accepted = accept(tcp, settings.network, key, options, settings.handshake_limit).await;
    match accepted.map_err(|refused| failed(refused.error))? {
        Accepted::V2(messages) => {
            add(&stats.incoming_v2, 1);
            let id = SessionId(*messages.session_id());
            tracing::info!("{from}: v2 from the client, session id {id}");
            Ok(Side::v2(messages, settings.patience))
        }
        Accepted::V1 { .. } if settings.incoming == Incoming::V2 => Err(Error::Refused {
            what: "the client speaks v1, and only v2 may come in",
        }),
        Accepted::V1 { io, received } => {
            add(&stats.incoming_v1, 1);
            tracing::info!("{from}: v1 from the client");
            Ok(Side::v1(io, settings.network, received, settings.patience))
        }
    }
}

async fn prefix(tcp: &mut TcpStream, limit: Duration) -> Result<[u8; V1_PREFIX_LEN], Error> {
    let mut prefix = [0; V1_PREFIX_LEN];
    match timeout(limit, tcp.read_exact(&mut prefix)).await {
        Ok(Ok(_)) => Ok(prefix),
        Ok(Err(error)) => Err(Error::Transport {
            with: CLIENT,
            source: error.into(),
        }),
        Err(_) => Err(Error::Time {
            what: "the first message of the client",
            limit,
        }),
    }
}
