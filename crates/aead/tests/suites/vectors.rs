//! Vectors of the specifications, from `tests/vectors`.

use sealway_aead::Suite;
use sealway_aead::derive::{Hash, Prk};

use crate::common::vectors::{record, records};
use crate::common::{open, seal};

/// Seals and opens these messages of a file, and they are all that it has.
fn both_ways(file: &str, titles: &[&str]) {
    let all = records(file).into_iter().filter(|record| record.has("sealed"));
    assert_eq!(all.map(|record| record.title).collect::<Vec<_>>(), titles);
    for title in titles {
        let record = record(file, title);
        let suite: Suite = record.text("suite").parse().unwrap();
        let [key, nonce, aad, plaintext, sealed] =
            ["key", "nonce", "aad", "plaintext", "sealed"].map(|name| record.bytes(name));
        assert_eq!(seal(suite, &key, &nonce, &aad, &plaintext), sealed, "{title}");
        let opened = open(suite, &key, &nonce, &aad, &sealed);
        assert_eq!(opened.as_deref(), Some(&plaintext[..]), "{title}");
    }
}

/// RFC 8439 section 2.8.2 and appendix A.5.
#[test]
fn rfc8439() {
    both_ways("rfc8439.txt", &["2.8.2", "A.5"]);
}

/// draft-irtf-cfrg-xchacha-03.
#[test]
fn xchacha_draft() {
    both_ways("xchacha.txt", &["A.3.1"]);
}

/// The Galois/Counter Mode of Operation (McGrew and Viega): 128-bit keys, then 256-bit keys.
#[test]
fn gcm_specification() {
    let cases = [1, 2, 3, 4, 13, 14, 15, 16].map(|case| format!("test case {case}"));
    both_ways("gcm.txt", &cases.each_ref().map(String::as_str));
}

/// RFC 5869 appendix A.1 and A.3.
#[test]
fn rfc5869() {
    let cases = records("rfc5869.txt");
    assert_eq!(cases.len(), 2);
    for case in cases {
        assert_eq!(case.text("hash"), "sha-256");
        let extracted = Prk::extract(Hash::Sha256, &case.bytes("salt"), &case.bytes("ikm"));
        let mut okm = [0; 42];
        extracted.expand_raw(&case.bytes("info"), &mut okm).unwrap();
        assert_eq!(okm.as_slice(), case.bytes("okm"), "{}", case.title);
    }
}
