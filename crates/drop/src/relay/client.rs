//! Coming to a relay.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_session::handshake::Role;
use socket2::Socket;

use super::socket::{dial, readable};
use super::wire::{ANSWER_LEN, Answer, Request, SEEN_LEN, TOKEN_LEN, parse_seen};
use crate::Error;
use crate::cancel::Cancel;
use crate::dial::TICK;
use crate::error::{ASKING, WAITING};

/// How long a relay may take to answer at all.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an end comes again and again for one that it knows: as long as a nameplate is kept.
const KNOWN: Duration = Duration::from_secs(600);

/// The least time from one coming to the next. A relay lets an end wait for a minute.
const BETWEEN: Duration = Duration::from_secs(2);

/// How two ends find each other at a relay for the first time.
#[derive(Clone)]
pub enum Meeting {
    /// This end opens a nameplate and waits; it is told the number, for the other end to claim.
    Open(Arc<dyn Fn(u32) + Send + Sync>),
    /// This end claims the nameplate that the other one opened.
    Claim(u32),
    /// Both come with a token that only they know, in the roles that they have in the handshake, sooner or later than the other one.
    Known {
        /// The token of this moment: it may change with time, and is asked for again each time that this end comes.
        token: Arc<dyn Fn() -> Result<[u8; TOKEN_LEN], Error> + Send + Sync>,
        /// The role of this end.
        role: Role,
    },
}

/// Meets the other end at the relay at `address` (`host:port`). Who opened the nameplate is the responder, who claimed it the
/// initiator.
///
/// The stream blocks and has no timeouts; nothing was read of what the other end says.
///
/// # Errors
/// [`Error::Network`] if the relay is not reached, is full, knows no such nameplate, or ends the waiting;
/// [`Error::Protocol`] if something else answers there; [`Error::Cancelled`] soon after `cancel`.
pub fn meet(address: &str, meeting: &Meeting, cancel: &Cancel) -> Result<(TcpStream, Role), Error> {
    let stop = || cancel.is_set();
    match meeting {
        Meeting::Open(told) => Ok((ask(address, &Request::Open, &stop, &**told)?, Role::Responder)),
        Meeting::Claim(nameplate) => Ok((
            ask(address, &Request::Claim(*nameplate), &stop, &|_| {})?,
            Role::Initiator,
        )),
        Meeting::Known { token, role } => {
            let until = Instant::now() + KNOWN;
            loop {
                let came = Instant::now();
                match pair(address, &token()?, *role, &stop) {
                    // The relay waits no longer; the other end may have yet to come.
                    Err(error) if error.is_end_of_waiting() && came < until => {
                        while came.elapsed() < BETWEEN && !stop() {
                            std::thread::sleep(TICK);
                        }
                    }
                    met => return Ok((met?, *role)),
                }
            }
        }
    }
}

/// Meets the end that comes to the relay at `address` with the same token and the other role, sooner or later than this one.
/// The stream is as that of [`meet`].
///
/// # Errors
/// As [`meet`]; [`Error::Cancelled`] soon after `stop` says so.
pub fn pair(address: &str, token: &[u8; TOKEN_LEN], role: Role, stop: &dyn Fn() -> bool) -> Result<TcpStream, Error> {
    ask(address, &Request::Pair { token: *token, role }, stop, &|_| {})
}

/// From which address a connection comes that `begin` begins, as the relay at `address` sees it, within `limit` for each address of
/// the relay.
///
/// # Errors
/// [`Error::Network`] also of a relay that does not tell; [`Error::Cancelled`] soon after `stop` says so.
pub(crate) fn seen(
    address: &str,
    begin: &dyn Fn(SocketAddr) -> io::Result<Socket>,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<SocketAddr, Error> {
    let failed = |source| Error::Network {
        doing: format!("{ASKING} {address}"),
        source,
    };
    let until = Instant::now() + limit;
    let mut stream = super::socket::dial_by(address, begin, limit, stop)?;
    stream.write_all(&Request::Seen.encode()).map_err(failed)?;
    let port = match answer(&mut stream, Some(until), stop)?.map_err(failed)? {
        Answer::Seen(port) => port,
        other => return Err(refusal(other, &Request::Seen).map_or(UNEXPECTED, failed)),
    };
    let mut ip = [0; SEEN_LEN];
    fill(&mut stream, &mut ip, Some(until), stop)?.map_err(failed)?;
    Ok((parse_seen(ip), port).into())
}

/// Sends a request and waits until the other end is there.
fn ask(address: &str, request: &Request, stop: &dyn Fn() -> bool, told: &dyn Fn(u32)) -> Result<TcpStream, Error> {
    let mut stream = dial(address, stop)?;
    let failed = |source| Error::Network {
        doing: format!("{ASKING} {address}"),
        source,
    };
    stream.write_all(&request.encode()).map_err(failed)?;
    match (
        answer(&mut stream, Some(Instant::now() + PATIENCE), stop)?.map_err(failed)?,
        request,
    ) {
        (Answer::Ready, Request::Claim(_) | Request::Pair { .. }) => return Ok(stream),
        (Answer::Waiting(0), Request::Pair { .. }) => {}
        (Answer::Waiting(nameplate @ 1..), Request::Open) => told(nameplate),
        (other, _) => return Err(refusal(other, request).map_or(UNEXPECTED, failed)),
    }
    // From here on the relay decides how long; whether it is still there, the keepalive of the connection finds out.
    let failed = |source| Error::Network {
        doing: format!("{WAITING} {address}"),
        source,
    };
    match answer(&mut stream, None, stop)?.map_err(failed)? {
        Answer::Ready => Ok(stream),
        other => Err(refusal(other, request).map_or(UNEXPECTED, failed)),
    }
}

const UNEXPECTED: Error = Error::Protocol("the relay gave an answer that does not belong here");

/// What an answer says that ends it.
fn refusal(answer: Answer, request: &Request) -> Option<io::Error> {
    match (answer, request) {
        (Answer::Busy, _) => Some(io::Error::new(
            io::ErrorKind::QuotaExceeded,
            "it takes no more for now; try again in a minute",
        )),
        (Answer::Unknown, Request::Claim(nameplate)) => Some(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "nobody waits under number {nameplate}: it was mistyped, was used already, or the other end is gone"
            ),
        )),
        (Answer::Refused, _) => Some(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it refused the request",
        )),
        _ => None,
    }
}

/// The next answer, and not a byte more.
fn answer(
    stream: &mut TcpStream,
    until: Option<Instant>,
    stop: &dyn Fn() -> bool,
) -> Result<io::Result<Answer>, Error> {
    let mut bytes = [0; ANSWER_LEN];
    if let Err(error) = fill(stream, &mut bytes, until, stop)? {
        return Ok(Err(error));
    }
    match Answer::parse(&bytes) {
        Some(answer) => Ok(Ok(answer)),
        None => Err(Error::Protocol("what answers there is not a relay of this version")),
    }
}

/// Reads so many bytes, and not one more.
fn fill(
    stream: &mut TcpStream,
    bytes: &mut [u8],
    until: Option<Instant>,
    stop: &dyn Fn() -> bool,
) -> Result<io::Result<()>, Error> {
    let mut have = 0;
    while have < bytes.len() {
        if stop() {
            return Err(Error::Cancelled);
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return Ok(Err(io::ErrorKind::TimedOut.into()));
        }
        match readable(stream, TICK) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(error) => return Ok(Err(error)),
        }
        match stream.read(&mut bytes[have..]) {
            Ok(0) => return Ok(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}
