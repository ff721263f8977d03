//! What a connection does besides carrying bytes: fallbacks, ends, time limits, refusals, counters.

mod ends;
mod fallbacks;
mod http2;
mod local;
mod reality;
mod strangers;
mod upgrade;

use std::net::SocketAddr;
use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::net::TcpStream;

use crate::common::*;

async fn client(target: SocketAddr, protocol: OutboundProtocol, transport: ClientTransport) -> Server {
    let settings = door_settings(target, outbound(protocol, transport));
    start(settings).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_is_counted_also_when_the_kernel_moves_it() {
    let target = target().await;
    let server = start(counting_settings()).await;
    let client = client(target, vless_out(at(&server, "in")), ClientTransport::default()).await;
    let (up, down) = (5 << 20, 7 << 20);
    let stream = TcpStream::connect(at(&client, "door")).await.unwrap();
    within("exchange", exchange(stream, up, down)).await;
    let (stats, up, down) = (server.stats().clone(), up as u64 + 16, down as u64 + 32);
    assert!(server.shutdown(Duration::from_secs(10)).await, "connections remained");
    let count = |name: &str| stats.get(name).unwrap().get();
    assert_eq!(count("user>>>user@example>>>traffic>>>uplink"), up);
    assert_eq!(count("user>>>user@example>>>traffic>>>downlink"), down);
    assert_eq!(count("outbound>>>direct>>>traffic>>>uplink"), up);
    assert_eq!(count("outbound>>>direct>>>traffic>>>downlink"), down);
    let header = 1 + 16 + 1 + 1 + 2 + 1 + 4;
    assert_eq!(count("inbound>>>in>>>traffic>>>uplink"), up + header);
    assert_eq!(count("inbound>>>in>>>traffic>>>downlink"), down + 2);
}
