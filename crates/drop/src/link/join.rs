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
    read::<ANSWER_LEN>(&mut stream, deadline, |bytes| attach.read(bytes))?;
    finish((stream, watch), attach.finish()?)
}

/// Joins as the end that was dialled.
pub(super) fn respond(mut stream: TcpStream, session: &Session, cancel: &Cancel) -> Result<Connection, Error> {
    let watch = cancel.watch(&stream);
    let deadline = Deadline::after(PATIENCE);
    let mut attach = with_random(|random| AttachResponder::new(session, random))?;
    read::<HELLO_LEN>(&mut stream, deadline, |bytes| attach.read(bytes))?;
    if let Some(answer) = attach.write() {
        stream.write_all(&answer).map_err(Error::network("joining"))?;
    }
    finish((stream, watch), attach.finish()?)
}

/// The same of a port with several sessions: `find` says whose the token is that the other end begins with. `None` if it is
/// nobody's.
pub(super) fn respond_to<T>(
    mut stream: TcpStream,
    find: impl FnOnce(&[u8; 32]) -> Option<(Arc<Session>, T)>,
    cancel: &Cancel,
) -> Result<Option<(Connection, T)>, Error> {
    let watch = cancel.watch(&stream);
    let deadline = Deadline::after(PATIENCE);
    let mut hello = [0; HELLO_LEN];
    fill(&mut stream, deadline, &mut hello, "joining")?;
    let Some((session, of)) = hello.first_chunk().and_then(find) else {
        return Ok(None);
    };
    let mut attach = with_random(|random| AttachResponder::new(&session, random))?;
    attach.read(&hello)?;
    if let Some(answer) = attach.write() {
        stream.write_all(&answer).map_err(Error::network("joining"))?;
    }
    Ok(Some((finish((stream, watch), attach.finish()?)?, of)))
}

/// Reads a message of `N` bytes, and not a byte more: what follows are records.
fn read<const N: usize>(
    stream: &mut TcpStream,
    deadline: Deadline,
    mut take: impl FnMut(&[u8]) -> Result<usize, sealway_session::Error>,
) -> Result<(), Error> {
    let mut message = [0; N];
    fill(stream, deadline, &mut message, "joining")?;
    take(&message)?;
    Ok(())
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
            Ok(0) => {
                return Err(Error::Network {
                    doing: doing.into(),
                    source: ErrorKind::UnexpectedEof.into(),
                });
            }
            Ok(read) => have += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::network(doing)(source)),
        }
    }
    Ok(())
}

fn finish((stream, watch): (TcpStream, Watch), attached: Attached) -> Result<Connection, Error> {
    stream.set_read_timeout(None).map_err(Error::network("joining"))?;
    stream.set_write_timeout(None).map_err(Error::network("joining"))?;
    Connection::new(attached.index, (stream, watch), attached.send, attached.recv, &[])
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use std::time::Duration;

    use super::*;

    #[test]
    fn bytes_one_by_one_do_not_move_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut here = listener.accept().unwrap().0;
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
