//! Direct connections at the receiving end.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;

use sealway_drop::link::is_direct;
use sealway_drop::wire::control::{Body, Taken};
use sealway_drop::wire::talk::say;
use sealway_drop::{Error, lock};

use super::Receiver;

/// Records after which the sender is told that they are here.
const EVERY: u64 = 32;

/// Connections of which the sender may speak before they are here.
const EARLY: usize = 64;

/// What becomes of a connection.
enum Lane {
    Here(TcpStream),
    /// The sender left it, or it has ended: it was said.
    Over,
}

/// The direct connections of a transfer.
#[derive(Default)]
pub(super) struct Lanes(Mutex<HashMap<u32, Lane>>);

impl Lanes {
    /// The sender left a connection. Whether this end has yet to say so, since it never had it.
    fn leave(&self, connection: u32) -> Result<bool, Error> {
        let mut lanes = lock(&self.0);
        match lanes.get(&connection) {
            Some(Lane::Here(stream)) => {
                // Who reads from it notices, and says what it has.
                let _ = stream.shutdown(Shutdown::Both);
                return Ok(false);
            }
            Some(Lane::Over) => return Ok(false),
            None if !is_direct(connection) || lanes.len() >= EARLY => {
                return Err(Error::Protocol("a connection left that is not there"));
            }
            None => {}
        }
        lanes.insert(connection, Lane::Over);
        Ok(true)
    }

    /// A connection is there. Not so if the sender has left it already.
    pub(super) fn begin(&self, connection: u32, stream: TcpStream) -> bool {
        let mut lanes = lock(&self.0);
        let begins = !matches!(lanes.get(&connection), Some(Lane::Over));
        if begins {
            lanes.insert(connection, Lane::Here(stream));
        }
        begins
    }
}

impl Receiver<'_> {
    /// A direct connection broke.
    pub(super) fn lost_direct(&self) {
        if let Some(direct) = &self.direct {
            direct.lost();
        }
    }

    fn taken(&self, connection: u32, records: u64, over: bool) -> Result<(), Error> {
        let taken = Taken {
            connection,
            records,
            over,
        };
        say(&mut lock(self.control), Body::Taken(taken))
    }

    /// So many records of content have come by a direct connection.
    pub(super) fn took(&self, connection: u32, records: u64) -> Result<(), Error> {
        match records.is_multiple_of(EVERY) {
            true => self.taken(connection, records, false),
            false => Ok(()),
        }
    }

    /// Nothing more is taken from it.
    pub(super) fn took_last(&self, connection: u32, records: u64) -> Result<(), Error> {
        lock(&self.lanes.0).insert(connection, Lane::Over);
        self.taken(connection, records, true)
    }

    /// The sender has left a connection.
    pub(super) fn left(&self, connection: u32) -> Result<(), Error> {
        match self.lanes.leave(connection)? {
            true => self.taken(connection, 0, true),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_that_was_left_before_it_came_does_not_begin() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let lanes = Lanes::default();
        assert!(lanes.leave(17).unwrap(), "it is said at once");
        assert!(!lanes.begin(17, stream()));
        assert!(!lanes.leave(17).unwrap(), "once");
        assert!(lanes.begin(18, stream()));
        assert!(!lanes.leave(18).unwrap(), "said by who reads");
        assert!(lanes.leave(16).is_err(), "not a direct one");
        let refused = (19..).find(|connection| lanes.leave(*connection).is_err());
        assert!(refused.is_some_and(|connection| connection <= 17 + EARLY as u32 + 1));
    }
}
