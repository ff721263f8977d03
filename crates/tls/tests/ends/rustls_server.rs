//! `rustls` as the server.

use std::net::TcpListener;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{NamedGroup, ServerConfig, ServerConnection, StreamOwned};
use sealway_tls::group::Group;
use sealway_tls::suite::CipherSuite;

use super::*;

/// Serves one connection: gives back what it gets, and says farewell.
fn serve(identity: &Identity, suite: CipherSuite, group: Group, versions: bool) -> TcpStream {
    let usual = aws_lc_rs::default_provider();
    let group_id = NamedGroup::from(group.id());
    let provider = CryptoProvider {
        cipher_suites: aws_lc_rs::ALL_CIPHER_SUITES
            .iter()
            .filter(|one| u16::from(one.suite()) == suite.id() || !versions)
            .copied()
            .collect(),
        kx_groups: aws_lc_rs::ALL_KX_GROUPS
            .iter()
            .filter(|one| one.name() == group_id)
            .copied()
            .collect(),
        ..usual
    };
    let key = PrivateKeyDer::try_from(identity.key.clone()).unwrap();
    let versions: &[_] = if versions {
        &[&rustls::version::TLS13]
    } else {
        &[&rustls::version::TLS12]
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(identity.der.clone())], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config.send_tls13_tickets = 4;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (tcp, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), tcp);
        let mut piece = [0; 5000];
        while let Ok(got) = stream.read(&mut piece) {
            if got == 0 {
                break;
            }
            stream.conn.refresh_traffic_keys().unwrap();
            stream.write_all(&piece[..got]).unwrap();
        }
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    TcpStream::connect(at).unwrap()
}

fn talk(connection: &mut Connection) {
    let payload: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    connection.send(&payload);
    assert!(connection.wait(payload.len()) == payload);
    connection.update_keys();
    connection.send(b"with another key");
    assert_eq!(connection.wait(16), b"with another key");
    connection.close();
    assert!(connection.wait(1).is_empty() && connection.ended);
}

#[test]
fn every_suite_group_and_kind_of_key() {
    let keys = [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ED25519,
    ];
    for suite in CipherSuite::ALL {
        for group in Group::ALL {
            for algorithm in keys {
                let identity = identity(algorithm);
                let offer = Offer {
                    server_name: Some("a.test"),
                    alpn: &["http/1.1", "h2"],
                    ..Offer::default()
                };
                let tcp = serve(&identity, suite, group, true);
                let (mut connection, agreed) = connect(tcp, plain(&offer), &identity, 1000).unwrap();
                assert_eq!((agreed.suite, agreed.group), (suite.id(), group.id()));
                assert_eq!(agreed.alpn.as_deref(), Some(&b"h2"[..]));
                talk(&mut connection);
            }
        }
    }
}

#[test]
fn the_hello_of_a_browser() {
    let identity = identity(&rcgen::PKCS_ECDSA_P256_SHA256);
    for group in Group::ALL {
        let tcp = serve(&identity, CipherSuite::Aes128GcmSha256, group, true);
        let (mut connection, agreed) = connect(tcp, browser(), &identity, 1).unwrap();
        assert_eq!((agreed.group, agreed.alpn.as_deref()), (group.id(), Some(&b"h2"[..])));
        talk(&mut connection);
    }
}

#[test]
fn another_hello_is_asked_for() {
    let identity = identity(&rcgen::PKCS_ECDSA_P256_SHA256);
    for (first, group) in [
        (Group::X25519, Group::X25519MlKem768),
        (Group::X25519MlKem768, Group::X25519),
        (Group::X25519, Group::Secp256r1),
        (Group::Secp256r1, Group::Secp384r1),
    ] {
        let offer = Offer {
            groups: &[first, group],
            alpn: &["h2"],
            shares: 1,
            ..Offer::default()
        };
        let tcp = serve(&identity, CipherSuite::Aes256GcmSha384, group, true);
        let (mut connection, agreed) = connect(tcp, plain(&offer), &identity, 33).unwrap();
        assert_eq!(agreed.group, group.id());
        talk(&mut connection);
    }
}

#[test]
fn who_is_another_or_older_is_refused() {
    let (one, other) = (identity(&rcgen::PKCS_ED25519), identity(&rcgen::PKCS_ECDSA_P256_SHA256));
    let tcp = serve(&one, CipherSuite::Aes128GcmSha256, Group::X25519, true);
    let error = connect(tcp, plain(&Offer::default()), &other, 1000).err().unwrap();
    assert_eq!(error.alert(), Some(Alert::CertificateUnknown));
    let tcp = serve(&other, CipherSuite::Aes128GcmSha256, Group::X25519, false);
    let error = connect(tcp, browser(), &other, 1000).err().unwrap();
    assert!(
        matches!(error, Error::Alerted(_)) || error.alert() == Some(Alert::ProtocolVersion),
        "{error}"
    );
}
