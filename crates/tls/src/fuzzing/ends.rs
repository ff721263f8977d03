//! Whole ends: what a client sends to a server, and what a peer sends after the handshake.

use std::sync::Arc;

use sealway_aead::Suite;

use crate::codec::{Message, ServerHello, extension, record, write_client_hello};
use crate::error::Error;
use crate::group::{ClientSecret, Group};
use crate::records::{APPLICATION, HANDSHAKE, Opening, Records, Schedule, Sealing, Version};
use crate::schedule::{Handshake, Keys, Transcript};
use crate::server::{Config, Ed25519, Server};
use crate::suite::CipherSuite;

/// The kinds of record that a peer seals: those there are, and some that there are not.
const KINDS: [u8; 6] = [23, 22, 21, 20, 24, 255];

/// Random bytes that are always the same, so that inputs can get through a handshake.
pub(crate) fn fixed(mut byte: u8) -> impl FnMut(&mut [u8]) {
    move |out| {
        for place in out {
            byte = byte.wrapping_mul(109).wrapping_add(89);
            *place = byte;
        }
    }
}

/// A server with a certificate that is none.
pub(crate) fn server() -> Server {
    let identity = Ed25519::new(vec![b"a certificate".to_vec()], &[7; 32]).unwrap();
    Server::new(Arc::new(Config::new(Arc::new(identity))))
}

/// What a server made of bytes: whether it is through, what it has said, and what it failed with.
type Outcome = (bool, Vec<u8>, Option<Error>);

/// Gives a server bytes in pieces.
fn feed(server: &mut Server, bytes: &[u8], step: usize, random: &mut dyn FnMut(&mut [u8])) -> Outcome {
    let (mut input, mut out) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(step) {
        input.extend_from_slice(piece);
        match server.read(&mut input, random, &mut out) {
            Ok(used) => drop(input.drain(..used)),
            Err(error) => {
                let again = server.read(&mut [], random, &mut Vec::new());
                assert!(again.is_err(), "an end that failed goes on");
                return (false, out, Some(error));
            }
        }
    }
    (server.is_done(), out, None)
}

/// A hello that is in order.
pub(crate) fn hello(suite: CipherSuite, group: Group, secret: &ClientSecret) -> Vec<u8> {
    let shares = extension::body::key_shares(&[(group.id(), secret.share(group).unwrap())]).unwrap();
    let groups = extension::body::numbers(2, &[0x11ec, 0x1d]).unwrap();
    let schemes = extension::body::numbers(2, &[0x0807]).unwrap();
    let versions = extension::body::numbers(1, &[extension::TLS13]).unwrap();
    let mut hello = Vec::new();
    let extensions = [
        (extension::SUPPORTED_GROUPS, &groups[..]),
        (extension::SIGNATURE_ALGORITHMS, &schemes),
        (extension::SUPPORTED_VERSIONS, &versions),
        (extension::KEY_SHARE, &shares),
    ];
    write_client_hello(&mut hello, &[3; 32], &[4; 32], &[suite.id()], &extensions).unwrap();
    hello
}

/// A client that has read a server's flight, and what it is to answer.
pub(crate) struct Client {
    pub(crate) sealing: Sealing,
    pub(crate) finished: Vec<u8>,
}

pub(crate) fn read_flight(hello: &[u8], group: Group, secret: &ClientSecret, flight: &mut [u8]) -> Client {
    let (head, mut rest) = flight.split_at_mut(record::HEAD);
    let len = record::length((&*head).try_into().unwrap()).unwrap().1;
    let (first, behind) = rest.split_at_mut(len);
    rest = behind;
    let server = ServerHello::read(Message::first(first, 1 << 14).unwrap().unwrap()).unwrap();
    let suite = CipherSuite::from_id(server.suite).unwrap();
    let shared = secret.agree(group, server.key_share().unwrap().unwrap().key).unwrap();
    let mut transcript = Transcript::new(suite.hash());
    transcript.add(hello);
    transcript.add(server.bytes);
    let handshake = Handshake::new(suite, &shared, &transcript.value(), None);
    let mut opening = Opening::new(Version::Tls13, &handshake.secrets.server.keys()).unwrap();
    while let Some((head, behind)) = rest.split_first_chunk_mut() {
        let (kind, len) = record::length(head).unwrap();
        let (body, behind) = behind.split_at_mut(len);
        rest = behind;
        if kind == APPLICATION {
            let (kind, plain) = opening.open(head, body).unwrap();
            assert_eq!(kind, HANDSHAKE);
            transcript.add(&body[plain]);
        }
    }
    let client = &handshake.secrets.client;
    let made = client.finished(&transcript.value());
    let mut finished = Vec::new();
    crate::codec::write_finished(&mut finished, made.as_ref()).unwrap();
    Client {
        sealing: Sealing::new(Version::Tls13, &client.keys()).unwrap(),
        finished,
    }
}

