//! What a sealer and an opener add to their keys: numbers, limits, and an end after the first error.

use sealway_aead::{
    CounterOrder, Error, Limits, NonceSequence, Opened, Opener, OpeningKey, RekeyPolicy, Sealer, SealingKey, Suite, Tag,
};

const KEY: [u8; 32] = [1; 32];

fn nonces(suite: Suite) -> NonceSequence {
    NonceSequence::xor(suite, &[2; 24][..suite.nonce_len()]).unwrap()
}

fn sealer_with(nonces: NonceSequence) -> Sealer {
    let suite = nonces.suite();
    Sealer::new(SealingKey::new(suite, &KEY[..suite.key_len()]).unwrap(), nonces).unwrap()
}

fn opener_with(nonces: NonceSequence) -> Opener {
    let suite = nonces.suite();
    Opener::new(OpeningKey::new(suite, &KEY[..suite.key_len()]).unwrap(), nonces).unwrap()
}

const fn hard(max_messages: u64, max_blocks: u64) -> Limits {
    Limits {
        rekey: RekeyPolicy::NEVER,
        max_messages,
        max_blocks,
    }
}

/// Sealing stops at the hard limit, says so at the soft one, and the buffer of a refused message is untouched.
#[test]
fn limits_of_a_sealer() {
    let limits = Limits {
        rekey: RekeyPolicy {
            bytes: 100,
            messages: 3,
        },
        max_messages: u64::MAX,
        max_blocks: 20,
    };
    let suite = Suite::Aes256Gcm;
    let fresh = || {
        let nonces = NonceSequence::xor(suite, &[0; 12]).unwrap();
        Sealer::new(SealingKey::new(suite, &[1; 32]).unwrap(), nonces)
            .unwrap()
            .with_limits(limits)
    };
    let mut sealer = fresh();
    assert!(!sealer.seal_in_place(b"", &mut [0; 99]).unwrap().rekey);
    assert!(sealer.seal_in_place(b"", &mut [0; 1]).unwrap().rekey, "by bytes");
    let mut sealer = fresh();
    let due: Vec<_> = (0..4)
        .map(|_| sealer.seal_in_place(b"", &mut []).unwrap().rekey)
        .collect();
    assert_eq!(due, [false, false, true, true], "by messages");
    // Four blocks are used; 16 more would be 15 of data and one of tag.
    let mut too_much = [0x77; 16 * 16];
    assert_eq!(sealer.seal_in_place(b"", &mut too_much).unwrap_err(), Error::Exhausted);
    assert!(too_much.iter().all(|&b| b == 0x77));
    assert!(sealer.seal_in_place(b"", &mut [0; 15 * 16]).is_ok());
    assert_eq!(sealer.seal_in_place(b"", &mut []).unwrap_err(), Error::Exhausted);
}

/// Neither the suite's hard limits nor stricter ones set before can be raised; the soft limit is free.
#[test]
fn hard_limits_of_a_sealer_only_ever_fall() {
    for suite in Suite::ALL {
        let raised = sealer_with(nonces(suite)).with_limits(hard(u64::MAX, u64::MAX));
        let own = Limits::of(suite).with_rekey(RekeyPolicy::NEVER);
        assert_eq!(raised.limits(), own, "{suite}");

        let strict = sealer_with(nonces(suite).with_limits(hard(2, 100)));
        assert_eq!(strict.limits(), hard(2, 100), "{suite}: that of the sequence is kept");
        let soft = RekeyPolicy { bytes: 1, messages: 1 };
        let mut strict = strict.with_limits(Limits::of(suite).with_rekey(soft));
        assert_eq!(strict.limits(), hard(2, 100).with_rekey(soft), "{suite}");
        for _ in 0..2 {
            assert!(strict.seal_in_place(b"", &mut []).unwrap().rekey, "{suite}");
        }
        assert_eq!(strict.seal_in_place(b"", &mut []), Err(Error::Exhausted), "{suite}");
        let mut strict = strict.with_limits(hard(u64::MAX, u64::MAX));
        assert_eq!(strict.seal_in_place(b"", &mut []), Err(Error::Exhausted), "{suite}");

        // Blocks: 2 + 1 for the first message, 1 + 1 would be one too many.
        let mut blocks = sealer_with(nonces(suite).with_limits(hard(9, 4))).with_limits(hard(9, 90));
        assert!(blocks.seal_in_place(b"", &mut [0; 32]).is_ok(), "{suite}");
        let more = blocks.seal_in_place(b"", &mut [0; 1]);
        assert_eq!(more, Err(Error::Exhausted), "{suite}");
        assert_eq!((blocks.messages(), blocks.bytes()), (1, 32), "{suite}");
    }
}

