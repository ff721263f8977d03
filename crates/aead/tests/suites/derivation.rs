//! One secret never gives the same key twice.

use std::collections::HashMap;

use sealway_aead::derive::{Direction, Hash, Label, Prk};
use sealway_aead::{Error, Suite};

use crate::common::vectors::record;

const DIRECTIONS: [Direction; 2] = [Direction::InitiatorToResponder, Direction::ResponderToInitiator];

/// Every label that differs in any field gives another key and another vector, also on the bytes that suites share.
#[test]
fn all_labels_are_apart() {
    for hash in [Hash::Sha256, Hash::Sha512] {
        let prk = Prk::extract(hash, b"", b"one secret");
        let mut seen: HashMap<Vec<u8>, String> = HashMap::new();
        let mut check = |bytes: &[u8], what: String| {
            // 12 bytes are the shortest output; equal prefixes would be equal streams.
            if let Some(other) = seen.insert(bytes[..12].to_vec(), what.clone()) {
                panic!("{what} equals {other}");
            }
        };
        for suite in Suite::ALL {
            for direction in DIRECTIONS {
                for epoch in [0, 1, 255, 256, 1 + (1 << 32), 1 << 63, u64::MAX] {
                    for purpose in ["", "a", "ab"] {
                        for context in [&b""[..], b"a", b"b", b"ab"] {
                            let label = Label::new(purpose, suite, direction).epoch(epoch).context(context);
                            let traffic = prk.traffic(&label).unwrap();
                            assert_eq!(traffic.key().len(), suite.key_len());
                            assert_eq!(traffic.iv().len(), suite.nonce_len());
                            check(traffic.key(), format!("key {label:?}"));
                            check(traffic.iv(), format!("iv {label:?}"));
                        }
                    }
                }
            }
        }
        let mut out = [0; 12];
        for purpose in ["", "a", "ab"] {
            for context in [&b""[..], b"a", b"ab"] {
                prk.export(purpose, context, &mut out).unwrap();
                check(&out, format!("export {purpose} {context:?}"));
            }
        }
        let mut prks = Vec::new();
        for purpose in ["", "a", "ab"] {
            for context in [&b""[..], b"a", b"ab"] {
                let exported = prk.export_prk(purpose, context).unwrap();
                prks.push((format!("exported secret {purpose} {context:?}"), exported));
                for epoch in [0, 1, 255, 256, 1 + (1 << 32), 1 << 63, u64::MAX] {
                    let next = prk.next_epoch(purpose, epoch, context).unwrap();
                    prks.push((format!("after epoch {epoch} {purpose} {context:?}"), next));
                }
            }
        }
        for epoch in 0..5 {
            let next = prks.last().unwrap().1.next_epoch("a", epoch, b"").unwrap();
            prks.push((format!("after epoch {epoch} in turn"), next));
        }
        for (what, prk) in &prks {
            let traffic = prk.traffic(&Label::new("a", Suite::Aes256Gcm, DIRECTIONS[0])).unwrap();
            check(traffic.key(), what.clone());
            // Empty info and a known label: the bytes of two secrets are equal only if the secrets are.
            prk.expand_raw(b"", &mut out).unwrap();
            check(&out, format!("expanded from {what}"));
        }
    }
}

/// Longer and shorter outputs of one label are unrelated, because the length is part of the label.
#[test]
fn exports_of_different_length_share_no_prefix() {
    let prk = Prk::extract(Hash::Sha256, b"", b"secret");
    let (mut short, mut long) = ([0; 16], [0; 32]);
    prk.export("x", b"", &mut short).unwrap();
    prk.export("x", b"", &mut long).unwrap();
    assert_ne!(short, long[..16]);
}

