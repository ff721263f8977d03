//! One thread for each data connection.

use std::sync::Mutex;

use sealway_drop::link::{Connection, Connections};
use sealway_drop::{Error, lock};

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
            workers.spawn(move || match connection {
                Ok(mut connection) => {
                    let (result, replaced) = work(&mut connection);
                    *lock(keys) += replaced + 1;
                    // While the connection stands: the other end would take its end for the reason, and say so first.
                    if let Err(error) = result {
                        over(error);
                    }
                }
                Err(error) => over(error),
            });
        }
    });
    keys.into_inner().unwrap_or_default()
}
