//! What clients begin with.

use std::sync::Arc;

use rustls::crypto::CipherSuiteCommon;
use rustls::quic::{ClientConnection, Keys, Version};
use rustls::{ClientConfig, RootCertStore, Side, SupportedCipherSuite};

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The content of a client's first flight of CRYPTO frames, as rustls makes it. `short`: with a key that leaves room for the
/// rest of it in one datagram.
fn crypto(name: &str, version: Version, short: bool) -> Vec<u8> {
    let mut provider = Arc::unwrap_or_clone(provider());
    if short {
        provider
            .kx_groups
            .retain(|group| group.name() == rustls::NamedGroup::X25519);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), version, name, vec![0; 40]).unwrap();
    let mut hello = Vec::new();
    client.write_hs(&mut hello);
    hello
}

/// A ClientHello for a name in this many records.
pub(crate) fn tls(name: &str, records: usize) -> Vec<u8> {
    let hello = crypto(name, Version::V1, false);
    let record = |piece: &[u8]| [&[22, 3, 1, (piece.len() >> 8) as u8, piece.len() as u8], piece].concat();
    hello.chunks(hello.len().div_ceil(records)).flat_map(record).collect()
}

pub(crate) fn http(host: &str) -> Vec<u8> {
    format!("GET /index HTTP/1.1\r\nHost: {host}\r\nUser-Agent: test\r\n\r\n").into_bytes()
}

/// The first datagrams of a client: its hello in pieces of 20 bytes, in another order than they belong, in this many Initial
/// packets of 1,200 bytes.
pub(crate) fn quic(name: &str, version: Version, datagrams: usize) -> Vec<Vec<u8>> {
    let hello = crypto(name, version, datagrams == 1);
    let frames = hello.chunks(20).enumerate().map(|(at, piece)| {
        let at = (at * 20) as u16 | 0x4000;
        let len = piece.len() as u16 | 0x4000;
        [&[6][..], &at.to_be_bytes(), &len.to_be_bytes(), piece].concat()
    });
    let mut frames: Vec<Vec<u8>> = frames.collect();
    frames.reverse();
    let half = frames.len() / 2;
    frames.rotate_left(half);
    let each = frames.len().div_ceil(datagrams);
    frames
        .chunks(each)
        .enumerate()
        .map(|(number, frames)| seal(version, number as u8, &frames.concat()))
        .collect()
}

/// Seals frames as the number-th Initial packet, with the keys of rustls.
fn seal(version: Version, number: u8, frames: &[u8]) -> Vec<u8> {
    const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
    const LEN: usize = 1200;
    let suites = provider().cipher_suites.clone();
    let suite = suites.iter().find_map(|suite| match suite {
        SupportedCipherSuite::Tls13(suite) if is_aes_128(&suite.common) => Some(*suite),
        _ => None,
    });
    let suite = suite.unwrap();
    let keys = Keys::initial(version, suite, suite.quic.unwrap(), &ID, Side::Client);
    let (first, number_of) = match version {
        Version::V1Draft => (0xc0, 0xff00_001d_u32),
        Version::V2 => (0xd0, 0x6b33_43cf),
        _ => (0xc0, 1),
    };
    let mut packet = vec![first];
    packet.extend_from_slice(&number_of.to_be_bytes());
    packet.push(ID.len() as u8);
    packet.extend_from_slice(&ID);
    packet.extend_from_slice(&[0, 0]);
    let head = packet.len() + 2 + 1;
    packet.extend_from_slice(&((LEN - head + 1) as u16 | 0x4000).to_be_bytes());
    packet.push(number);
    let mut payload = frames.to_vec();
    payload.resize(LEN - head - 16, 0);
    let tag = keys
        .local
        .packet
        .encrypt_in_place(u64::from(number), &packet, &mut payload)
        .unwrap();
    packet.extend_from_slice(&payload);
    packet.extend_from_slice(tag.as_ref());
    let sample = packet[head + 3..head + 19].to_vec();
    let (front, rest) = packet.split_at_mut(head - 1);
    keys.local
        .header
        .encrypt_in_place(&sample, &mut front[0], &mut rest[..1])
        .unwrap();
    packet
}

fn is_aes_128(common: &CipherSuiteCommon) -> bool {
    common.suite == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256
}
