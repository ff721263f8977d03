//! What strangers and those in between may send.

use super::*;

/// Every changed bit of a header, and every header of another time, is refused; nothing shorter is taken for one.
#[test]
fn changed_headers_of_2022() {
    for method in [
        Method::Blake3Aes128Gcm,
        Method::Blake3Aes256Gcm,
        Method::Blake3ChaCha20Poly1305,
    ] {
        let own = key(method, 3);
        let users = edition2022::Users::one(own.clone(), ());
        let salt = run(1, method.salt_len() as u8);
        let mut wire = Vec::new();
        Request::begin(&chain(own.clone()), &salt, NOW, &target(), &[0; 9], &mut wire).unwrap();
        let len = method.salt_len() + 27;
        for n in 0..len {
            let more = open_request(&wire[..n], &users, NOW).unwrap();
            assert!(matches!(more, Step::More(m) if m == len - n));
        }
        for bit in 0..8 * len {
            let mut changed = wire.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open_request(&changed, &users, NOW).unwrap_err(), UNAUTHENTIC);
        }
        for (ahead, taken) in [
            (-31, false),
            (-30, true),
            (30, true),
            (31, false),
            (60, false),
            (i64::MIN / 2, false),
        ] {
            let got = open_request(&wire, &users, NOW - ahead);
            assert_eq!(got.is_ok(), taken, "{ahead}");
            assert!(taken || matches!(got, Err(Error::ClockSkew { most: 30, .. })));
        }
        // A request is not an answer, nor the other way round.
        assert!(open_answer(&wire, &own, &salt, NOW).is_err());
        let mut answer = Vec::new();
        AnswerSealer::new(&own, &salt, &salt)
            .unwrap()
            .seal(b"x", NOW, &mut answer)
            .unwrap();
        assert!(open_request(&answer, &users, NOW).is_err());
        assert!(matches!(
            open_answer(&answer, &own, &salt, NOW + 31),
            Err(Error::ClockSkew { .. })
        ));
        let other = run(2, method.salt_len() as u8);
        assert!(matches!(
            open_answer(&answer, &own, &other, NOW),
            Err(Error::Malformed { .. })
        ));
    }
}

/// A request that comes twice is known by its salt, for as long as its time is good.
#[test]
fn replayed_requests() {
    let own = key(Method::Blake3Aes128Gcm, 3);
    let users = edition2022::Users::one(own.clone(), ());
    let mut wire = Vec::new();
    Request::begin(&chain(own), &run(1, 16), NOW, &target(), &[0; 9], &mut wire).unwrap();
    let seen = |now| open_request(&wire, &users, now).unwrap().done().unwrap().seen();
    let mut guard = ReplayGuard::new(100);
    assert_eq!(guard.insert(seen(NOW - 30), NOW - 30, 0), Ok(()));
    let replayed = Err(Protocol::Shadowsocks.replayed());
    for later in [-30, 0, 30] {
        assert_eq!(guard.insert(seen(NOW + later), NOW + later, 0), replayed);
    }
}

#[test]
fn second_headers() {
    let mut header = Vec::new();
    crate::address::write_type_first(&target().address, 443, &mut header);
    let address = header.len();
    let with = |padding: u16, rest: usize| {
        let mut header = header.clone();
        header.extend_from_slice(&padding.to_be_bytes());
        header.resize(header.len() + rest, 0);
        header
    };
    let read = |header: &[u8]| decode_target(header, header.len());
    let used = |used| Ok(Step::Done { value: target(), used });
    assert_eq!(read(&with(0, 1)), used(address + 2));
    assert_eq!(read(&with(4, 4)), used(address + 6));
    assert_eq!(read(&with(4, 9)), used(address + 6));
    for wrong in [
        with(0, 0),
        with(5, 4),
        header.clone(),
        header[..3].to_vec(),
        vec![],
        vec![2; 9],
    ] {
        assert!(read(&wrong).is_err(), "{wrong:?}");
    }
    // Whatever follows it is no part of it.
    let mut more = with(5, 4);
    let len = more.len();
    more.extend_from_slice(b"payload");
    assert!(decode_target(&more, len).is_err());
    assert_eq!(decode_target(&with(1, 1)[..5], 30), Ok(Step::More(25)));
}

/// Whoever of a thousand users it is, one key is tried once they were seen; strangers cost every key once.
#[test]
fn a_search_tries_every_key_once_at_most() {
    let method = Method::Aes256Gcm;
    let password = |n: usize| Key::new(method, &format!("password {n}")).unwrap();
    let users = classic::Users::from_list((0..1000).map(|n| (password(n), n))).unwrap();
    assert_eq!(users.need(), 50);
    let ask = |n: usize, salt: u8| {
        let mut wire = Vec::new();
        classic::begin(&chain(password(n)), &[salt; 32], &target(), &mut wire).unwrap();
        let mut search = Search::new(&users);
        let found = loop {
            match search.stream(&users, &wire, 64) {
                Ok(None) => {}
                other => break other.map(|found| found.map(|found| *found.user)),
            }
        };
        (found, search.tried())
    };
    assert_eq!(ask(700, 1), (Ok(Some(700)), 701));
    assert_eq!(ask(700, 2), (Ok(Some(700)), 1));
    assert_eq!(ask(3, 3), (Ok(Some(3)), 1 + 4));
    let unknown = Protocol::Shadowsocks.unknown_user();
    assert_eq!(ask(1000, 4), (Err(unknown.clone()), 1000));
    // The same with datagrams.
    let mut datagram = Vec::new();
    classic::packet::seal(&password(999), &[1; 32], (&target().address, 53), b"hi", &mut datagram).unwrap();
    let (mut search, mut plain) = (Search::new(&users), Vec::new());
    let (number, _, at) = search.packet(&users, &datagram, &mut plain, 2000).unwrap().unwrap();
    assert_eq!((number, &plain[at..]), (999, &b"hi"[..]));
    assert!(users.open_packet(0, &datagram, &mut plain).is_err());
    datagram[40] ^= 1;
    assert_eq!(
        Search::new(&users).packet(&users, &datagram, &mut plain, 2000),
        Err(unknown)
    );
    let twice = classic::Users::from_list([(password(1), 1), (password(1), 2)]);
    assert!(matches!(twice, Err(Error::DuplicatePassword)));
}

/// Users of several methods share a port: nobody is looked for before the longest beginning has come.
#[test]
fn users_of_several_methods() {
    let list = Method::ALL.into_iter().filter(|method| !method.is_2022());
    let users = classic::Users::from_list(list.clone().map(|method| (key(method, 9), method))).unwrap();
    for method in list {
        let mut wire = Vec::new();
        let salt = run(1, method.salt_len() as u8);
        classic::begin(&chain(key(method, 9)), &salt, &target(), &mut wire).unwrap();
        assert!(wire.len() >= users.need());
        let found = Search::new(&users).stream(&users, &wire[..50], 9).unwrap().unwrap();
        assert_eq!(*found.user, method);
        assert!(Search::new(&users).stream(&users, &wire[..49], 9).is_err());
    }
}
