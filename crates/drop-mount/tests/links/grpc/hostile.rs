//! Peers that do not keep to the protocol.

use std::sync::Arc;
use std::time::Duration;

use sealway_drop_mount::grpc::proto::drop_client::DropClient;
use sealway_drop_mount::grpc::proto::{self};
use sealway_drop_mount::grpc::{GrpcTree, ServeOptions, serve};
use sealway_drop_mount::tree::{MemoryTree, RemoteTree, TreeError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;
use tonic::transport::Endpoint;

use super::{bytes, runtime};
use crate::lines::{call, path, until};

/// A client that says what it likes.
async fn client(tree: Arc<dyn RemoteTree>) -> DropClient<tonic::transport::Channel> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream, tree, ServeOptions::default()).await
    });
    let endpoint = Endpoint::try_from(format!("http://{address}")).unwrap();
    DropClient::new(endpoint.connect().await.unwrap())
}

#[test]
fn bad_requests_are_answered_with_a_status() {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), bytes(100));
    runtime().block_on(async {
        let mut client = client(Arc::new(tree)).await;
        for bad in [&b"../x"[..], b"/etc/passwd", b"a//b", b"a\0", b".", &[b'a'; 5000]] {
            let path = bad.to_vec().into();
            let request = proto::PathRequest { path };
            let refused = [
                client.get_attr(request.clone()).await.unwrap_err(),
                client.open(request.clone()).await.unwrap_err(),
                client.read_link(request).await.unwrap_err(),
            ];
            assert!(refused.iter().all(|status| status.code() == Code::InvalidArgument));
        }
        let lookup = |name: &'static [u8]| proto::LookupRequest {
            path: Default::default(),
            name: name.into(),
        };
        let refused = client.lookup(lookup(b"..")).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert_eq!(client.lookup(lookup(b"file")).await.unwrap().get_ref().size, 100);
        for (handle, offset, length, code) in [
            (1, 0, u32::MAX, Code::InvalidArgument),
            (u64::MAX, u64::MAX, 5, Code::Aborted),
        ] {
            let read = proto::ReadRequest { handle, offset, length };
            assert_eq!(client.read(read).await.unwrap_err().code(), code);
        }
        let huge = proto::PathRequest {
            path: vec![b'a'; 1 << 20].into(),
        };
        assert_eq!(client.get_attr(huge).await.unwrap_err().code(), Code::OutOfRange);
        let far = proto::ReadDirRequest {
            path: b"".to_vec().into(),
            cursor: u64::MAX,
            limit: u32::MAX,
        };
        assert!(
            client
                .read_dir(far)
                .await
                .is_ok_and(|page| page.get_ref().entries.is_empty())
        );
        // The connection has survived all of it.
        assert!(
            client
                .ping(proto::PingRequest { number: 5 })
                .await
                .is_ok_and(|reply| reply.get_ref().number == 5)
        );
    });
}

#[test]
fn noise_ends_a_connection_and_nothing_else() {
    let tree = MemoryTree::new();
    runtime().block_on(async {
        for noise in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0xff; 4096],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff",
        ] {
            let (mut here, there) = tokio::io::duplex(1 << 16);
            let server = tokio::spawn(serve(there, Arc::new(tree.clone()), ServeOptions::default()));
            here.write_all(noise).await.unwrap();
            let mut answer = Vec::new();
            // Half closed: whatever it thought of the noise, it comes to an end.
            here.shutdown().await.unwrap();
            tokio::time::timeout(Duration::from_secs(60), here.read_to_end(&mut answer))
                .await
                .unwrap()
                .unwrap();
            let ended = tokio::time::timeout(Duration::from_secs(60), server).await.unwrap();
            assert!(ended.is_ok(), "a panic");
        }
    });
}

/// Passes bytes between two streams until a number of them have gone one way.
async fn cut_after(limit: usize, client: tokio::io::DuplexStream, server: tokio::io::DuplexStream) {
    let ((mut client_read, mut client_write), (mut server_read, mut server_write)) =
        (tokio::io::split(client), tokio::io::split(server));
    let up = tokio::spawn(async move { tokio::io::copy(&mut client_read, &mut server_write).await });
    let (mut left, mut buffer) = (limit, vec![0; 4096]);
    while left > 0 {
        let most = left.min(buffer.len());
        match server_read.read(&mut buffer[..most]).await {
            Ok(read) if read > 0 => {
                left -= read;
                if client_write.write_all(&buffer[..read]).await.is_err() {
                    break;
                }
            }
            _ => break,
        }
    }
    up.abort();
}

#[test]
fn a_read_that_is_cut_off_is_an_error_wherever_it_is_cut() {
    let runtime = runtime();
    let content = bytes(1 << 20);
    let (mut cut, mut whole) = (0, 0);
    for limit in [200, 300, 500, 5_000, 100_000, 524_000, 1_000_000, 1_048_000, 4 << 20] {
        let tree = MemoryTree::new();
        tree.put_file(&path("file"), content.clone());
        let (here, middle_here) = tokio::io::duplex(1 << 16);
        let (middle_there, there) = tokio::io::duplex(1 << 16);
        runtime.spawn(serve(there, Arc::new(tree.clone()), ServeOptions::default()));
        runtime.spawn(cut_after(limit, middle_here, middle_there));
        let Ok(remote) = runtime.block_on(GrpcTree::connect(here)) else {
            continue;
        };
        let read = remote
            .open(&path("file"), &call())
            .and_then(|opened| remote.read(opened.handle, 0, 1 << 20, &call()));
        match read {
            Ok(chunk) => {
                assert!(chunk.data == content);
                whole += 1;
            }
            Err(error) => {
                assert_eq!(error, TreeError::Lost);
                cut += 1;
                until("noticing", || !remote.is_alive());
            }
        }
    }
    assert!(cut >= 5 && whole >= 1, "{cut} cut, {whole} whole");
}
