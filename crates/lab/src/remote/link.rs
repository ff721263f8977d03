//! The end that measures.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use sealway_session::handshake::Role;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::channel::{Channel, MESSAGE, PING};
use super::{ANSWER, Greeting, HANDSHAKE, HEARTBEAT, RemoteError, Token, VERSION};
use crate::result::{Num, Responder};

/// How often the time of an answer is taken; the shortest counts.
const PINGS: usize = 5;

/// A channel to a responder, which hears of this end each second as long as it is kept.
pub struct Link {
    /// `None` once it is lost.
    channel: Mutex<Option<Channel>>,
    peer: IpAddr,
    responder: Responder,
}

impl Link {
    /// Connects to the responder at `address`, `HOST:PORT`.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn connect(address: &str, token: &Token) -> Result<Arc<Link>, RemoteError> {
        let unreachable = |source| RemoteError::Connect {
            address: address.to_owned(),
            source,
        };
        let stream = connect(address).map_err(unreachable)?;
        let peer = stream.peer_addr().map_err(unreachable)?.ip();
        stream.set_nodelay(true).map_err(unreachable)?;
        let mut channel = Channel::establish(stream, token, Role::Initiator)?;
        let greeting = next(&mut channel, MESSAGE)?.ok_or(RemoteError::Busy)?;
        let Greeting { version, mut responder } = read(&greeting)?;
        if version != VERSION {
            return Err(RemoteError::OtherVersion { theirs: version });
        }
        responder.rtt_s = Num::from(round_trip(&mut channel)?);
        let link = Arc::new(Link {
            channel: Mutex::new(Some(channel)),
            peer,
            responder,
        });
        let weak = Arc::downgrade(&link);
        std::thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(move || beat(&weak))
            .map_err(|error| RemoteError::system("start a thread", error))?;
        Ok(link)
    }

    /// What the other host is.
    pub fn responder(&self) -> &Responder {
        &self.responder
    }

    /// True once the other host is lost: nothing is asked of it any more.
    pub fn is_lost(&self) -> bool {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// The address of the other host.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`RemoteError`], and the link is lost then.
    pub(crate) fn ask<A: DeserializeOwned>(&self, question: &impl Serialize) -> Result<A, RemoteError> {
        let question = serde_json::to_vec(question).map_err(RemoteError::malformed)?;
        let answer = self.exchange(MESSAGE, &question).and_then(|answer| read(&answer));
        if answer.is_err() {
            *self.channel.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        answer
    }

    /// One record there and one back.
    fn exchange(&self, kind: u8, payload: &[u8]) -> Result<Vec<u8>, RemoteError> {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = channel.as_mut() else {
            return Err(RemoteError::lost("the connection ended before"));
        };
        let answer = open.send(kind, payload, ANSWER).and_then(|()| expect(open, kind));
        if answer.is_err() {
            *channel = None;
        }
        answer
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let channel = self.channel.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channel {
            channel.close();
        }
    }
}

/// Tries each address that a name has.
fn connect(address: &str) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    for address in addresses {
        match TcpStream::connect_timeout(&address, HANDSHAKE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The next record, which is to be of that kind; `None` after the end.
fn next(channel: &mut Channel, kind: u8) -> Result<Option<Vec<u8>>, RemoteError> {
    match channel.receive(ANSWER)? {
        Some((found, _)) if found != kind => Err(RemoteError::malformed(format_args!("a record of kind {found}"))),
        record => Ok(record.map(|(_, payload)| payload)),
    }
}

/// The same where none is no answer.
fn expect(channel: &mut Channel, kind: u8) -> Result<Vec<u8>, RemoteError> {
    next(channel, kind)?.ok_or_else(|| RemoteError::lost("it ended"))
}

/// Reads what was said. Errors say where, not what: the text is the other end's.
pub(super) fn read<A: DeserializeOwned>(said: &[u8]) -> Result<A, RemoteError> {
    serde_json::from_slice(said).map_err(|error| {
        RemoteError::malformed(format_args!("no answer to what was asked, at byte {}", error.column()))
    })
}

/// The shortest time of an answer, in seconds.
fn round_trip(channel: &mut Channel) -> Result<f64, RemoteError> {
    let mut shortest = f64::INFINITY;
    for _ in 0..PINGS {
        let asked = Instant::now();
        channel.send(PING, &[], ANSWER)?;
        expect(channel, PING)?;
        shortest = shortest.min(asked.elapsed().as_secs_f64());
    }
    Ok(shortest)
}

/// Says each second that this end is there, until it is not.
fn beat(link: &Weak<Link>) {
    loop {
        std::thread::sleep(HEARTBEAT);
        let heard = link.upgrade().map(|link| link.exchange(PING, &[]));
        if !matches!(heard, Some(Ok(_))) {
            return;
        }
    }
}
