use proptest::prelude::*;

use crate::Error;
use crate::address::Network;
use crate::text::unhex;
use crate::vmess::tests::{aa, session_of};
use crate::vmess::*;

#[test]
fn the_chunk_vectors() {
    let mut words = lengths::Words::new(&session_of(Security::None, Options::ZERO, Network::Tcp).iv);
    let got: Vec<u16> = (0..6).map(|_| words.next()).collect();
    assert_eq!(got, [0xfc91, 0x8e43, 0xecc4, 0xb6ae, 0xa436, 0xa3be]);

    let session = session_of(Security::Aes128Gcm, Options(0x0d), Network::Tcp);
    let mut sealer = ChunkSealer::request(&session).unwrap().unwrap();
    let mut out = [0; 100];
    let n = sealer.seal_to(b"hello", &mut out, &mut aa).unwrap();
    assert_eq!(n, 2 + 5 + 16 + 17);
    assert_eq!(out[..23], unhex("8e6526aca2da2078f552797282c9aa9cf67d935233aad8"));
    assert_eq!(out[23..40], [0xaa; 17]);
    let n = sealer.seal_end(&mut out, &mut aa).unwrap();
    assert_eq!(n, 2 + 16 + 4);
    assert_eq!(out[..18], unhex("b6baccd579192f2c952dce50d25bca363611"));
    assert!(sealer.seal_end(&mut out, &mut aa).is_err());

    let session = session_of(Security::Aes128Gcm, Options(0x1d), Network::Tcp);
    let mut sealer = ChunkSealer::request(&session).unwrap().unwrap();
    let n = sealer.seal_to(b"hello", &mut out, &mut aa).unwrap();
    assert_eq!(out[..18], unhex("d94d29f472bad22b1d04fc30ffa643f9ba34"));
    assert_eq!(n, 18 + 5 + 16 + 17);
}

#[test]
fn the_chacha_key_vector() {
    let mut key = [0; 16];
    key.copy_from_slice(&unhex("96b727f438a60a07ca1f554ec689862e"));
    let got = session::suite_key(sealway_aead::Suite::ChaCha20Poly1305, &key);
    assert_eq!(
        got.to_vec(),
        unhex("80c2c504eca628a44855d24e6a9478841d87e34a09027344ebf659d22fb2b88b")
    );
}

/// Every legal combination of security, options and network.
fn combinations() -> Vec<Session> {
    let mut all = Vec::new();
    for security in [Security::Aes128Gcm, Security::ChaCha20Poly1305, Security::None] {
        for options in (0..0x20u8).filter(|o| o & 0x0c != 0x08) {
            for network in [Network::Tcp, Network::Udp] {
                all.push(session_of(security, Options(options), network));
            }
        }
    }
    all
}

/// Opens all of `wire`, `step` bytes at a time, and returns the payloads and whether the end came.
fn open_all(opener: &mut ChunkOpener, wire: &[u8], step: usize) -> Result<(Vec<Vec<u8>>, bool), Error> {
    let (mut payloads, mut held) = (Vec::new(), Vec::new());
    for piece in wire.chunks(step) {
        held.extend_from_slice(piece);
        loop {
            match opener.open_next(&mut held)? {
                Opened::Chunk { payload, used } => {
                    payloads.push(held[payload].to_vec());
                    held.drain(..used);
                }
                Opened::End { used } => {
                    held.drain(..used);
                    return Ok((payloads, true));
                }
                Opened::More(more) => {
                    assert!(more > 0);
                    break;
                }
            }
        }
    }
    opener.finish(held.len())?;
    Ok((payloads, false))
}

#[test]
fn all_combinations_both_ways_at_every_boundary() {
    let mut chunked = 0;
    for session in combinations() {
        for response in [false, true] {
            let make = if response {
                ChunkSealer::response
            } else {
                ChunkSealer::request
            };
            let Some(mut sealer) = make(&session).unwrap() else {
                assert!(session.is_raw());
                continue;
            };
            chunked += 1;
            let payloads: Vec<Vec<u8>> = [1usize, 5, 300].iter().map(|n| vec![*n as u8; *n]).collect();
            let mut wire = Vec::new();
            for payload in &payloads {
                let mut out = vec![0; payload.len() + sealer.max_overhead()];
                let n = sealer.seal_to(payload, &mut out, &mut aa).unwrap();
                wire.extend_from_slice(&out[..n]);
            }
            let borders = wire.len();
            let mut out = [0; 200];
            let n = sealer.seal_end(&mut out, &mut aa).unwrap();
            wire.extend_from_slice(&out[..n]);
            let opener = || {
                let make = if response {
                    ChunkOpener::response
                } else {
                    ChunkOpener::request
                };
                make(&session).unwrap().unwrap()
            };
            for step in [1, 2, 3, 7, wire.len()] {
                assert_eq!(
                    open_all(&mut opener(), &wire, step),
                    Ok((payloads.clone(), true)),
                    "{session:?}"
                );
            }
            // Without the last chunk: an end on a border is an end, one within a chunk is not.
            assert_eq!(
                open_all(&mut opener(), &wire[..borders], 1),
                Ok((payloads.clone(), false))
            );
            for cut in 1..borders {
                let whole = open_all(&mut opener(), &wire[..cut], cut);
                let on_border = whole.as_ref().is_ok_and(|(p, _)| p.len() < 3);
                assert!(whole.is_err() || on_border, "{session:?} {cut}");
            }
        }
    }
    assert_eq!(chunked, 2 * (2 * 2 * 24 + 2 * 12));
}

