//! Probes of nodes of every kind.

use std::net::SocketAddr;
use std::time::Duration;

use bip324::Role;
use sealway_bip324::{LocalKey, Magic, Options as HandshakeOptions};
use sealway_bip324_tokio::{TransportError, accept};
use sealway_bridge::probe::{Options, Report};
use sealway_bridge::{Error, Target, probe};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::peer::Peer;
use crate::{NETWORK, framed, listener, within};

/// A payload of a node: witnesses, v2 and a bit without a name, at height 840,000.
fn version() -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend_from_slice(&70_016i32.to_le_bytes());
    payload.extend_from_slice(&0x0100_0c09_u64.to_le_bytes());
    payload.extend_from_slice(&1_700_000_000_i64.to_le_bytes());
    payload.extend_from_slice(&[0; 26 + 26 + 8]);
    payload.push(16);
    payload.extend_from_slice(b"/Satoshi:29.0.0/");
    payload.extend_from_slice(&840_000i32.to_le_bytes());
    payload.push(1);
    payload
}

async fn ask(at: SocketAddr, limit: Duration) -> Result<Report, Error> {
    let options = Options {
        network: NETWORK,
        limit,
        user_agent: "/sealway:test/".into(),
    };
    let target = Target::from(at);
    within("the probe", probe(&target, &options)).await
}

const ENOUGH: Duration = Duration::from_secs(50);

#[tokio::test]
async fn a_node_that_speaks_v2() {
    let (node, at) = listener().await;
    let node_side = async {
        let (tcp, _) = node.accept().await.unwrap();
        let mut peer = Peer::new(tcp, NETWORK, Role::Responder).await;
        let first = peer.recv().await;
        assert!(first.starts_with(b"\0version\0\0\0\0\0") && first.windows(14).any(|w| w == b"/sealway:test/"));
        // Something else may come before.
        peer.send(b"\x12a ping..").await;
        peer.send_decoy().await;
        let answer = [&b"\0version\0\0\0\0\0"[..], &version()].concat();
        peer.send(&answer).await;
        *peer.cipher.id()
    };
    let (report, session_id) = tokio::join!(ask(at, ENOUGH), node_side);
    let report = report.unwrap();
    assert_eq!(report.v2.unwrap().session_id.0, session_id);
    assert_eq!((report.address, report.network), (at, NETWORK));
    let said = report.version.unwrap().version;
    assert_eq!((said.protocol, said.height), (70_016, 840_000));
    assert_eq!(said.user_agent, "/Satoshi:29.0.0/");
    assert_eq!(
        said.service_names(),
        ["NETWORK", "WITNESS", "NETWORK_LIMITED", "P2P_V2", "bit 24"]
    );
}

#[tokio::test]
async fn a_node_that_speaks_v1_only() {
    let (node, at) = listener().await;
    let node_side = async {
        let (mut first, _) = node.accept().await.unwrap();
        first.read_exact(&mut [0; 24]).await.unwrap();
        drop(first);
        let (mut second, _) = node.accept().await.unwrap();
        let mut header = [0; 24];
        second.read_exact(&mut header).await.unwrap();
        assert!(header.starts_with(&NETWORK.v1_prefix()));
        second.write_all(&framed("version", &version())).await.unwrap();
        second.read_to_end(&mut Vec::new()).await.unwrap();
    };
    let (report, ()) = tokio::join!(ask(at, ENOUGH), node_side);
    let report = report.unwrap();
    assert!(matches!(report.v2, Err(Error::Handshake { .. })), "{report:?}");
    assert_eq!(report.version.unwrap().version.height, 840_000);
}

