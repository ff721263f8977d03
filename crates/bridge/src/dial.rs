//! Connecting to the other side.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sealway_bip324_tokio::connect;
use sealway_net::dial::{alternate, race};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::stats::{Stats, add};
use crate::wire::{Side, fresh};
use crate::{Error, Outgoing, SessionId, Settings, Target};

/// What errors call the side that is connected to.
pub(crate) const NODE: &str = "the node";

/// Opens a TCP connection to whichever address of the target answers first.
pub(crate) async fn tcp(target: &Target, limit: Duration) -> Result<(TcpStream, SocketAddr), Error> {
    let began = Instant::now();
    let addresses = match timeout(limit, target.addresses()).await {
        Ok(addresses) => addresses?,
        Err(_) => return Err(failed_to(target, io::ErrorKind::TimedOut.into())),
    };
    first(target, &addresses, limit.saturating_sub(began.elapsed())).await
}

/// Opens another TCP connection to an address of the target that has answered.
pub(crate) async fn tcp_again(target: &Target, address: SocketAddr, limit: Duration) -> Result<TcpStream, Error> {
    let (tcp, _) = first(target, &[address], limit).await?;
    Ok(tcp)
}

async fn first(target: &Target, addresses: &[SocketAddr], limit: Duration) -> Result<(TcpStream, SocketAddr), Error> {
    // What an address said is worth more than that another one said nothing.
    let said = Mutex::new(None);
    let connecting = race(alternate(addresses), async |to| {
        let connected = TcpStream::connect(to).await;
        connected.inspect_err(|error| {
            *said.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.kind());
        })
    });
    let connected = match timeout(limit, connecting).await {
        Ok(Ok((tcp, address))) => tcp.set_nodelay(true).map(|()| (tcp, address)),
        Ok(Err(error)) => Err(error.unwrap_or(io::ErrorKind::AddrNotAvailable.into())),
        Err(_) => {
            let said = said.into_inner().unwrap_or_else(PoisonError::into_inner);
            Err(said.unwrap_or(io::ErrorKind::TimedOut).into())
        }
    };
    connected.map_err(|source| failed_to(target, source))
}

fn failed_to(target: &Target, source: io::Error) -> Error {
    let to = target.to_string();
    Error::Connect { to, source }
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
                return Side::v2(messages, settings);
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
    Ok(Side::v1(stream, Vec::new(), settings))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use sealway_net::blocking::begin;
    use socket2::{Domain, Socket, Type};

    use super::*;

    #[tokio::test]
    async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
        // A listener whose queue is full answers nobody, as a dead address does.
        let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        full.listen(0).unwrap();
        let dead = full.local_addr().unwrap().as_socket().unwrap();
        let _fillers: Vec<Socket> = (0..4).map(|_| begin(dead).unwrap()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let target = Target::from(dead);
        let (long, short) = (Duration::from_secs(60), Duration::from_millis(400));
        for addresses in [&[dead, open][..], &[dead, closed, open], &[closed, open]] {
            let (_, address) = first(&target, addresses, long).await.unwrap();
            assert_eq!(address, open);
        }
        let kind = async |addresses: &[SocketAddr]| match first(&target, addresses, short).await {
            Err(Error::Connect { source, .. }) => source.kind(),
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(&[dead]).await, io::ErrorKind::TimedOut);
        assert_eq!(kind(&[dead, closed]).await, io::ErrorKind::ConnectionRefused);
        assert_eq!(kind(&[closed]).await, io::ErrorKind::ConnectionRefused);
        assert_eq!(kind(&[]).await, io::ErrorKind::AddrNotAvailable);
    }
}