#[test]
fn the_two_directions_differ() {
    let session = session_of(Security::Aes128Gcm, Options(0x1d), Network::Tcp);
    let mut out = [0; 100];
    let mut sealer = ChunkSealer::request(&session).unwrap().unwrap();
    let n = sealer.seal_to(b"hello", &mut out, &mut aa).unwrap();
    let mut wrong = ChunkOpener::response(&session).unwrap().unwrap();
    assert!(wrong.open_next(&mut out[..n]).is_err());
}

/// The number of a chunk has 16 bits and starts again; both ends must go on.
#[test]
fn chunk_numbers_wrap_as_the_peers_do() {
    for options in [Options(0x01), Options(0x1d)] {
        let session = session_of(Security::Aes128Gcm, options, Network::Tcp);
        let mut sealer = ChunkSealer::request(&session).unwrap().unwrap();
        let mut opener = ChunkOpener::request(&session).unwrap().unwrap();
        let mut out = [0; 128];
        for k in 0..65_600u32 {
            let payload = k.to_be_bytes();
            let n = sealer.seal_to(&payload, &mut out, &mut aa).unwrap();
            match opener.open_next(&mut out[..n]).unwrap() {
                Opened::Chunk { payload: range, used } => {
                    assert_eq!(used, n);
                    assert_eq!(out[range], payload, "{k}");
                }
                other => panic!("{k}: {other:?}"),
            }
        }
        assert_eq!(sealer.repeats(), 1);
    }
}

#[test]
fn limits_of_chunks() {
    let session = session_of(Security::ChaCha20Poly1305, Options(0x0d), Network::Udp);
    let mut sealer = ChunkSealer::request(&session).unwrap().unwrap();
    let mut opener = ChunkOpener::request(&session).unwrap().unwrap();
    let mut out = vec![0; MAX_CHUNK_PAYLOAD + sealer.max_overhead()];
    assert!(matches!(
        sealer.seal_to(&[], &mut out, &mut aa),
        Err(Error::DoesNotFit { .. })
    ));
    let too_long = vec![1; MAX_CHUNK_PAYLOAD + 1];
    assert!(matches!(
        sealer.seal_to(&too_long, &mut out, &mut aa),
        Err(Error::DoesNotFit { .. })
    ));
    assert!(matches!(
        sealer.seal_to(b"x", &mut out[..10], &mut aa),
        Err(Error::Buffer { .. })
    ));
    // None of these refusals has cost a number or a draw.
    let longest = vec![7; MAX_CHUNK_PAYLOAD];
    let n = sealer.seal_to(&longest, &mut out, &mut aa).unwrap();
    assert_eq!(
        opener.open_next(&mut out[..n]).unwrap(),
        Opened::Chunk {
            payload: 2..2 + MAX_CHUNK_PAYLOAD,
            used: n
        }
    );
}

/// The end chunk's tag is verified, which peers do not do.
#[test]
fn a_forged_end_is_noticed() {
    let session = session_of(Security::Aes128Gcm, Options(0x01), Network::Tcp);
    let mut wire = vec![0, 16];
    wire.extend_from_slice(&[0; 16]);
    let mut opener = ChunkOpener::request(&session).unwrap().unwrap();
    assert!(matches!(opener.open_next(&mut wire), Err(Error::Unauthentic { .. })));
    for size in 0..16 {
        let mut wire = vec![0, size];
        wire.extend_from_slice(&[0; 16]);
        let mut opener = ChunkOpener::request(&session).unwrap().unwrap();
        assert!(matches!(opener.open_next(&mut wire), Err(Error::Malformed { .. })));
    }
}

proptest! {
    #[test]
    fn any_body_of_any_options_comes_back(
        which in 0..1000usize,
        response: bool,
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..2000), 0..6),
        step in 1..5000usize,
    ) {
        let all: Vec<_> = combinations().into_iter().filter(|s| !s.is_raw()).collect();
        let session = &all[which % all.len()];
        let (mut sealer, mut opener) = if response {
            (ChunkSealer::response(session).unwrap().unwrap(), ChunkOpener::response(session).unwrap().unwrap())
        } else {
            (ChunkSealer::request(session).unwrap().unwrap(), ChunkOpener::request(session).unwrap().unwrap())
        };
        let mut wire = Vec::new();
        for payload in &payloads {
            let mut out = vec![0; payload.len() + sealer.max_overhead()];
            let n = sealer.seal_to(payload, &mut out, &mut aa).unwrap();
            wire.extend_from_slice(&out[..n]);
        }
        prop_assert_eq!(open_all(&mut opener, &wire, step), Ok((payloads, false)));
    }
}
