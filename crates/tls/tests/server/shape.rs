//! A flight in the shape of another server's: what is on the wire is that server's to the byte and the length, and a client that was
//! meant gets through. The client and the other server are rustls.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use sealway_tls::codec::{ClientHello, MAX_HELLO, Message, ServerHello};
use sealway_tls::group::Group;
use sealway_tls::server::{AwaitFinished, Connected, Identity, Lengths, Shape, answer_in_shape};
use sealway_tls::suite::CipherSuite;
use sealway_tls::{Alert, Error};

use crate::common::{ecdsa, ed25519, fixed};

const CHANGE: [u8; 6] = [20, 3, 3, 0, 1, 1];

fn provider(group: &'static dyn SupportedKxGroup) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: vec![group],
        ..aws_lc_rs::default_provider()
    })
}

/// A client that trusts this certificate, and its hello as a record.
fn client(group: &'static dyn SupportedKxGroup, der: &[u8]) -> (ClientConnection, Vec<u8>) {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(der.to_vec())).unwrap();
    let config = ClientConfig::builder_with_provider(provider(group))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), "server.example".try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    (client, hello)
}

/// The flight of another server for this hello, as records.
fn target(group: &'static dyn SupportedKxGroup, hello: &[u8]) -> Vec<Vec<u8>> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let made = rcgen::CertificateParams::new(vec!["server.example".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider(group))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], key)
        .unwrap();
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    server.read_tls(&mut &*hello).unwrap();
    server.process_new_packets().unwrap();
    let mut flight = Vec::new();
    server.write_tls(&mut flight).unwrap();
    records(&flight)
}

fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let [_, _, _, high, low, ..] = bytes {
        let (record, rest) = bytes.split_at(5 + usize::from(u16::from_be_bytes([*high, *low])));
        records.push(record.to_vec());
        bytes = rest;
    }
    assert!(bytes.is_empty());
    records
}

fn heads(records: &[Vec<u8>]) -> Vec<(u8, usize)> {
    records.iter().map(|record| (record[0], record.len() - 5)).collect()
}

/// Answers the hello in the shape of the target's flight, but for the lengths.
fn answer(
    hello: &[u8],
    server_hello: &[u8],
    flight: Lengths,
    next: &[usize],
    changes: u32,
    identity: &dyn Identity,
) -> (Result<AwaitFinished, Error>, Vec<u8>) {
    let client = ClientHello::read(Message::first(&hello[5..], MAX_HELLO).unwrap().unwrap()).unwrap();
    let shape = Shape {
        hello: ServerHello::read(Message::first(server_hello, MAX_HELLO).unwrap().unwrap()).unwrap(),
        flight,
        next,
        changes,
    };
    let mut out = Vec::new();
    let state = answer_in_shape(&client, &shape, identity, None, &mut fixed(5), &mut out);
    (state, out)
}

/// Lets the client read in pieces, and gives what it says.
fn tell(client: &mut ClientConnection, bytes: &[u8], step: usize) -> Vec<u8> {
    for mut piece in bytes.chunks(step) {
        while !piece.is_empty() {
            client.read_tls(&mut piece).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    let mut said = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut said).unwrap();
    }
    said
}

/// Lets the server read in pieces.
fn ask(state: &mut AwaitFinished, bytes: &[u8], step: usize) -> Result<(Option<Connected>, Vec<u8>), Error> {
    let (mut input, mut out, mut rest) = (Vec::new(), Vec::new(), bytes);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(step.min(rest.len()));
        rest = behind;
        input.extend_from_slice(piece);
        let (used, connected) = state.read(&mut input, &mut out)?;
        input.drain(..used);
        if connected.is_some() {
            input.extend_from_slice(rest);
            return Ok((connected, input));
        }
    }
    Ok((None, input))
}

