//! A connection that is not sealed, for measuring the service by itself on one machine.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use sealway_drop::Error;
use sealway_drop::policy::Route;

/// How long the other end may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an end that dials waits between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// The connection to the other end at `address`; [`policy::unsealed`](sealway_drop::policy::unsealed) says which addresses may be taken.
///
/// # Errors
/// [`Error::Network`].
pub fn connect(address: &str, route: Route) -> Result<TcpStream, Error> {
    if route == Route::Wait {
        let came = TcpListener::bind(address).and_then(|listener| listener.accept());
        return Ok(came.map_err(Error::network(format!("waiting at {address}")))?.0);
    }
    let until = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect(address) {
            Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
            reached => return reached.map_err(Error::network(format!("connecting to {address}"))),
        }
    }
}