/// Fixed outputs: a change of the layout would break every protocol built on it. They were computed with a separate
/// implementation of HKDF from the layout that the module documents.
#[test]
fn the_layout_is_fixed() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let prk = Prk::extract(Hash::Sha256, b"salt", b"secret");
    let label = Label::new("test", Suite::Aes256Gcm, Direction::ResponderToInitiator)
        .epoch(7)
        .context(b"ctx");
    let traffic = prk.traffic(&label).unwrap();
    assert_eq!(hex(traffic.key()), KEY);
    assert_eq!(hex(traffic.iv()), IV);
    let prk = Prk::extract(Hash::Sha512, b"salt", b"secret")
        .next_epoch("test", 7 + (9 << 32), b"transcript")
        .unwrap();
    let mut out = [0; 20];
    prk.export("test", b"ctx", &mut out).unwrap();
    assert_eq!(hex(&out), EXPORT);
    let prk = prk.export_prk("test", b"ctx").unwrap();
    prk.expand_raw(b"raw", &mut out).unwrap();
    assert_eq!(hex(&out), EXPORTED_PRK);
}

/// RFC 5869 test case 1: its pseudorandom key, taken as it stands, expands as the extracted one does.
#[test]
fn a_secret_from_elsewhere_is_the_pseudorandom_key_itself() {
    let case = record("rfc5869.txt", "A.1");
    let given = Prk::from_secret(Hash::Sha256, &case.bytes("prk")).unwrap();
    let extracted = Prk::extract(Hash::Sha256, &case.bytes("salt"), &case.bytes("ikm"));
    for prk in [given, extracted] {
        let mut out = [0; 42];
        prk.expand_raw(&case.bytes("info"), &mut out).unwrap();
        assert_eq!(out[..], case.bytes("okm"));
    }
    for (hash, need) in [(Hash::Sha256, 32), (Hash::Sha512, 64)] {
        for got in [0, 31, 33, 63, 65, 96 - need] {
            let refused = Prk::from_secret(hash, &vec![1; got]).unwrap_err();
            assert_eq!(refused, Error::SecretLength { need, got });
        }
        assert!(Prk::from_secret(hash, &vec![1; need]).is_ok());
    }
}

const KEY: &str = "a7db5b88b2a31f103e7c491f51626c4f9d3869ef4291332ac84cb45e13b8a3bb";
const IV: &str = "f883165e78744aa9277c2148";
const EXPORT: &str = "5243d803d2c1b098045613398c8acc0ca2b10b02";
const EXPORTED_PRK: &str = "09d8107e43d4b3215cd34c4e951efa5286d258cc";

#[test]
fn too_long_is_refused() {
    let prk = Prk::extract(Hash::Sha256, b"", b"secret");
    let long = "x".repeat(256);
    let label = Label::new(&long, Suite::Aes128Gcm, DIRECTIONS[0]);
    assert_eq!(prk.traffic(&label).unwrap_err(), Error::LabelLength { got: 256 });
    assert!(
        prk.traffic(&Label::new(&long[..255], Suite::Aes128Gcm, DIRECTIONS[0]))
            .is_ok()
    );
    let context = vec![0; 65_536];
    assert_eq!(
        prk.export("x", &context, &mut [0; 4]),
        Err(Error::LabelLength { got: 65_536 })
    );
    assert!(prk.export("x", &context[..65_535], &mut [0; 4]).is_ok());
    let refused = Error::LabelLength { got: 65_536 };
    assert_eq!(prk.next_epoch("x", 0, &context).unwrap_err(), refused);
    assert_eq!(prk.export_prk("x", &context).unwrap_err(), refused);
    assert_eq!(
        prk.export("x", b"", &mut vec![0; 255 * 32 + 1]),
        Err(Error::DerivedLength { got: 8161 })
    );
    assert!(prk.export("x", b"", &mut vec![0; 255 * 32]).is_ok());
}

#[test]
fn directions_are_each_other_reversed() {
    for direction in DIRECTIONS {
        assert_ne!(direction, direction.reverse());
        assert_eq!(direction, direction.reverse().reverse());
    }
}
