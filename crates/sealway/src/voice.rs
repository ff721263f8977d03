//! In whose words a running server speaks: its own, or those that panels of Xray read.

/// The version of Xray whose command line, log lines and interfaces these are. Panels choose what they ask for by it.
pub(crate) const XRAY: &str = "26.7.28";

/// In whose words a server speaks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Voice {
    /// Its own.
    #[default]
    Own,
    /// Those of Xray: everything goes to standard output, as lines of a log.
    Xray,
}