#[tokio::test]
async fn a_port_that_nobody_listens_on() {
    let (node, at) = listener().await;
    drop(node);
    let error = ask(at, ENOUGH).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn a_port_that_is_silent() {
    let (node, at) = listener().await;
    let report = ask(at, Duration::from_millis(400)).await.unwrap();
    assert!(report.v2.is_err());
    assert!(matches!(report.version, Err(Error::Time { .. })), "{report:?}");
    drop(node);
}

#[tokio::test]
async fn an_echo_is_no_node() {
    let (node, at) = listener().await;
    let echo = tokio::spawn(async move {
        for _ in 0..2 {
            let (tcp, _) = node.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.into_split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    let report = ask(at, Duration::from_secs(55)).await.unwrap();
    // All that was sent comes back, which is more than can be garbage: nobody waits for a time limit.
    assert!(
        matches!(report.v2, Err(Error::NoTerminator { bytes, .. }) if bytes > 4111),
        "{report:?}"
    );
    assert!(matches!(report.version, Err(Error::Echo)), "{report:?}");
    echo.await.unwrap();
}

#[tokio::test]
async fn an_echo_inside_v2_is_no_node() {
    let (node, at) = listener().await;
    let node_side = async {
        let (tcp, _) = node.accept().await.unwrap();
        let mut peer = Peer::new(tcp, NETWORK, Role::Responder).await;
        let ours = peer.recv().await;
        peer.send(&ours).await;
        let _ = peer.tcp.read_to_end(&mut Vec::new()).await;
    };
    let (report, ()) = tokio::join!(ask(at, ENOUGH), node_side);
    let report = report.unwrap();
    assert!(
        report.v2.is_ok() && matches!(report.version, Err(Error::Echo)),
        "{report:?}"
    );
}

#[tokio::test]
async fn a_node_of_another_network_is_known_at_once() {
    // It answers like any node and waits for the terminator of its own network, for as long as one can come.
    let (node, at) = listener().await;
    let node_side = async {
        let (tcp, _) = node.accept().await.unwrap();
        let random = |byte| LocalKey::new(&[byte; 32], &[byte; 32]).unwrap();
        let (key, options) = (random(5), HandshakeOptions::default());
        let refused = accept(tcp, Magic::MAINNET, key, options, ENOUGH).await.unwrap_err();
        assert!(refused.before_terminator, "{refused:?}");
        let (mut second, _) = node.accept().await.unwrap();
        second.read_exact(&mut [0; 24]).await.unwrap();
    };
    let (report, ()) = tokio::join!(ask(at, ENOUGH), node_side);
    let report = report.unwrap();
    let why = report.v2.unwrap_err();
    let text = why.to_string();
    // It closed; had it waited for more, our time would have been up.
    assert!(
        !matches!(
            &why,
            Error::NoTerminator {
                source: TransportError::HandshakeTime { .. },
                ..
            }
        ),
        "{why:?}"
    );
    // Its key, its terminator, its version packet; fewer if it was faster in closing.
    assert!(
        text.starts_with("answered ") && text.ends_with(", no terminator: another network?"),
        "{text}"
    );
    assert!(report.version.is_err());
}

#[tokio::test]
async fn nodes_that_talk_nonsense() {
    // Closes at once both times; talks without end both times; shakes hands and then says other things, or a bad version.
    let (node, at) = listener().await;
    let closing = async {
        for _ in 0..2 {
            drop(node.accept().await.unwrap());
        }
    };
    let (report, ()) = tokio::join!(ask(at, ENOUGH), closing);
    let report = report.unwrap();
    assert!(report.v2.is_err() && report.version.is_err());

    let (node, at) = listener().await;
    let talking = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut tcp, _) = node.accept().await.unwrap();
            while tcp.write_all(&[7; 1000]).await.is_ok() {}
        }
    });
    let report = ask(at, ENOUGH).await.unwrap();
    let Err(Error::NoTerminator { bytes, .. }) = &report.v2 else {
        panic!("{report:?}")
    };
    assert!(*bytes >= 64 + 4111 && report.version.is_err(), "{report:?}");
    within("the talker", talking).await.unwrap();

    for (contents, times) in [(&b"\x12a ping.."[..], 20), (b"\0version\0\0\0\0\0cut", 1)] {
        let (node, at) = listener().await;
        let node_side = async {
            let (tcp, _) = node.accept().await.unwrap();
            let mut peer = Peer::new(tcp, NETWORK, Role::Responder).await;
            let wire: Vec<u8> = (0..times).flat_map(|_| peer.sealed(contents)).collect();
            peer.tcp.write_all(&wire).await.unwrap();
            let _ = peer.tcp.read_to_end(&mut Vec::new()).await;
        };
        let (report, ()) = tokio::join!(ask(at, ENOUGH), node_side);
        let report = report.unwrap();
        assert!(report.v2.is_ok());
        assert!(matches!(report.version, Err(Error::Message { .. })), "{report:?}");
    }
}
