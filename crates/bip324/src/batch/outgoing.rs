//! What is to be written to sockets.

use std::fmt;

use super::ConnectionId;
use super::crypt::Crypt;
use super::send::SendSide;

/// The packets of a batch, sealed: for each connection, bytes to be written in this order.
///
/// They stay until something is submitted again. What a socket does not take at once, the caller keeps.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    pub(super) side: &'a SendSide,
    pub(super) crypt: &'a Crypt,
}

impl<'a> Outgoing<'a> {
    /// The connections that have something to be written, in the order of their first packet.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Output<'a>> + use<'a> {
        let (side, crypt) = (self.side, self.crypt);
        side.touched().iter().map(move |&index| {
            let (id, first) = side.output_of(index).unwrap_or((
                ConnectionId {
                    index,
                    generation: u32::MAX,
                },
                u32::MAX,
            ));
            Output { id, side, crypt, first }
        })
    }

    /// How many connections have something to be written.
    pub fn connections(&self) -> usize {
        self.side.touched().len()
    }

    /// True if there is nothing to be written.
    pub fn is_empty(&self) -> bool {
        self.side.touched().is_empty()
    }
}

impl fmt::Debug for Outgoing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({} connections)", self.connections())
    }
}

/// What is to be written to one connection.
#[derive(Clone, Copy)]
pub struct Output<'a> {
    /// The connection.
    pub id: ConnectionId,
    side: &'a SendSide,
    crypt: &'a Crypt,
    first: u32,
}

impl<'a> Output<'a> {
    /// The bytes, in order. Packets that were submitted one after the other, without one of another connection between
    /// them, are one slice.
    pub fn slices(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (side, crypt, mut at) = (self.side, self.crypt, self.first);
        std::iter::from_fn(move || {
            let (bytes, next) = side.run(at, crypt)?;
            at = next;
            Some(bytes)
        })
    }

    /// All bytes, if they are one slice.
    pub fn as_slice(&self) -> Option<&'a [u8]> {
        let mut slices = self.slices();
        match (slices.next(), slices.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// How many bytes there are.
    pub fn byte_count(&self) -> usize {
        let (mut sum, mut at) = (0, self.first);
        while let Some((len, next)) = self.side.run_len(at) {
            (sum, at) = (sum + len, next);
        }
        sum
    }
}

impl fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Output({:?}, {} bytes)", self.id, self.byte_count())
    }
}
