use super::*;
use crate::group::X25519Secret;

fn range<const N: usize>(from: u8) -> [u8; N] {
    std::array::from_fn(|i| from + i as u8)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

/// The hello of the vector: no more than its fixed parts, one suite, no extensions.
fn hello() -> Vec<u8> {
    let mut hello = hex("010000490303");
    hello.extend(range::<32>(0x80));
    hello.push(32);
    hello.extend([0; 32]);
    hello.extend(hex("000213010100"));
    hello
}

fn server() -> X25519Secret {
    X25519Secret::new(&range(1))
}

fn key() -> AuthKey {
    let client = X25519Secret::new(&range(0x41));
    AuthKey::new(&client, &server().public(), &range(0x80)).unwrap()
}

const CLAIM: Claim = Claim {
    version: [0x1a, 7, 0x1c],
    time: 0x6553_f100,
    short_id: [1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef],
};

#[test]
fn the_vector() {
    let public = server().public();
    assert_eq!(
        public[..],
        hex("07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c")
    );
    let key = key();
    assert_eq!(
        key.as_bytes()[..],
        hex("57b824d2cd5d224fc510f550979409b71cc69ce35d1f49243fa8f7280c60755b")
    );
    let mut hello = hello();
    seal(&key, &CLAIM, &mut hello).unwrap();
    let id = hex("c7d5e845eddd63a644fc5c63759912ee22ce3dda622e0f6dd1e3c7cc9716aa82");
    assert_eq!(hello[SESSION_ID], id);
    // The server has the other half of both keys.
    let client = X25519Secret::new(&range(0x41)).public();
    let key = AuthKey::new(&server(), &client, random(&hello).unwrap()).unwrap();
    assert_eq!(open(&key, &hello), Ok(CLAIM));
}

#[test]
fn every_byte_of_the_hello_counts() {
    let (key, mut hello) = (key(), hello());
    seal(&key, &CLAIM, &mut hello).unwrap();
    for at in 0..hello.len() {
        let mut other = hello.clone();
        other[at] ^= 1;
        assert_eq!(open(&key, &other), Err(Error::Unauthentic), "{at}");
    }
    for len in 0..hello.len() {
        assert_eq!(open(&key, &hello[..len]), Err(Error::Unauthentic), "{len}");
    }
    hello.push(0);
    assert_eq!(open(&key, &hello), Err(Error::Unauthentic));
}

#[test]
fn what_is_no_hello_is_not_sealed() {
    let good = hello();
    let mut answer = good.clone();
    answer[0] = 2;
    let mut short_id = good.clone();
    short_id[38] = 31;
    let mut long = good.clone();
    long.resize(MAX_HELLO + 1, 0);
    for mut wrong in [answer, short_id, long.clone(), good[..70].to_vec()] {
        assert!(matches!(seal(&key(), &CLAIM, &mut wrong), Err(Error::Given(_))));
    }
    long.pop();
    assert_eq!(seal(&key(), &CLAIM, &mut long), Ok(()));
    assert_eq!(open(&key(), &long), Ok(CLAIM));
}

#[test]
fn a_key_of_small_order_is_refused() {
    assert!(AuthKey::new(&server(), &[0; 32], &range(0x80)).is_err());
}

#[test]
fn who_is_let_in() {
    let all = Terms {
        short_ids: vec![[0; 8], CLAIM.short_id],
        min_version: Some([0x1a, 7, 0x1c]),
        max_version: Some([0x1a, 7, 0x1c]),
        max_skew: Some(1500),
    };
    let time = u64::from(CLAIM.time) * 1000;
    for now in [time - 1500, time, time + 1500] {
        assert_eq!(all.check(&CLAIM, now), Ok(()));
    }
    assert_eq!(all.check(&CLAIM, time - 1501), Err(Refusal::Time(1)));
    assert_eq!(all.check(&CLAIM, time + 3_600_000), Err(Refusal::Time(3600)));
    let with = |change: &dyn Fn(&mut Terms)| {
        let mut terms = all.clone();
        change(&mut terms);
        terms.check(&CLAIM, time)
    };
    assert_eq!(
        with(&|terms| terms.min_version = Some([0x1a, 7, 0x1d])),
        Err(Refusal::Version)
    );
    assert_eq!(
        with(&|terms| terms.max_version = Some([0x1a, 6, 0xff])),
        Err(Refusal::Version)
    );
    assert_eq!(with(&|terms| terms.short_ids = vec![[0; 8]]), Err(Refusal::ShortId));
    assert_eq!(with(&|terms| terms.short_ids.clear()), Err(Refusal::ShortId));
    let open = Terms {
        short_ids: vec![CLAIM.short_id],
        ..Terms::default()
    };
    for now in [0, u64::MAX] {
        assert_eq!(open.check(&CLAIM, now), Ok(()));
    }
}
