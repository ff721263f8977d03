use proptest::prelude::*;

use super::*;
use crate::address::Network;
use crate::{Address, Destination, Error, Step, UserId};

/// Bytes of a hexadecimal text; white space does not count.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap() as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

const NOW: i64 = 1_700_000_000;

fn session_of(security: Security, options: Options, network: Network) -> Session {
    let mut random = [0u8; 33];
    random[..16].copy_from_slice(&hex("101112131415161718191a1b1c1d1e1f"));
    random[16..32].copy_from_slice(&hex("202122232425262728292a2b2c2d2e2f"));
    random[32] = 0x55;
    Session::new(&random, security, options, network).unwrap()
}

fn user() -> UserId {
    UserId::parse("b831381d-6324-4d53-ad4f-8cda48b30811").unwrap()
}

fn random() -> RequestRandom {
    RequestRandom {
        auth: [1, 2, 3, 4],
        nonce: [0, 1, 2, 3, 4, 5, 6, 7],
        padding_len: 5,
        padding: [0xaa; 15],
    }
}

fn request() -> Request {
    Request {
        session: session_of(Security::Aes128Gcm, Options(0x0d), Network::Tcp),
        command: Command::Connect(Destination::tcp(Address::parse("example.com").unwrap(), 443)),
    }
}

const WIRE: &str = "4774fe5cc901ea4f81f2159909767a36ca3e996b702d0d2db92affa58dbb467bf8d500010203040506078e3573dd1b58552f2be5\
    798b573e8f5286f9823ece3f31fea35316ccbfd31dcae47b128bc15bbb91160b871f3ea8abec0f423474fe37bd6d140b876183e75f8919a0f2bfdb\
    fe03243bfb38f0e86c";

fn aa(padding: &mut [u8]) {
    padding.fill(0xaa);
}

#[test]
fn the_full_request_vector() {
    let mut wire = Vec::new();
    request()
        .seal(&CommandKey::new(&user()), NOW, &random(), &mut wire)
        .unwrap();
    assert_eq!(wire, hex(WIRE));
}

#[test]
fn the_request_vector_opens_at_every_boundary_and_only_once() {
    let wire = hex(WIRE);
    let users = Users::from_list([(UserId::parse("other").unwrap(), 1), (user(), 2)]).unwrap();
    let mut guard = ReplayGuard::default();
    let mut seen = |seen| guard.insert(seen, 0);
    let mut opener = RequestOpener::new();
    for n in 0..wire.len() {
        match opener.handle(&wire[..n], NOW, &users, &mut seen).unwrap() {
            Step::More(more) => assert!(more > 0 && n + more <= wire.len()),
            step => panic!("{step:?}"),
        }
    }
    let mut longer = wire.clone();
    longer.extend_from_slice(b"body");
    let Step::Done { value, used } = opener.handle(&longer, NOW, &users, &mut seen).unwrap() else {
        panic!("not done")
    };
    assert_eq!(used, wire.len());
    assert_eq!(value.user, 2);
    assert_eq!(value.command, request().command);
    assert_eq!(value.session.response_v, 0x55);
    assert_eq!(value.session.options, Options(0x0d));
    // The same header again.
    let again = RequestOpener::new()
        .handle(&longer, NOW, &users, &mut seen)
        .unwrap_err();
    assert_eq!(
        again,
        Error::Replayed {
            protocol: crate::Protocol::Vmess
        }
    );
    // A new authentication id with the same key and IV: the session filter.
    let mut fresh = Vec::new();
    let mut other = random();
    other.auth = [9; 4];
    request()
        .seal(&CommandKey::new(&user()), NOW, &other, &mut fresh)
        .unwrap();
    let again = RequestOpener::new().handle(&fresh, NOW, &users, &mut seen).unwrap_err();
    assert_eq!(
        again,
        Error::Replayed {
            protocol: crate::Protocol::Vmess
        }
    );
}

#[test]
fn every_changed_bit_of_a_header_is_noticed() {
    let wire = hex(WIRE);
    let users = Users::from_list([(user(), ())]).unwrap();
    for at in 0..wire.len() {
        let mut bad = wire.clone();
        bad[at] ^= 1 << (at % 8);
        let got = RequestOpener::new().handle(&bad, NOW, &users, &mut |_| true);
        assert!(got.is_err(), "byte {at}");
    }
    let late = RequestOpener::new().handle(&wire, NOW + 500, &users, &mut |_| true);
    assert_eq!(late.unwrap_err(), Error::ClockSkew { seconds: -500 });
}

