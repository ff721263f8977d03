//! What both ends of a transfer do in the same way.

use std::sync::Mutex;

use crate::cancel::Cancel;
use crate::link::{Connection, Connections, Writer};
use crate::wire::control::{Body, Stop};
use crate::wire::talk::say;
use crate::{Error, lock};

/// The end of a transfer that fails: the first error is the reason, those that follow when everything is shut down are not.
pub(crate) struct Failure<'a> {
    control: &'a Mutex<Writer>,
    cancel: &'a Cancel,
    first: Mutex<Option<Error>>,
}

impl<'a> Failure<'a> {
    pub(crate) fn new(control: &'a Mutex<Writer>, cancel: &'a Cancel) -> Self {
        Self {
            control,
            cancel,
            first: Mutex::new(None),
        }
    }

    /// Ends the transfer. The other end is told why, unless that is what it said itself.
    pub(crate) fn end(&self, error: Error) {
        let mut first = lock(&self.first);
        if first.is_none() {
            let (reason, remote) = (error.for_peer(), matches!(error, Error::Remote(_)));
            *first = Some(if self.cancel.is_set() { Error::Cancelled } else { error });
            drop(first);
            if let (Ok(mut control), false) = (self.control.try_lock(), remote) {
                let _ = say(&mut control, Body::Stop(Stop { reason }));
            }
        }
        self.cancel.cancel();
    }

    /// The reason, if it has failed.
    pub(crate) fn reason(&self) -> Option<Error> {
        lock(&self.first).take()
    }
}

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