/// Suites whose nonces have the same length have other limits and other keys.
#[test]
fn a_sequence_for_another_suite_does_not_fit() {
    for key in Suite::ALL {
        for other in Suite::ALL {
            let sealer = Sealer::new(SealingKey::new(key, &KEY[..key.key_len()]).unwrap(), nonces(other));
            let opener = Opener::new(OpeningKey::new(key, &KEY[..key.key_len()]).unwrap(), nonces(other));
            if key == other {
                assert!(sealer.is_ok() && opener.is_ok());
            } else {
                let refused = Error::SuiteMismatch { key, nonces: other };
                assert_eq!(sealer.unwrap_err(), refused);
                assert_eq!(opener.unwrap_err(), refused);
            }
        }
    }
}

/// The peer decides how much it seals: an opener goes on past the hard limits of its own suite and sequence.
#[test]
fn an_opener_is_not_bound_by_hard_limits() {
    for suite in Suite::ALL {
        let mut sealer = sealer_with(nonces(suite));
        let mut opener = opener_with(nonces(suite).with_limits(hard(2, 3)));
        for number in 0..6 {
            let mut buffer = [number as u8; 50];
            let tag = sealer.seal_in_place(b"", &mut buffer).unwrap().tag;
            let opened = opener.open_in_place(b"", &mut buffer, &tag).unwrap();
            assert_eq!(opened.number, number, "{suite}");
        }
    }
    // Past the suite's limit in messages. The sealing side starts there, because limits count from the start.
    let suite = Suite::Aes256Gcm;
    let far = Limits::of(suite).max_messages + 10;
    let mut buffer = [3; 40];
    let tag = sealer_with(nonces(suite).starting_at(far).unwrap())
        .seal_in_place(b"", &mut buffer)
        .unwrap()
        .tag;
    let mut opener = opener_with(nonces(suite).with_limits(hard(2, 3)).starting_at(far).unwrap());
    assert_eq!(opener.open_in_place(b"", &mut buffer, &tag).unwrap().number, far);
}

/// As far as the counter field goes, and no further.
#[test]
fn an_opener_ends_with_the_counter_field() {
    let suite = Suite::Aes128Gcm;
    let narrow = || NonceSequence::counter_then_fixed(suite, 1, CounterOrder::BigEndian, &[5; 11]).unwrap();
    let (mut sealer, mut opener) = (sealer_with(narrow()), opener_with(narrow()));
    let mut last = ([0; 20], Tag([0; 16]));
    for number in 0..256 {
        let mut buffer = [9; 20];
        let tag = sealer.seal_in_place(b"", &mut buffer).unwrap().tag;
        last = (buffer, tag);
        assert_eq!(opener.open_in_place(b"", &mut buffer, &tag).unwrap().number, number);
    }
    assert_eq!(sealer.seal_in_place(b"", &mut [1; 5]).unwrap_err(), Error::Exhausted);
    let (mut buffer, tag) = last;
    assert_eq!(opener.open_in_place(b"", &mut buffer, &tag), Err(Error::Exhausted));
    assert_eq!(opener.open_in_place(b"", &mut buffer, &tag), Err(Error::Unauthentic));
    assert_eq!(buffer, [0; 20]);
}

#[test]
fn an_opener_says_when_the_peer_will_change_keys() {
    let suite = Suite::ChaCha20Poly1305;
    let policy = RekeyPolicy {
        bytes: 100,
        messages: 4,
    };
    for (lens, expected) in [
        (vec![99, 0, 1, 0], vec![false, false, true, true]),
        (vec![0, 0, 0, 0, 0], vec![false, false, false, true, true]),
    ] {
        let mut sealer = sealer_with(nonces(suite).with_limits(Limits::of(suite).with_rekey(policy)));
        let mut in_place = opener_with(nonces(suite)).with_rekey(policy);
        let mut apart = opener_with(nonces(suite).with_limits(Limits::of(suite).with_rekey(policy)));
        let mut due = Vec::new();
        for (number, len) in lens.into_iter().enumerate() {
            let mut sealed = vec![0; len + 16];
            let said = sealer.seal_to(b"", &vec![1; len], &mut sealed).unwrap();
            let opened = Opened {
                number: number as u64,
                rekey: said.rekey,
            };
            assert_eq!(apart.open_to(b"", &sealed, &mut vec![0; len]), Ok(opened));
            assert_eq!(in_place.open_in_place(b"", &mut sealed[..len], &said.tag), Ok(opened));
            due.push(opened.rekey);
        }
        assert_eq!(due, expected);
    }
}

