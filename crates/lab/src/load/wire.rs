//! Moving an exchange on over a socket that does not block: the same for both ends.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use super::script::{LONGEST, Mismatch, Script, Talk, Turn};

/// Bytes read at once.
const INPUT: usize = 64 << 10;

/// Room for what comes and for what has to come. One for each thread.
#[derive(Debug)]
pub(crate) struct Buffers {
    input: Box<[u8]>,
    message: Box<[u8]>,
}

impl Buffers {
    pub(crate) fn new() -> Buffers {
        Buffers {
            input: vec![0; INPUT].into_boxed_slice(),
            message: vec![0; LONGEST].into_boxed_slice(),
        }
    }
}

/// How far it went.
#[derive(Debug)]
pub(crate) enum Pumped {
    /// It waits for the socket.
    Waits,
    /// The exchange is over.
    Done,
    /// The other end has closed before that.
    Closed,
    /// The connection broke.
    Broken(io::Error),
    /// What came was wrong.
    Wrong(Mismatch),
}

/// Sends and receives until the socket has to be waited for. `readable` says that something may be there to be read, and
/// `closing` that the end may be, right behind it.
pub(crate) fn pump(
    mut stream: &TcpStream,
    script: &Script,
    talk: &mut Talk,
    buffers: &mut Buffers,
    mut readable: bool,
    closing: bool,
) -> Pumped {
    loop {
        let moved = match talk.turn(script) {
            Turn::Done => return Pumped::Done,
            Turn::Send => stream
                .write(talk.outgoing(script, &mut buffers.message))
                .map(|sent| talk.advance(script, sent)),
            Turn::Receive if !readable => return Pumped::Waits,
            Turn::Receive => match stream.read(&mut buffers.input) {
                Ok(0) => return Pumped::Closed,
                Ok(came) => {
                    if let Err(wrong) = talk.received(script, &buffers.input[..came], &mut buffers.message) {
                        return Pumped::Wrong(wrong);
                    }
                    // Less than there was room for: nothing more is there, but perhaps the end.
                    readable = closing || came == INPUT;
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        match moved {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Pumped::Waits,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Pumped::Broken(error),
        }
    }
}

/// Looks for the end of a connection on which nothing more may come.
pub(crate) fn ended(mut stream: &TcpStream, buffers: &mut Buffers) -> Pumped {
    loop {
        match stream.read(&mut buffers.input) {
            Ok(0) => return Pumped::Closed,
            Ok(bytes) => return Pumped::Wrong(Mismatch::Surplus { bytes }),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Pumped::Waits,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Pumped::Broken(error),
        }
    }
}
