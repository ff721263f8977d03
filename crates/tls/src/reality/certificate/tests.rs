//! Against vectors, and against what Go's x509 makes of the same fields.
#![allow(clippy::unwrap_used)]

use aws_lc_rs::signature::{ED25519 as VERIFY, ML_DSA_65, UnparsedPublicKey};

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn counted() -> [u8; 32] {
    std::array::from_fn(|at| at as u8)
}

const AUTH: [u8; 32] = [
    0x57, 0xb8, 0x24, 0xd2, 0xcd, 0x5d, 0x22, 0x4f, 0xc5, 0x10, 0xf5, 0x50, 0x97, 0x94, 0x09, 0xb7, 0x1c, 0xc6, 0x9c,
    0xe3, 0x5d, 0x1f, 0x49, 0x24, 0x3f, 0xa8, 0xf7, 0x28, 0x0c, 0x60, 0x75, 0x5b,
];

#[test]
fn the_signature_is_that_of_the_vectors() {
    assert_eq!(
        hex(&signature(&AUTH, &[0xaa; 32])),
        "fdbbdf3680ce3179c6ad7e0a459088b08492052e78d636fc05fc213577014fcc\
         d967b5066ffd63b32e63eb89f51b7d0a65d47ffcd0f4f5115751658d12aea5d2"
    );
}

/// Go's `x509.CreateCertificate` with serial number 0, no names, no times and the key of the seed 00..1f: all but its signature.
#[test]
fn a_certificate_is_the_least_that_go_makes() {
    let key = ServerKey::new(&counted(), None).unwrap();
    let der = key.certificate(&AUTH, b"hello", b"hello").unwrap();
    let (front, last) = der.split_last_chunk::<SIGNATURE_LEN>().unwrap();
    assert_eq!(
        hex(front),
        "3081af3063a003020102020100300506032b657030003022180f30303031303130313030303030305a180f30303031303130\
         313030303030305a3000302a300506032b657003210003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664\
         125531b8300506032b6570034100"
    );
    assert_eq!(last, &signature(&AUTH, &key.public));
    assert!(is_for(&AUTH, &key.public, &der));
    assert!(!is_for(&[0; 32], &key.public, &der));
    assert!(!is_for(&AUTH, &[0; 32], &der));
    assert!(!is_for(&AUTH, &key.public, &last[1..]));
    assert_eq!(key.mldsa65_public(), None);
}

#[test]
fn with_ml_dsa_the_hellos_are_signed_at_their_place() {
    let key = ServerKey::new(&counted(), Some(&[9; 32])).unwrap();
    let der = key.certificate(&AUTH, b"client", b"server").unwrap();
    assert_eq!(der.len(), 3509);
    assert_eq!(
        hex(&der[..MLDSA65_AT]),
        "30820db130820d63a003020102020100300506032b657030003022180f30303031303130313030303030305a180f30303031\
         303130313030303030305a3000302a300506032b657003210003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1d\
         dc8664125531b8a3820cfc30820cf830820cf406010004820ced"
    );
    assert_eq!(hex(&der[MLDSA65_AT + MLDSA65_LEN..][..10]), "300506032b6570034100");
    assert!(is_for(&AUTH, &key.public, &der));
    let public = key.mldsa65_public().unwrap();
    assert_eq!(public.len(), MLDSA65_KEY_LEN);
    // Xray makes the same key of this seed: the SHA-256 of its `xray mldsa65`.
    let digest = <sha2::Sha256 as sha2::Digest>::digest(public);
    assert_eq!(
        hex(&digest),
        "1a95d137c15f04be2238b639c6c20cf868b9b8fc6a3451a2e931181eca9bc46b"
    );
    let made = &der[MLDSA65_AT..MLDSA65_AT + MLDSA65_LEN];
    let verify = |content: &[u8]| UnparsedPublicKey::new(&ML_DSA_65, public).verify(content, made).is_ok();
    assert!(verify(&signed(&AUTH, &key.public, b"client", b"server")));
    assert!(!verify(&signed(&AUTH, &key.public, b"client", b"serves")));
    assert!(!verify(&signed(&AUTH, &key.public, b"cliens", b"server")));
    assert!(!verify(&signed(&[0; 32], &key.public, b"client", b"server")));
}

/// The signature of the handshake is a true one, whatever the client says that it takes.
#[test]
fn the_handshake_is_signed_with_the_key_that_is_shown() {
    let key = ServerKey::new(&counted(), None).unwrap();
    let (scheme, made) = key.for_client(&AUTH).sign(Numbers::default(), b"content").unwrap();
    assert_eq!(scheme, 0x0807);
    assert!(
        UnparsedPublicKey::new(&VERIFY, &key.public)
            .verify(b"content", &made)
            .is_ok()
    );
}
