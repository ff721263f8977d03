//! Datagrams between a SOCKS 5 client and its server: `00 00 | fragment | type | address | port | payload`.

use std::ops::Range;

use crate::address::{read_type_first, write_type_first};
use crate::step::parse;
use crate::{Address, Destination, Error, Protocol, Step};

/// Most bytes that stand before the payload.
pub const MAX_HEAD: usize = 3 + 2 + 255 + 2;

/// Reads a datagram: where it goes (or, from a server, where it comes from) and where its payload stands.
///
/// # Errors
/// [`Error::Field`] for a fragment, which is to be dropped; [`Error::Malformed`] for one that is cut off; those of addresses.
pub fn decode(datagram: &[u8]) -> Result<(Destination, Range<usize>), Error> {
    let step = parse(datagram, |cursor| {
        let [_, _, fragment] = cursor.array()?;
        if fragment != 0 {
            return Err(Protocol::Socks
                .field("the fragment number of a datagram", u64::from(fragment))
                .into());
        }
        read_type_first(cursor, Protocol::Socks)
    })?;
    match step {
        Step::Done { value, used } => Ok((Destination::udp(value.0, value.1), used..datagram.len())),
        Step::More(_) => Err(Protocol::Socks.malformed("a datagram ends within its header")),
    }
}

/// Appends what stands before the payload of a datagram.
pub fn write_head(address: &Address, port: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0]);
    write_type_first(address, port, out);
}
