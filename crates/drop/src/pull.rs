//! Files that an end serves whole, for a receiver to pull: the seam between those who serve and those who write to a disk.

use crate::Error;
use crate::wire::control::Done;

/// A file that can be pulled.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name, as the other end gives it.
    pub name: Vec<u8>,
    /// Its size in bytes.
    pub size: u64,
    /// Its permissions, of `0o777`.
    pub mode: u32,
    /// When it changed last: seconds since 1970, and nanoseconds.
    pub mtime: (i64, u32),
}

/// An end that serves files.
pub trait Remote {
    /// The files that there are.
    ///
    /// # Errors
    /// [`Error::Protocol`] if they are more than `most`; what the other end or the way to it fails with.
    fn files(&self, most: usize) -> Result<Vec<Listed>, Error>;

    /// Says that they are taken.
    ///
    /// # Errors
    /// [`Error::Network`]; [`Error::Cancelled`] if it is over, for a reason that was noted.
    fn accept(&self) -> Result<(), Error>;

    /// Why nothing is pulled if they are not taken, for this reason.
    fn refused(&self, reason: String) -> Error;

    /// Hands the content of a file to `take`, piece by piece from its beginning.
    ///
    /// # Errors
    /// What `take` fails with, and what the other end or the way to it does.
    fn fetch(&self, name: &[u8], take: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>;

    /// All is here and right, whatever becomes of the other end.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it is over already, for a reason that was noted.
    fn settle(&self) -> Result<(), Error>;

    /// This end cannot do what it settled on. Returns why nothing was pulled.
    fn failed(&self, error: Error) -> Error;

    /// Says what became of them.
    fn done(&self, done: Done);
}
