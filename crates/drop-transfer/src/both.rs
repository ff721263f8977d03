//! What both ends of a transfer do in the same way.

use std::sync::Mutex;
use std::sync::mpsc::Receiver;

use crate::link::{Connection, Connections};
use crate::wire::control::Body;
use crate::{Error, lock};

/// What the other end says next.
///
/// # Errors
/// [`Error::Cancelled`] when it is over, which was noted elsewhere.
pub(crate) fn next(heard: &Receiver<Body>) -> Result<Body, Error> {
    heard.recv().map_err(|_| Error::Cancelled)
}

/// Messages of the other end that were heard and are not looked at; it waits for room for more.
pub(crate) const AHEAD: usize = 16;

/// Gives each connection that comes up a thread, and waits for all of them. `work` says how often the keys were replaced; the
/// sum of the keys is returned.
pub(crate) fn deal(
    connections: &Connections,
    work: &(dyn Fn(&mut Connection) -> (Result<(), Error>, u64) + Sync),
    over: &(dyn Fn(Error) + Sync),
) -> u64 {
    let keys = Mutex::new(0);
    std::thread::scope(|workers| {
        while let Some(connection) = connections.next() {
            let keys = &keys;
            workers.spawn(move || {
                let result = connection.and_then(|mut connection| {
                    let (result, replaced) = work(&mut connection);
                    *lock(keys) += replaced + 1;
                    result
                });
                if let Err(error) = result {
                    over(error);
                }
            });
        }
    });
    keys.into_inner().unwrap_or_default()
}
