//! Vectors of the specifications.

#![allow(clippy::unwrap_used, clippy::type_complexity)]

mod common;

use common::{hex, open, seal};
use sealway_aead::Suite;
use sealway_aead::derive::{Hash, Prk};

const SUNSCREEN: &[u8] =
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
sunscreen would be it.";

/// RFC 8439 section 2.8.2.
#[test]
fn rfc8439_seal() {
    let key = hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
    let nonce = hex("070000004041424344454647");
    let aad = hex("50515253c0c1c2c3c4c5c6c7");
    let want = hex(
        "d31a8d34648e60db7b86afbc53ef7ec2 a4aded51296e08fea9e2b5a736ee62d6 3dbea45e8ca9671282fafb69da92728b
        1a71de0a9e060b2905d6a5b67ecd3b36 92ddbd7f2d778b8c9803aee328091b58 fab324e4fad675945585808b4831d7bc
        3ff4def08e4b7a9de576d26586cec64b 6116 1ae10b594f09e26a7e902ecbd0600691",
    );
    let suite = Suite::ChaCha20Poly1305;
    assert_eq!(seal(suite, &key, &nonce, &aad, SUNSCREEN), want);
    assert_eq!(open(suite, &key, &nonce, &aad, &want).as_deref(), Some(SUNSCREEN));
}

/// RFC 8439 appendix A.5.
#[test]
fn rfc8439_open() {
    let key = hex("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0");
    let nonce = hex("000000000102030405060708");
    let aad = hex("f33388860000000000004e91");
    let sealed = hex(
        "64a0861575861af460f062c79be643bd 5e805cfd345cf389f108670ac76c8cb2 4c6cfc18755d43eea09ee94e382d26b0
        bdb7b73c321b0100d4f03b7f355894cf 332f830e710b97ce98c8a84abd0b9481 14ad176e008d33bd60f982b1ff37c855
        9797a06ef4f0ef61c186324e2b350638 3606907b6a7c02b0f9f6157b53c867e4 b9166c767b804d46a59b5216cde7a4e9
        9040c5a40433225ee282a1b0a06c523e af4534d7f83fa1155b0047718cbc546a 0d072b04b3564eea1b422273f548271a
        0bb2316053fa76991955ebd63159434e cebb4e466dae5a1073a6727627097a10 49e617d91d361094fa68f0ff77987130
        305beaba2eda04df997b714d6c6f2c29 a6ad5cb4022b02709b eead9d67890cbb22392336fea1851f38",
    );
    let plain = open(Suite::ChaCha20Poly1305, &key, &nonce, &aad, &sealed).unwrap();
    assert!(plain.starts_with(b"Internet-Drafts are draft documents valid for a maximum of six months"));
    assert_eq!(plain.len(), 265);
}

/// draft-irtf-cfrg-xchacha-03, appendix A.3.1.
#[test]
fn xchacha_draft() {
    let key = hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
    let nonce = hex("404142434445464748494a4b4c4d4e4f5051525354555657");
    let aad = hex("50515253c0c1c2c3c4c5c6c7");
    let want = hex(
        "bd6d179d3e83d43b9576579493c0e939 572a1700252bfaccbed2902c21396cbb 731c7f1b0b4aa6440bf3a82f4eda7e39
        ae64c6708c54c216cb96b72e1213b452 2f8c9ba40db5d945b11b69b982c1bb9e 3f3fac2bc369488f76b2383565d3fff9
        21f9664c97637da9768812f615c68b13 b52e c0875924c1c7987947deafd8780acf49",
    );
    let suite = Suite::XChaCha20Poly1305;
    assert_eq!(seal(suite, &key, &nonce, &aad, SUNSCREEN), want);
    assert_eq!(open(suite, &key, &nonce, &aad, &want).as_deref(), Some(SUNSCREEN));
}

/// The Galois/Counter Mode of Operation (McGrew and Viega), test cases 1, 2, 4 (128-bit) and 13, 14, 16 (256-bit).
#[test]
fn gcm_specification() {
    let zero = [0; 32];
    let nonce = hex("cafebabefacedbaddecaf888");
    let aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    let plain = hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
        1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
    let key = hex("feffe9928665731c6d6a8f9467308308");
    let cases: [(Suite, &[u8], &[u8], &[u8], &[u8], &str); 6] = [
        (Suite::Aes128Gcm, &zero[..16], &zero[..12], &[], &[], "58e2fccefa7e3061367f1d57a4e7455a"),
        (
            Suite::Aes128Gcm,
            &zero[..16],
            &zero[..12],
            &[],
            &zero[..16],
            "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf",
        ),
        (
            Suite::Aes128Gcm,
            &key,
            &nonce,
            &aad,
            &plain,
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0a
             ac973d58e091 5bc94fbc3221a5db94fae95ae7121a47",
        ),
        (Suite::Aes256Gcm, &zero, &zero[..12], &[], &[], "530f8afbc74536b9a963b4f1c4cb738b"),
        (
            Suite::Aes256Gcm,
            &zero,
            &zero[..12],
            &[],
            &zero[..16],
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
        ),
        (
            Suite::Aes256Gcm,
            &[key.as_slice(), key.as_slice()].concat(),
            &nonce,
            &aad,
            &plain,
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba
             7a0abcc9f662 76fc6ece0f4e1768cddf8853bb2d551b",
        ),
    ];
    for (suite, key, nonce, aad, plain, want) in cases {
        assert_eq!(
            seal(suite, key, nonce, aad, plain),
            hex(want),
            "{suite} {}",
            plain.len()
        );
        assert_eq!(
            open(suite, key, nonce, aad, &hex(want)).as_deref(),
            Some(plain),
            "{suite}"
        );
    }
}

/// RFC 5869 appendix A.1 and A.3.
#[test]
fn rfc5869() {
    let prk = Prk::extract(Hash::Sha256, &hex("000102030405060708090a0b0c"), &[0x0b; 22]);
    let mut okm = [0; 42];
    prk.expand_raw(&hex("f0f1f2f3f4f5f6f7f8f9"), &mut okm).unwrap();
    let want = hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    assert_eq!(okm.as_slice(), want);
    let prk = Prk::extract(Hash::Sha256, &[], &[0x0b; 22]);
    prk.expand_raw(&[], &mut okm).unwrap();
    let want = hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
    assert_eq!(okm.as_slice(), want);
}
