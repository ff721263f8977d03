//! Test vectors, and the key schedule of `docs/reference/session.md` a second time: written from its formulas alone.
//!
//! `SEALWAY_UPDATE_GOLDEN=1` writes the file anew; read the diff.

use std::path::Path;

use libcrux_ml_kem::{mlkem768, mlkem1024};
use sealway_aead::derive::{Hash, Prk};
use sealway_aead::{OpeningKey, Suite, Tag};
use sealway_session::attach::{AttachInitiator, AttachResponder};
use sealway_session::handshake::{Auth, Config, Handshake, Kem, Mode, PeerKey, Role};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use x25519_dalek::{PublicKey, StaticSecret};

use crate::common::{self, keys, offer, random};

const CODE: &[u8] = b"castle-lemon-opera";
const PROLOGUE: &[u8] = b"vectors";

struct Case {
    name: &'static str,
    mode: Mode,
    kem: Kem,
    suites: &'static [Suite],
    seed: u64,
}

const CASES: [Case; 4] = [
    Case {
        name: "code, ml-kem-768, aes-256-gcm",
        mode: Mode::Code,
        kem: Kem::MlKem768,
        suites: &[Suite::Aes256Gcm, Suite::Aes128Gcm, Suite::ChaCha20Poly1305],
        seed: 1,
    },
    Case {
        name: "keys, ml-kem-768, chacha20-poly1305",
        mode: Mode::Keys,
        kem: Kem::MlKem768,
        suites: &[Suite::ChaCha20Poly1305],
        seed: 2,
    },
    Case {
        name: "keys, ml-kem-1024, aes-128-gcm",
        mode: Mode::Keys,
        kem: Kem::MlKem1024,
        suites: &[Suite::Aes128Gcm],
        seed: 3,
    },
    Case {
        name: "code, ml-kem-1024, xchacha20-poly1305",
        mode: Mode::Code,
        kem: Kem::MlKem1024,
        suites: &[Suite::XChaCha20Poly1305],
        seed: 4,
    },
];

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// What an end drew, in order.
fn recording<'a>(seed: u64, drawn: &'a mut Vec<u8>) -> impl FnMut(&mut [u8]) + 'a {
    let mut source = random(seed);
    move |out| {
        source(out);
        drawn.extend_from_slice(out);
    }
}

fn sha256(parts: &[&[u8]]) -> Vec<u8> {
    Sha256::digest(parts.concat()).to_vec()
}

/// `Expand` of the reference: the layout of `sealway_aead::derive`, built by hand.
fn expand(secret: &[u8], usage: u8, ids: [u8; 2], epoch: u64, purpose: &str, context: &[u8], len: usize) -> Vec<u8> {
    let info = [
        b"sealway derive 1",
        &[usage][..],
        &ids,
        &epoch.to_be_bytes(),
        &(len as u16).to_be_bytes(),
        &[purpose.len() as u8],
        purpose.as_bytes(),
        &(context.len() as u16).to_be_bytes(),
        context,
    ]
    .concat();
    let mut out = vec![0; len];
    Prk::from_secret(Hash::Sha256, secret)
        .unwrap()
        .expand_raw(&info, &mut out)
        .unwrap();
    out
}

fn export(secret: &[u8], purpose: &str, context: &[u8], len: usize) -> Vec<u8> {
    expand(secret, 4, [0, 0], 0, purpose, context, len)
}

fn export_secret(secret: &[u8], purpose: &str, context: &[u8]) -> Vec<u8> {
    expand(secret, 5, [0, 0], 0, purpose, context, 32)
}

/// HKDF-Extract is HMAC with the salt as key.
fn extract(salt: &[u8], input: &[u8]) -> Vec<u8> {
    let key = if salt.len() > 64 {
        sha256(&[salt])
    } else {
        salt.to_vec()
    };
    let pad = |byte: u8| {
        (0..64)
            .map(|i| key.get(i).copied().unwrap_or(0) ^ byte)
            .collect::<Vec<_>>()
    };
    sha256(&[&pad(0x5c), &sha256(&[&pad(0x36), input])])
}

fn mix(secret: &[u8], hash: &[u8], input: &[u8]) -> Vec<u8> {
    extract(&export(secret, "sealway session mix", hash, 32), input)
}

fn suite_id(suite: Suite) -> u8 {
    Suite::ALL.iter().position(|&s| s == suite).unwrap() as u8 + 1
}

