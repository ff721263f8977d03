//! The methods of 2017.
//!
//! A request is `salt | chunks`, of which the payload is the target's address and what is to be sent there; an answer is
//! `salt | chunks`. A server with several users finds out whose a request is by opening its first length with the key of one
//! after the other: see [`Users`].

pub mod packet;
mod users;

pub use users::{Found, Search, Users};

use super::{ChunkSealer, KeyChain};
use crate::address::{read_type_first, write_type_first};
use crate::step::parse;
use crate::{Destination, Error, Network, Protocol, Step};

/// Begins a request, as the client: the salt, and the target's address in a chunk of its own. The payload follows through
/// the sealer that is returned.
///
/// `salt` has [`super::Method::salt_len`] random bytes.
///
/// # Errors
/// [`Error::Aead`] if memory ran out.
pub fn begin(keys: &KeyChain, salt: &[u8], to: &Destination, out: &mut Vec<u8>) -> Result<ChunkSealer, Error> {
    let mut sealer = ChunkSealer::new(keys.own(), salt)?;
    out.extend_from_slice(salt);
    let mut address = Vec::new();
    write_type_first(&to.address, to.port, &mut address);
    sealer.seal(&address, out)?;
    Ok(sealer)
}

/// Reads the target's address at the front of a request's payload.
///
/// # Errors
/// [`Error::Field`] for an unknown type; those of a domain name.
pub fn decode_target(payload: &[u8]) -> Result<Step<Destination>, Error> {
    let step = parse(payload, |cursor| read_type_first(cursor, Protocol::Shadowsocks))?;
    Ok(step.map(|(address, port)| Destination {
        network: Network::Tcp,
        address,
        port,
    }))
}
