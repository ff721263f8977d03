//! Whatever happens to a handshake on its way, the two ends do not both believe in it.

use sealway_aead::{Error as AeadError, Suite};
use sealway_session::Error;
use sealway_session::handshake::{Auth, Handshake, Kem, Mode, PeerKey, Refusal, Role, StaticKey};

use crate::common::*;

/// Changes one flight and looks at both ends: nobody who reads what was changed, or what follows from it, is done.
fn assert_noticed(mode: Mode, number: u32, what: &str, change: impl Fn(&mut Vec<u8>)) -> Option<Error> {
    let (mut initiator, mut responder) = ends(mode, 1);
    let (here, there) = drive(&mut initiator, &mut responder, |n, mut flight| {
        if n == number {
            change(&mut flight);
        }
        flight
    });
    assert!(
        !responder.is_done(),
        "{mode:?} flight {number}, {what}: the responder is done"
    );
    assert_eq!(initiator.is_done(), number == 3, "{mode:?} flight {number}, {what}");
    here.err().or(there.err())
}

fn flight_len(mode: Mode, number: u32) -> usize {
    let (mut initiator, mut responder) = ends(mode, 1);
    let mut len = 0;
    let _ = drive(&mut initiator, &mut responder, |n, flight| {
        if n == number {
            len = flight.len();
        }
        flight
    });
    len
}

/// One bit of every byte; in the first bytes, which say how the rest is read, every bit.
fn flip_every_byte(mode: Mode) {
    for number in 1..=3 {
        for at in 0..flight_len(mode, number) {
            let bits = if at < 12 { 0..8 } else { at % 8..at % 8 + 1 };
            for bit in bits {
                assert_noticed(mode, number, &format!("byte {at} bit {bit}"), |flight| {
                    flight[at] ^= 1 << bit
                });
            }
        }
    }
}

#[test]
fn every_byte_counts_with_a_code() {
    flip_every_byte(Mode::Code);
}

#[test]
fn every_byte_counts_with_keys() {
    flip_every_byte(Mode::Keys);
}

#[test]
fn a_flight_that_is_cut_short_is_not_acted_on() {
    for mode in [Mode::Code, Mode::Keys] {
        for number in 1..=3 {
            let len = flight_len(mode, number);
            for kept in (0..len).step_by(13).chain([len - 1]) {
                let error = assert_noticed(mode, number, &format!("cut to {kept}"), |flight| flight.truncate(kept));
                assert_eq!(error, None, "a correct beginning is no error");
            }
        }
    }
}

/// Where the offer of flight 1 and of flight 2 stands: hardware, count, suites.
const OFFER: [usize; 2] = [6, 5];

#[test]
fn offers_cannot_be_edited() {
    for mode in [Mode::Code, Mode::Keys] {
        for (number, at) in [(1, OFFER[0]), (2, OFFER[1])] {
            let error = |what: &str, change: &dyn Fn(&mut Vec<u8>)| assert_noticed(mode, number, what, change);
            // Otherwise nothing below would be what it says.
            assert_eq!(
                error("length", &|f| assert_eq!(f.split_off(at)[..4], [1, 2, 2, 3])),
                None
            );
            let strip_first: &dyn Fn(&mut Vec<u8>) = &|f| {
                f[at + 1] = 1;
                f.remove(at + 2);
            };
            let strip_last: &dyn Fn(&mut Vec<u8>) = &|f| {
                f[at + 1] = 1;
                f.remove(at + 3);
            };
            assert_eq!(error("best stripped", strip_first), Some(Error::OtherSuite));
            assert_eq!(error("other stripped", strip_last), Some(Error::Unauthentic));
            assert_eq!(
                error("reordered", &|f| f.swap(at + 2, at + 3)),
                Some(Error::Unauthentic)
            );
            assert_eq!(error("no hardware", &|f| f[at] = 0), Some(Error::OtherSuite));
            assert_eq!(
                error("odd hardware", &|f| f[at] = 2),
                Some(Error::Malformed {
                    what: "offer of suites"
                })
            );
            assert_eq!(
                error("unknown", &|f| f[at + 2] = 9),
                Some(Error::Malformed { what: "cipher suite" })
            );
            let twice = AeadError::RepeatedSuite {
                suite: Suite::Aes256Gcm,
            };
            assert_eq!(error("twice", &|f| f[at + 3] = 2), Some(Error::Suites(twice)));
            assert_eq!(
                error("empty", &|f| f[at + 1] = 0),
                Some(Error::Suites(AeadError::EmptyOffer))
            );
            assert_eq!(
                error("many", &|f| f[at + 1] = 5),
                Some(Error::Malformed {
                    what: "offer of suites"
                })
            );
        }
    }
}

