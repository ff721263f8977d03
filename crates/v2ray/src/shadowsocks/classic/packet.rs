//! Datagrams of 2017: `salt | sealed (address | payload)`, with a nonce of zeros. In an answer the address is where it comes
//! from.

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite};

use crate::address::{read_type_first, write_type_first};
use crate::shadowsocks::Key;
use crate::shadowsocks::stream::{malformed, unauthentic};
use crate::step::parse;
use crate::{Address, Destination, Error, Network, Protocol, Step};

/// Most bytes that a datagram adds to its payload: the salt, a domain name of full length, the tag.
pub const MAX_OVERHEAD: usize = super::super::MAX_SALT + 1 + 1 + 255 + 2 + Suite::TAG_LEN;

/// Appends a datagram. `salt` has [`crate::shadowsocks::Method::salt_len`] random bytes.
///
/// # Errors
/// [`Error::Aead`] if memory ran out or the salt has another length.
pub fn seal(
    key: &Key,
    salt: &[u8],
    (address, port): (&Address, u16),
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let suite = key.method().suite();
    let sealing = SealingKey::new(suite, key.subkey(salt).as_ref())?;
    out.extend_from_slice(salt);
    let at = out.len();
    write_type_first(address, port, out);
    out.extend_from_slice(payload);
    let nonce = [0; Suite::MAX_NONCE_LEN];
    let nonce = Nonce::assume_unique(suite, &nonce[..suite.nonce_len()])?;
    let tag = sealing.seal_in_place(nonce, &[], &mut out[at..])?;
    out.extend_from_slice(tag.as_bytes());
    Ok(())
}

/// Opens a datagram into `plain`, where it leaves address and payload. Returns the address and where the payload begins.
///
/// # Errors
/// [`Error::Unauthentic`] if the key has not sealed it; errors of the address.
pub fn open(key: &Key, datagram: &[u8], plain: &mut Vec<u8>) -> Result<(Destination, usize), Error> {
    let suite = key.method().suite();
    let short = Protocol::Shadowsocks.unauthentic();
    let (salt, sealed) = datagram
        .split_at_checked(key.method().salt_len())
        .ok_or(short.clone())?;
    let len = sealed.len().checked_sub(Suite::TAG_LEN).ok_or(short)?;
    let opening = OpeningKey::new(suite, key.subkey(salt).as_ref())?;
    plain.resize(len, 0);
    let nonce = [0; Suite::MAX_NONCE_LEN];
    opening
        .open_to(&nonce[..suite.nonce_len()], &[], sealed, plain)
        .map_err(unauthentic)?;
    match parse(plain, |cursor| read_type_first(cursor, Protocol::Shadowsocks))? {
        Step::Done {
            value: (address, port),
            used,
        } => Ok((
            Destination {
                network: Network::Udp,
                address,
                port,
            },
            used,
        )),
        Step::More(_) => Err(malformed("a datagram ends within its address")),
    }
}
