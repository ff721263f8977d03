use super::*;
use crate::address::Network;
use crate::replay::ReplayGuard;
use crate::step::whole;
use crate::text::unhex;
use crate::{Address, Destination, Error, Protocol, Step, UserId};

const NOW: i64 = 1_700_000_000;

pub(crate) fn session_of(security: Security, options: Options, network: Network) -> Session {
    let mut random = [0u8; 33];
    random[..16].copy_from_slice(&unhex("101112131415161718191a1b1c1d1e1f"));
    random[16..32].copy_from_slice(&unhex("202122232425262728292a2b2c2d2e2f"));
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

pub(crate) fn aa(padding: &mut [u8]) {
    padding.fill(0xaa);
}

#[test]
fn the_full_request_vector() {
    let mut wire = Vec::new();
    request()
        .seal(&CommandKey::new(&user()), NOW, &random(), &mut wire)
        .unwrap();
    assert_eq!(wire, unhex(WIRE));
}

#[test]
fn the_request_vector_opens_at_every_boundary_and_only_once() {
    let wire = unhex(WIRE);
    let users = Users::from_list([(UserId::parse("other").unwrap(), 1), (user(), 2)]).unwrap();
    let mut guard = ReplayGuard::default();
    let mut seen = |seen| guard.insert(seen, NOW, NOW - 1000);
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
    assert_eq!(again, Protocol::Vmess.replayed());
    // A new authentication id with the same key and IV: the session filter.
    let mut fresh = Vec::new();
    let mut other = random();
    other.auth = [9; 4];
    request()
        .seal(&CommandKey::new(&user()), NOW, &other, &mut fresh)
        .unwrap();
    let again = RequestOpener::new().handle(&fresh, NOW, &users, &mut seen).unwrap_err();
    assert_eq!(again, Protocol::Vmess.replayed());
}

#[test]
fn every_changed_bit_of_a_header_is_noticed() {
    let wire = unhex(WIRE);
    let users = Users::from_list([(user(), ())]).unwrap();
    for at in 0..wire.len() {
        let mut bad = wire.clone();
        bad[at] ^= 1 << (at % 8);
        let got = RequestOpener::new().handle(&bad, NOW, &users, &mut |_| Ok(()));
        assert!(got.is_err(), "byte {at}");
    }
    let late = RequestOpener::new().handle(&wire, NOW + 500, &users, &mut |_| Ok(()));
    assert_eq!(
        late.unwrap_err(),
        Error::ClockSkew {
            protocol: Protocol::Vmess,
            most: MAX_SKEW,
            seconds: -500
        }
    );
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
    let header = unhex(
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
        parse_header(&with_sum(header)).map(|_| ())
    };
    assert_eq!(parse(&|_| ()), Ok(()));
    assert!(matches!(parse(&|h| h[0] = 2), Err(Error::Field { got: 2, .. })));
    for security in [0, 1, 2, 6, 7, 15] {
        let got = parse(&|h| h[35] = 0x50 | security);
        assert_eq!(got, Err(Protocol::Vmess.field("the security", u64::from(security))));
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
        assert!(parse_header(&vec![1; n]).is_err());
    }
    let mut wrong = with_sum(plain_header());
    *wrong.last_mut().unwrap() ^= 1;
    assert!(parse_header(&wrong).is_err());
}

/// v2ray-core commit 5eff77c48: padding without masking crashed servers.
#[test]
fn bug_v2ray_5eff77c48_padding_without_masking_is_refused() {
    for options in 0..=255u8 {
        let mut header = plain_header();
        header[34] = options;
        let got = parse_header(&with_sum(header));
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
    let wire = unhex("bdbf42fa9d3621ee2883fcdb50faf39e51498f40906af92b6b71d8a9322ca4fd642cde8621f0");
    assert_eq!(session.seal_response().unwrap().to_vec(), wire);
    whole(&wire, |bytes| session.open_response(bytes));
    for at in 0..38 {
        let mut bad = wire.clone();
        bad[at] ^= 0x80;
        assert!(session.open_response(&bad).is_err());
    }
    let mut other = session.clone();
    other.response_v = 0x56;
    assert!(other.open_response(&wire).is_err());
}
