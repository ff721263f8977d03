//! What a bridge does.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_bip324::Magic;
use sealway_bip324::decoy::DecoyPolicy;
use sealway_bip324::message::MessageTypes;
use sealway_bip324_tokio::{HANDSHAKE_LIMIT, Patience};

use crate::Target;

/// What the other side is spoken to by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Outgoing {
    /// v2, and v1 if the other side seems to know nothing else. Whoever can close connections in between can bring this
    /// about.
    #[default]
    Auto,
    /// v2 only.
    V2,
    /// v1 only.
    V1,
}

/// What may come in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Incoming {
    /// v1 and v2.
    #[default]
    Any,
    /// v2 only.
    V2,
    /// v1 only.
    V1,
}

/// Packets that mean nothing, sent over v2 to either side.
#[derive(Clone, Copy, Debug)]
pub struct Decoys {
    /// After which messages, and of what sizes. A node that is Bitcoin Core takes at most 4,000,013 bytes.
    pub policy: DecoyPolicy,
    /// How long it takes on average until another one is sent while a direction has no messages. `None`: none are.
    pub cover: Option<Duration>,
}

/// What a bridge does and how much it takes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Where it listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// What it connects to, once for each connection that comes in.
    pub connect: Target,
    /// The network. Another one's messages end a connection.
    pub network: Magic,
    /// What may come in. Default: both.
    pub incoming: Incoming,
    /// What goes out. Default: v2, then v1.
    pub outgoing: Outgoing,
    /// The short ids, of both sides. Default: those of BIP324.
    pub types: MessageTypes,
    /// Decoys sent over v2. Default: none, as in Bitcoin Core.
    pub decoys: Option<Decoys>,
    /// Connections at a time. When there are as many, a silent one, which has not said what it speaks, gives way to a new
    /// one: the youngest of the address that holds most of them. If none does, the new one is closed. Default: 256.
    pub connections: usize,
    /// Connections of one address at a time, of IPv6 one /64. Default: 32.
    pub connections_per_address: usize,
    /// New connections of one address a second in the long run, twice as many at once; above that they are closed. Where
    /// one address may have all places, that of all handshakes counts instead. Default: 10.
    pub connections_per_address_per_second: u32,
    /// Handshakes of v2 a second in the long run, twice as many at once; above that clients wait for their turn. One costs
    /// about 0.1 ms of CPU time. v1 has none. Default: 200.
    pub handshakes_per_second: u32,
    /// Longest handshake. Default: 60 s.
    pub handshake_limit: Duration,
    /// Longest time to connect. Default: 10 s.
    pub connect_limit: Duration,
    /// How long a message that has begun may take to come.
    pub patience: Patience,
    /// How long after its last whole message, either way, a connection ends. Default: 20 minutes, as in Bitcoin Core.
    pub idle: Duration,
    /// How long one direction may go on after the other has ended, whatever it carries. Default: 60 s.
    pub half_closed: Duration,
}

impl Settings {
    /// The defaults between two addresses.
    pub fn new(listen: SocketAddr, connect: Target, network: Magic) -> Self {
        Settings {
            listen,
            connect,
            network,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            types: MessageTypes::standard(),
            decoys: None,
            connections: 256,
            connections_per_address: 32,
            connections_per_address_per_second: 10,
            handshakes_per_second: 200,
            handshake_limit: HANDSHAKE_LIMIT,
            connect_limit: Duration::from_secs(10),
            patience: Patience::default(),
            idle: Duration::from_secs(20 * 60),
            half_closed: Duration::from_secs(60),
        }
    }
}
