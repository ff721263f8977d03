//! What came.

use std::fmt;

use super::ConnectionId;
use super::crypt::Crypt;
use super::recv::RecvSide;

/// The messages of a batch, opened and authentic; decoys are counted and not among them.
///
/// They stay until something is received again.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    pub(super) side: &'a RecvSide,
    pub(super) crypt: &'a Crypt,
}

/// A message that came.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Message<'a> {
    /// The connection it came on.
    pub id: ConnectionId,
    /// Its contents, where they came in.
    pub contents: &'a [u8],
}

impl<'a> Incoming<'a> {
    /// The messages. Those of one connection are in order, and together if their bytes were received together.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Message<'a>> + use<'a> {
        let (side, crypt) = (self.side, self.crypt);
        side.delivered().iter().map(move |delivered| Message {
            id: delivered.id,
            contents: side.contents(delivered, crypt),
        })
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.side.delivered().len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.side.delivered().is_empty()
    }
}

impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incoming({} messages)", self.len())
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({:?}, {} bytes)", self.id, self.contents.len())
    }
}
