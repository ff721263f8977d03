//! Asking one node what it speaks.

mod version;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sealway_bip324::message::{Command, Message, MessageTypes};
use sealway_bip324::{GARBAGE_MAX, Magic, OVERHEAD, TERMINATOR_LEN};
use sealway_bip324_tokio::v1::{V1Receiver, V1Sender};
use sealway_bip324_tokio::{HandshakeError, Messages, TransportError, connect};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::dial::{NODE, tcp, tcp_again};
use crate::wire::{fresh, random};
use crate::{Error, SessionId, Target};

pub use version::{SERVICES, Version};

/// Longest message that is taken before the version message, bytes of payload.
const PAYLOAD_LIMIT: u32 = 64 * 1024;

/// Most messages that may come before the version message.
const BEFORE_VERSION: usize = 8;

/// How a node is asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// The network. A node of another one does not answer.
    pub network: Magic,
    /// Longest time for all of it.
    pub limit: Duration,
    /// What we say we are, at most 256 bytes.
    pub user_agent: String,
}

/// What a node answered.
#[derive(Debug)]
pub struct Report {
    /// Who was asked.
    pub target: Target,
    /// The address that was connected to.
    pub address: SocketAddr,
    /// The network.
    pub network: Magic,
    /// Time to connect over TCP, with looking up the name.
    pub connect: Duration,
    /// Whether it speaks v2.
    pub v2: Result<V2, Error>,
    /// Its version message: over v2 if it speaks that, else over v1 on another connection.
    pub version: Result<Answer, Error>,
}

/// A v2 handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct V2 {
    /// Time from the first byte sent to the peer's authentic version packet: two trips, and what both ends compute.
    pub handshake: Duration,
    /// What the node's operator sees too, if nobody stands in between.
    pub session_id: SessionId,
}

/// A version message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Time from sending ours.
    pub after: Duration,
    /// What it says.
    pub version: Version,
}

/// Connects, shakes hands in v2 and exchanges version messages; if v2 fails, tries v1 on another connection
/// to the same address.
///
/// Takes at most the time of `options` and bounded memory, whatever the node does. The node's addresses, heights and names
/// are what it claims.
///
/// # Errors
/// [`Error::Resolve`] and [`Error::Connect`] if there is nobody to ask, [`Error::Random`]. What goes wrong later stands in
/// the report.
pub async fn probe(target: &Target, options: &Options) -> Result<Report, Error> {
    let began = Instant::now();
    let end = began.checked_add(options.limit).unwrap_or(began);
    let (stream, address) = tcp(target, options.limit).await?;
    let connected = began.elapsed();
    let (key, mut handshake) = fresh()?;
    handshake.decoys.push(filling(handshake.garbage.len())?);
    let start = Instant::now();
    // A node that is silent leaves half of the time for v1.
    let limit = end.saturating_duration_since(start) / 2;
    let (v2, version) = match connect(stream, options.network, key, handshake, limit).await {
        Ok(messages) => {
            let v2 = V2 {
                handshake: start.elapsed(),
                session_id: SessionId(*messages.session_id()),
            };
            (Ok(v2), over_v2(messages, options, end).await)
        }
        Err(failed) => {
            let failed = no_v2(failed);
            (Err(failed), over_v1(target, address, options, end).await)
        }
    };
    Ok(Report {
        target: target.clone(),
        address,
        network: options.network,
        connect: connected,
        v2,
        version,
    })
}

/// Contents of a decoy that makes up what garbage lacks: a node of another network takes all of it for garbage, finds no
/// terminator where the last one may end, and closes at once. Otherwise it would wait for more, and so would we.
fn filling(garbage: usize) -> Result<Vec<u8>, Error> {
    let mut more = [0; 2];
    random(&mut more).map_err(Error::Random)?;
    // What follows the garbage without the decoy's contents: the terminator and two packets.
    let rest = garbage + TERMINATOR_LEN + 2 * OVERHEAD;
    let missing = (GARBAGE_MAX + TERMINATOR_LEN).saturating_sub(rest);
    // Of no length of its own.
    Ok(vec![0; missing + usize::from(u16::from_le_bytes(more) % 1024)])
}

