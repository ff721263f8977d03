//! Against sites that have no key of REALITY. Servers that have one are among the programs of `tests/interop/`.
#![allow(clippy::unwrap_used, reason = "tests")]

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use sealway_tls::group::X25519Secret;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::clock::unix_time;

#[test]
fn what_is_for_other_programs_is_not_asked_for() {
    for (set, asked) in [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a?p=1-2&c=3&t=4&i=5&r=6", "/a"),
        ("/a?q=1&p=1-2&page=7", "/a?q=1&page=7"),
    ] {
        assert_eq!(site_path(set), asked);
    }
}

fn settings() -> ClientReality {
    ClientReality {
        server_name: "a.test".into(),
        fingerprint: "chrome".into(),
        public_key: X25519Secret::new(&[9; 32]).public(),
        short_id: [1; 8],
        short_id_len: 8,
        mldsa65_verify: None,
        spider_x: "/a?p=1".into(),
        key_log: None,
    }
}

/// A site with a valid certificate, which gives back what it was asked.
async fn site(
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> (TcpStream, tokio::task::JoinHandle<Vec<u8>>, RealityClient) {
    let authority = rcgen::KeyPair::generate().unwrap();
    let mut of_authority = rcgen::CertificateParams::new(vec![]).unwrap();
    of_authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = of_authority.self_signed(&authority).unwrap();
    let issuer = rcgen::Issuer::new(of_authority, authority);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["a.test".into()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();
    let provider = provider("", &[], &[]).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (far, _) = listener.accept().await.unwrap();
    let asked = tokio::spawn(async move {
        let mut asked = vec![0; 5000];
        match TlsAcceptor::from(Arc::new(config)).accept(far).await {
            Ok(mut tls) => {
                let got = tls.read(&mut asked).await.unwrap_or_default();
                asked.truncate(got);
            }
            Err(_) => asked.clear(),
        }
        asked
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let reality = RealityClient {
        settings: settings(),
        usual: usual.build().unwrap(),
        provider,
        log: None,
        clock: unix_time,
        visited: AtomicI64::new(0),
    };
    (near, asked, reality)
}

#[tokio::test]
async fn a_site_is_visited_once_a_minute() {
    static NOW: AtomicI64 = AtomicI64::new(1_800_000_000);
    let (_near, _asked, mut reality) = site(&[&rustls::version::TLS13]).await;
    reality.clock = || NOW.load(Ordering::Relaxed);
    for (passed, visits) in [(0, true), (0, false), (59, false), (1, true), (30, false), (3600, true)] {
        NOW.fetch_add(passed, Ordering::Relaxed);
        assert_eq!(reality.may_visit(), visits, "after {passed} more seconds");
    }
}

fn host() -> Address {
    Address::from(std::net::IpAddr::from([127, 0, 0, 1]))
}

async fn connect(reality: &RealityClient, near: TcpStream) -> Result<Answer, Error> {
    let sock = sealway_net::sock::Sock::Tcp(near);
    reality.connect(&host(), sock, &Traffic::default()).await
}

#[tokio::test]
async fn the_site_itself_is_told_from_the_server() {
    let (near, asked, reality) = site(&[&rustls::version::TLS13]).await;
    let Ok(Answer::Site {
        established,
        host,
        path,
        error,
    }) = connect(&reality, near).await
    else {
        panic!("the site has answered");
    };
    assert_eq!((host.as_str(), path.as_str()), ("a.test", "/a"));
    let said = error.to_string();
    for cause in [
        "the site a.test itself",
        "publicKey",
        "shortId",
        "serverName",
        "clock",
        "minClientVer",
    ] {
        assert!(said.contains(cause), "{said}");
    }
    // It sees a visitor like any other.
    drop(established);
    assert_eq!(asked.await.unwrap(), b"");
}

#[tokio::test]
async fn who_is_neither_server_nor_site_is_refused() {
    let (near, _asked, mut reality) = site(&[&rustls::version::TLS13]).await;
    reality.settings.server_name = "b.test".into();
    let error = connect(&reality, near).await.err().unwrap();
    assert!(
        matches!(
            &error,
            Error::NotReality {
                answered: Answered::Nobody { .. },
                ..
            }
        ),
        "{error}"
    );
    let (near, _asked, reality) = site(&[&rustls::version::TLS12]).await;
    let error = connect(&reality, near).await.err().unwrap();
    assert!(
        matches!(
            &error,
            Error::NotReality {
                answered: Answered::Older | Answered::Failed { .. },
                ..
            }
        ),
        "{error}"
    );
    // One that closes.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    let reading = tokio::spawn(async move { far.read(&mut [0; 4000]).await });
    let error = connect(&reality, near).await.err().unwrap();
    assert!(
        matches!(
            &error,
            Error::NotReality {
                answered: Answered::Silent,
                ..
            }
        ),
        "{error}"
    );
    reading.await.unwrap().unwrap();
}
