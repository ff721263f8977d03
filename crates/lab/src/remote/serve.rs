//! The end that responds.

use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sealway_session::handshake::Role;

use super::channel::{Channel, MESSAGE, PING};
use super::{Greeting, MAX_GUESSES, RemoteError, SESSION, SILENCE, Token, VERSION};
use crate::result::Responder;

/// How often is looked for a client, and whether to stop.
const STEP: Duration = Duration::from_millis(20);

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
}

/// Serves one client after the other at `listener`, each by a job that `begin` makes of this end's address and of the client's; another
/// client that comes meanwhile is turned away. Ends when `stopped` says so.
///
/// # Errors
/// [`RemoteError::Guessed`] after the tenth wrong token, [`RemoteError::System`].
pub fn serve<J: Job>(
    listener: &TcpListener,
    token: &Token,
    responder: &Responder,
    begin: &(dyn Fn(IpAddr, IpAddr) -> J + Sync),
    tell: &(dyn Fn(Event) + Sync),
    stopped: &dyn Fn() -> bool,
) -> Result<(), RemoteError> {
    let system = |doing: &'static str| {
        move |error: std::io::Error| RemoteError::System {
            doing,
            what: error.to_string(),
        }
    };
    listener.set_nonblocking(true).map_err(system("listen"))?;
    let host = Host {
        token,
        responder,
        begin,
        tell,
        busy: AtomicBool::new(false),
        current: Mutex::new(None),
        guesses: AtomicU32::new(0),
    };
    std::thread::scope(|scope| {
        let ended = loop {
            if stopped() {
                break Ok(());
            }
            if host.guesses.load(Ordering::Acquire) >= MAX_GUESSES {
                break Err(RemoteError::Guessed);
            }
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                // Nobody is there, or it is trouble that passes, such as too many open files.
                Err(_) => {
                    std::thread::sleep(STEP);
                    continue;
                }
            };
            if host.busy.swap(true, Ordering::AcqRel) {
                continue;
            }
            host.hold(stream.try_clone().ok());
            let host = &host;
            let served = std::thread::Builder::new()
                .name("client".to_owned())
                .spawn_scoped(scope, move || {
                    host.serve(stream);
                    // It is closed only when this is, too.
                    host.hold(None);
                    host.busy.store(false, Ordering::Release);
                });
            if let Err(error) = served {
                break Err(system("start a thread")(error));
            }
        };
        if let Some(stream) = &*host.current() {
            // Wakes the thread that serves it.
            let _ = stream.shutdown(Shutdown::Both);
        }
        ended
    })
}

/// What all clients have in common.
struct Host<'a, J> {
    token: &'a Token,
    responder: &'a Responder,
    begin: &'a (dyn Fn(IpAddr, IpAddr) -> J + Sync),
    tell: &'a (dyn Fn(Event) + Sync),
    busy: AtomicBool,
    /// The connection that is served, to end it from outside.
    current: Mutex<Option<TcpStream>>,
    guesses: AtomicU32,
}

impl<J: Job> Host<'_, J> {
    fn current(&self) -> MutexGuard<'_, Option<TcpStream>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, stream: Option<TcpStream>) {
        *self.current() = stream;
    }

    /// Serves whoever connected, to the end.
    fn serve(&self, stream: TcpStream) {
        let ready = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| Ok((stream.local_addr()?, stream.peer_addr()?)));
        let Ok((local, peer)) = ready else { return };
        match Channel::establish(stream, self.token, Role::Responder) {
            Ok(channel) => {
                (self.tell)(Event::Joined(peer));
                let ended = self.session(channel, local.ip().to_canonical(), peer.ip().to_canonical());
                (self.tell)(Event::Left(peer, ended.err()));
            }
            Err(failure) => {
                if failure.guessed {
                    self.guesses.fetch_add(1, Ordering::AcqRel);
                }
                (self.tell)(Event::Stranger(peer));
            }
        }
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
