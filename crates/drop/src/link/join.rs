//! Further connections of a session: one round trip, no public-key work.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use sealway_session::Session;
use sealway_session::attach::{ANSWER_LEN, AttachInitiator, AttachResponder, Attached, HELLO_LEN};

use super::connection::Connection;
use super::establish::{Deadline, PATIENCE, with_random};
use crate::Error;
use crate::cancel::{Cancel, Watch};

/// Joins as the end that dialled.
pub(super) fn initiate(
    mut stream: TcpStream,
    session: &Session,
    index: u32,
    cancel: &Cancel,
) -> Result<Connection, Error> {
    let watch = cancel.watch(&stream);
    let deadline = Deadline::after(PATIENCE);
    let mut attach = with_random(|random| AttachInitiator::new(session, index, random))??;
    if let Some(hello) = attach.write() {
        stream.write_all(&hello).map_err(Error::network("joining"))?;
    }
    let mut answer = [0; ANSWER_LEN];
    fill(&mut stream, deadline, &mut answer, "joining")?;
    attach.read(&answer)?;
    finish((stream, watch), attach.finish()?)
}

/// Joins as the end that was dialled.
pub(super) fn respond(stream: TcpStream, session: &Session, cancel: &Cancel) -> Result<Connection, Error> {
    let (stream, hello) = heard(stream, cancel)?;
    answer(stream, session, &hello)
}

/// The same of a port with several sessions: `find` says whose the token is that the other end begins with. `None` if it is
/// nobody's.
pub(super) fn respond_to<T>(
    stream: TcpStream,
    find: impl FnOnce(&[u8; 32]) -> Option<(Arc<Session>, T)>,
    cancel: &Cancel,
) -> Result<Option<(Connection, T)>, Error> {
    let (stream, hello) = heard(stream, cancel)?;
    match hello.first_chunk().and_then(find) {
        Some((session, of)) => Ok(Some((answer(stream, &session, &hello)?, of))),
        None => Ok(None),
    }
}

type Watched = (TcpStream, Watch);

/// What the other end begins with, and not a byte more: what follows are records.
fn heard(mut stream: TcpStream, cancel: &Cancel) -> Result<(Watched, [u8; HELLO_LEN]), Error> {
    let watch = cancel.watch(&stream);
    let mut hello = [0; HELLO_LEN];
    fill(&mut stream, Deadline::after(PATIENCE), &mut hello, "joining")?;
    Ok(((stream, watch), hello))
}

fn answer((mut stream, watch): Watched, session: &Session, hello: &[u8]) -> Result<Connection, Error> {
    let mut attach = with_random(|random| AttachResponder::new(session, random))?;
    attach.read(hello)?;
    if let Some(answer) = attach.write() {
        stream.write_all(&answer).map_err(Error::network("joining"))?;
    }
    finish((stream, watch), attach.finish()?)
}

/// Reads all of `message` by `deadline`, however slowly it comes.
pub(super) fn fill(
    stream: &mut TcpStream,
    deadline: Deadline,
    message: &mut [u8],
    doing: &'static str,
) -> Result<(), Error> {
    let mut have = 0;
    while have < message.len() {
        deadline.set(stream).map_err(Error::network(doing))?;
        match stream.read(&mut message[have..]) {
            Ok(0) => return Err(Error::network(doing)(ErrorKind::UnexpectedEof.into())),
            Ok(read) => have += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::network(doing)(source)),
        }
    }
    Ok(())
}

fn finish((stream, watch): Watched, attached: Attached) -> Result<Connection, Error> {
    stream.set_read_timeout(None).map_err(Error::network("joining"))?;
    stream.set_write_timeout(None).map_err(Error::network("joining"))?;
    Connection::new(attached.index, (stream, watch), attached.send, attached.recv, &[])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::streams;

    #[test]
    fn bytes_one_by_one_do_not_move_the_deadline() {
        let (mut here, mut there) = streams();
        let dripping = std::thread::spawn(move || {
            // Ends soon after the other end is gone.
            while there.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let deadline = Deadline::after(Duration::from_millis(300));
        let filled = fill(&mut here, deadline, &mut [0; 4096], "waiting");
        let late = |kind| matches!(kind, ErrorKind::TimedOut | ErrorKind::WouldBlock);
        assert!(
            matches!(&filled, Err(Error::Network { source, .. }) if late(source.kind())),
            "{filled:?}"
        );
        drop(here);
        dripping.join().unwrap();
    }
}