/// Why there is no v2, as far as what came can tell.
fn no_v2(failed: HandshakeError) -> Error {
    let (bytes, source) = (failed.bytes_received, failed.error);
    match failed.before_terminator && bytes > 0 {
        true => Error::NoTerminator { bytes, source },
        false => Error::Handshake { with: NODE, source },
    }
}

/// Our version message, and how it is known.
struct Ours {
    payload: Vec<u8>,
    nonce: u64,
}

impl Ours {
    fn new(options: &Options) -> Result<Self, Error> {
        let mut nonce = [0; 8];
        random(&mut nonce).map_err(Error::Random)?;
        let nonce = u64::from_le_bytes(nonce);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(now.as_secs()).unwrap_or_default();
        let payload = version::encode(&options.user_agent, seconds, nonce);
        Ok(Ours { payload, nonce })
    }

    /// Reads the other's.
    fn answer(&self, payload: &[u8]) -> Result<Version, Error> {
        let version = Version::decode(payload)?;
        if version.nonce == self.nonce {
            return Err(Error::Echo);
        }
        Ok(version)
    }
}

/// The type of a version message.
fn version_type() -> Result<Command, Error> {
    "version"
        .parse()
        .map_err(|source| broken(TransportError::Protocol(source)))
}

fn broken(source: TransportError) -> Error {
    Error::Transport { with: NODE, source }
}

/// Runs one exchange to its end in time.
async fn in_time(end: Instant, exchange: impl Future<Output = Result<Version, Error>>) -> Result<Answer, Error> {
    let start = Instant::now();
    match timeout_at(end, exchange).await {
        Ok(version) => version.map(|version| Answer {
            after: start.elapsed(),
            version,
        }),
        Err(_) => Err(Error::Time {
            what: "the node's version message",
            limit: start.elapsed(),
        }),
    }
}

const TOO_MANY: Error = Error::Message {
    what: "the node sent other messages than its version",
};

const ENDED: Error = Error::Message {
    what: "the node closed the connection before its version message",
};

async fn over_v2(mut messages: Messages<TcpStream>, options: &Options, end: Instant) -> Result<Answer, Error> {
    let ours = Ours::new(options)?;
    let command = version_type()?;
    in_time(end, async {
        let types = MessageTypes::with_drafts();
        let mut contents = Vec::new();
        let message = Message {
            command,
            payload: &ours.payload,
        };
        let encoded = message.encode(&types, &mut contents);
        encoded.map_err(|source| broken(source.into()))?;
        messages.send(&contents).await.map_err(broken)?;
        for _ in 0..BEFORE_VERSION {
            let contents = messages.recv().await.map_err(broken)?.ok_or(ENDED)?;
            match Message::decode(&types, contents) {
                Ok(message) if message.command == command => return ours.answer(message.payload),
                _ => {}
            }
        }
        Err(TOO_MANY)
    })
    .await
}

async fn over_v1(target: &Target, address: SocketAddr, options: &Options, end: Instant) -> Result<Answer, Error> {
    let left = end.saturating_duration_since(Instant::now());
    let stream = tcp_again(target, address, left).await?;
    let ours = Ours::new(options)?;
    let command = version_type()?;
    let (read, write) = stream.into_split();
    in_time(end, async {
        let mut sender = V1Sender::new(write, options.network, 0);
        let mut receiver = V1Receiver::new(read, options.network, PAYLOAD_LIMIT, Vec::new());
        let message = Message {
            command,
            payload: &ours.payload,
        };
        sender.feed(&message).await.map_err(broken)?;
        sender.flush().await.map_err(broken)?;
        for _ in 0..BEFORE_VERSION {
            let message = receiver.recv().await.map_err(broken)?.ok_or(ENDED)?;
            if message.command == command {
                return ours.answer(message.payload);
            }
        }
        Err(TOO_MANY)
    })
    .await
}
