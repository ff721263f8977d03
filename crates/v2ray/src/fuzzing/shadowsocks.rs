//! Entries of Shadowsocks.

use super::whole;
use crate::Step;
use crate::shadowsocks::classic::{self, Search};
use crate::shadowsocks::edition2022::packet::{ClientSession, SessionKey};
use crate::shadowsocks::edition2022::{Users, decode_target, open_answer, open_request};
use crate::shadowsocks::{ChunkOpener, Key, KeyChain, Method, Opened};
use crate::{Destination, Error};

/// The time and the keys under which the test vectors in the corpus were sealed.
const NOW: i64 = 1_700_000_000;
const PSK: &str = "AAECAwQFBgcICQoLDA0ODw==";
const USER: &str = "ICEiIyQlJicoKSorLC0uLw==";

fn key(method: Method, password: &str) -> Option<Key> {
    Key::new(method, password).ok()
}

/// The users of 2017, by method: of all with nonces of 12 bytes.
fn classics() -> Option<classic::Users<Method>> {
    let methods = Method::ALL.into_iter().filter(|method| !method.is_2022());
    let list: Option<Vec<_>> = methods.map(|method| Some((key(method, "password")?, method))).collect();
    classic::Users::from_list(list?).ok()
}

/// Everything that an opener gives for `wire`, shown in pieces of `step` bytes, and how it ended.
fn open_all(mut opener: ChunkOpener, wire: &[u8], step: usize) -> (Vec<u8>, Option<Error>) {
    let (mut held, mut plain) = (Vec::new(), Vec::new());
    for piece in wire.chunks(step.max(1)) {
        held.extend_from_slice(piece);
        loop {
            match opener.open_next(&mut held) {
                Ok(Opened::Chunk { payload, used }) => {
                    plain.extend_from_slice(&held[payload]);
                    held.drain(..used);
                }
                Ok(Opened::More(more)) => {
                    assert!(more > 0);
                    break;
                }
                Err(error) => return (plain, Some(error)),
            }
        }
    }
    (plain, None)
}

/// The first 50 bytes find the user, and what follows the salt is opened.
pub(super) fn stream(data: &[u8]) {
    whole(data, classic::decode_target);
    let Some(users) = classics() else { return };
    let mut search = Search::new(&users);
    let found = search.stream(&users, data, 100);
    assert!(search.tried() <= users.len());
    if let Ok(Some(found)) = found {
        let (salt, wire) = data.split_at(found.key.method().salt_len());
        let open = |step| {
            ChunkOpener::new(found.key, salt)
                .ok()
                .map(|opener| open_all(opener, wire, step))
        };
        assert_eq!(open(1), open(wire.len()), "pieces made a difference");
    }
}

/// The headers of 2022, and the chunks behind them.
pub(super) fn edition2022(data: &[u8]) {
    let method = Method::Blake3Aes128Gcm;
    let (Some(psk), Some(user)) = (key(method, PSK), key(method, USER)) else {
        return;
    };
    let one = Users::one(psk.clone(), 0);
    let Ok(many) = Users::many(psk.clone(), [(user, 1)]) else {
        return;
    };
    for users in [&one, &many] {
        whole(data, |bytes| {
            Ok(open_request(bytes, users, NOW)?.map(|head| (head.user, head.second)))
        });
        let opened = |step: usize| match open_request(data, users, NOW) {
            Ok(Step::Done { value, used }) => {
                let (plain, error) = open_all(value.opener, &data[used..], step);
                Some((decode_target(&plain, value.second), plain, error))
            }
            _ => None,
        };
        assert_eq!(opened(1), opened(data.len()), "pieces made a difference");
    }
    let mut salt = [0; 16];
    salt.iter_mut().zip(0x10..).for_each(|(byte, n)| *byte = n);
    whole(data, |bytes| {
        Ok(open_answer(bytes, &psk, &salt, NOW)?.map(|opener| opener.may_end()))
    });
    let (len, rest) = data
        .split_first_chunk::<2>()
        .map_or((0, data), |(len, rest)| (usize::from(u16::from_le_bytes(*len)), rest));
    let _ = decode_target(rest, len);
}

/// Datagrams, of both kinds.
pub(super) fn packet(data: &[u8]) {
    let Some(users) = classics() else { return };
    let mut plain = Vec::new();
    if let Ok(Some((_, to, at))) = Search::new(&users).packet(&users, data, &mut plain, 100) {
        goes(&to);
        assert!(at <= plain.len());
    }
    for method in [Method::Blake3Aes128Gcm, Method::Blake3ChaCha20Poly1305] {
        let password = match method {
            Method::Blake3Aes128Gcm => PSK,
            _ => "AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8=",
        };
        let Ok(chain) = KeyChain::new(method, password) else {
            return;
        };
        let users = Users::one(chain.own().clone(), ());
        if let Ok(front) = users.front(data)
            && let Ok(session) = SessionKey::new(front.key, front.session)
            && let Ok(packet) = front.open(&session, &mut data.to_vec(), NOW)
        {
            goes(&packet.peer);
            assert!(packet.payload.start <= packet.payload.end && packet.payload.end < data.len());
        }
        let Ok(mut client) = ClientSession::new(&chain, 0x0102_0304_0506_0708) else {
            return;
        };
        let mut datagram = data.to_vec();
        if let Ok((from, payload)) = client.open(&mut datagram, NOW) {
            goes(&from);
            assert!(payload.end < data.len());
            assert!(
                client.open(&mut data.to_vec(), NOW).is_err(),
                "a datagram was taken twice"
            );
        }
    }
}

fn goes(to: &Destination) {
    assert!(!to.to_string().is_empty());
}