/// Opens with the key of a label; `direction` is 1 or 2. The nonce is the vector XOR `number`.
fn open(secret: &[u8], at: (Suite, u8, u64, &str, &[u8]), number: u64, aad: &[u8], sealed: &[u8]) -> Vec<u8> {
    let (suite, direction, epoch, purpose, context) = at;
    let ids = [suite_id(suite), direction];
    let key = expand(secret, 1, ids, epoch, purpose, context, suite.key_len());
    let mut nonce = expand(secret, 2, ids, epoch, purpose, context, suite.nonce_len());
    let end = nonce.len() - 8;
    for (byte, number) in nonce[end..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= number;
    }
    let (text, tag) = sealed.split_at(sealed.len() - 16);
    let mut text = text.to_vec();
    let key = OpeningKey::new(suite, &key).unwrap();
    key.open_in_place(&nonce, aad, &mut text, &Tag::from_slice(tag).unwrap())
        .unwrap();
    text
}

fn dh(secret: &[u8], public: &[u8]) -> Vec<u8> {
    let secret: [u8; 32] = secret.try_into().unwrap();
    let public: [u8; 32] = public.try_into().unwrap();
    StaticSecret::from(secret)
        .diffie_hellman(&PublicKey::from(public))
        .to_bytes()
        .to_vec()
}

fn decapsulate(kem: Kem, seed: &[u8], ciphertext: &[u8]) -> Vec<u8> {
    let seed: [u8; 64] = seed.try_into().unwrap();
    match kem {
        Kem::MlKem768 => {
            let pair = mlkem768::generate_key_pair(seed);
            mlkem768::decapsulate(pair.private_key(), &ciphertext.try_into().unwrap()).to_vec()
        }
        Kem::MlKem1024 => {
            let pair = mlkem1024::generate_key_pair(seed);
            mlkem1024::decapsulate(pair.private_key(), &ciphertext.try_into().unwrap()).to_vec()
        }
    }
}

/// The key of SPAKE2, from the initiator's random scalar.
fn pake(password: &[u8], scalar: &[u8], theirs: &[u8]) -> Vec<u8> {
    struct Fixed<'a>(&'a [u8]);
    impl rand_core::RngCore for Fixed<'_> {
        fn next_u32(&mut self) -> u32 {
            unreachable!()
        }
        fn next_u64(&mut self) -> u64 {
            unreachable!()
        }
        fn fill_bytes(&mut self, out: &mut [u8]) {
            out.copy_from_slice(self.0);
        }
        fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), rand_core::Error> {
            self.fill_bytes(out);
            Ok(())
        }
    }
    impl rand_core::CryptoRng for Fixed<'_> {}
    let (state, _) = spake2::Spake2::<spake2::Ed25519Group>::start_a_with_rng(
        &spake2::Password::new(password),
        &spake2::Identity::new(b"sealway session 1 initiator"),
        &spake2::Identity::new(b"sealway session 1 responder"),
        Fixed(scalar),
    );
    state.finish(&[b"B", theirs].concat()).unwrap()
}