/// What a client sends to a server. The first byte says how the input is cut, and whether it is all that the client sends; otherwise
/// a hello that is in order goes before it, and the input has steps: what is done, how many bytes it is done with, and the bytes.
pub(super) fn client(data: &[u8]) {
    let Some((&first, mut rest)) = data.split_first() else {
        return;
    };
    let step = 1 + 37 * usize::from(first >> 4);
    if first & 1 == 0 {
        let whole = feed(&mut server(), rest, rest.len().max(1), &mut fixed(1));
        let pieces = feed(&mut server(), rest, step, &mut fixed(1));
        assert_eq!(whole, pieces, "cutting the input made a difference");
        assert!(!whole.0, "nobody gets through without keys");
        return;
    }
    let suite = CipherSuite::ALL[usize::from(first >> 2) % 3];
    let group = Group::SHARED[usize::from(first >> 1) % 2];
    let secret = ClientSecret::new(&mut fixed(2));
    let (mut server, mut random) = (server(), fixed(1));
    let hello = hello(suite, group, &secret);
    let mut wire = Vec::new();
    record::write(&mut wire, HANDSHAKE, 1, &hello);
    let (_, mut flight, failed) = feed(&mut server, &wire, step, &mut random);
    assert_eq!(failed, None);
    let mut client = read_flight(&hello, group, &secret, &mut flight);

    // In order: records that mean nothing before the one Finished.
    let (mut wire, mut good, mut finished) = (Vec::new(), true, false);
    while let [what, len, tail @ ..] = rest {
        let message;
        (message, rest) = tail.split_at(usize::from(*len).min(tail.len()));
        let kind = KINDS[usize::from(what >> 2) % KINDS.len()];
        match what & 3 {
            0 => client.sealing.push(kind, message, &mut wire).unwrap(),
            1 if !finished => client.sealing.push(HANDSHAKE, &client.finished, &mut wire).unwrap(),
            2 => record::write(&mut wire, kind, 3, message),
            _ => wire.extend_from_slice(message),
        }
        let change = what & 3 == 2 && kind == record::CHANGE_CIPHER_SPEC && message == [1];
        // Bytes in the clear may be anything, such a record as well.
        let unknown = what & 3 == 3;
        match what & 3 {
            1 => finished = true,
            _ if finished => {}
            _ => good &= change || unknown || what & 3 == 2 && message.is_empty(),
        }
    }
    let (done, ..) = feed(&mut server, &wire, step, &mut random);
    assert!(!done || finished, "through without a Finished");
    assert!(!done || good, "through although something else came first");
}

/// TLS 1.2, which has no further keys.
struct NoKeys;

impl Schedule for NoKeys {
    fn next_sending(&mut self) -> Result<Keys, Error> {
        Err(Error::Library("no further keys"))
    }

    fn next_receiving(&mut self) -> Result<Keys, Error> {
        self.next_sending()
    }

    fn takes_tickets(&self) -> bool {
        true
    }

    fn ticket(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

/// Our record layer and the peer's after a handshake, by the first byte of an input, and whether it was one of TLS 1.3.
fn records_after(first: u8) -> (Records, Records, bool) {
    if first & 3 == 3 {
        // Only the first sends a part of its nonces with every record.
        let suite = match first & 4 {
            0 => Suite::Aes128Gcm,
            _ => Suite::ChaCha20Poly1305,
        };
        let keys = Keys::new(suite, &[7_u8; 32][..suite.key_len()], [2; 12], 0).unwrap();
        let [ours, peer] = [(); 2].map(|()| Records::new(Version::Tls12, &keys, &keys, Box::new(NoKeys)).unwrap());
        return (ours, peer, false);
    }
    let suite = CipherSuite::ALL[usize::from(first & 3)];
    let digest = suite.hash().digest(b"said");
    let secrets = || Handshake::new(suite, &[7; 32], &digest, None).application(&digest, None);
    let (here, there) = (secrets(), secrets());
    let ours = Records::after(here.client, here.server, first & 4 != 0).unwrap();
    let peer = Records::after(there.server, there.client, false).unwrap();
    (ours, peer, true)
}

/// What a peer sends after the handshake. The first byte says how both ends are set up; then come steps of the peer's: what it does,
/// how many bytes it does it with, and the bytes.
pub(super) fn records(data: &[u8]) {
    let Some((&first, mut rest)) = data.split_first() else {
        return;
    };
    let (mut ours, mut peer, tls13) = records_after(first);
    if first & 8 != 0 {
        ours.trust();
    }
    let most = if first & 16 != 0 { 1 } else { usize::MAX };
    let (mut wire, mut payload) = (Vec::new(), Vec::new());
    while let [what, len, tail @ ..] = rest {
        let message;
        (message, rest) = tail.split_at(usize::from(*len).min(tail.len()));
        match what & 3 {
            0 => {
                let kind = KINDS[usize::from(what >> 2) % KINDS.len()];
                peer.push(kind, message, &mut wire).unwrap();
                if kind == APPLICATION {
                    payload.extend_from_slice(message);
                }
            }
            1 if tls13 => peer.key_update(&mut wire, what & 4 != 0).unwrap(),
            2 => drop(peer.push_nothing(usize::from(*len), &mut wire)),
            // Not sealed at all.
            _ => wire.extend_from_slice(message),
        }
    }
    let (mut buffer, mut got) = (Vec::new(), Vec::new());
    for piece in wire.chunks(1 + 331 * usize::from(first >> 5)) {
        buffer.extend_from_slice(piece);
        let len = buffer.len();
        let Ok(opened) = ours.open_some(&mut buffer, 0, 0..len, most) else {
            break;
        };
        assert!(
            opened.produced <= opened.consumed && opened.consumed <= len,
            "more came out than went in"
        );
        got.extend_from_slice(&buffer[..opened.produced]);
        buffer.drain(..opened.consumed);
        if opened.end {
            break;
        }
    }
    assert!(payload.starts_with(&got), "what was not sealed was opened");
    assert!(ours.reply.len() < 100, "one answer to many wishes is enough");
}
