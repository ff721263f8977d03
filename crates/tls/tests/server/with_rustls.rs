//! The plain server against rustls: every suite and group, both kinds of key, requests for another hello, input in pieces of any
//! length, application protocols, changes of keys, and both ends of a connection.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore, SupportedCipherSuite};
use sealway_tls::group::Group;
use sealway_tls::server::Config;
use sealway_tls::suite::CipherSuite;
use sealway_tls::{Alert, Error};

use crate::common::{End, Made, ecdsa, ed25519};

const HYBRID: &dyn SupportedKxGroup = aws_lc_rs::kx_group::X25519MLKEM768;
const X25519: &dyn SupportedKxGroup = aws_lc_rs::kx_group::X25519;
const P256: &dyn SupportedKxGroup = aws_lc_rs::kx_group::SECP256R1;
const P384: &dyn SupportedKxGroup = aws_lc_rs::kx_group::SECP384R1;

fn suite(suite: CipherSuite) -> SupportedCipherSuite {
    match suite {
        CipherSuite::Aes128GcmSha256 => aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::Aes256GcmSha384 => aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::ChaCha20Poly1305Sha256 => aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    }
}

/// A client that offers these, the first group with a share.
fn client(
    made: &Made,
    suites: &[CipherSuite],
    groups: &[&'static dyn SupportedKxGroup],
    alpn: &[&str],
) -> ClientConnection {
    let provider = CryptoProvider {
        cipher_suites: suites.iter().map(|one| suite(*one)).collect(),
        kx_groups: groups.to_vec(),
        ..aws_lc_rs::default_provider()
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(made.der.clone())).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    ClientConnection::new(Arc::new(config), "server.example".try_into().unwrap()).unwrap()
}

/// What has gone wrong, at which end.
#[derive(Debug)]
enum Broke {
    Server(#[allow(dead_code, reason = "printed")] Error),
    Client(rustls::Error),
}

/// Moves bytes in pieces until neither end has any.
fn exchange(client: &mut ClientConnection, server: &mut End, step: usize) -> Result<(), Broke> {
    loop {
        let mut up = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut up).unwrap();
        }
        let took = server.take(&up, step);
        let down = std::mem::take(&mut server.out);
        for mut piece in down.chunks(step) {
            while !piece.is_empty() {
                client.read_tls(&mut piece).unwrap();
                client.process_new_packets().map_err(Broke::Client)?;
            }
        }
        took.map_err(Broke::Server)?;
        if up.is_empty() && down.is_empty() {
            return Ok(());
        }
    }
}

fn received(client: &mut ClientConnection) -> Vec<u8> {
    let mut got = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = client.reader().read(&mut buffer) {
        got.extend_from_slice(&buffer[..n]);
    }
    got
}

/// Payload both ways, a change of keys each way and each end's close.
fn converse(client: &mut ClientConnection, server: &mut End, step: usize) {
    for round in 0..3_u8 {
        let payload: Vec<u8> = (0..9_000_u32).map(|at| (at % 251) as u8 ^ round).collect();
        client.writer().write_all(&payload).unwrap();
        server.say(&payload);
        exchange(client, server, step).unwrap();
        assert_eq!(std::mem::take(&mut server.got), payload);
        assert_eq!(received(client), payload);
        match round {
            0 => client.refresh_traffic_keys().unwrap(),
            1 => {
                let mut update = Vec::new();
                server.records().key_update(&mut update, true).unwrap();
                server.out.append(&mut update);
            }
            _ => {}
        }
    }
    client.send_close_notify();
    exchange(client, server, step).unwrap();
    assert!(server.closed);
    server.close();
    exchange(client, server, step).unwrap();
    assert_eq!(client.reader().read(&mut [0; 9]).unwrap(), 0, "the end was not heard");
}

#[test]
fn every_suite_and_group_with_both_kinds_of_key() {
    for made in [ed25519(), ecdsa()] {
        for one in CipherSuite::ALL {
            for (group, theirs) in [
                (Group::X25519, X25519),
                (Group::X25519MlKem768, HYBRID),
                (Group::Secp256r1, P256),
                (Group::Secp384r1, P384),
            ] {
                let mut client = client(&made, &[one], &[theirs], &[]);
                let mut server = End::new(Config::new(made.identity.clone()));
                exchange(&mut client, &mut server, usize::MAX).unwrap();
                let agreed = &server.connected.as_ref().expect("through").agreed;
                assert_eq!((agreed.suite, agreed.group, &agreed.alpn), (one, group, &None));
                assert_eq!(agreed.server_name.as_deref(), Some(&b"server.example"[..]));
                converse(&mut client, &mut server, usize::MAX);
            }
        }
    }
}

