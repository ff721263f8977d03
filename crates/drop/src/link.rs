//! Connections of a session over TCP.
//!
//! [`connection`] moves records over one sealed connection. `establish` brings up a session and its further connections, `race` at whichever address it can be had.
//! `connect` says where the other end is: at an address, at one of ours, or at a relay. `direct` looks for a path beside a relay. `host` is a port at which
//! several sessions come up, and `again` brings the ends of one together again.

mod admission;
mod again;
mod connect;
pub mod connection;
pub mod direct;
mod establish;
mod host;
mod join;
mod listen;
mod race;
mod socket;

pub use again::{Again, Path};
pub use connect::{Connected, Connections, DataConnections, GATHER, Place, connect, connect_telling};
pub use connection::{Connection, MAX_CONNECTIONS, OwnedRecord, Reader, Record, Writer, is_direct};
pub use establish::{Identity, Peered, Setup};
pub use host::{Host, Returns};