/// Whatever the error, by the peer or by the caller: the next good message is not delivered, in place or apart.
#[test]
fn an_opener_is_dead_after_an_error_of_any_kind() {
    for suite in Suite::ALL {
        type Failure = fn(&mut Opener, &[u8; 36]) -> Result<Opened, Error>;
        let failures: [(Failure, Error); 5] = [
            (
                |opener, sealed| opener.open_in_place(b"", &mut [0; 20], &Tag::from_slice(&sealed[20..]).unwrap()),
                Error::Unauthentic,
            ),
            (
                |opener, sealed| opener.open_to(b"other", sealed, &mut [0; 20]),
                Error::Unauthentic,
            ),
            (
                |opener, sealed| opener.open_to(b"", &sealed[..15], &mut []),
                Error::TooShort { got: 15 },
            ),
            (
                |opener, sealed| opener.open_to(b"", sealed, &mut [0; 21]),
                Error::OutputLength { need: 20, got: 21 },
            ),
            (
                |opener, sealed| opener.open_to(b"", sealed, &mut []),
                Error::OutputLength { need: 20, got: 0 },
            ),
        ];
        for (fail, error) in failures {
            // Whichever number the opener may think comes next, after the one that failed or in place of it.
            for (apart, next) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
                let (mut sealer, mut opener) = (sealer_with(nonces(suite)), opener_with(nonces(suite)));
                let mut sealed = [[0; 36]; 4];
                for sealed in &mut sealed {
                    sealer.seal_to(b"", &[7; 20], sealed).unwrap();
                }
                assert_eq!(opener.open_to(b"", &sealed[0], &mut [0; 20]).unwrap().number, 0);
                assert_eq!(fail(&mut opener, &sealed[1]), Err(error.clone()), "{suite}");
                for sealed in &sealed[next..] {
                    let mut buffer = [8; 20];
                    let after = if apart {
                        opener.open_to(b"", sealed, &mut buffer)
                    } else {
                        buffer.copy_from_slice(&sealed[..20]);
                        opener.open_in_place(b"", &mut buffer, &Tag::from_slice(&sealed[20..]).unwrap())
                    };
                    assert_eq!(after, Err(Error::Unauthentic), "{suite} after {error}");
                    assert_eq!(buffer, [0; 20], "{suite} after {error}");
                }
            }
        }
    }
}

/// Out of place gives what in place gives, counts alike, and stops at the same limits.
#[test]
fn sealing_apart_is_sealing_in_place() {
    for suite in Suite::ALL {
        let limits = hard(3, 100);
        let mut in_place = sealer_with(nonces(suite).with_limits(limits));
        let mut apart = sealer_with(nonces(suite).with_limits(limits));
        let mut opener = opener_with(nonces(suite));
        for len in [0, 1, 40] {
            let message = vec![len as u8; len];
            let mut buffer = message.clone();
            let one = in_place.seal_in_place(b"aad", &mut buffer).unwrap();
            let mut sealed = vec![0; len + 16];
            // A buffer of the wrong length is the caller's mistake and costs no number.
            let got = len + 17;
            let refused = apart.seal_to(b"aad", &message, &mut vec![0; got]);
            assert_eq!(refused, Err(Error::OutputLength { need: len + 16, got }), "{suite}");
            assert_eq!(apart.seal_to(b"aad", &message, &mut sealed), Ok(one), "{suite}");
            assert_eq!(sealed, [&buffer[..], &one.tag.0].concat(), "{suite}");
            assert_eq!(
                (in_place.messages(), in_place.bytes()),
                (apart.messages(), apart.bytes())
            );
            let mut opened = vec![0; len];
            assert_eq!(opener.open_to(b"aad", &sealed, &mut opened).unwrap().number, one.number);
            assert_eq!(opened, message, "{suite}");
        }
        let mut sealed = [5; 20];
        let more = apart.seal_to(b"aad", &[0; 4], &mut sealed);
        assert_eq!(more, Err(Error::Exhausted), "{suite}");
        assert_eq!(sealed, [5; 20], "{suite}");
    }
}
