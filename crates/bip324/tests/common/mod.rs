//! What the tests share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::path::Path;

use sealway_bip324::{Connection, Event, LocalKey, Magic, Options, Role, SessionKeys};

/// Hexadecimal digits as bytes.
pub fn hex(digits: &str) -> Vec<u8> {
    assert_eq!(digits.len() % 2, 0, "an odd number of digits");
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// As many bytes as the array has.
pub fn array<const N: usize>(digits: &str) -> [u8; N] {
    hex(digits).try_into().unwrap()
}

/// A generator of fixed numbers (SplitMix64), so that a failure comes again.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// The key of one role, the same every time.
pub fn key(role: Role) -> LocalKey {
    let byte = match role {
        Role::Initiator => 0x11,
        Role::Responder => 0x22,
    };
    LocalKey::new(&[byte; 32], &[byte ^ 0xff; 32]).unwrap()
}

/// What both roles derive of their keys.
pub fn session_keys() -> SessionKeys {
    let theirs = *key(Role::Responder).encoding();
    key(Role::Initiator)
        .agree(&theirs, Role::Initiator, Magic::MAINNET)
        .unwrap()
}

/// The options, but for what is set.
pub fn options(set: impl FnOnce(&mut Options)) -> Options {
    let mut made = Options::default();
    set(&mut made);
    made
}

pub fn connection(role: Role, options: Options) -> Connection {
    match role {
        Role::Initiator => Connection::initiator(Magic::MAINNET, key(role), options),
        Role::Responder => Connection::responder(Magic::MAINNET, key(role), options),
    }
    .unwrap()
}

/// Gives each what the other has to send until neither has anything.
pub fn pump(a: &mut Connection, b: &mut Connection) {
    while !a.output().is_empty() || !b.output().is_empty() {
        let n = b.handle_input(a.output()).unwrap();
        a.advance_output(n);
        let m = a.handle_input(b.output()).unwrap();
        b.advance_output(m);
        assert!(n + m > 0, "neither takes what the other sends");
    }
}

/// Two ends after the handshake, without events.
pub fn pair(initiator: Options, responder: Options) -> (Connection, Connection) {
    let mut a = connection(Role::Initiator, initiator);
    let mut b = connection(Role::Responder, responder);
    pump(&mut a, &mut b);
    events(&mut a);
    events(&mut b);
    assert!(a.is_established() && b.is_established());
    (a, b)
}

/// All events that wait.
pub fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

/// The contents of the messages that wait.
pub fn messages(connection: &mut Connection) -> Vec<Vec<u8>> {
    events(connection)
        .into_iter()
        .filter_map(|event| match event {
            Event::Message(contents) => Some(contents.into_vec()),
            _ => None,
        })
        .collect()
}

/// All that is to be sent, taken as sent.
pub fn output(connection: &mut Connection) -> Vec<u8> {
    let bytes = connection.output().to_vec();
    connection.advance_output(bytes.len());
    bytes
}

/// The rows of one of the BIP's CSV files, without its head; no field of these files holds a comma.
pub fn rows(name: &str) -> Vec<Vec<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines()
        .skip(1)
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}