/// A man in the middle who strips the offer in both directions, and makes the choice fit, gets no further.
#[test]
fn a_choice_is_checked_against_both_offers() {
    let error = assert_noticed(Mode::Keys, 2, "choice", |flight| flight[4] = 3);
    assert_eq!(error, Some(Error::OtherSuite));
    let error = assert_noticed(Mode::Keys, 2, "choice and offer", |flight| {
        flight[4] = 3;
        flight[OFFER[1]] = 0;
    });
    assert_eq!(error, Some(Error::Unauthentic));
}

#[test]
fn ends_without_a_common_suite_part() {
    let end = |role, suites: &[Suite], hardware| {
        let mut config = config(role, auth(Mode::Code, role));
        config.offer = offer(suites, hardware);
        start(config, 1)
    };
    let mut initiator = end(Role::Initiator, &[Suite::Aes256Gcm], true);
    let mut responder = end(Role::Responder, &[Suite::Aes256Gcm, Suite::ChaCha20Poly1305], false);
    let (here, there) = drive(&mut initiator, &mut responder, |_, flight| flight);
    assert_eq!((here, there), (Ok(()), Err(Error::Suites(AeadError::NoCommonSuite))));
    assert!(!responder.guess_spent(), "no share was answered");
}

#[test]
fn a_recorded_first_flight_leads_nowhere() {
    for mode in [Mode::Code, Mode::Keys] {
        let (mut initiator, mut responder) = ends(mode, 1);
        let mut recorded = Vec::new();
        let _ = drive(&mut initiator, &mut responder, |_, flight| {
            recorded.push(flight.clone());
            flight
        });
        let (_, mut again) = ends(mode, 50);
        again.read(&recorded[0]).unwrap();
        assert_ne!(again.write().unwrap(), recorded[1]);
        assert_eq!(again.read(&recorded[2]), Err(Error::Unauthentic));
        assert_eq!(again.guess_spent(), mode == Mode::Code);
        assert_eq!(again.read(&recorded[2]), Err(Error::Dead));
        assert_eq!(again.finish().err(), Some(Error::Dead));
    }
}

#[test]
fn own_flights_sent_back_are_refused() {
    for mode in [Mode::Code, Mode::Keys] {
        let (mut initiator, mut responder) = ends(mode, 1);
        let first = initiator.write().unwrap();
        let mut mirror = ends(mode, 1).0;
        assert_eq!(mirror.read(&first), Err(Error::OtherProtocol));
        assert_eq!(mirror.read(&first), Err(Error::Dead));
        responder.read(&first).unwrap();
        let second = responder.write().unwrap();
        assert_eq!(responder.read(&second), Err(Error::Unauthentic));
    }
}

#[test]
fn flights_of_two_handshakes_do_not_mix() {
    for mode in [Mode::Code, Mode::Keys] {
        let (mut a, mut b) = (ends(mode, 1), ends(mode, 60));
        let flights: Vec<_> = [&mut a, &mut b].map(|(initiator, _)| initiator.write().unwrap()).into();
        a.1.read(&flights[0]).unwrap();
        b.1.read(&flights[1]).unwrap();
        let second = (a.1.write().unwrap(), b.1.write().unwrap());
        assert_eq!(a.0.read(&second.1), Err(Error::Unauthentic), "flight 2 of the other");
        b.0.read(&second.1).unwrap();
        assert_eq!(
            a.1.read(&b.0.write().unwrap()),
            Err(Error::Unauthentic),
            "flight 3 of the other"
        );
    }
}

