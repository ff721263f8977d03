//! Mux.Cool: many streams in one, and XUDP: datagrams from and to any address in it.
//!
//! ```text
//! frame: metaLen u16 (4..512) | meta | if option & 1: dataLen u16 | data
//! meta : id u16 | status u8 | option u8 (1 data, 2 error) | fields of the status | padding
//!        New : network u8 | port u16 | type | address | for datagrams perhaps GlobalID [8]
//!        Keep: perhaps 2 | port u16 | type | address, where this datagram goes or came from
//! ```
//!
//! An end finishes both directions of a session; there is no half-close and no flow control.

mod frame;
mod global;
mod write;

use crate::{Address, Destination, Domain, Network};

pub use frame::{Frame, Status, decode};
pub use global::{BaseKey, GlobalId};
pub use write::{MAX_HEAD, push_end, push_keep, push_new, push_packet};

/// Shortest meta part of a frame, bytes.
pub const MIN_META: usize = 4;
/// Longest meta part of a frame that is read, bytes.
pub const MAX_META: usize = 512;
/// Longest datagram that is written: a longer one ends the carrier at Xray's readers.
pub const MAX_DATAGRAM: usize = 8192;
/// Sessions that a client opens in the life of one carrier.
pub const MAX_SESSIONS_IN_LIFE: u16 = 128;

/// The name that stands for "here is a mux" where a protocol has no command for it.
pub const HOST: &str = "v1.mux.cool";
/// The port that goes with [`HOST`].
pub const PORT: u16 = 9527;
/// The name of another multiplexer (smux, yamux, h2mux of sing-box), which we do not speak.
pub const SING_HOST: &str = "sp.mux.sing-box.arpa";

/// The target that stands for a carrier.
///
/// # Errors
/// None: the name is right.
pub fn target() -> Result<Destination, crate::Error> {
    Ok(Destination::tcp(Domain::new(HOST)?, PORT))
}

/// Whether a stream to this target is a carrier.
pub fn is_mux(to: &Destination) -> bool {
    to.network == Network::Tcp && is_host(&to.address, HOST)
}

/// Whether a stream to this target is sing-box's multiplexer.
pub fn is_sing_mux(to: &Destination) -> bool {
    is_host(&to.address, SING_HOST)
}

fn is_host(address: &Address, host: &str) -> bool {
    address
        .domain()
        .is_some_and(|domain| domain.as_str().eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests;
