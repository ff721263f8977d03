//! Who has to change something when an operation fails.

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The other end sent what it must not send.
    Peer,
    /// The user of this end: an argument, an option, a name that is taken.
    User,
    /// The machine: its disk, its permissions, another program.
    Environment,
}
