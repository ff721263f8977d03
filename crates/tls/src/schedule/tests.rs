//! Against RFC 8448, and against another implementation for SHA-384.
#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use super::*;

struct Vector(&'static str);

impl Vector {
    fn get(&self, name: &str) -> Vec<u8> {
        let line = self
            .0
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        let digits = line.unwrap_or_else(|| panic!("no line {name}")).as_bytes();
        let digit = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
        digits
            .chunks(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect()
    }

    fn digest(&self, name: &str) -> Digest {
        Digest::new(&self.get(name))
    }
}

const RFC: Vector = Vector(include_str!("../../tests/vectors/schedule-rfc8448.txt"));
const SHA384: Vector = Vector(include_str!("../../tests/vectors/schedule-sha384.txt"));

#[derive(Default)]
struct Seen(Mutex<Vec<(&'static str, [u8; 32], Vec<u8>)>>);

impl KeyLog for Seen {
    fn secret(&self, label: &'static str, client_random: &[u8; 32], secret: &[u8]) {
        self.0.lock().unwrap().push((label, *client_random, secret.to_vec()));
    }
}

#[test]
fn every_secret_is_that_of_the_vectors() {
    let suites = [CipherSuite::Aes128GcmSha256, CipherSuite::Aes256GcmSha384];
    for (suite, vector) in suites.into_iter().zip([RFC, SHA384]) {
        let seen = Seen::default();
        let log: Logged<'_> = Some((&seen, &[7; 32]));
        let handshake = Handshake::new(suite, &vector.get("shared"), &vector.digest("hello_hash"), log);
        let application = handshake.application(&vector.digest("finished_hash"), log);
        let Secrets { client, server } = &handshake.secrets;
        assert_eq!(client.secret[..], vector.get("client_handshake"));
        assert_eq!(server.secret[..], vector.get("server_handshake"));
        assert_eq!(application.client.secret[..], vector.get("client_application"));
        assert_eq!(application.server.secret[..], vector.get("server_application"));
        let updated = application.server.updated();
        assert_eq!(updated.secret[..], vector.get("server_application_next"));

        let keys = server.keys();
        assert_eq!(
            (keys.key(), &keys.iv()[..]),
            (&vector.get("server_key")[..], &vector.get("server_iv")[..])
        );
        assert_eq!((keys.suite(), keys.next()), (suite.aead(), 0));

        let finished = server.finished(&vector.digest("server_finished_over"));
        assert_eq!(finished.as_ref(), vector.get("server_finished"));
        let (whole, mut finished) = (vector.digest("finished_hash"), vector.get("client_finished"));
        assert_eq!(client.check_finished(&whole, &finished), Ok(()));
        assert!(client.check_finished(&whole, &finished[1..]).is_err());
        assert!(client.check_finished(&whole, b"").is_err());
        finished[31] ^= 1;
        let refused = client.check_finished(&whole, &finished).unwrap_err();
        assert_eq!(refused.alert(), Some(Alert::DecryptError));

        let seen: Vec<_> = seen.0.into_inner().unwrap();
        let expected = [
            ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "client_handshake"),
            ("SERVER_HANDSHAKE_TRAFFIC_SECRET", "server_handshake"),
            ("CLIENT_TRAFFIC_SECRET_0", "client_application"),
            ("SERVER_TRAFFIC_SECRET_0", "server_application"),
        ];
        assert_eq!(seen, expected.map(|(label, name)| (label, [7; 32], vector.get(name))));
    }
}

#[test]
fn a_transcript_is_that_of_the_vectors_however_it_is_cut() {
    for step in [1, 7, 1000] {
        let mut transcript = Transcript::new(HashKind::Sha256);
        for message in ["client_hello", "server_hello"] {
            RFC.get(message).chunks(step).for_each(|part| transcript.add(part));
        }
        assert_eq!(transcript.value(), RFC.digest("hello_hash"));
    }
}

#[test]
fn after_a_retry_the_first_hello_stands_as_its_hash() {
    for hash in [HashKind::Sha256, HashKind::Sha384] {
        let mut transcript = Transcript::after_retry(hash, b"hello");
        transcript.add(b"retry");
        let whole = [
            &[254, 0, 0, hash.output_len() as u8],
            hash.digest(b"hello").as_ref(),
            b"retry",
        ]
        .concat();
        assert_eq!(transcript.value(), hash.digest(&whole));
    }
}

#[test]
fn a_line_of_a_key_log_is_what_other_programs_read() {
    let line = key_log_line("CLIENT_TRAFFIC_SECRET_0", &[0xab; 32], &[0x01, 0xf0]);
    assert_eq!(*line, format!("CLIENT_TRAFFIC_SECRET_0 {} 01f0", "ab".repeat(32)));
}

#[test]
fn suites_have_the_numbers_of_the_registry() {
    for (suite, id, key, hash) in [
        (CipherSuite::Aes128GcmSha256, 0x1301, 16, 32),
        (CipherSuite::Aes256GcmSha384, 0x1302, 32, 48),
        (CipherSuite::ChaCha20Poly1305Sha256, 0x1303, 32, 32),
    ] {
        assert_eq!(
            (suite.id(), suite.aead().key_len(), suite.hash().output_len()),
            (id, key, hash)
        );
        assert_eq!(CipherSuite::from_id(id), Some(suite));
    }
    assert_eq!(CipherSuite::from_id(0x1304), None);
}