#[test]
fn what_is_no_handshake_is_refused_at_its_first_wrong_byte() {
    let (mut initiator, mut responder) = ends(Mode::Code, 1);
    assert_eq!(responder.read(b"G"), Err(Error::OtherProtocol));
    assert!(!responder.guess_spent());
    assert_eq!(initiator.read(b"SWI"), Err(Error::OtherProtocol));
    let (_, mut responder) = ends(Mode::Code, 1);
    assert_eq!(
        responder.read(b"SWI\x01\x03\x01\x01\x01"),
        Err(Error::Malformed { what: "mode" })
    );
    let (_, mut responder) = ends(Mode::Code, 1);
    let theirs = Mode::Keys;
    assert_eq!(
        responder.read(b"SWI\x01\x02\x01\x01\x01"),
        Err(Error::OtherMode { theirs })
    );
}

#[test]
fn a_responder_may_insist_on_the_stronger_encapsulation() {
    let mut strict = config(Role::Responder, auth(Mode::Code, Role::Responder));
    strict.kem = Kem::MlKem1024;
    let (mut initiator, mut responder) = (ends(Mode::Code, 1).0, start(strict, 2));
    let (_, there) = drive(&mut initiator, &mut responder, |_, flight| flight);
    assert_eq!(there, Err(Error::WeakKem { theirs: Kem::MlKem768 }));
}

fn bytes(hex: &str) -> [u8; 32] {
    std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
}

/// The points of small order and their other encodings (RFC 7748 section 6.1 on why they matter).
#[test]
fn points_of_small_order_are_refused() {
    let points = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];
    for point in points.map(bytes) {
        for (mode, number, at) in [
            (Mode::Code, 1, 10),
            (Mode::Keys, 1, 10),
            (Mode::Code, 2, 9),
            (Mode::Keys, 2, 9),
        ] {
            let error = assert_noticed(mode, number, "point", |flight| {
                flight[at..at + 32].copy_from_slice(&point)
            });
            assert_eq!(error, Some(Error::Malformed { what: "X25519 key" }), "{point:02x?}");
        }
    }
}

#[test]
fn an_encapsulation_key_out_of_range_is_refused() {
    let error = assert_noticed(Mode::Keys, 1, "key", |flight| flight[42..45].fill(0xff));
    assert_eq!(error, Some(Error::Malformed { what: "ML-KEM key" }));
}

#[test]
fn a_wrong_code_fails_at_both_ends_and_is_spent() {
    let mut initiator = start(config(Role::Initiator, code("castle-lemon-opera")), 1);
    let mut responder = start(config(Role::Responder, code("castle-lemon-orange")), 2);
    assert!(!initiator.guess_spent() && !responder.guess_spent());
    let (here, there) = drive(&mut initiator, &mut responder, |_, flight| flight);
    assert_eq!((here, there), (Err(Error::Unauthentic), Ok(())));
    assert!(initiator.guess_spent() && responder.guess_spent());
    assert_eq!(initiator.write(), None, "nothing is sent to say why");
    assert!(!responder.is_done());
    // An attacker who goes on regardless.
    assert_eq!(responder.read(&[0; 80]), Err(Error::Unauthentic));
    assert!(responder.guess_spent());
}

#[test]
fn a_guess_is_spent_from_the_answer_on_until_the_proof() {
    let (mut initiator, mut responder) = ends(Mode::Code, 1);
    responder.read(&initiator.write().unwrap()).unwrap();
    assert!(responder.guess_spent());
    initiator.read(&responder.write().unwrap()).unwrap();
    assert!(!initiator.guess_spent());
    responder.read(&initiator.write().unwrap()).unwrap();
    assert!(!responder.guess_spent());
    assert!(initiator.is_done() && responder.is_done());
}

#[test]
fn an_empty_code_is_no_code() {
    let config = config(Role::Initiator, code(""));
    assert_eq!(Handshake::new(config, &mut random(1)).err(), Some(Error::EmptyCode));
}

#[test]
fn a_peer_with_another_key_is_refused_by_either_end() {
    let wrong = || PeerKey::Pinned([9; 32]);
    let own = |role| *static_key(role).public();
    let mut initiator = start(config(Role::Initiator, keys(Role::Initiator, wrong())), 1);
    let mut responder = start(config(Role::Responder, keys(Role::Responder, PeerKey::Unknown)), 2);
    let (here, _) = drive(&mut initiator, &mut responder, |_, flight| flight);
    assert_eq!(
        here,
        Err(Error::UnknownPeer {
            key: own(Role::Responder)
        })
    );
    assert_eq!(initiator.write(), None, "it does not say who it is");

    let mut initiator = start(config(Role::Initiator, keys(Role::Initiator, PeerKey::Unknown)), 1);
    let mut responder = start(
        config(Role::Responder, keys(Role::Responder, PeerKey::OneOf(vec![]))),
        2,
    );
    let (_, there) = drive(&mut initiator, &mut responder, |_, flight| flight);
    assert_eq!(
        there,
        Err(Error::UnknownPeer {
            key: own(Role::Initiator)
        })
    );
    assert!(!responder.guess_spent());
}

