//! Opening datagrams.

use std::ops::Range;

use sealway_aead::{OpeningKey, Suite, Tag};

use super::super::{FROM_CLIENT, FROM_SERVER, Users, check_time};
use super::{BLOCK, LONG_NONCE, numbers, xor};
use crate::address::read_type_first;
use crate::shadowsocks::Key;
use crate::shadowsocks::key::BlockCipher;
use crate::shadowsocks::stream::{malformed, unauthentic};
use crate::step::parse;
use crate::{Destination, Error, Network, Protocol, Step};

const SHORT: Error = Protocol::Shadowsocks.unauthentic();

/// The key of a session that somebody else seals.
#[derive(Debug)]
pub struct SessionKey(OpeningKey);

impl SessionKey {
    /// The key of session `session` of whoever has `key`. Of the ChaCha20 method all sessions have one.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn new(key: &Key, session: u64) -> Result<Self, Error> {
        Ok(SessionKey(if key.method().has_identities() {
            OpeningKey::new(key.method().suite(), key.subkey(&session.to_be_bytes()).as_ref())?
        } else {
            OpeningKey::new(Suite::XChaCha20Poly1305, key.as_bytes())?
        }))
    }
}

/// What shows of a client's datagram before it is opened. Nothing of it is authentic yet.
#[derive(Clone, Copy, Debug)]
pub struct Front<'a, T> {
    /// What is stored for the user.
    pub user: &'a T,
    /// The user's key.
    pub key: &'a Key,
    /// The session, if it shows: 0 in the ChaCha20 method, whose sessions all have one key.
    pub session: u64,
    plain: Plain,
}

/// How the front of a datagram goes on.
#[derive(Clone, Copy, Debug)]
enum Plain {
    /// The plain block, and where the sealed body begins.
    Block([u8; BLOCK], usize),
    /// A nonce comes first, and everything else is sealed.
    Sealed,
}

/// A datagram that is open.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Packet {
    /// The sender's session.
    pub session: u64,
    /// Its number in that.
    pub packet: u64,
    /// When it was made, Unix time in seconds.
    pub time: i64,
    /// Of an answer: the client's session.
    pub client: Option<u64>,
    /// Where it goes, or where it comes from.
    pub peer: Destination,
    /// Where the payload lies.
    pub payload: Range<usize>,
}

impl<T> Users<T> {
    /// Looks at the front of a client's datagram.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] for a datagram too short to be one, [`Error::UnknownUser`] for a name nobody has.
    pub fn front(&self, datagram: &[u8]) -> Result<Front<'_, T>, Error> {
        if !self.method().has_identities() {
            let (key, user) = self.find(|| [0; 16])?;
            return Ok(Front {
                user,
                key,
                session: 0,
                plain: Plain::Sealed,
            });
        }
        let (block, rest) = split_block(datagram, &self.block)?;
        let identity = match self.identity_len() {
            0 => None,
            _ => Some(rest.first_chunk::<BLOCK>().ok_or(SHORT)?),
        };
        let (key, user) = self.find(|| match identity {
            Some(identity) => xor(self.block.decrypt(identity), &block),
            None => [0; 16],
        })?;
        Ok(Front {
            user,
            key,
            session: numbers(&block).0,
            plain: Plain::Block(block, BLOCK + self.identity_len()),
        })
    }
}

impl<T> Front<'_, T> {
    /// Opens the datagram in place with the key of its session. Whether its number came before is to be asked then.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], [`Error::ClockSkew`], [`Error::Field`] for what no client sends, [`Error::Malformed`] for fields
    /// beyond its end; errors of the address.
    pub fn open(&self, key: &SessionKey, datagram: &mut [u8], now: i64) -> Result<Packet, Error> {
        open(self.plain, key, datagram, now, FROM_CLIENT)
    }
}

/// Decrypts the block at the front of a datagram.
fn split_block<'a>(datagram: &'a [u8], cipher: &BlockCipher) -> Result<([u8; BLOCK], &'a [u8]), Error> {
    let (block, rest) = datagram.split_first_chunk::<BLOCK>().ok_or(SHORT)?;
    Ok((cipher.decrypt(block), rest))
}

/// The session of an answer, which the cipher of our own key shows. `None`: the method does not show it.
pub(super) fn answer_session(datagram: &[u8], cipher: Option<&BlockCipher>) -> Result<Option<u64>, Error> {
    match cipher {
        Some(cipher) => Ok(Some(numbers(&split_block(datagram, cipher)?.0).0)),
        None => Ok(None),
    }
}

/// Opens an answer in place.
pub(super) fn open_answer(
    key: &SessionKey,
    cipher: Option<&BlockCipher>,
    datagram: &mut [u8],
    now: i64,
) -> Result<Packet, Error> {
    let plain = match cipher {
        Some(cipher) => Plain::Block(split_block(datagram, cipher)?.0, BLOCK),
        None => Plain::Sealed,
    };
    open(plain, key, datagram, now, FROM_SERVER)
}

fn open(plain: Plain, key: &SessionKey, datagram: &mut [u8], now: i64, kind: u8) -> Result<Packet, Error> {
    let long: [u8; LONG_NONCE];
    let (nonce, at) = match &plain {
        Plain::Block(block, at) => (&block[4..], *at),
        Plain::Sealed => {
            long = *datagram.first_chunk().ok_or(SHORT)?;
            (&long[..], LONG_NONCE)
        }
    };
    let sealed = datagram.get_mut(at..).ok_or(SHORT)?;
    let len = sealed.len().checked_sub(Suite::TAG_LEN).ok_or(SHORT)?;
    let (text, tag) = sealed.split_at_mut(len);
    let tag = Tag::from_slice(tag)?;
    key.0.open_in_place(nonce, &[], text, &tag).map_err(unauthentic)?;
    let (block, body) = match &plain {
        Plain::Block(block, _) => (*block, &*text),
        Plain::Sealed => {
            let (block, body) = text.split_first_chunk().ok_or(ENDS)?;
            (*block, body)
        }
    };
    let at = at + text.len() - body.len();
    let (time, client, peer, payload) = read_body(body, now, kind)?;
    let (session, packet) = numbers(&block);
    Ok(Packet {
        session,
        packet,
        time,
        client,
        peer,
        payload: at + payload..at + body.len(),
    })
}

const ENDS: Error = Protocol::Shadowsocks.malformed("a datagram is shorter than its fields");

/// Reads a body: the time, of an answer the client's session, the address, and where the payload begins.
fn read_body(body: &[u8], now: i64, kind: u8) -> Result<(i64, Option<u64>, Destination, usize), Error> {
    let read = parse(body, |cursor| {
        let got = cursor.u8()?;
        if got != kind {
            return Err(Protocol::Shadowsocks
                .field("the type of a datagram", u64::from(got))
                .into());
        }
        let time = check_time(u64::from_be_bytes(cursor.array()?), now)?;
        let client = match kind {
            FROM_SERVER => Some(u64::from_be_bytes(cursor.array()?)),
            _ => None,
        };
        let padding = usize::from(cursor.u16()?);
        cursor.take(padding)?;
        let (address, port) = read_type_first(cursor, Protocol::Shadowsocks)?;
        let peer = Destination {
            network: Network::Udp,
            address,
            port,
        };
        Ok((time, client, peer))
    })?;
    match read {
        Step::Done {
            value: (time, client, peer),
            used,
        } => Ok((time, client, peer, used)),
        Step::More(_) => Err(malformed("a datagram is shorter than its fields")),
    }
}
