//! The name of a connection in a batch.

/// A connection of a [`super::BatchTransport`].
///
/// It means nothing once the connection has been removed or has failed: a later connection in its place has another id.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl ConnectionId {
    /// Its place: below the number of connections there were at most, so a caller may keep what it knows in an array.
    /// Another connection has it once this one is gone.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Which of the connections in that place it is. No two in one place have the same, nor two in one place of different
    /// [`super::Shards`].
    pub const fn generation(self) -> u32 {
        self.generation
    }
}