#[test]
fn a_prologue_must_be_the_same_at_both_ends() {
    for mode in [Mode::Code, Mode::Keys] {
        let mut other = config(Role::Responder, auth(mode, Role::Responder));
        other.prologue = b"tesT".to_vec();
        let (mut initiator, mut responder) = (ends(mode, 1).0, start(other, 2));
        let (here, _) = drive(&mut initiator, &mut responder, |_, flight| flight);
        assert_eq!(here, Err(Error::Unauthentic));
    }
}

/// Two men in the middle of one: who sits between the ends with keys of their own shows by the check string.
#[test]
fn the_check_string_shows_whoever_is_in_between() {
    let end = |role, seed| start(config(role, keys(role, PeerKey::Unknown)), seed);
    let (here, left) = agree(end(Role::Initiator, 1), end(Role::Responder, 2));
    let (right, there) = agree(end(Role::Initiator, 3), end(Role::Responder, 4));
    assert_eq!(here.check, left.check);
    assert_eq!(right.check, there.check);
    assert_ne!(here.check, there.check);
}

/// Whoever is in between could choose a static key after having seen the other string: it must not change this one.
#[test]
fn the_check_string_hangs_on_nothing_that_can_still_be_chosen() {
    let with_key = |secret: u8| {
        let own = StaticKey::from_bytes(&[secret; 32]);
        let peer = PeerKey::Unknown;
        let initiator = start(config(Role::Initiator, Auth::Keys { own, peer }), 1);
        agree(
            initiator,
            start(config(Role::Responder, keys(Role::Responder, PeerKey::Unknown)), 2),
        )
    };
    let ((here, _), (_, there)) = (with_key(1), with_key(2));
    assert_ne!(here.session.id(), there.session.id());
    assert_eq!(here.check, there.check);
}

#[test]
fn an_end_that_refuses_can_say_why() {
    let (mut initiator, _) = ends(Mode::Keys, 1);
    initiator.write().unwrap();
    let bytes = Refusal::UnknownKey.encode();
    // Byte by byte, as any other answer.
    for byte in &bytes[..7] {
        assert_eq!(initiator.read(std::slice::from_ref(byte)), Ok(1));
    }
    assert_eq!(initiator.read(&bytes[7..]), Err(Error::Refused(Refusal::UnknownKey)));
    assert!(!initiator.guess_spent());
    // One of a later version is no answer.
    let (mut initiator, _) = ends(Mode::Code, 1);
    initiator.write().unwrap();
    assert_eq!(initiator.read(b"SWX\x01\xff\0\0\0"), Err(Error::OtherProtocol));
}

#[test]
fn a_refusal_does_not_give_a_guess_back() {
    let (mut initiator, mut responder) = ends(Mode::Code, 1);
    responder.read(&initiator.write().unwrap()).unwrap();
    let bytes = Refusal::NoCommonSuite.encode();
    responder.read(&bytes).unwrap();
    assert_eq!(responder.refusal(), Some(Refusal::NoCommonSuite));
    assert!(responder.guess_spent());
}

#[test]
fn a_responder_can_wait_for_its_turn_before_it_looks() {
    for mode in [Mode::Code, Mode::Keys] {
        let (mut initiator, mut responder) = ends(mode, 1);
        let flight = initiator.write().unwrap();
        for len in 0..flight.len() {
            assert!(!responder.completes(&flight[..len]), "{len}");
        }
        let (some, rest) = flight.split_at(500);
        responder.read(some).unwrap();
        assert!(!responder.completes(&rest[..rest.len() - 1]) && responder.completes(rest));
        assert!(!responder.guess_spent() && responder.write().is_none());
    }
    assert!(ends(Mode::Code, 1).1.completes(b"G"), "it would fail at once");
}
