//! Connecting to the other side.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use sealway_bip324::tokio::connect;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stats::{Stats, add};
use crate::wire::{Side, fresh};
use crate::{Error, Outgoing, SessionId, Settings, Target};

/// What errors call the side that is connected to.
pub(crate) const NODE: &str = "the node";

/// Opens a TCP connection to the first address that answers.
pub(crate) async fn tcp(target: &Target, limit: Duration) -> Result<(TcpStream, SocketAddr), Error> {
    let failed = |source| Error::Connect {
        to: target.to_string(),
        source,
    };
    let connecting = async {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in target.addresses().await? {
            match TcpStream::connect(address).await {
                Ok(tcp) => {
                    tcp.set_nodelay(true).map_err(failed)?;
                    return Ok((tcp, address));
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    };
    match timeout(limit, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(failed(io::ErrorKind::TimedOut.into())),
    }
}

/// Connects by what the settings say.
///
/// After a v2 attempt that sent at least the length of a v1 header and received nothing, v1 is tried on another connection,
/// if that is allowed. An answer of a single byte rules it out: who answers has understood, or is somebody in between.
///
/// `from` is whose connection it is for, in the log.
pub(crate) async fn dial(settings: &Settings, stats: &Stats, from: SocketAddr) -> Result<Side, Error> {
    if settings.outgoing != Outgoing::V1 {
        let (stream, _) = tcp(&settings.connect, settings.connect_limit).await?;
        let (key, options) = fresh()?;
        match connect(stream, settings.network, key, options, settings.handshake_limit).await {
            Ok(messages) => {
                add(&stats.outgoing_v2, 1);
                let id = SessionId(*messages.session_id());
                tracing::info!("{from}: v2 to the node, session id {id}");
                return Ok(Side::v2(messages, settings.patience));
            }
            Err(failed) if failed.peer_may_speak_v1_only && settings.outgoing == Outgoing::Auto => {
                tracing::info!("{from}: the node answers nothing to v2 ({failed}); trying v1");
            }
            Err(failed) => {
                return Err(Error::Handshake {
                    with: NODE,
                    source: failed.error,
                });
            }
        }
        add(&stats.fallbacks, 1);
    }
    let (stream, _) = tcp(&settings.connect, settings.connect_limit).await?;
    add(&stats.outgoing_v1, 1);
    tracing::info!("{from}: v1 to the node");
    Ok(Side::v1(stream, settings.network, Vec::new(), settings.patience))
}
