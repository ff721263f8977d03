//! One attempt: both ends dial, and the connections that come up join the session.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use sealway_session::handshake::Role;
use socket2::Socket;

use super::port::{Gathered, Port, connected};
use super::{Event, Shared};
use crate::Error;
use crate::cancel::Cancel;
use crate::dial::{TICK, wait};
use crate::link::establish::{JOIN, send_byte};
use crate::link::listen::{FirstByte, attend, first_byte};
use crate::link::{join, socket};

/// Pause before an address is dialled again that has refused.
const AGAIN: Duration = Duration::from_millis(60);

/// How long a connection may take before it is dialled anew: a NAT may have dropped what was sent before it was open.
const ONE: Duration = Duration::from_millis(1500);

/// How long dialling alone is tried before a router is asked.
const MAPPED: Duration = Duration::from_millis(400);

/// Addresses of the other end that are dialled.
const DIALLED: usize = 8;

/// Connections that are looked at in one attempt: whoever finds the port while it is open may come too.
const LOOKED_AT: u32 = 16;

pub(super) enum Attempt {
    None,
    /// Until then, for a port of this end, and for the addresses of the other one.
    Waiting(Instant, Option<Gathered>, Option<Vec<SocketAddr>>),
    Dialling(Dialling),
}

impl Attempt {
    /// The other end says more addresses.
    pub(super) fn adds(&mut self, theirs: Vec<SocketAddr>) {
        match self {
            Attempt::None => {}
            Attempt::Waiting(_, _, known) => {
                let known = known.get_or_insert_default();
                known.extend(theirs);
                known.truncate(DIALLED);
            }
            Attempt::Dialling(dialling) => dialling.add(theirs),
        }
    }

    pub(super) fn dialling(gathered: Gathered, theirs: Vec<SocketAddr>, until: Instant) -> Self {
        let mut dialling = Dialling {
            until,
            port: gathered.port,
            tries: Vec::new(),
            looked_at: 0,
            maps_at: Some(Instant::now() + MAPPED),
        };
        dialling.add(theirs);
        Self::Dialling(dialling)
    }
}

/// An address of the other end.
struct Try {
    to: SocketAddr,
    state: State,
}

enum State {
    /// Dialled at this moment.
    At(Instant),
    Dialled(Socket, Instant),
    /// It has come up.
    Done,
}

pub(super) struct Dialling {
    pub(super) until: Instant,
    port: Port,
    tries: Vec<Try>,
    looked_at: u32,
    /// When a router is asked for a port.
    maps_at: Option<Instant>,
}

impl Dialling {
    /// The port of this end, when it is time to ask a router to lead one of its own here; once.
    pub(super) fn port_to_map(&mut self, now: Instant) -> Option<u16> {
        self.maps_at.take_if(|at| *at <= now).map(|_| self.port.number())
    }

    fn add(&mut self, theirs: Vec<SocketAddr>) {
        for to in theirs {
            if self.tries.len() < DIALLED && self.tries.iter().all(|one| one.to != to) {
                let state = State::At(Instant::now());
                self.tries.push(Try { to, state });
            }
        }
    }

    /// Does what can be done, and waits for a moment for more.
    pub(super) fn step(&mut self, shared: &Arc<Shared>, cancel: &Cancel) {
        let now = Instant::now();
        let mut pause = TICK;
        for one in &mut self.tries {
            match one.state {
                State::At(at) if at <= now => {
                    one.state = match self.port.dial(one.to) {
                        Ok(socket) => State::Dialled(socket, now),
                        Err(_) => State::At(now + AGAIN),
                    }
                }
                State::At(at) => pause = pause.min(at - now),
                State::Dialled(_, since) if now >= since + ONE => one.state = State::At(now),
                State::Dialled(..) | State::Done => {}
            }
        }
        let dialled = self.tries.iter().filter_map(|one| match &one.state {
            State::Dialled(socket, _) => Some(PollFd::new(socket, PollFlags::OUT)),
            _ => None,
        });
        let listener = std::iter::once(PollFd::new(&self.port.listener, PollFlags::IN));
        let mut fds: Vec<_> = listener.chain(dialled).collect();
        if wait(&mut fds, pause).is_err() {
            return;
        }
        let mut ready = fds
            .iter()
            .map(|fd| !fd.revents().is_empty())
            .collect::<Vec<_>>()
            .into_iter();
        drop(fds);
        let accepts = ready.next().unwrap_or(false);
        let mut came = Vec::new();
        for one in &mut self.tries {
            if !matches!(one.state, State::Dialled(..)) || !ready.next().unwrap_or(false) {
                continue;
            }
            if let State::Dialled(socket, _) = std::mem::replace(&mut one.state, State::At(now + AGAIN))
                && let Ok(stream) = connected(socket)
            {
                one.state = State::Done;
                came.push((stream, one.to));
            }
        }
        while accepts && let Ok((socket, from)) = self.port.listener.accept() {
            if let (Ok(stream), Some(from)) = (connected(socket), from.as_socket()) {
                came.push((stream, from));
            }
        }
        for (stream, of) in came {
            self.looked_at += 1;
            if self.looked_at <= LOOKED_AT {
                let (shared, cancel) = (shared.clone(), cancel.clone());
                attend("direct", move || match join(stream, &shared, &cancel) {
                    Ok(connection) => shared.tell(Event::Joined(Box::new(connection), canonical(of))),
                    Err(error) => tracing::debug!(%error, "a direct connection that did not join"),
                });
            }
        }
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The initiator says which connection it is, whoever dialled: at once, both ends may have.
fn join(mut stream: TcpStream, shared: &Shared, cancel: &Cancel) -> Result<super::Connection, Error> {
    socket::prepare_direct(&stream).map_err(Error::network("joining"))?;
    let connection = match shared.role {
        Role::Initiator => {
            let number = shared
                .number()
                .ok_or(Error::Protocol("no number is left for a direct connection"))?;
            send_byte(&mut stream, JOIN)?;
            join::initiate(stream, &shared.session, number, cancel)?
        }
        Role::Responder => {
            let stop = || cancel.is_set() || shared.is_stopped();
            if first_byte(&mut stream, &stop) != FirstByte::Came(JOIN) {
                return Err(Error::Protocol("a stranger came to a port for the other end"));
            }
            join::respond(stream, &shared.session, cancel)?
        }
    };
    shared.joined.fetch_max(connection.index + 1, Ordering::SeqCst);
    Ok(connection)
}
