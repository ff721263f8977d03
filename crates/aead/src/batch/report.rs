//! What a batch did.

use crate::low::Lanes;

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Jobs that ended as [`super::Status::Done`].
    pub done: usize,
    /// Jobs that ended otherwise.
    pub refused: usize,
    /// How full the lanes of ChaCha20 were, counted in blocks of 64 bytes. Messages that went on their own are in neither
    /// count.
    pub cipher: Lanes,
    /// How full the lanes of Poly1305 were, counted in blocks of 16 bytes.
    pub mac: Lanes,
}
