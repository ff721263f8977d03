//! The end that responds.

use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_session::handshake::Role;

use super::channel::{Channel, MESSAGE, PING};
use super::{Greeting, RemoteError, SESSION, SILENCE, Token, VERSION};
use crate::connections::{Connections, Held};
use crate::result::Responder;

/// How often is looked for a client, and whether to stop.
const STEP: Duration = Duration::from_millis(20);

/// Handshakes at once, so that a stranger who says nothing keeps few others waiting.
const MAX_HANDSHAKES: usize = 8;

/// How long the place of a handshake that failed stays taken. Tokens are too long to be guessed at any rate; this saves work.
const PAUSE: Duration = Duration::from_millis(200);

/// What is done for a client, message by message. Dropped when the client is gone.
pub trait Job {
    /// The answer to a message, whatever it holds.
    fn answer(&mut self, message: &[u8]) -> Vec<u8>;
}

/// What happens at a responder.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A client is there, and has the token.
    Joined(SocketAddr),
    /// It is gone, as it should or with this error.
    Left(SocketAddr, Option<RemoteError>),
    /// Somebody came who has no token.
    Stranger(SocketAddr),
    /// Somebody came who has the token, and was turned away: another client is served.
    Busy(SocketAddr),
}

/// Serves one client after the other at `listener`, each by a job that `begin` makes of this end's address and of the client's; another
/// client that comes meanwhile is turned away. Whoever has no token takes nobody's turn: only a place among a few handshakes. Ends when
/// `stopped` says so.
///
/// # Errors
/// [`RemoteError::System`].
pub fn serve<J: Job>(
    listener: &TcpListener,
    token: &Token,
    responder: &Responder,
    begin: &(dyn Fn(IpAddr, IpAddr) -> J + Sync),
    tell: &(dyn Fn(Event) + Sync),
    stopped: &dyn Fn() -> bool,
) -> Result<(), RemoteError> {
    listener
        .set_nonblocking(true)
        .map_err(|error| RemoteError::system("listen", error))?;
    let host = Host {
        token,
        responder,
        begin,
        tell,
        handshakes: Connections::new(MAX_HANDSHAKES),
        served: Connections::new(1),
    };
    std::thread::scope(|scope| {
        let ended = loop {
            if stopped() {
                break Ok(());
            }
            // Who comes while there is no place for a handshake waits with the system.
            let stream = match host.handshakes.is_full() {
                true => None,
                // Nobody is there, or it is trouble that passes, such as too many open files.
                false => listener.accept().ok(),
            };
            let Some((stream, _)) = stream else {
                std::thread::sleep(STEP);
                continue;
            };
            let Ok(place) = host.handshakes.hold(&stream) else {
                continue;
            };
            let host = &host;
            let served = std::thread::Builder::new()
                .name("client".to_owned())
                .spawn_scoped(scope, move || {
                    // A job that panics ends its client, and nobody else.
                    let _ = catch_unwind(AssertUnwindSafe(|| host.serve(stream, place)));
                });
            if let Err(error) = served {
                break Err(RemoteError::system("start a thread", error));
            }
        };
        // Wakes the threads that serve them.
        host.handshakes.end();
        host.served.end();
        ended
    })
}

/// What all clients have in common.
struct Host<'a, J> {
    token: &'a Token,
    responder: &'a Responder,
    begin: &'a (dyn Fn(IpAddr, IpAddr) -> J + Sync),
    tell: &'a (dyn Fn(Event) + Sync),
    /// Connections that have not proved the token yet.
    handshakes: Arc<Connections>,
    /// The client.
    served: Arc<Connections>,
}

impl<J: Job> Host<'_, J> {
    /// Serves whoever connected, to the end; `place` is that of its handshake.
    fn serve(&self, stream: TcpStream, place: Held) {
        let ready = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| Ok((stream.local_addr()?, stream.peer_addr()?, stream.try_clone()?)));
        let Ok((local, peer, socket)) = ready else { return };
        let Ok(mut channel) = Channel::establish(stream, self.token, Role::Responder) else {
            (self.tell)(Event::Stranger(peer));
            // It need not wait; its place does.
            let _ = socket.shutdown(Shutdown::Both);
            std::thread::sleep(PAUSE);
            return;
        };
        let Ok(_turn) = self.served.hold(&socket) else {
            (self.tell)(Event::Busy(peer));
            channel.close();
            return;
        };
        drop((place, socket));
        (self.tell)(Event::Joined(peer));
        let ended = self.session(channel, local.ip().to_canonical(), peer.ip().to_canonical());
        (self.tell)(Event::Left(peer, ended.err()));
    }

    /// Answers a client until it ends.
    fn session(&self, mut channel: Channel, local: IpAddr, peer: IpAddr) -> Result<(), RemoteError> {
        let greeting = Greeting {
            version: VERSION,
            responder: self.responder.clone(),
        };
        let greeting = serde_json::to_vec(&greeting).map_err(RemoteError::malformed)?;
        channel.send(MESSAGE, &greeting, SILENCE)?;
        let until = Instant::now() + SESSION;
        let mut job = (self.begin)(local, peer);
        while let Some((kind, message)) = channel.receive(SILENCE)? {
            if Instant::now() >= until {
                return Err(RemoteError::lost("its time is over"));
            }
            match kind {
                PING => channel.send(PING, &[], SILENCE)?,
                MESSAGE => channel.send(MESSAGE, &job.answer(&message), SILENCE)?,
                other => return Err(RemoteError::malformed(format_args!("a record of kind {other}"))),
            }
        }
        Ok(())
    }
}
