#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::group::X25519Secret;
use crate::reality::certificate::ServerKey;

fn auth(seed: u8) -> AuthKey {
    let server = X25519Secret::new(&[9; 32]);
    AuthKey::new(&X25519Secret::new(&[seed; 32]), &server.public(), &[3; 32]).unwrap()
}

fn shown<'a>(chain: &'a [&'a [u8]]) -> Shown<'a> {
    Shown {
        chain,
        client_hello: b"a client's hello",
        server_hello: b"a server's hello",
    }
}

#[test]
fn a_certificate_counts_for_one_client_only() {
    let (key, other) = (auth(1), auth(2));
    let server = ServerKey::new(&[7; 32], None).unwrap();
    let der = server.certificate(key.as_bytes(), b"", b"").unwrap();
    let Proof::Genuine(public) = Proof::of(&key, &shown(&[&der]), None) else {
        panic!("it is the server's");
    };
    assert_eq!(Proof::of(&other, &shown(&[&der]), None), Proof::Other);
    // What holds it together, the key, and what stands for the signature: nothing else counts.
    let public_at = der.len() - 64 - 10 - 32;
    for at in [0, public_at, public_at + 31, der.len() - 64, der.len() - 1] {
        let mut changed = der.clone();
        changed[at] ^= 1;
        assert_ne!(
            Proof::of(&key, &shown(&[&changed]), None),
            Proof::Genuine(public),
            "{at}"
        );
    }
    for n in 0..der.len() {
        assert_eq!(Proof::of(&key, &shown(&[&der[..n]]), None), Proof::Other);
    }
    assert_eq!(
        Proof::of(&key, &shown(&[&[&der[..], &[0]].concat()]), None),
        Proof::Other
    );
    assert_eq!(Proof::of(&key, &shown(&[]), None), Proof::Other);
}

#[test]
fn a_key_of_ml_dsa_that_was_given_is_asked_for() {
    let key = auth(1);
    let with = ServerKey::new(&[7; 32], Some(&[5; 32])).unwrap();
    let public: [u8; MLDSA65_KEY_LEN] = with.mldsa65_public().unwrap().try_into().unwrap();
    let mut wrong = public;
    wrong[40] ^= 1;
    let of = |server: &ServerKey| {
        server
            .certificate(key.as_bytes(), b"a client's hello", b"a server's hello")
            .unwrap()
    };
    let der = of(&with);
    assert!(matches!(
        Proof::of(&key, &shown(&[&der]), Some(&public)),
        Proof::Genuine(_)
    ));
    // Who was given none does not ask.
    assert!(matches!(Proof::of(&key, &shown(&[&der]), None), Proof::Genuine(_)));
    assert_eq!(Proof::of(&key, &shown(&[&der]), Some(&wrong)), Proof::Unsigned);
    for (client_hello, server_hello) in [
        (&b"another"[..], &b"a server's hello"[..]),
        (b"a client's hello", b"another"),
    ] {
        let chain = [&der[..]];
        let elsewhere = Shown {
            chain: &chain,
            client_hello,
            server_hello,
        };
        assert_eq!(Proof::of(&key, &elsewhere, Some(&public)), Proof::Unsigned);
    }
    let bare = ServerKey::new(&[7; 32], None).unwrap();
    assert_eq!(Proof::of(&key, &shown(&[&of(&bare)]), Some(&public)), Proof::Unsigned);
    assert_eq!(Proof::of(&auth(2), &shown(&[&der]), Some(&public)), Proof::Other);
}

/// The certificates that the fuzz target begins with. `SEALWAY_UPDATE_GOLDEN=1` writes them.
#[test]
fn kept_certificates_are_read() {
    let key = crate::fuzzing::client::auth();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/tls13_reality_certificate");
    for (file, seed) in [("plain", None), ("signed", Some([5; 32]))] {
        let server = ServerKey::new(&[7; 32], seed.as_ref()).unwrap();
        if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
            let der = server.certificate(key.as_bytes(), b"a client's hello", b"a server's hello");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(file), der.unwrap()).unwrap();
        }
        let der = std::fs::read(folder.join(file)).unwrap();
        let public: Option<[u8; MLDSA65_KEY_LEN]> = server.mldsa65_public().map(|key| key.try_into().unwrap());
        assert!(
            matches!(Proof::of(&key, &shown(&[&der]), public.as_ref()), Proof::Genuine(_)),
            "{file}"
        );
    }
}
