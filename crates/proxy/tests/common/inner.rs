//! TLS within a connection, as a program and a target speak it through proxies, and a tap that keeps what goes by.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::io::{BufRead, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::common::certificate;

/// One version of TLS with one suite.
#[derive(Clone)]
pub struct Inner {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    /// What the target found wrong with what came.
    pub faults: Arc<Mutex<Vec<String>>>,
}

impl Inner {
    pub fn new(suite: SupportedCipherSuite) -> Inner {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites = vec![suite];
        let provider = Arc::new(provider);
        let version: &[&SupportedProtocolVersion] = match suite.tls13() {
            Some(_) => &[&rustls::version::TLS13],
            None => &[&rustls::version::TLS12],
        };
        let (certificate, key) = certificate(&["inner.example"]);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let server = ServerConfig::builder_with_provider(provider);
        Inner {
            faults: Arc::default(),
            client: Arc::new(
                client
                    .with_protocol_versions(version)
                    .unwrap()
                    .with_root_certificates(roots)
                    .with_no_client_auth(),
            ),
            server: Arc::new(
                server
                    .with_protocol_versions(version)
                    .unwrap()
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate], key)
                    .unwrap(),
            ),
        }
    }

    /// Takes TLS off what comes, and passes it on.
    pub async fn in_front_of(&self, target: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::clone(&self.server));
        let faults = Arc::clone(&self.faults);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (acceptor, faults) = (acceptor.clone(), Arc::clone(&faults));
                tokio::spawn(async move {
                    let Ok(near) = acceptor.accept(near).await else {
                        return;
                    };
                    let far = TcpStream::connect(target).await.unwrap();
                    let ((mut near_rx, mut near_tx), (mut far_rx, mut far_tx)) = (split(near), far.into_split());
                    let up = async {
                        let copied = tokio::io::copy(&mut near_rx, &mut far_tx).await;
                        let fault = copied.err().filter(|error| error.kind() == ErrorKind::InvalidData);
                        faults.lock().unwrap().extend(fault.map(|fault| fault.to_string()));
                        let _ = far_tx.shutdown().await;
                    };
                    let down = async {
                        let _ = tokio::io::copy(&mut far_rx, &mut near_tx).await;
                        // After a fault there is nothing more to say.
                        if faults.lock().unwrap().is_empty() {
                            let _ = near_tx.shutdown().await;
                        }
                    };
                    tokio::join!(up, down);
                });
            }
        });
        at
    }

    /// Speaks TLS through a door.
    pub async fn connect(&self, door: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let tcp = TcpStream::connect(door).await?;
        let connector = TlsConnector::from(Arc::clone(&self.client));
        connector.connect("inner.example".try_into().unwrap(), tcp).await
    }
}

/// Passes connections on and keeps what goes up and what goes down, of all of them.
#[derive(Clone, Default)]
pub struct Tap {
    pub up: Arc<Mutex<Vec<u8>>>,
    pub down: Arc<Mutex<Vec<u8>>>,
    /// Connections so far.
    pub count: Arc<Mutex<usize>>,
}

impl Tap {
    pub async fn in_front_of(&self, server: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let tap = self.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                *tap.count.lock().unwrap() += 1;
                let tap = tap.clone();
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(server).await else {
                        return;
                    };
                    let ((near_rx, near_tx), (far_rx, far_tx)) = (near.into_split(), far.into_split());
                    tokio::join!(pass(near_rx, far_tx, tap.up), pass(far_rx, near_tx, tap.down));
                });
            }
        });
        at
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    kept: Arc<Mutex<Vec<u8>>>,
) {
    let mut buffer = vec![0; 65536];
    while let Ok(got @ 1..) = from.read(&mut buffer).await {
        kept.lock().unwrap().extend_from_slice(&buffer[..got]);
        if to.write_all(&buffer[..got]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// Whether `all` holds these bytes somewhere.
pub fn holds(all: &[u8], bytes: &[u8]) -> bool {
    // By the first of them: without optimisation, comparing megabytes at every place takes seconds.
    let mut rest = all;
    while rest.skip_until(bytes[0]).unwrap() > 0 {
        let at = all.len() - rest.len() - 1;
        if all[at..].starts_with(bytes) {
            return true;
        }
    }
    false
}
