//! What stands for the site.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::common::certificate;
use crate::nginx;
use crate::programs::{Endpoint, Place, Process};

/// One site.
pub(super) struct Site {
    pub(super) name: &'static str,
    /// Lines of nginx.
    lines: &'static str,
    /// Which certificate it has.
    certificate: &'static str,
}

pub(super) const SITES: [Site; 3] = [
    Site {
        name: "ecdsa",
        lines: "ssl_protocols TLSv1.2 TLSv1.3;",
        certificate: "ec",
    },
    Site {
        name: "rsa, http/2",
        lines: "ssl_protocols TLSv1.2 TLSv1.3; http2_max_concurrent_streams 100;",
        certificate: "rsa",
    },
    Site {
        name: "x25519 only",
        lines: "ssl_protocols TLSv1.3; ssl_ecdh_curve X25519;",
        certificate: "ec",
    },
];

/// A site with a large certificate.
pub(super) const LARGE: Site = Site {
    name: "large",
    lines: "ssl_protocols TLSv1.3;",
    certificate: "large",
};

/// Sites whose handshake cannot be borrowed.
pub(super) const UNFIT: [Site; 2] = [
    Site {
        name: "tls 1.2 only",
        lines: "ssl_protocols TLSv1.2;",
        certificate: "ec",
    },
    Site {
        name: "another hello wanted",
        lines: "ssl_protocols TLSv1.3; ssl_ecdh_curve secp384r1;",
        certificate: "ec",
    },
];

/// nginx as each of the sites.
pub(super) struct Sites {
    pub(super) at: Vec<SocketAddr>,
    _running: Process,
    _place: Place,
}

impl Sites {
    pub(super) async fn start(sites: &[Site]) -> Sites {
        let place = Place::new();
        let (ec_certificate, ec_key) = certificate(&["a.test"]);
        place.write("ec.pem", &ec_certificate);
        place.write("ec.key", &ec_key);
        // Large enough for what a server with a key of ML-DSA-65 shows.
        let names: Vec<String> = (0..200)
            .map(|number| format!("name-{number}.of.the.site.a.test"))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).chain(["a.test"]).collect();
        let (large_certificate, large_key) = certificate(&names);
        place.write("large.pem", &large_certificate);
        place.write("large.key", &large_key);
        let rsa = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                "/CN=a.test",
                "-days",
                "9",
            ])
            .args(["-keyout", &place.name("rsa.key"), "-out", &place.name("rsa.pem")])
            .output();
        assert!(rsa.unwrap().status.success());
        let mut http = String::new();
        let mut at = Vec::new();
        for site in sites {
            let address = place.at(place.port());
            let kind = site.certificate;
            let protocols = if kind == "rsa" { "ssl http2" } else { "ssl" };
            http += &format!(
                "server {{ listen {address} {protocols}; server_name a.test; {} ssl_certificate {}; ssl_certificate_key {}; \
                 location / {{ return 200 'the site'; }} }}\n",
                site.lines,
                place.name(&format!("{kind}.pem")),
                place.name(&format!("{kind}.key")),
            );
            at.push(address);
        }
        place.let_go();
        let endpoints: Vec<Endpoint> = at.iter().copied().map(Endpoint::Tcp).collect();
        let running = nginx::start(&place, &http, "", &endpoints).await;
        Sites {
            at,
            _running: running,
            _place: place,
        }
    }
}

/// A site that agrees on X25519MLKEM768, as rustls does.
pub(super) async fn hybrid_site() -> SocketAddr {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    // A flight in one record of at most 512 bytes is taken for the first of four.
    let names: Vec<String> = (0..20).map(|number| format!("{number}.a.test")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["a.test"]).collect();
    let (certificate, key) = certificate(&names);
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::X25519MLKEM768];
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let Ok((tcp, _)) = listener.accept().await else {
                continue;
            };
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(tcp).await?;
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await
            });
        }
    });
    at
}

/// Passes connections on to a site, and counts those that whoever came has left.
pub(super) async fn watched(site: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, left) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&left);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let counter = Arc::clone(&counter);
            tokio::spawn(async move {
                let (mut near_read, mut near_write) = near.into_split();
                let (mut far_read, mut far_write) = TcpStream::connect(site).await.unwrap().into_split();
                let down = tokio::spawn(async move { tokio::io::copy(&mut far_read, &mut near_write).await });
                let _ = tokio::io::copy(&mut near_read, &mut far_write).await;
                counter.fetch_add(1, Ordering::SeqCst);
                drop(far_write);
                let _ = down.await;
            });
        }
    });
    (at, left)
}
