//! Connecting to the other side.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use sealway_bip324::tokio::connect;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::stats::{Stats, add};
use crate::wire::{Side, fresh};
use crate::{Error, Outgoing, SessionId, Settings, Target};

/// What errors call the side that is connected to.
pub(crate) const NODE: &str = "the node";

/// Opens a TCP connection to the first address that answers in its share of the time: what is left, by the addresses that are
/// left. So one that swallows everything does not keep the next from being tried.
pub(crate) async fn tcp(target: &Target, limit: Duration) -> Result<(TcpStream, SocketAddr), Error> {
    let failed = |source| failed_to(target, source);
    let began = Instant::now();
    let addresses = match timeout(limit, target.addresses()).await {
        Ok(addresses) => addresses?,
        Err(_) => return Err(failed(io::ErrorKind::TimedOut.into())),
    };
    let left = limit.saturating_sub(began.elapsed());
    let (tcp, address) = first(&addresses, left, TcpStream::connect).await.map_err(failed)?;
    tcp.set_nodelay(true).map_err(failed)?;
    Ok((tcp, address))
}

/// Opens another TCP connection to an address of the target that has answered.
pub(crate) async fn tcp_again(target: &Target, address: SocketAddr, limit: Duration) -> Result<TcpStream, Error> {
    let failed = |source| failed_to(target, source);
    let (tcp, _) = first(&[address], limit, TcpStream::connect).await.map_err(failed)?;
    tcp.set_nodelay(true).map_err(failed)?;
    Ok(tcp)
}

fn failed_to(target: &Target, source: io::Error) -> Error {
    let to = target.to_string();
    Error::Connect { to, source }
}

async fn first<T, F>(
    addresses: &[SocketAddr],
    limit: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<(T, SocketAddr)>
where
    F: Future<Output = io::Result<T>>,
{
    let began = Instant::now();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (address, remaining) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let left = limit.saturating_sub(began.elapsed());
        let share = left / u32::try_from(remaining).unwrap_or(u32::MAX);
        match timeout(share, connect(*address)).await {
            Ok(Ok(connected)) => return Ok((connected, *address)),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// Connects by what the settings say.
///
/// After a v2 attempt that sent at least the length of a v1 header and received nothing, v1 is tried on another connection,
/// if that is allowed. An answer of a single byte rules it out: who answers has understood, or is somebody in between.
///
/// `from` is whose connection it is for, in the log.
pub(crate) async fn dial(settings: &Settings, stats: &Stats, from: SocketAddr) -> Result<Side, Error> {
    let stream = if settings.outgoing == Outgoing::V1 {
        tcp(&settings.connect, settings.connect_limit).await?.0
    } else {
        let (stream, address) = tcp(&settings.connect, settings.connect_limit).await?;
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
        // The one that was silent, not another of the same name.
        tcp_again(&settings.connect, address, settings.connect_limit).await?
    };
    add(&stats.outgoing_v1, 1);
    tracing::info!("{from}: v1 to the node");
    Ok(Side::v1(stream, settings.network, Vec::new(), settings.patience))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::time::sleep;

    use super::*;

    #[tokio::test]
    async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
        let addresses: Vec<SocketAddr> = ["192.0.2.1:1", "192.0.2.2:2", "192.0.2.3:3"]
            .map(|address| address.parse().unwrap())
            .to_vec();
        // An answer takes a while: who has no time left does not get it.
        let connect = async |address: SocketAddr| {
            if address.port() == 1 {
                std::future::pending::<()>().await;
            }
            sleep(Duration::from_millis(20)).await;
            match address.port() {
                2 => Err(io::ErrorKind::ConnectionRefused.into()),
                port => Ok(port),
            }
        };
        let limit = Duration::from_millis(600);
        assert_eq!(first(&addresses, limit, connect).await.unwrap(), (3, addresses[2]));
        let error = first(&addresses[..2], limit, connect).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = first(&addresses[..1], limit, connect).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(first(&[], limit, connect).await.is_err());
    }
}
