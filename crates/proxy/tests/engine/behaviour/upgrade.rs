//! Clients that do not wait for the answer to their upgrade.

use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::*;

/// Noticed with Xray as the client and `?ed=` in the path: both waited for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_comes_behind_the_upgrade_in_one_piece_is_not_waited_for() {
    let target = counting_target().await;
    let transport = server_over(TransportKind::HttpUpgrade(Upgrade::default()), None);
    let server = start(server_settings(vless(), transport)).await;
    let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
    let mut whole = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".to_vec();
    whole.extend_from_slice(&vless_request(target));
    whole.extend_from_slice(b"seven b");
    stream.write_all(&whole).await.unwrap();
    // The request is dealt with while the client still sends; only then comes the end, for which the target waits.
    let mut head = vec![0; 4];
    within("answer to the upgrade", stream.read_exact(&mut head))
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let mut said = Vec::new();
    within("answer", stream.read_to_end(&mut said)).await.unwrap();
    assert!(
        said.ends_with(b"\r\n\r\n\0\x007 bytes"),
        "{}",
        String::from_utf8_lossy(&said)
    );
}