#[test]
fn bytes_may_come_in_pieces_of_any_length() {
    let made = ed25519();
    for step in [1, 2, 3, 5, 7, 64, 1000] {
        let mut client = client(&made, &CipherSuite::ALL, &[HYBRID, X25519], &[]);
        let mut server = End::new(Config::new(made.identity.clone()));
        exchange(&mut client, &mut server, step).unwrap();
        converse(&mut client, &mut server, step);
    }
}

#[test]
fn a_client_without_a_share_is_asked_for_one() {
    let made = ed25519();
    for one in CipherSuite::ALL {
        for (group, offered) in [
            (Group::X25519, [P256, X25519]),
            (Group::X25519MlKem768, [P256, HYBRID]),
            (Group::Secp256r1, [X25519, P256]),
            (Group::Secp384r1, [HYBRID, P384]),
        ] {
            for step in [1, usize::MAX] {
                let mut client = client(&made, &[one], &offered, &[]);
                let mut config = Config::new(made.identity.clone());
                config.groups = vec![group];
                let mut server = End::new(config);
                exchange(&mut client, &mut server, step).unwrap();
                assert_eq!(server.connected.as_ref().unwrap().agreed.group, group);
                converse(&mut client, &mut server, step);
                let kind = client.handshake_kind();
                assert_eq!(kind, Some(rustls::HandshakeKind::FullWithHelloRetryRequest));
            }
        }
    }
}

#[test]
fn the_server_chooses_by_its_own_order() {
    let made = ed25519();
    let mut config = Config::new(made.identity.clone());
    config.suites = vec![CipherSuite::ChaCha20Poly1305Sha256, CipherSuite::Aes128GcmSha256];
    config.groups = vec![Group::X25519];
    config.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut client = client(&made, &CipherSuite::ALL, &[HYBRID, X25519], &["http/1.1", "h2"]);
    let mut server = End::new(config);
    exchange(&mut client, &mut server, usize::MAX).unwrap();
    let agreed = &server.connected.as_ref().unwrap().agreed;
    assert_eq!(
        (agreed.suite, agreed.group, agreed.alpn.as_deref()),
        (CipherSuite::ChaCha20Poly1305Sha256, Group::X25519, Some(&b"h2"[..]))
    );
    assert_eq!(client.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(
        client.negotiated_key_exchange_group().unwrap().name(),
        NamedGroup::X25519
    );
}

/// Both ends say the same of what went wrong, and the client is told why.
#[test]
fn what_cannot_be_agreed_on_is_refused_with_its_alert() {
    let made = ed25519();
    let refused = |client: &mut ClientConnection, config: Config, alert: Alert| {
        let mut server = End::new(config);
        let told = exchange(client, &mut server, 100).unwrap_err();
        let Broke::Client(rustls::Error::AlertReceived(told)) = told else {
            panic!("{told:?}");
        };
        assert_eq!(u8::from(told), alert as u8);
        assert!(
            matches!(server.take(b"more", 9), Err(Error::Given(_))),
            "an end that failed goes on"
        );
    };
    let config = Config::new(made.identity.clone());
    let mut other = config.clone();
    other.suites = vec![CipherSuite::Aes128GcmSha256];
    let mut with = client(&made, &[CipherSuite::Aes256GcmSha384], &[X25519], &[]);
    refused(&mut with, other, Alert::HandshakeFailure);
    let mut other = config.clone();
    other.groups = Group::SHARED.to_vec();
    let mut with = client(&made, &CipherSuite::ALL, &[P256], &[]);
    refused(&mut with, other, Alert::HandshakeFailure);
    let mut other = config.clone();
    other.alpn = vec![b"h2".to_vec()];
    let mut with = client(&made, &CipherSuite::ALL, &[X25519], &["http/1.1"]);
    refused(&mut with, other, Alert::NoApplicationProtocol);
}

#[test]
fn a_client_that_does_not_trust_the_server_says_so() {
    let made = ed25519();
    let mut client = client(&ed25519(), &CipherSuite::ALL, &[X25519], &[]);
    let mut server = End::new(Config::new(made.identity.clone()));
    let broke = exchange(&mut client, &mut server, usize::MAX).unwrap_err();
    assert!(matches!(broke, Broke::Client(_)), "{broke:?}");
    let mut alert = Vec::new();
    client.write_tls(&mut alert).unwrap();
    assert!(matches!(server.take(&alert, 1), Err(Error::Alerted(_))));
}