#[test]
fn the_wire_is_the_other_servers_and_the_client_gets_through() {
    for (group, theirs) in [
        (Group::X25519, aws_lc_rs::kx_group::X25519),
        (Group::X25519MlKem768, aws_lc_rs::kx_group::X25519MLKEM768),
        (Group::Secp256r1, aws_lc_rs::kx_group::SECP256R1),
    ] {
        for (flight, next) in [
            (Lengths::Each([23, 1200, 150, 69]), &[][..]),
            (Lengths::Each([40, 16_401, 700, 90]), &[17]),
            (Lengths::Together(3000), &[250, 20, 1000]),
        ] {
            for step in [1, 50, usize::MAX] {
                let made = ed25519();
                let (mut client, hello) = client(theirs, &made.der);
                let target = target(theirs, &hello);
                let (state, out) = answer(&hello, &target[0][5..], flight, next, 1, &*made.identity);
                let mut state = state.unwrap();
                assert_eq!(state.agreed().group, group);

                let ours = records(&out);
                let lengths = match flight {
                    Lengths::Each(lengths) => lengths.to_vec(),
                    Lengths::Together(length) => vec![length],
                };
                let sealed = lengths
                    .into_iter()
                    .chain(next.iter().copied())
                    .map(|length| (23, length));
                let expected: Vec<_> = [(22, target[0].len() - 5), (20, 1)].into_iter().chain(sealed).collect();
                assert_eq!(heads(&ours), expected);
                assert_eq!(ours[1], CHANGE);
                // All of the hello but the key.
                let at = |hello: &[u8]| {
                    let message = Message::first(hello, MAX_HELLO).unwrap().unwrap();
                    let key = ServerHello::read(message).unwrap().key_share().unwrap().unwrap().key;
                    let at = hello.windows(key.len()).position(|part| part == key).unwrap();
                    at..at + key.len()
                };
                let (mut a, mut b) = (ours[0][5..].to_vec(), target[0][5..].to_vec());
                let key = at(&a);
                assert_eq!(key, at(&b));
                assert_ne!(a[key.clone()], b[key.clone()]);
                a[key.clone()].fill(0);
                b[key].fill(0);
                assert_eq!(a, b);

                // The client's change_cipher_spec and Finished, and payload at once.
                client.writer().write_all(b"up").unwrap();
                let said = tell(&mut client, &out, step);
                assert!(!client.is_handshaking());
                let (connected, mut rest) = ask(&mut state, &said, step).unwrap();
                let mut records = connected.expect("through").records;
                let len = rest.len();
                let opened = records.open(&mut rest, 0, 0..len).unwrap();
                assert_eq!(&rest[..opened.produced], b"up");

                let mut wire = Vec::new();
                records.push_nothing(300, &mut wire).unwrap();
                records.push_nothing(301, &mut wire).unwrap();
                records.push(23, b"down", &mut wire).unwrap();
                records.push_close(&mut wire).unwrap();
                assert_eq!(heads(&self::records(&wire))[..2], [(23, 300), (23, 301)]);
                tell(&mut client, &wire, step);
                let mut got = Vec::new();
                client.reader().read_to_end(&mut got).unwrap();
                assert_eq!(got, b"down");
            }
        }
    }
}