/// FNV-1a again, so that tests can make headers that the sealer would not.
fn with_sum(mut header: Vec<u8>) -> Vec<u8> {
    let mut sum = 0x811c_9dc5u32;
    for byte in &header {
        sum = (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    }
    header.extend_from_slice(&sum.to_be_bytes());
    header
}

fn plain_header() -> Vec<u8> {
    let header = hex(
        "01101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f550d53000101bb020b6578616d706c652e636f6daaaaaaaaaa\
         d1250e76",
    );
    header[..header.len() - 4].to_vec()
}

#[test]
fn header_fields_are_checked() {
    let parse = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut header = plain_header();
        change(&mut header);
        request::parse_header(&with_sum(header)).map(|_| ())
    };
    assert_eq!(parse(&|_| ()), Ok(()));
    assert!(matches!(parse(&|h| h[0] = 2), Err(Error::Field { got: 2, .. })));
    for security in [0, 1, 2, 6, 7, 15] {
        let got = parse(&|h| h[35] = 0x50 | security);
        assert_eq!(
            got,
            Err(Error::Field {
                protocol: crate::Protocol::Vmess,
                field: "the security",
                got: u64::from(security)
            })
        );
    }
    for command in [0, 4, 255] {
        assert!(matches!(parse(&|h| h[37] = command), Err(Error::Field { .. })));
    }
    // Padding that is not there, and bytes that are not padding.
    assert!(parse(&|h| h[35] = 0x63).is_err());
    assert!(parse(&|h| h[35] = 0x43).is_err());
    for n in 0..plain_header().len() {
        assert!(parse(&|h| h.truncate(n)).is_err(), "{n}");
    }
    for n in 0..8 {
        assert!(request::parse_header(&vec![1; n]).is_err());
    }
    let mut wrong = with_sum(plain_header());
    *wrong.last_mut().unwrap() ^= 1;
    assert!(request::parse_header(&wrong).is_err());
}

/// v2ray-core commit 5eff77c48: padding without masking crashed servers.
#[test]
fn bug_v2ray_5eff77c48_padding_without_masking_is_refused() {
    for options in 0..=255u8 {
        let mut header = plain_header();
        header[34] = options;
        let got = request::parse_header(&with_sum(header));
        assert_eq!(got.is_err(), options & 0x0c == 0x08, "{options:#04x}");
        let made = Session::new(&[0; 33], Security::Aes128Gcm, Options(options), Network::Tcp);
        assert_eq!(made.is_err(), options & 0x0c == 0x08, "{options:#04x}");
    }
}

/// CVE-2021-4070: a command in the response header crashed clients.
#[test]
fn cve_2021_4070_commands_in_responses_are_skipped() {
    use sealway_aead::{Nonce, SealingKey, Suite};
    let session = session_of(Security::Aes128Gcm, Options(0x0d), Network::Tcp);
    let (key, iv) = session.response_keys();
    for (command, len) in [(1u8, 0usize), (1, 1), (1, 3), (1, 255), (200, 40)] {
        // The length field is right, short of the truth, and beyond the end.
        for says in [len as u8, 0, 255] {
            let mut header = vec![0x55, 0, command, says];
            header.resize(4 + len, 0xff);
            let mut wire = Vec::new();
            for (labels, plain) in [
                (
                    [&kdf::RESPONSE_LENGTH_KEY, &kdf::RESPONSE_LENGTH_IV],
                    &(header.len() as u16).to_be_bytes()[..],
                ),
                ([&kdf::RESPONSE_KEY, &kdf::RESPONSE_IV], &header[..]),
            ] {
                let key = SealingKey::new(Suite::Aes128Gcm, &labels[0].derive::<16>(&*key)).unwrap();
                let nonce = Nonce::assume_unique(Suite::Aes128Gcm, &labels[1].derive::<12>(&iv)).unwrap();
                let at = wire.len();
                wire.resize(at + plain.len() + 16, 0);
                key.seal_to(nonce, &[], plain, &mut wire[at..]).unwrap();
            }
            let used = wire.len();
            assert_eq!(session.open_response(&wire), Ok(Step::Done { value: (), used }));
        }
    }
}

