//! What a peer may send, for the fuzz target and for the test that replays its corpus. Not part of the
//! public interface.
//!
//! It checks more than that nothing panics: that what is read is written as the same bytes.

use prost::Message as _;

use crate::key::PublicKey;
use crate::relay::wire::{ANSWER_LEN, Answer, REQUEST_LEN, Request};
use crate::wire::control::{Body, Hello, Message, Offer, Role, Top, VERSION};

#[cfg(test)]
mod corpora;

/// The fuzz target's name and its entry.
pub const ENTRIES: &[(&str, fn(&[u8]))] = &[("drop", run)];

/// Reads the input after its first byte, which says as what.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 3 {
        0 => control(rest),
        1 => relay(rest),
        _ => key(rest),
    }
}

fn control(rest: &[u8]) {
    if let Ok(message) = Message::decode(rest) {
        let again = Message::decode(&*message.encode_to_vec());
        assert!(again.as_ref() == Ok(&message), "a message reads back");
    }
}

fn relay(rest: &[u8]) {
    for bytes in rest.as_chunks::<REQUEST_LEN>().0 {
        if let Ok(request) = Request::parse(bytes) {
            assert!(request.encode() == *bytes);
        }
    }
    for bytes in rest.as_chunks::<ANSWER_LEN>().0 {
        if let Some(answer) = Answer::parse(bytes) {
            assert!(answer.encode() == *bytes);
        }
    }
}

fn key(rest: &[u8]) {
    if let Ok(text) = std::str::from_utf8(rest)
        && let Ok(key) = text.parse::<PublicKey>()
    {
        assert!(key.to_string().parse() == Ok(key));
    }
}

/// One of everything in order, to start a corpus with.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let message = |body| Message { body: Some(body) }.encode_to_vec();
    let hello = message(Body::Hello(Hello {
        version: VERSION,
        role: Role::Sender.into(),
        shares: true,
        ..Hello::default()
    }));
    let offer = message(Body::Offer(Offer {
        transfer: vec![7; 32],
        files: 2,
        bytes: 300,
        top: vec![Top {
            name: b"folder".to_vec(),
            folder: true,
        }],
        ..Offer::default()
    }));
    let pair = Request::Pair {
        token: [1; 32],
        role: sealway_session::handshake::Role::Initiator,
    };
    let answers = [Answer::Waiting(77).encode(), Answer::Ready.encode()].concat();
    let key = PublicKey::new([5; 32]).to_string().into_bytes();
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    vec![
        ("hello", seed(0, &hello)),
        ("offer", seed(0, &offer)),
        ("relay-pair", seed(1, &pair.encode())),
        ("relay-answers", seed(1, &answers)),
        ("key", seed(2, &key)),
    ]
}
