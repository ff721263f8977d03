//! The ends of the drop.

/// What an end does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Sends files.
    Sender,
    /// Receives them.
    Receiver,
    /// Shows a folder.
    Sharer,
    /// Mounts it.
    Mounter,
    /// Shows a folder and mounts one, and makes the code.
    Pairer,
    /// Does the same, and is told the code.
    Joiner,
}

impl End {
    /// Whether it makes the code, and waits where nothing else is said. The other end is told the code, and comes.
    pub const fn is_first(self) -> bool {
        matches!(self, End::Sender | End::Sharer | End::Pairer)
    }

    /// The command of the other end.
    pub const fn other(self) -> &'static str {
        match self {
            End::Sender => "receive",
            End::Receiver => "send",
            End::Sharer => "mount",
            End::Mounter => "share",
            End::Pairer => "pair --join",
            End::Joiner => "pair",
        }
    }
}
