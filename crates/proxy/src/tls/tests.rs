//! Two ends over a socket pair: every suite of both versions, key updates, ends, and bytes that are not authentic.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{AlertDescription, ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite};
use sealway_net::sock::Sock;

use crate::carrier::Carrier;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::Error;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::tls::handshake::{accept, connect};

/// Both configurations with this suite only.
fn configs(suite: SupportedCipherSuite) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(vec!["server.example".to_owned()]).unwrap();
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites = vec![suite];
    let provider = Arc::new(provider);
    let versions: &[_] = match suite {
        SupportedCipherSuite::Tls12(_) => &[&rustls::version::TLS12],
        _ => &[&rustls::version::TLS13],
    };
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    server.enable_secret_extraction = true;
    client.enable_secret_extraction = true;
    (Arc::new(server), Arc::new(client))
}

/// Every suite of both versions that a certificate for ECDSA allows.
pub(crate) fn suites() -> Vec<SupportedCipherSuite> {
    let all = rustls::crypto::aws_lc_rs::default_provider().cipher_suites;
    let usable = |suite: &SupportedCipherSuite| !format!("{:?}", suite.suite()).contains("RSA");
    let suites: Vec<_> = all.into_iter().filter(usable).collect();
    assert_eq!(suites.len(), 6, "{suites:?}");
    suites
}

pub(crate) async fn ends(suite: SupportedCipherSuite) -> (Stream, Stream) {
    let (server, client) = configs(suite);
    let (a, b) = UnixStream::pair().unwrap();
    let name = "server.example".try_into().unwrap();
    let counted = Traffic::default();
    let (near, far) = tokio::join!(
        accept(server, Sock::Unix(a), &counted, &[]),
        connect(client, name, Sock::Unix(b), &counted),
    );
    let near = near.unwrap();
    assert_eq!(near.agreed.sni, "server.example");
    let stream = |established| Stream::over_tls(established, Traffic::default());
    (stream(near), stream(far.unwrap()))
}

async fn pass(from: &mut Stream, to: &mut Stream, payload: &[u8]) {
    from.seal(payload).unwrap();
    let sending = async { from.flush().await.unwrap() };
    let taking = async {
        let mut got = Vec::new();
        while got.len() < payload.len() {
            assert!(to.more().await.unwrap(), "ended early");
            got.extend_from_slice(to.payload());
            to.consume(to.payload().len());
        }
        got
    };
    let ((), got) = tokio::join!(sending, taking);
    assert!(got == payload, "{} bytes garbled", payload.len());
}

#[tokio::test]
async fn every_suite_carries_bytes_both_ways() {
    for suite in suites() {
        let (mut near, mut far) = ends(suite).await;
        for len in [1, 2, 16_383, 16_384, 16_385, 300_000] {
            let payload: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
            pass(&mut near, &mut far, &payload).await;
            pass(&mut far, &mut near, &payload).await;
        }
        far.seal_close().unwrap();
        far.flush().await.unwrap();
        assert!(!near.more().await.unwrap(), "the end was not heard");
    }
}

#[tokio::test]
async fn keys_change_in_both_directions_and_bytes_go_on() {
    for suite in suites().into_iter().filter(|suite| suite.tls13().is_some()) {
        let (mut near, mut far) = ends(suite).await;
        pass(&mut near, &mut far, b"before").await;
        // The peer is asked to change its key too, which it answers along with what it sends next.
        near.update_keys().unwrap();
        pass(&mut near, &mut far, b"after the first").await;
        pass(&mut far, &mut near, b"answer under the new key").await;
        far.update_keys().unwrap();
        far.update_keys().unwrap();
        pass(&mut far, &mut near, b"after two at once").await;
        pass(&mut near, &mut far, b"and back").await;
    }
}

#[tokio::test]
async fn a_changed_byte_ends_the_connection_and_gives_no_payload() {
    for suite in suites() {
        let (mut near, mut far) = ends(suite).await;
        pass(&mut near, &mut far, b"before").await;
        let Carrier::Sock(Sock::Unix(raw)) = &mut near.carrier else {
            panic!("a unix socket");
        };
        let mut record = vec![23, 3, 3, 0, 64];
        record.extend_from_slice(&[9; 64]);
        raw.write_all(&record).await.unwrap();
        assert!(matches!(far.more().await, Err(Error::Protocol { of: "TLS", .. })));
        assert!(far.payload().is_empty());
        // The peer is told why, under the keys, whoever reads the stream on or leaves it.
        let refused = far.more().await;
        assert!(refused.is_err(), "the first failure is the last");
        let told = timeout(Duration::from_secs(10), near.more()).await.unwrap();
        let Err(Error::Tls(rustls::Error::AlertReceived(alert))) = told else {
            panic!("{told:?}");
        };
        assert_eq!(alert, AlertDescription::BadRecordMac);
        far.leave(b"words for a stranger").await;
        drop(far);
        assert!(near.more().await.is_err(), "something was said behind the alert");
        assert!(near.payload().is_empty());
    }
}

#[tokio::test]
async fn a_record_that_is_too_long_is_refused_before_it_has_come() {
    let (mut near, mut far) = ends(suites()[0]).await;
    let Carrier::Sock(Sock::Unix(raw)) = &mut near.carrier else {
        panic!("a unix socket");
    };
    raw.write_all(&[23, 3, 3, 0x41, 0x01]).await.unwrap();
    assert!(matches!(far.more().await, Err(Error::Protocol { of: "TLS", .. })));
}

/// What `near` makes of so many records that carry nothing, with a byte of payload before every `apart`th of them.
async fn empty_records(trusted: bool, count: usize, apart: usize) -> Result<(), Error> {
    let (mut near, mut far) = ends(suites()[0]).await;
    if trusted {
        near.trust();
    }
    let taking = tokio::spawn(async move {
        while near.more().await? {
            near.consume(near.payload().len());
        }
        Ok(())
    });
    for at in 0..count {
        if at % apart == apart - 1 {
            far.seal(b"x").unwrap();
        }
        far.update_keys().unwrap();
    }
    far.seal_close().unwrap();
    // Refused in the middle of it, perhaps.
    let _ = far.flush().await;
    taking.await.unwrap()
}

#[tokio::test]
async fn records_without_payload_are_few_in_a_row_and_fewer_from_strangers() {
    assert!(empty_records(false, 32, 100).await.is_ok());
    let refused = empty_records(false, 34, 100).await;
    assert!(matches!(refused, Err(Error::Protocol { of: "TLS", .. })), "{refused:?}");
    let refused = empty_records(false, 34, 2).await;
    assert!(refused.is_err(), "payload between them makes a stranger no better");
    assert!(empty_records(true, 32, 100).await.is_ok());
    assert!(empty_records(true, 34, 100).await.is_err());
    assert!(empty_records(true, 1000, 30).await.is_ok());
}
