//! What is dialled.

use std::path::PathBuf;

use sealway_v2ray::Address;

/// A unix socket's name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UnixName {
    /// A path, and the mode the socket file is given.
    Path(PathBuf, Option<u32>),
    /// An abstract name, without the leading zero byte.
    Abstract(Vec<u8>),
}

/// Address of a fallback.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FallbackDial {
    /// TCP to a host.
    Tcp(Address, u16),
    /// TCP to a port of this machine: 127.0.0.1, then ::1.
    Local(u16),
    /// A unix socket.
    Unix(UnixName),
}
