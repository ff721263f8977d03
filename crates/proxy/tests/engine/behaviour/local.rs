//! SOCKS and HTTP, for programs on this machine.

use sealway_proxy::settings::*;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::client;
use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_and_http_work_as_inbound_and_as_outbound() {
    let target = target().await;
    let account = Account {
        user: "someone".into(),
        pass: "secret".into(),
    };
    let socks_in = InboundProtocol::Socks(Socks {
        accounts: vec![account.clone()],
        udp: true,
        ..Socks::default()
    });
    let http_in = InboundProtocol::Http(HttpProxy {
        accounts: vec![account.clone()],
        ..HttpProxy::default()
    });
    for (name, protocol) in [("socks", socks_in), ("http", http_in)] {
        let server = serve(protocol).await;
        let far = |account| match name {
            "socks" => socks_out(at(&server, "in"), account),
            _ => OutboundProtocol::Http(proxy_out(at(&server, "in"), account)),
        };
        let right = client(target, far(Some(account.clone())), ClientTransport::default()).await;
        exchange_all(name, at(&right, "door")).await;
        let wrong = Account {
            user: "someone".into(),
            pass: "secreT".into(),
        };
        for refused in [None, Some(wrong)] {
            let client = client(target, far(refused), ClientTransport::default()).await;
            let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
            assert_eq!(within(name, stream.read(&mut [0])).await.unwrap_or(0), 0);
        }
    }
}
