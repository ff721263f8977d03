//! One entry a parser of TLS and DNS, for the fuzz targets and for the test that replays their corpora. Not part of the public
//! interface.
//!
//! Every entry checks more than that nothing panics: that more bytes change no name that was found, that what is opened is what
//! was sealed, that no more comes out than went in.
#![allow(clippy::unwrap_used, reason = "the two ends are ours and in order")]

#[cfg(test)]
mod corpora;

use std::sync::{Arc, OnceLock};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite};
use sealway_tls::records::Records;
use sealway_tls_tokio::handshake::{Handshake, Next};
use sealway_v2ray::sniff::server_name;

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[
    ("dns_answer", crate::dns::fuzzing::answer),
    ("dns_question", crate::dns::fuzzing::question),
    ("tls_hello", hello),
    ("tls_records", after_handshake),
];

/// Runs the entry of this name.
///
/// # Panics
/// If there is none, or if the entry finds a fault.
pub fn run(name: &str, data: &[u8]) {
    match ENTRIES.iter().find(|(entry, _)| *entry == name) {
        Some((_, entry)) => entry(data),
        None => panic!("there is no fuzz entry {name}"),
    }
}

/// What a stranger sends first.
fn hello(data: &[u8]) {
    let found = server_name(data);
    for n in (0..data.len()).step_by(1 + data.len() / 64) {
        let early = server_name(&data[..n]);
        assert!(early.is_none() || early == found, "what follows made a difference");
    }
    // One record, or the same bytes in many.
    if let [22, 3, _, high, low, message @ ..] = data
        && message.len() == usize::from(u16::from_be_bytes([*high, *low]))
        // A longer record is none.
        && message.len() <= 1 << 14
    {
        let pieces = message
            .chunks(7)
            .flat_map(|piece| [&[22, 3, 1, 0, piece.len() as u8], piece].concat());
        assert_eq!(
            server_name(&pieces.collect::<Vec<u8>>()),
            found,
            "records made a difference"
        );
    }
}

/// The kinds of record that a peer seals: those there are, and some that there are not.
const KINDS: [u8; 6] = [23, 22, 21, 20, 24, 255];

/// What a peer sends after the handshake. The first byte says how both ends are set up; then come steps of the peer's: what it
/// does, how many bytes it does it with, and the bytes.
fn after_handshake(data: &[u8]) {
    let Some((&first, mut rest)) = data.split_first() else {
        return;
    };
    let (mut ours, mut peer, tls13) = ends(usize::from(first & 7), first & 8 != 0);
    if first & 16 != 0 {
        ours.trust();
    }
    let (mut wire, mut payload) = (Vec::new(), Vec::new());
    while let [what, len, tail @ ..] = rest {
        let message;
        (message, rest) = tail.split_at(usize::from(*len).min(tail.len()));
        match what & 3 {
            0 | 1 => {
                let kind = KINDS[usize::from(what >> 2) % KINDS.len()];
                peer.push(kind, message, &mut wire).unwrap();
                if kind == KINDS[0] {
                    payload.extend_from_slice(message);
                }
            }
            2 if tls13 => peer.key_update(&mut wire, what & 4 != 0).unwrap(),
            // Not sealed at all.
            _ => wire.extend_from_slice(message),
        }
    }
    let (mut buffer, mut got) = (Vec::new(), Vec::new());
    for piece in wire.chunks(1 + 331 * usize::from(first >> 5)) {
        buffer.extend_from_slice(piece);
        let len = buffer.len();
        let Ok(opened) = ours.open(&mut buffer, 0, 0..len) else {
            break;
        };
        assert!(
            opened.produced <= opened.consumed && opened.consumed <= len,
            "more came out than went in"
        );
        got.extend_from_slice(&buffer[..opened.produced]);
        buffer.drain(..opened.consumed);
        if opened.end {
            break;
        }
    }
    assert!(payload.starts_with(&got), "what was not sealed was opened");
    assert!(ours.reply.len() < 100, "one answer to many wishes is enough");
}

/// Both configurations with this suite only.
pub(crate) fn configs(suite: SupportedCipherSuite) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
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

/// Our record layer and the peer's after a handshake, and whether it is one of TLS 1.3.
fn ends(suite: usize, we_dialled: bool) -> (Records, Records, bool) {
    type Pair = (Arc<ServerConfig>, Arc<ClientConfig>);
    static CONFIGS: OnceLock<Vec<(bool, Pair)>> = OnceLock::new();
    let all = CONFIGS.get_or_init(|| {
        let one = |suite: SupportedCipherSuite| {
            let (mut server, client) = configs(suite);
            // Tickets would be on their way still when the record layer takes over.
            Arc::get_mut(&mut server).unwrap().send_tls13_tickets = 0;
            (suite.tls13().is_some(), (server, client))
        };
        suites().into_iter().map(one).collect()
    });
    let (tls13, (server, client)) = &all[suite % all.len()];
    let mut server = Handshake::server(Arc::clone(server)).unwrap();
    let name = "server.example".try_into().unwrap();
    let mut client = Handshake::client(Arc::clone(client), name).unwrap();
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    loop {
        let dialled = talk(&mut client, &mut to_client, &mut to_server);
        let accepted = talk(&mut server, &mut to_server, &mut to_client);
        if dialled && accepted {
            break;
        }
    }
    let (accepted, dialled) = (server.finish().unwrap().records, client.finish().unwrap().records);
    match we_dialled {
        true => (dialled, accepted, *tls13),
        false => (accepted, dialled, *tls13),
    }
}

/// Takes the input as far as it goes; whether the handshake is through.
fn talk(end: &mut Handshake, input: &mut Vec<u8>, output: &mut Vec<u8>) -> bool {
    loop {
        let (used, next) = end.advance(input);
        input.drain(..used);
        output.append(&mut end.take_output());
        match next.unwrap() {
            Next::Write => {}
            next => return next == Next::Done,
        }
    }
}
