//! Requests of streams.

use sealway_aead::Suite;

use super::{FROM_CLIENT, MAX_PADDING, Users, check_time, wire_time};
use crate::address::{read_type_first, write_type_first};
use crate::replay::Seen;
use crate::shadowsocks::stream::malformed;
use crate::shadowsocks::{ChunkOpener, ChunkSealer, Key, KeyChain, MAX_SALT};
use crate::step::{Cursor, parse};
use crate::{Destination, Error, Network, Protocol, Step};

const TAG: usize = Suite::TAG_LEN;
/// Type, time and length.
const FIXED: usize = 1 + 8 + 2;

/// A request, as the client makes it.
#[derive(Debug)]
pub struct Request {
    /// Seals the payload.
    pub sealer: ChunkSealer,
}

impl Request {
    /// Appends the header: salt, identity headers, and the target's address with padding, since the payload follows in chunks
    /// of its own.
    ///
    /// `salt` has [`crate::shadowsocks::Method::salt_len`] random bytes, `padding` 1 to [`MAX_PADDING`] bytes.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] for another length of padding; [`Error::Aead`] if memory ran out.
    pub fn begin(
        keys: &KeyChain,
        salt: &[u8],
        now: i64,
        to: &Destination,
        padding: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        if !(1..=MAX_PADDING).contains(&padding.len()) {
            return Err(Protocol::Shadowsocks.does_not_fit("padding", MAX_PADDING, padding.len()));
        }
        Self::write(keys, salt, now, to, padding, &[], out)
    }

    /// The same with payload in the header.
    pub(in crate::shadowsocks) fn write(
        keys: &KeyChain,
        salt: &[u8],
        now: i64,
        to: &Destination,
        padding: &[u8],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        out.extend_from_slice(salt);
        for (key, next) in keys.steps() {
            out.extend_from_slice(&key.identity(salt).encrypt(&next.name()));
        }
        let mut sealer = ChunkSealer::new(keys.own(), salt)?;
        let mut rest = Vec::new();
        write_type_first(&to.address, to.port, &mut rest);
        rest.extend_from_slice(&(padding.len() as u16).to_be_bytes());
        rest.extend_from_slice(padding);
        rest.extend_from_slice(payload);
        let len = sealer.check(rest.len())?;
        sealer.message(out, |out| {
            out.push(FROM_CLIENT);
            out.extend_from_slice(&wire_time(now));
            out.extend_from_slice(&len.to_be_bytes());
        })?;
        sealer.message(out, |out| out.extend_from_slice(&rest))?;
        Ok(Request { sealer })
    }
}

/// The first header of a request, as the server has opened it. The second one comes out of the opener as payload.
#[derive(Debug)]
pub struct Head<T> {
    /// What was stored for the user.
    pub user: T,
    /// The user's key, under which the answer is sealed.
    pub key: Key,
    /// Opens what follows.
    pub opener: ChunkOpener,
    /// Bytes of the second header, for [`decode_target`].
    pub second: usize,
    time: i64,
    salt: [u8; MAX_SALT],
}

impl<T> Head<T> {
    /// The salt, which the answer repeats.
    pub fn salt(&self) -> &[u8] {
        &self.salt[..self.key.method().salt_len()]
    }

    /// What must not come twice.
    pub fn seen(&self) -> Seen {
        Seen::salt(self.time, self.salt())
    }
}

/// Opens the first header, as the server. Whether its salt came before is to be asked with [`Head::seen`].
///
/// However it is wrong, the peer must not be able to tell how: all of it is looked at once as many bytes have come as it has.
///
/// # Errors
/// [`Error::UnknownUser`], [`Error::Unauthentic`], [`Error::ClockSkew`], and [`Error::Field`] for what is no request.
pub fn open_request<T: Clone>(bytes: &[u8], users: &Users<T>, now: i64) -> Result<Step<Head<T>>, Error> {
    let salt_len = users.method().salt_len();
    let front = salt_len + users.identity_len();
    let used = front + FIXED + TAG;
    if bytes.len() < used {
        return Ok(Step::More(used - bytes.len()));
    }
    let mut salt = [0; MAX_SALT];
    salt[..salt_len].copy_from_slice(&bytes[..salt_len]);
    let given = &salt[..salt_len];
    let (key, user) = users.find(|| {
        let mut block = [0; 16];
        block.copy_from_slice(&bytes[salt_len..salt_len + 16]);
        users.key.identity(given).decrypt(&block)
    })?;
    let mut opener = ChunkOpener::new(key, given)?;
    let mut sealed = [0; FIXED + TAG];
    sealed.copy_from_slice(&bytes[front..used]);
    let (time, second) = read_fixed(opener.message(&mut sealed)?, now)?;
    opener.expect(second);
    let value = Head {
        user: user.clone(),
        key: key.clone(),
        opener,
        second,
        time,
        salt,
    };
    Ok(Step::Done { value, used })
}

fn read_fixed(fixed: &[u8], now: i64) -> Result<(i64, usize), Error> {
    let &[kind, a, b, c, d, e, f, g, h, i, j] = fixed else {
        return Err(malformed("a header of another length"));
    };
    if kind != FROM_CLIENT {
        return Err(Protocol::Shadowsocks.field("the type of the header", u64::from(kind)));
    }
    let time = check_time(u64::from_be_bytes([a, b, c, d, e, f, g, h]), now)?;
    Ok((time, usize::from(u16::from_be_bytes([i, j]))))
}

/// Reads the second header at the front of the opened bytes: the target, and padding. What it has of payload follows.
/// `len` is [`Head::second`].
///
/// # Errors
/// [`Error::Malformed`] for fields that are longer than the header, and for a header with neither padding nor payload; errors of
/// the address.
pub fn decode_target(opened: &[u8], len: usize) -> Result<Step<Destination>, Error> {
    let Some(header) = opened.get(..len) else {
        return Ok(Step::More(len - opened.len()));
    };
    let read = parse(header, |cursor: &mut Cursor<'_>| {
        let (address, port) = read_type_first(cursor, Protocol::Shadowsocks)?;
        let padding = usize::from(cursor.u16()?);
        cursor.take(padding)?;
        Ok((address, port, padding))
    })?;
    let Step::Done {
        value: (address, port, padding),
        used,
    } = read
    else {
        return Err(malformed("a header is shorter than its fields"));
    };
    if padding == 0 && used == len {
        return Err(malformed("a header has neither padding nor payload"));
    }
    let value = Destination {
        network: Network::Tcp,
        address,
        port,
    };
    Ok(Step::Done { value, used })
}
