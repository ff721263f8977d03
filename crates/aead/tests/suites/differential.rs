//! Against a second, independent library: every length across the block sizes, and many shapes of AAD.

use proptest::prelude::*;
use sealway_aead::Suite;

use crate::common::{open, random_bytes, seal};
use crate::fuzzing::rustcrypto;

#[test]
fn every_length_to_1100_and_the_edges_beyond() {
    let edges = [
        4095, 4096, 4097, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_048_577,
    ];
    let lengths = (0..=1100).chain(edges);
    for (i, len) in lengths.enumerate() {
        let plaintext = random_bytes(len, i as u64);
        let aad = random_bytes(i % 40, 77);
        for suite in Suite::ALL {
            let key = random_bytes(suite.key_len(), 1000 + i as u64);
            let nonce = random_bytes(suite.nonce_len(), 2000 + i as u64);
            let sealed = seal(suite, &key, &nonce, &aad, &plaintext);
            let theirs = rustcrypto(suite, &key, &nonce, &aad, &plaintext);
            assert_eq!(sealed, theirs, "{suite} {len}");
            let opened = open(suite, &key, &nonce, &aad, &sealed);
            assert_eq!(opened.as_deref(), Some(plaintext.as_slice()), "{suite} {len}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_message_seals_alike(
        suite in prop::sample::select(&Suite::ALL[..]),
        seed in any::<u64>(),
        aad in prop::collection::vec(any::<u8>(), 0..200),
        plaintext in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        let (key, nonce) = (random_bytes(suite.key_len(), seed), random_bytes(suite.nonce_len(), !seed));
        let sealed = seal(suite, &key, &nonce, &aad, &plaintext);
        prop_assert_eq!(&sealed, &rustcrypto(suite, &key, &nonce, &aad, &plaintext));
        prop_assert_eq!(open(suite, &key, &nonce, &aad, &sealed), Some(plaintext));
    }
}
