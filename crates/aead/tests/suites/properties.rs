//! Properties that hold for every input.

use proptest::prelude::*;
use sealway_aead::choose::{Offer, negotiate};
use sealway_aead::{Error, Nonce, NonceSequence, Opened, Opener, OpeningKey, Sealer, SealingKey, Suite};

use crate::common::{open, random_bytes, seal};

fn any_suite() -> impl Strategy<Value = Suite> {
    prop::sample::select(&Suite::ALL[..])
}

fn any_offer() -> impl Strategy<Value = Offer> {
    (Just(Suite::ALL.to_vec()).prop_shuffle(), 1..=4usize, any::<bool>())
        .prop_map(|(suites, n, aes)| Offer::new(&suites[..n], aes).unwrap())
}

/// Any single bit flipped anywhere: key, nonce, AAD, ciphertext or tag.
#[test]
fn every_single_bit_matters() {
    for suite in Suite::ALL {
        for len in [0, 1, 16, 63, 64, 65] {
            let key = random_bytes(suite.key_len(), 1);
            let nonce = random_bytes(suite.nonce_len(), 2);
            let aad = random_bytes(9, 3);
            let sealed = seal(suite, &key, &nonce, &aad, &random_bytes(len, 4));
            let parts = [&key, &nonce, &aad, &sealed].map(Vec::clone);
            let opens = |[key, nonce, aad, sealed]: &[Vec<u8>; 4]| open(suite, key, nonce, aad, sealed).is_some();
            assert!(opens(&parts));
            for part in 0..parts.len() {
                for bit in 0..parts[part].len() * 8 {
                    let mut flipped = parts.clone();
                    flipped[part][bit / 8] ^= 1 << (bit % 8);
                    assert!(!opens(&flipped), "{suite} part {part} bit {bit}");
                }
            }
            for aad in [[&aad[..], &[0]].concat(), aad[1..].to_vec()] {
                assert_eq!(open(suite, &key, &nonce, &aad, &sealed), None);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_round_trips_in_order(
        suite in any_suite(),
        start in any::<u64>(),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
    ) {
        let key = random_bytes(suite.key_len(), start);
        let iv = random_bytes(suite.nonce_len(), 5);
        let start = start.min(u64::MAX - 100);
        let sequence = || NonceSequence::xor(suite, &iv).unwrap().starting_at(start).unwrap();
        let mut sealer = Sealer::new(SealingKey::new(suite, &key).unwrap(), sequence()).unwrap();
        let mut opener = Opener::new(OpeningKey::new(suite, &key).unwrap(), sequence()).unwrap();
        for (i, message) in messages.iter().enumerate() {
            let mut buffer = message.clone();
            let sealed = sealer.seal_in_place(&[i as u8], &mut buffer).unwrap();
            prop_assert_eq!(sealed.number, start + i as u64);
            let opened = opener.open_in_place(&[i as u8], &mut buffer, &sealed.tag).unwrap();
            prop_assert_eq!(opened, Opened { number: sealed.number, rekey: sealed.rekey });
            prop_assert_eq!(&buffer, message);
        }
        prop_assert_eq!(sealer.messages(), messages.len() as u64);
        prop_assert_eq!(sealer.bytes(), messages.iter().map(|m| m.len() as u64).sum::<u64>());
    }

    #[test]
    fn an_opener_is_dead_after_the_first_failure(suite in any_suite(), bit in 0..128usize, at in 0..5usize) {
        let key = random_bytes(suite.key_len(), 6);
        let sequence = || NonceSequence::xor(suite, &random_bytes(suite.nonce_len(), 7)).unwrap();
        let mut sealer = Sealer::new(SealingKey::new(suite, &key).unwrap(), sequence()).unwrap();
        let mut opener = Opener::new(OpeningKey::new(suite, &key).unwrap(), sequence()).unwrap();
        for i in 0..8 {
            let mut buffer = [i as u8; 30];
            let mut tag = sealer.seal_in_place(b"", &mut buffer).unwrap().tag;
            if i == at {
                tag.0[bit / 8] ^= 1 << (bit % 8);
            }
            let result = opener.open_in_place(b"", &mut buffer, &tag);
            prop_assert_eq!(result.map(|_| ()), if i < at { Ok(()) } else { Err(Error::Unauthentic) });
            prop_assert_eq!(buffer, if i < at { [i as u8; 30] } else { [0; 30] });
        }
    }

    #[test]
    fn negotiation_is_symmetric_and_follows_the_rule(ours in any_offer(), theirs in any_offer()) {
        let answer = negotiate(&ours, &theirs);
        prop_assert_eq!(&answer, &negotiate(&theirs, &ours));
        let reversed = |offer: &Offer| {
            let suites: Vec<_> = offer.suites().iter().rev().copied().collect();
            Offer::new(&suites, offer.aes_hardware()).unwrap()
        };
        prop_assert_eq!(&answer, &negotiate(&reversed(&ours), &reversed(&theirs)));
        let both = |suite| ours.suites().contains(&suite) && theirs.suites().contains(&suite);
        let hardware = ours.aes_hardware() && theirs.aes_hardware();
        if both(Suite::Aes256Gcm) && hardware {
            prop_assert_eq!(answer, Ok(Suite::Aes256Gcm));
        } else if both(Suite::ChaCha20Poly1305) {
            prop_assert_eq!(answer, Ok(Suite::ChaCha20Poly1305));
        } else if let Ok(suite) = answer {
            prop_assert!(both(suite) && (hardware || !suite.is_aes()));
        } else {
            prop_assert!(Suite::ALL.into_iter().all(|s| !both(s) || (s.is_aes() && !hardware)));
        }
    }

    #[test]
    fn hostile_offers_never_panic(names in prop::collection::vec(".{0,60}", 0..6)) {
        prop_assert!(Offer::from_names(names.iter().map(String::as_str), true).is_err());
    }

    #[test]
    fn wrong_lengths_are_refused_and_touch_nothing(suite in any_suite(), len in 0..100usize) {
        let bytes = random_bytes(len, 8);
        if len != suite.key_len() {
            prop_assert_eq!(SealingKey::new(suite, &bytes).unwrap_err(), Error::KeyLength { suite, got: len });
            prop_assert_eq!(OpeningKey::new(suite, &bytes).unwrap_err(), Error::KeyLength { suite, got: len });
        }
        let key = OpeningKey::new(suite, &random_bytes(suite.key_len(), 9)).unwrap();
        let tag = sealway_aead::Tag([0; 16]);
        let mut buffer = [0x5a; 40];
        if len != suite.nonce_len() {
            let need = suite.nonce_len();
            let refused = Err(Error::NonceLength { need, got: len });
            prop_assert_eq!(key.open_in_place(&bytes, b"", &mut buffer, &tag), refused);
            prop_assert_eq!(buffer, [0x5a; 40]);
        }
        let nonce = random_bytes(suite.nonce_len(), 10);
        let opened = key.open_to(&nonce, b"", &bytes, &mut buffer);
        match len.checked_sub(16) {
            None => prop_assert_eq!(opened, Err(Error::TooShort { got: len })),
            Some(40) => prop_assert_eq!(opened, Err(Error::Unauthentic)),
            Some(need) => {
                prop_assert_eq!(opened, Err(Error::OutputLength { need, got: 40 }));
                prop_assert_eq!(buffer, [0x5a; 40]);
            }
        }
    }
}

#[test]
fn a_nonce_for_another_suite_does_not_fit() {
    let nonce = Nonce::assume_unique(Suite::Aes128Gcm, &[0; 12]).unwrap();
    let key = SealingKey::new(Suite::XChaCha20Poly1305, &[0; 32]).unwrap();
    assert_eq!(
        key.seal_in_place(nonce, b"", &mut []).unwrap_err(),
        Error::NonceLength { need: 24, got: 12 }
    );
}

#[test]
fn out_of_place_sealing_needs_room_for_the_tag() {
    let key = SealingKey::new(Suite::Aes128Gcm, &[0; 16]).unwrap();
    for got in [0, 5, 20, 22, 100] {
        let nonce = Nonce::assume_unique(Suite::Aes128Gcm, &[0; 12]).unwrap();
        let mut out = vec![1; got];
        assert_eq!(
            key.seal_to(nonce, b"", b"hello", &mut out),
            Err(Error::OutputLength { need: 21, got })
        );
        assert!(out.iter().all(|&b| b == 1));
    }
}
