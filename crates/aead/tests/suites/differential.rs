//! Against a second, independent library: every length across the block sizes, and many shapes of AAD.

use aes_gcm::aead::{AeadInOut, KeyInit};
use proptest::prelude::*;
use sealway_aead::Suite;

use crate::common::{open, random_bytes, seal};

/// The same message sealed by RustCrypto.
fn rustcrypto(suite: Suite, key: &[u8], nonce: &[u8], aad: &[u8], plaintext: &[u8]) -> Vec<u8> {
    fn run<C: AeadInOut + KeyInit>(key: &[u8], nonce: &[u8], aad: &[u8], plaintext: &[u8]) -> Vec<u8> {
        let cipher = C::new_from_slice(key).unwrap();
        let mut out = plaintext.to_vec();
        let tag = cipher
            .encrypt_inout_detached(nonce.try_into().unwrap(), aad, out.as_mut_slice().into())
            .unwrap();
        out.extend_from_slice(&tag);
        out
    }
    match suite {
        Suite::Aes128Gcm => run::<aes_gcm::Aes128Gcm>(key, nonce, aad, plaintext),
        Suite::Aes256Gcm => run::<aes_gcm::Aes256Gcm>(key, nonce, aad, plaintext),
        Suite::ChaCha20Poly1305 => run::<chacha20poly1305::ChaCha20Poly1305>(key, nonce, aad, plaintext),
        Suite::XChaCha20Poly1305 => run::<chacha20poly1305::XChaCha20Poly1305>(key, nonce, aad, plaintext),
    }
}

#[test]
fn every_length_to_1100_and_the_edges_beyond() {
    let lengths = (0..=1100).chain([
        4095,
        4096,
        4097,
        16_383,
        16_384,
        16_385,
        65_535,
        65_536,
        65_537,
        (1 << 20) + 1,
    ]);
    for (i, len) in lengths.enumerate() {
        let plaintext = random_bytes(len, i as u64);
        let aad = random_bytes(i % 40, 77);
        for suite in Suite::ALL {
            let key = random_bytes(suite.key_len(), 1000 + i as u64);
            let nonce = random_bytes(suite.nonce_len(), 2000 + i as u64);
            let sealed = seal(suite, &key, &nonce, &aad, &plaintext);
            assert_eq!(
                sealed,
                rustcrypto(suite, &key, &nonce, &aad, &plaintext),
                "{suite} {len}"
            );
            assert_eq!(
                open(suite, &key, &nonce, &aad, &sealed).as_deref(),
                Some(plaintext.as_slice()),
                "{suite} {len}"
            );
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
