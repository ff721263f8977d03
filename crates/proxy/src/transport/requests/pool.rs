//! The connections that a client keeps.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use sealway_v2ray::Address;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::Error;
use crate::roads::Caller;
use crate::stats::Traffic;
use crate::transport::http2::{Body, Client, Options, Pings, Trailers};
use crate::transport::{Dial, Line, Remote};

/// Connections to one server. More streams than fit into them wait until others end.
const MAX_CONNECTIONS: usize = 16;

/// Servers that are known. An outbound has one; only settings whose outbound has no server of its own would ask for more.
const MAX_SERVERS: usize = 64;

/// Connections that are tried for one stream.
const ATTEMPTS: usize = 3;

/// Time for a new connection, with its handshakes.
const CONNECT: Duration = Duration::from_secs(20);

/// After a failure nothing is dialled for this long, then for longer and longer.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(19);

/// What is known of one server.
struct Server {
    name: (Address, u16),
    connections: Vec<Arc<Client>>,
    pause: Duration,
    /// Nothing is dialled before this.
    not_before: Option<Instant>,
}

/// The server of this name, which is known from here on in place of the one that was asked for longest ago.
fn known<'a>(servers: &'a mut Vec<Server>, name: &(Address, u16)) -> &'a mut Server {
    let server = match servers.iter().position(|server| server.name == *name) {
        Some(at) => servers.remove(at),
        None => Server {
            name: name.clone(),
            connections: Vec::new(),
            pause: FIRST_PAUSE,
            not_before: None,
        },
    };
    if servers.len() == MAX_SERVERS {
        servers.remove(0);
    }
    servers.push_mut(server)
}

/// The connections of one outbound.
pub(in crate::transport) struct Pool {
    options: Options,
    pings: Pings,
    servers: Mutex<Vec<Server>>,
}

impl Pool {
    pub(in crate::transport) fn new(options: Options, pings: Pings) -> Self {
        Pool {
            options,
            pings,
            servers: Mutex::default(),
        }
    }

    /// Makes a request on one of the connections to a server. `head` is shown the head of the answer before the first bytes are
    /// read, `check` what stands behind the last ones.
    ///
    /// # Errors
    /// Those of dialling, and [`Error::Io`] if no connection takes the request.
    pub(in crate::transport) async fn request(
        &self,
        dial: Dial<'_>,
        request: Request<()>,
        head: fn(&Response<()>) -> io::Result<()>,
        check: Option<Trailers>,
    ) -> Result<Body, Error> {
        let mut left = ATTEMPTS;
        loop {
            let connection = self.take(dial.line, dial.remote, dial.traffic.clone()).await?;
            let asked = connection.request(request.clone(), Box::new(head), check);
            left -= 1;
            match asked.await {
                Ok(body) => return Ok(body),
                Err(error) if left == 0 => return Err(error),
                // The connection has ended meanwhile, or the server wants it to: another one takes its place.
                Err(_) => {}
            }
        }
    }

    /// A connection that takes one more stream: one that is there, or a new one.
    ///
    /// # Errors
    /// Those of dialling. For a while after such an error nothing is dialled, and the answer is one at once.
    async fn take(&self, line: &Line, remote: &Remote, traffic: Traffic) -> Result<Arc<Client>, Error> {
        let name = &remote.name;
        let mut servers = self.servers.lock().await;
        let server = known(&mut servers, name);
        server.connections.retain(|connection| !connection.is_over());
        if let Some(connection) = server.connections.iter().find(|connection| connection.has_room()) {
            return Ok(Arc::clone(connection));
        }
        let least = server.connections.iter().min_by_key(|connection| connection.streams());
        let paused = server.not_before.is_some_and(|moment| Instant::now() < moment);
        match least {
            Some(least) if paused || server.connections.len() >= MAX_CONNECTIONS => return Ok(Arc::clone(least)),
            None if paused => {
                return Err(Error::Connect {
                    to: format!("{}:{}", name.0, name.1),
                    source: io::Error::new(io::ErrorKind::ConnectionRefused, "it failed a moment ago"),
                });
            }
            _ => {}
        }
        let dialling = async {
            let stream = line.dial(remote, traffic, &Caller::default()).await?;
            Client::open(stream, self.options, self.pings).await
        };
        let dialled = timeout(CONNECT, dialling).await;
        match dialled.unwrap_or(Err(Error::TimedOut("connecting to the HTTP/2 server"))) {
            Ok(connection) => {
                let connection = Arc::new(connection);
                (server.pause, server.not_before) = (FIRST_PAUSE, None);
                server.connections.push(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                server.not_before = Some(Instant::now() + server.pause);
                server.pause = server.pause.mul_f32(1.5).min(LONGEST_PAUSE);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_up_to_a_number_and_those_asked_for_last_stay() {
        let name = |number: u16| (Address::from(std::net::IpAddr::from([192, 0, 2, 1])), number);
        let mut servers = Vec::new();
        for number in 0..200 {
            known(&mut servers, &name(number));
            known(&mut servers, &name(0)).pause = LONGEST_PAUSE;
        }
        assert_eq!(servers.len(), MAX_SERVERS);
        assert_eq!(known(&mut servers, &name(0)).pause, LONGEST_PAUSE);
        assert!(servers.iter().any(|server| server.name == name(199)));
        assert!(servers.iter().all(|server| server.name != name(1)));
    }
}
