//! The server name in the first bytes of a client, as the handshake looks for it.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::ConnectionState;
use rustls::{ClientConfig, RootCertStore};
use sealway_v2ray::sniff;

fn server_name(wire: &[u8]) -> Option<String> {
    sniff::server_name(wire).map(|name| name.as_str().to_owned())
}

fn hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut client = UnbufferedClientConnection::new(Arc::new(config), name).unwrap();
    let mut out = vec![0; 4096];
    let ConnectionState::EncodeTlsData(mut encode) = client.process_tls_records(&mut []).state.unwrap() else {
        panic!("a client begins by speaking");
    };
    let length = encode.encode(&mut out).unwrap();
    out.truncate(length);
    out
}

#[test]
fn the_name_is_found_only_when_all_has_arrived() {
    let wire = hello("Www.Example.org");
    assert_eq!(server_name(&wire).as_deref(), Some("www.example.org"));
    for cut in 0..wire.len() {
        assert_eq!(server_name(&wire[..cut]), None, "{cut} bytes");
    }
}

#[test]
fn a_hello_in_many_records_is_read_and_an_address_is_no_name() {
    let wire = hello("www.example.org");
    let mut split = Vec::new();
    for piece in wire[5..].chunks(7) {
        split.extend_from_slice(&[22, 3, 1, 0, piece.len() as u8]);
        split.extend_from_slice(piece);
    }
    assert_eq!(server_name(&split).as_deref(), Some("www.example.org"));
    assert_eq!(server_name(&hello("192.0.2.1")), None);
}