#[test]
fn a_message_that_does_not_fit_is_an_error_and_nothing_is_sent() {
    let made = ed25519();
    let (_, hello) = client(aws_lc_rs::kx_group::X25519, &made.der);
    let target = target(aws_lc_rs::kx_group::X25519, &hello);
    // Extensions of 6 bytes, a signature of 72, a Finished of 36 or 52: each and 17 bytes more.
    let finished = 4 + CipherSuite::from_id(
        ServerHello::read(Message::first(&target[0][5..], MAX_HELLO).unwrap().unwrap())
            .unwrap()
            .suite,
    )
    .unwrap()
    .hash()
    .output_len();
    let least = [6 + 17, 4 + 1 + 3 + 3 + made.der.len() + 2 + 17, 72 + 17, finished + 17];
    assert!(
        answer(&hello, &target[0][5..], Lengths::Each(least), &[], 1, &*made.identity)
            .0
            .is_ok()
    );
    for at in 0..4 {
        let mut lengths = least;
        lengths[at] -= 1;
        let (state, out) = answer(&hello, &target[0][5..], Lengths::Each(lengths), &[], 1, &*made.identity);
        assert!(matches!(state, Err(Error::Given(_))), "{at}");
        assert!(out.is_empty());
    }
    let all = least.iter().sum::<usize>() - 3 * 17;
    assert!(
        answer(&hello, &target[0][5..], Lengths::Together(all), &[], 1, &*made.identity)
            .0
            .is_ok()
    );
    for (flight, next) in [
        (Lengths::Together(all - 1), &[][..]),
        (Lengths::Together(16_402), &[]),
        (Lengths::Together(all), &[17, 16]),
    ] {
        let (state, out) = answer(&hello, &target[0][5..], flight, next, 1, &*made.identity);
        assert!(matches!(state, Err(Error::Given(_))), "{flight:?}");
        assert!(out.is_empty());
    }
}

#[test]
fn a_hello_that_cannot_be_stood_in_for_is_refused() {
    let made = ecdsa();
    let (_, hello) = client(aws_lc_rs::kx_group::X25519, &made.der);
    let (_, other) = client(aws_lc_rs::kx_group::X25519, &made.der);
    let good = target(aws_lc_rs::kx_group::X25519, &hello)[0][5..].to_vec();
    let mut retry = good.clone();
    retry[6..38].copy_from_slice(&sealway_tls::codec::RETRY_RANDOM);
    let mut suite = good.clone();
    let at = 4 + 2 + 32 + 1 + 32;
    suite[at..at + 2].copy_from_slice(&[0x13, 4]);
    let mut group = good.clone();
    let at = group.windows(4).position(|part| part == [0, 0x1d, 0, 32]).unwrap();
    group[at + 1] = 0x17;
    // An answer to another hello has its session id.
    let others = target(aws_lc_rs::kx_group::X25519, &other)[0][5..].to_vec();
    for (what, server_hello) in [
        ("retry", retry),
        ("suite", suite),
        ("group", group),
        ("another", others),
    ] {
        let flight = Lengths::Together(3000);
        let (state, out) = answer(&hello, &server_hello, flight, &[], 1, &*made.identity);
        assert!(matches!(state, Err(Error::Given(_))), "{what}");
        assert!(out.is_empty());
    }
}

#[test]
fn as_many_changes_of_ciphers_are_taken_as_the_other_server_takes() {
    for (taken, sent, fits) in [
        (0, 0, true),
        (0, 1, false),
        (1, 1, true),
        (1, 2, false),
        (16, 17, false),
        (u32::MAX, 500, true),
    ] {
        let made = ed25519();
        let (mut client, hello) = client(aws_lc_rs::kx_group::X25519, &made.der);
        let target = target(aws_lc_rs::kx_group::X25519, &hello);
        let flight = Lengths::Together(3000);
        let (state, out) = answer(&hello, &target[0][5..], flight, &[], taken, &*made.identity);
        let mut state = state.unwrap();
        let said = tell(&mut client, &out, usize::MAX);
        let finished = said.strip_prefix(&CHANGE).expect("a client that says it once");
        let mut wire = CHANGE.repeat(sent);
        wire.extend_from_slice(finished);
        let mut told = Vec::new();
        let found = state.read(&mut wire, &mut told);
        match found {
            Ok((used, connected)) => assert_eq!((used, connected.is_some(), fits), (wire.len(), true, true), "{sent}"),
            Err(error) => {
                assert_eq!((error.alert(), fits), (Some(Alert::UnexpectedMessage), false), "{sent}");
                // Sealed, so that from outside only its length shows.
                assert_eq!(heads(&records(&told)), [(23, 2 + 17)]);
                assert!(matches!(state.read(&mut wire, &mut told), Err(Error::Given(_))));
            }
        }
    }
}
