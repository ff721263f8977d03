//! What happens to a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use sealway_bip324_tokio::{Accepted, FirstBytes, TransportError, accept_after, first_bytes};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::admission::Place;
use crate::carry::{CLIENT, carry};
use crate::dial::dial;
use crate::rate::Turns;
use crate::stats::{Stats, add};
use crate::wire::{Side, fresh};
use crate::{Error, Incoming, SessionId, Settings};

/// Serves one connection to its end.
pub(crate) async fn serve(
    tcp: TcpStream,
    from: SocketAddr,
    settings: Arc<Settings>,
    stats: Arc<Stats>,
    turns: &Turns,
    place: &Place,
) {
    let client = match begin(tcp, &settings, &stats, turns, from).await {
        Ok(client) => {
            place.spoke();
            client
        }
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

/// Finds out what a connection speaks. Nothing is dialled before: whoever says nothing costs nobody else anything. Who
/// speaks v1 neither pays for a handshake of v2 nor waits for one.
async fn begin(
    mut tcp: TcpStream,
    settings: &Settings,
    stats: &Stats,
    turns: &Turns,
    from: SocketAddr,
) -> Result<Side, Error> {
    let failed = |source: TransportError| Error::Handshake { with: CLIENT, source };
    let began = Instant::now();
    let limit = settings.handshake_limit;
    tcp.set_nodelay(true).map_err(|error| failed(error.into()))?;
    let first = first_bytes(&mut tcp, settings.network, limit).await;
    let received = match (first.map_err(no_first_bytes)?, settings.incoming) {
        (FirstBytes::V1 { .. }, Incoming::V2) => {
            let what = "the client speaks v1, and only v2 may come in";
            return Err(Error::Refused { what });
        }
        (FirstBytes::V1 { received }, _) => {
            add(&stats.incoming_v1, 1);
            tracing::info!("{from}: v1 from the client");
            return Ok(Side::v1(tcp, received, settings));
        }
        (FirstBytes::V2 { .. }, Incoming::V1) => {
            let what = "the client does not speak v1 of this network, and nothing else may come in";
            return Err(Error::Refused { what });
        }
        (FirstBytes::V2 { received }, _) => received,
    };
    let left = limit.saturating_sub(began.elapsed());
    if timeout(left, turns.wait()).await.is_err() {
        let what = "its turn among the v2 handshakes";
        return Err(Error::Time { what, limit });
    }
    let (key, options) = fresh()?;
    let left = limit.saturating_sub(began.elapsed());
    let accepted = accept_after(tcp, received, settings.network, key, options, left).await;
    match accepted.map_err(|refused| failed(refused.error))? {
        Accepted::V2(messages) => {
            add(&stats.incoming_v2, 1);
            let id = SessionId(*messages.session_id());
            tracing::info!("{from}: v2 from the client, session id {id}");
            Side::v2(messages, settings)
        }
        // The first bytes have said that it is not.
        Accepted::V1 { .. } => Err(Error::Refused {
            what: "the client speaks v1",
        }),
    }
}

fn no_first_bytes(source: TransportError) -> Error {
    match source {
        TransportError::HandshakeTime { limit } => Error::Time {
            what: "the first message of the client",
            limit,
        },
        source => Error::Transport { with: CLIENT, source },
    }
}