#[test]
fn the_response_vector_at_every_boundary() {
    let session = session_of(Security::Aes128Gcm, Options(0x0d), Network::Tcp);
    let mut wire = hex("bdbf42fa9d3621ee2883fcdb50faf39e51498f40906af92b6b71d8a9322ca4fd642cde8621f0");
    assert_eq!(session.seal_response().unwrap().to_vec(), wire);
    for n in 0..wire.len() {
        assert!(matches!(session.open_response(&wire[..n]), Ok(Step::More(m)) if m > 0 && n + m <= wire.len()));
    }
    wire.push(1);
    assert_eq!(session.open_response(&wire), Ok(Step::Done { value: (), used: 38 }));
    for at in 0..38 {
        let mut bad = wire.clone();
        bad[at] ^= 0x80;
        assert!(session.open_response(&bad).is_err());
    }
    let mut other = session.clone();
    other.response_v = 0x56;
    assert!(other.open_response(&wire).is_err());
}

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
    assert_eq!(out[..23], hex("8e6526aca2da2078f552797282c9aa9cf67d935233aad8"));
    assert_eq!(out[23..40], [0xaa; 17]);
    let n = sealer.seal_end(&mut out, &mut aa).unwrap();
    assert_eq!(n, 2 + 16 + 4);
    assert_eq!(out[..18], hex("b6baccd579192f2c952dce50d25bca363611"));
    assert!(sealer.seal_end(&mut out, &mut aa).is_err());

    let session = session_of(Security::Aes128Gcm, Options(0x1d), Network::Tcp);
    let mut sealer = ChunkSealer::request(&session).unwrap().unwrap();
    let n = sealer.seal_to(b"hello", &mut out, &mut aa).unwrap();
    assert_eq!(out[..18], hex("d94d29f472bad22b1d04fc30ffa643f9ba34"));
    assert_eq!(n, 18 + 5 + 16 + 17);
}

#[test]
fn the_chacha_key_vector() {
    let mut key = [0; 16];
    key.copy_from_slice(&hex("96b727f438a60a07ca1f554ec689862e"));
    let got = session::suite_key(sealway_aead::Suite::ChaCha20Poly1305, &key);
    assert_eq!(
        got.to_vec(),
        hex("80c2c504eca628a44855d24e6a9478841d87e34a09027344ebf659d22fb2b88b")
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

#[test]
fn planned_in_place_and_out_of_place_agree() {
    for session in combinations() {
        let Some(mut planned) = ChunkSealer::response(&session).unwrap() else {
            continue;
        };
        let mut single = ChunkSealer::response(&session).unwrap().unwrap();
        let mut slots = Slots::default();
        let mut wire = Vec::new();
        let mut want = Vec::new();
        // Buffers full, with a short last chunk, with places to spare.
        for (room, filled) in [(5000, usize::MAX), (5000, 2500), (5000, 1), (900, 700), (5000, 1000)] {
            let mut buffer = vec![0; room];
            planned.plan(room, 700, &mut slots).unwrap();
            let filled = filled.min(slots.capacity());
            let mut left = filled;
            for (i, range) in slots.ranges().to_vec().into_iter().enumerate() {
                let n = left.min(range.len());
                buffer[range.start..range.start + n].fill(i as u8 + 1);
                left -= n;
            }
            let n = planned.seal_planned(&mut buffer, &mut slots, filled, &mut aa).unwrap();
            wire.extend_from_slice(&buffer[..n]);
            let mut left = filled;
            let mut i = 0;
            while left > 0 {
                i += 1;
                let n = left.min(700);
                let mut out = vec![0; 1000];
                let len = single.seal_to(&vec![i; n], &mut out, &mut aa).unwrap();
                want.extend_from_slice(&out[..len]);
                left -= n;
            }
        }
        assert_eq!(wire, want, "{session:?}");
    }
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
    let mut out = vec![0; MAX_CHUNK];
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

    #[test]
    fn openers_are_total(which in 0..1000usize, mut wire in prop::collection::vec(any::<u8>(), 0..300)) {
        let all: Vec<_> = combinations().into_iter().filter(|s| !s.is_raw()).collect();
        let session = &all[which % all.len()];
        let _ = ChunkOpener::response(session).unwrap().unwrap().open_next(&mut wire);
        let _ = session.open_response(&wire);
        let _ = request::parse_header(&with_sum(wire));
    }
}
