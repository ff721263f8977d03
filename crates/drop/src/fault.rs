//! Whose fault a failure is, and what the other end is told of it.

/// Whose fault an error is; programs turn it into their exit code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The caller asked for something that makes no sense.
    Usage,
    /// The other end broke the protocol, or what it sent is not what it announced.
    Peer,
    /// The other end is not who it should be: wrong code, unknown or changed key.
    Identity,
    /// The connection was refused, was lost, or took too long.
    Network,
    /// Files or folders of this machine: not found, not allowed, no space.
    Storage,
    /// The other end said no.
    Declined,
    /// This end was told to stop.
    Cancelled,
}

/// Why an end gave up, as far as the other one can do something about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Cause {
    /// Somebody stopped it.
    Stopped = 1,
    /// No space is left where it writes.
    NoRoom = 2,
}

impl Cause {
    /// What a number says; `None` for one that says nothing.
    pub fn of(number: u32) -> Option<Self> {
        [Self::Stopped, Self::NoRoom]
            .into_iter()
            .find(|cause| *cause as u32 == number)
    }
}

/// What can fail in a part of the drop that stands on the connections of this crate: [`Error::Part`](crate::Error::Part) carries it.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    /// Whose fault it is.
    fn fault(&self) -> Fault;

    /// Whether the other end may read its text, which then names nothing of this machine. By default where it is the other end's fault.
    fn may_be_told(&self) -> bool {
        self.fault() == Fault::Peer
    }

    /// Why this end gives up because of it, as far as the other one can do something about it.
    fn cause_for_peer(&self) -> Option<Cause> {
        None
    }
}