/// Everything again, from what the initiator drew and what was sent.
fn again(case: &Case, drawn: &[u8], flights: &[Vec<u8>], suite: Suite) -> (Value, Vec<u8>) {
    let code = case.mode == Mode::Code;
    let share_len = if code { 32 } else { 0 };
    let h0 = sha256(&[b"sealway session 1", &(PROLOGUE.len() as u64).to_be_bytes(), PROLOGUE]);
    let (ephemeral, rest) = drawn.split_at(32);
    let (seed, rest) = rest.split_at(64);
    let (scalar, nonce) = rest.split_at(if code { 64 } else { 0 });
    let h1 = sha256(&[&h0, &flights[0]]);
    let commitment = sha256(&[b"sealway session 1 commitment", nonce]);
    assert!(flights[0].ends_with(&commitment));

    let tail = if code { 32 } else { 80 };
    let (clear, end) = flights[1].split_at(flights[1].len() - tail);
    let (sealed, confirmation) = end.split_at(tail - 32);
    let at = 7 + usize::from(clear[6]);
    let (theirs, clear_rest) = clear[at..].split_at(32);
    let (ciphertext, clear_rest) = clear_rest.split_at(case.kem.ciphertext_len());
    let theirs_share = &clear_rest[..share_len];
    let mut hash = sha256(&[&h1, clear]);
    let mut secret = extract(b"sealway session 1", &h1);
    secret = mix(&secret, &hash, &decapsulate(case.kem, seed, ciphertext));
    secret = mix(&secret, &hash, &dh(ephemeral, theirs));
    const SEAL: &str = "sealway session handshake";
    if code {
        let password = export(
            &extract(b"sealway session 1 code", CODE),
            "sealway session password",
            &h0,
            32,
        );
        secret = mix(&secret, &hash, &pake(&password, scalar, theirs_share));
    } else {
        let key = open(&secret, (suite, 2, 0, SEAL, &hash), 0, &hash, sealed);
        assert_eq!(key, common::static_key(Role::Responder).public());
        hash = sha256(&[&hash, sealed]);
        secret = mix(&secret, &hash, &dh(ephemeral, &key));
    }
    assert_eq!(
        export(&secret, "sealway session confirm responder", &hash, 32),
        confirmation
    );
    hash = sha256(&[&hash, confirmation]);
    let h4 = hash.clone();
    let checker = export_secret(&secret, "sealway session check", &hash);
    let check = export(&checker, "sealway session check", nonce, 5);

    let (sealed, confirmation) = flights[2].split_at(flights[2].len() - 32);
    let text = open(&secret, (suite, 1, 0, SEAL, &hash), 0, &hash, sealed);
    assert!(text.ends_with(nonce));
    hash = sha256(&[&hash, sealed]);
    if !code {
        let own = common::static_key(Role::Initiator);
        assert_eq!(&text[..32], own.public());
        secret = mix(&secret, &hash, &dh(&*own.to_bytes(), theirs));
    }
    assert_eq!(
        export(&secret, "sealway session confirm initiator", &hash, 32),
        confirmation
    );
    hash = sha256(&[&hash, confirmation]);
    let master = export_secret(&secret, "sealway session master", &hash);
    let value = json!({
        "start_hash": hex(&h0), "hash_1": hex(&h1), "hash_4": hex(&h4), "hash_6": hex(&hash), "check": hex(&check),
        "session_id": hex(export(&master, "sealway session id", &hash, 32)), "master": hex(&master),
    });
    (value, [master, hash].concat())
}

/// Plaintexts of the records of one direction of a connection, opened by the formulas: `(epoch, record)`.
fn open_records(
    connection: &[u8],
    suite: Suite,
    hash: &[u8],
    index: u32,
    direction: u8,
    records: &[(u64, Vec<u8>)],
) -> Vec<Vec<u8>> {
    let context = [hash, &index.to_be_bytes()[..]].concat();
    let label = [
        "sealway session initiator to responder",
        "sealway session responder to initiator",
    ];
    const TRAFFIC: &str = "sealway session traffic";
    let mut secret = export_secret(connection, label[usize::from(direction) - 1], &context);
    let mut epoch = 0;
    let opened = records.iter().zip(0..).map(|((at, record), number)| {
        while epoch < *at {
            secret = expand(&secret, 3, [0, 0], epoch, TRAFFIC, &context, 32);
            epoch += 1;
        }
        assert_eq!(u64::from(record[0] >> 7), epoch % 2);
        open(
            &secret,
            (suite, direction, epoch, TRAFFIC, &context),
            number,
            &record[..8],
            &record[8..],
        )
    });
    opened.collect()
}

