use super::*;
use crate::codec::{extension, write_client_hello};

const PRIVATE: [u8; 32] = [5; 32];
const NOW: u64 = 1_700_000_000_000;
const CLAIM: Claim = Claim {
    version: [26, 3, 27],
    time: 1_700_000_000,
    short_id: [9; 8],
};

/// How a hello differs from one that is let in.
#[derive(Clone, Copy)]
struct With {
    name: Option<&'static [u8]>,
    versions: &'static [u16],
    groups: &'static [Group],
    claim: Claim,
}

const GOOD: With = With {
    name: Some(b"a.test"),
    versions: &[0x0a0a, 0x0304, 0x0303],
    groups: &[Group::X25519MlKem768, Group::X25519],
    claim: CLAIM,
};

fn hello(with: With) -> Vec<u8> {
    let secret = X25519Secret::new(&[6; 32]);
    let shares: Vec<(u16, Vec<u8>)> = with
        .groups
        .iter()
        .map(|group| {
            let mut key = vec![0; group.client_len()];
            key[group.client_x25519_at().unwrap()..].copy_from_slice(&secret.public());
            (group.id(), key)
        })
        .collect();
    let body = extension::body::key_shares(&shares).unwrap();
    let versions = extension::body::numbers(1, with.versions).unwrap();
    let name = with.name.map(|name| extension::body::server_name(name).unwrap());
    let mut extensions: Vec<(u16, &[u8])> = vec![
        (extension::KEY_SHARE, &body),
        (extension::SUPPORTED_VERSIONS, &versions),
    ];
    if let Some(name) = &name {
        extensions.push((extension::SERVER_NAME, name));
    }
    let mut hello = Vec::new();
    let random = [8; 32];
    write_client_hello(&mut hello, &random, &[0; 32], &[0x1301], &extensions).unwrap();
    let server = X25519Secret::new(&PRIVATE).public();
    let key = AuthKey::new(&secret, &server, &random).unwrap();
    session_id::seal(&key, &with.claim, &mut hello).unwrap();
    hello
}

fn gate() -> Gate {
    let terms = Terms {
        short_ids: vec![[9; 8]],
        min_version: Some([1, 0, 0]),
        max_version: None,
        max_skew: Some(60_000),
    };
    Gate::new(&PRIVATE, vec!["a.test".to_owned()], terms)
}

#[test]
fn who_is_let_in() {
    for groups in [GOOD.groups, &[Group::X25519], &[Group::X25519MlKem768]] {
        let admitted = gate().admit(&hello(With { groups, ..GOOD }), NOW).unwrap();
        assert_eq!((admitted.claim, admitted.random), (CLAIM, [8; 32]));
    }
    let unnamed = Gate::new(
        &PRIVATE,
        vec![String::new()],
        Terms {
            short_ids: vec![[9; 8]],
            ..Terms::default()
        },
    );
    assert!(unnamed.admit(&hello(With { name: None, ..GOOD }), 0).is_ok());
}

#[test]
fn who_is_not() {
    let denied = |with: With, now| gate().admit(&hello(with), now).unwrap_err();
    let name = |name: &str| Denied::Name(name.to_owned());
    assert_eq!(
        denied(
            With {
                name: Some(b"A.test"),
                ..GOOD
            },
            NOW
        ),
        name("A.test")
    );
    assert_eq!(
        denied(
            With {
                name: Some(b"b.test"),
                ..GOOD
            },
            NOW
        ),
        name("b.test")
    );
    assert_eq!(denied(With { name: None, ..GOOD }, NOW), name(""));
    assert_eq!(
        denied(
            With {
                versions: &[0x0303],
                ..GOOD
            },
            NOW
        ),
        Denied::Version
    );
    assert_eq!(denied(With { groups: &[], ..GOOD }, NOW), Denied::Unauthentic);
    assert_eq!(denied(GOOD, NOW + 3_600_000), Denied::Claim(CLAIM, Refusal::Time(3600)));
    let old = Claim {
        version: [0, 9, 9],
        ..CLAIM
    };
    assert_eq!(
        denied(With { claim: old, ..GOOD }, NOW),
        Denied::Claim(old, Refusal::Version)
    );
    let other = Claim {
        short_id: [0; 8],
        ..CLAIM
    };
    assert_eq!(
        denied(With { claim: other, ..GOOD }, NOW),
        Denied::Claim(other, Refusal::ShortId)
    );
    let wrong_key = Gate::new(&[4; 32], vec!["a.test".to_owned()], Terms::default());
    assert_eq!(wrong_key.admit(&hello(GOOD), NOW).unwrap_err(), Denied::Unauthentic);
    let mut zeros = hello(GOOD);
    zeros[session_id::SESSION_ID].fill(0);
    assert_eq!(gate().admit(&zeros, NOW).unwrap_err(), Denied::Unauthentic);
    for len in 0..zeros.len() {
        assert_eq!(
            gate().admit(&zeros[..len], NOW).unwrap_err(),
            Denied::Malformed,
            "{len}"
        );
    }
}

fn records(message: &[u8], piece: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in message.chunks(piece) {
        crate::codec::record::write(&mut bytes, HANDSHAKE, 1, piece);
    }
    bytes
}

#[test]
fn a_hello_is_heard_wherever_it_is_cut() {
    let hello = hello(GOOD);
    for piece in [hello.len(), 1000, 64] {
        let mut bytes = records(&hello, piece);
        let len = bytes.len();
        bytes.extend([20, 3, 3, 0, 1, 1]);
        let mut hearing = Hearing::default();
        for end in 0..len {
            assert_eq!(hearing.look(&bytes[..end]), Heard::More, "{piece} {end}");
        }
        assert_eq!(hearing.look(&bytes), Heard::Hello(hello.clone(), len), "{piece}");
        assert_eq!(Hearing::default().look(&bytes), Heard::Hello(hello.clone(), len));
    }
}

#[test]
fn what_is_no_hello_is_told_at_its_first_wrong_byte() {
    for bytes in [
        &b"G"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        &[21, 3, 1, 0, 2, 2, 40],
        &[22, 2],
        &[22, 3, 1, 0, 0],
        &[22, 3, 1, 0, 1, 2],
        &[22, 3, 1, 0xff, 0xff],
        // A message longer than a hello may be.
        &[22, 3, 1, 0, 4, 1, 0, 0x80, 0],
        // Another record behind the beginning of a hello.
        &[22, 3, 1, 0, 4, 1, 0, 2, 0, 23],
    ] {
        assert_eq!(Hearing::default().look(bytes), Heard::Other, "{bytes:?}");
    }
    // Records of one byte would make a hello of 16 KiB take 96 KiB.
    let tiny = records(&[&[1, 0, 0x3f, 0xfc][..], &[0; 0x3ffc]].concat(), 1);
    assert_eq!(Hearing::default().look(&tiny), Heard::Other);
    assert_eq!(Hearing::default().look(&tiny[..MAX_SEEN]), Heard::More);
}