fn run(case: &Case) -> Value {
    let end = |role: Role, drawn: &mut Vec<u8>| {
        let auth = match case.mode {
            Mode::Code => Auth::Code(CODE.to_vec().into()),
            Mode::Keys => keys(role, PeerKey::Unknown),
        };
        let offer = offer(case.suites, true);
        let config = Config {
            role,
            auth,
            offer,
            kem: case.kem,
            prologue: PROLOGUE.to_vec(),
        };
        Handshake::new(
            config,
            &mut recording(2 * case.seed + u64::from(role == Role::Responder), drawn),
        )
        .unwrap()
    };
    let (mut drawn, mut theirs) = (Vec::new(), Vec::new());
    let (mut initiator, mut responder) = (end(Role::Initiator, &mut drawn), end(Role::Responder, &mut theirs));
    let mut flights = Vec::new();
    let _ = common::drive(&mut initiator, &mut responder, |_, flight| {
        flights.push(flight.clone());
        flight
    });
    let (mut here, mut there) = (initiator.finish().unwrap(), responder.finish().unwrap());

    let (schedule, secrets) = again(case, &drawn, &flights, here.suite);
    let (master, hash) = secrets.split_at(32);
    assert_eq!(schedule["session_id"], hex(here.session.id()));
    assert_eq!(schedule["check"], hex(here.check.as_bytes()));
    let mut exported = [0; 32];
    here.session.exporter("example", b"context", &mut exported).unwrap();
    let exporter = export_secret(master, "sealway session exporter", hash);
    assert_eq!(export(&exporter, "example", b"context", 32), exported);

    // Connection 0: a record, one under the next key, the close.
    let first = common::seal(&mut here.send, 1, 2, b"first");
    here.send.rekey();
    let second = common::seal(&mut here.send, 47, 0xdead_beef, b"second");
    let close = here.send.close().unwrap().to_vec();
    let records = [(0, first), (1, second), (1, close)];
    let connection = export_secret(master, "sealway session connection", hash);
    let opened = open_records(&connection, here.suite, hash, 0, 1, &records);
    assert_eq!(opened, [&b"first"[..], b"second", b""]);
    let answer = [(0, common::seal(&mut there.send, 3, 4, b"answer"))];
    assert_eq!(open_records(&connection, here.suite, hash, 0, 2, &answer), [b"answer"]);

    // Index 2, dialled by the responder of the handshake.
    let (mut dialler_drew, mut answerer_drew) = (Vec::new(), Vec::new());
    let mut dialled = AttachInitiator::new(&there.session, 2, &mut recording(77, &mut dialler_drew)).unwrap();
    let mut answered = AttachResponder::new(&here.session, &mut recording(78, &mut answerer_drew));
    let hello = dialled.write().unwrap();
    answered.read(&hello).unwrap();
    let reply = answered.write().unwrap();
    dialled.read(&reply).unwrap();
    let mut attached = dialled.finish().unwrap();
    let record = common::seal(&mut attached.send, 5, 6, b"attached");
    let mut chain = export_secret(master, "sealway session attach chain", hash);
    chain = expand(&chain, 3, [0, 0], 1, "sealway session attach slot", b"", 32);
    let slot = export_secret(&chain, "sealway session attach slot", &2u32.to_be_bytes());
    assert_eq!(
        hello[..32],
        export(&slot, "sealway session attach token", &2u32.to_be_bytes(), 32)
    );
    let context = [&[2], &dialler_drew[..], &answerer_drew[..]].concat();
    assert_eq!(
        hello[48..],
        export(&slot, "sealway session attach hello", &context[..17], 32)
    );
    assert_eq!(
        reply[16..],
        export(&slot, "sealway session attach answer", &context, 32)
    );
    let connection = export_secret(&slot, "sealway session connection", &context);
    let opened = open_records(&connection, here.suite, hash, 2, 2, &[(0, record.clone())]);
    assert_eq!(opened, [b"attached"]);

    json!({
        "name": case.name,
        "mode": format!("{:?}", case.mode).to_lowercase(),
        "kem": case.kem.to_string(),
        "suite": here.suite.name(),
        "offer": case.suites.iter().map(|s| s.name()).collect::<Vec<_>>(),
        "aes_hardware": true,
        "prologue": hex(PROLOGUE),
        "code": (case.mode == Mode::Code).then(|| hex(CODE)),
        "initiator_static": (case.mode == Mode::Keys).then(|| hex(*common::static_key(Role::Initiator).to_bytes())),
        "responder_static": (case.mode == Mode::Keys).then(|| hex(*common::static_key(Role::Responder).to_bytes())),
        "initiator_random": hex(&drawn),
        "responder_random": hex(&theirs),
        "flights": flights.iter().map(hex).collect::<Vec<_>>(),
        "schedule": schedule,
        "check_words": here.check.to_string(),
        "exporter_example_context": hex(exported),
        "records_initiator": records.iter().map(|(_, record)| hex(record)).collect::<Vec<_>>(),
        "records_responder": [hex(&answer[0].1)],
        "attach_2": { "dialler": "responder", "hello": hex(&hello), "answer": hex(&reply), "record": hex(&record) },
    })
}

#[test]
fn vectors_are_what_they_were() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/session.json");
    let made = json!({ "protocol": "sealway session 1", "cases": CASES.iter().map(run).collect::<Vec<_>>() });
    if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{made:#}\n")).unwrap();
    }
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for (made, kept) in made["cases"]
        .as_array()
        .unwrap()
        .iter()
        .zip(kept["cases"].as_array().unwrap())
    {
        for (name, value) in made.as_object().unwrap() {
            assert_eq!(value, &kept[name], "{} of {}", name, made["name"]);
        }
    }
    assert_eq!(made, kept);
}
