//! Direct paths of a session whose ends met at a relay: they are looked for as long as it stands, and used by what it has.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

use crate::beside::Beside;
use crate::line::spawn;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::direct::{Addresses, Direct, Notes};
use sealway_drop::link::{Connection, Connections, Reader};
use sealway_drop::wire::control::Body;
use sealway_drop::wire::talk::hear;
use sealway_drop::{Error, lock};

/// What is to go directly, and the connections that do. Those end with this.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) beside: Beside,
    /// How connections come.
    pub(super) connections: Option<Connections>,
    lines: Arc<Mutex<Lines>>,
}

/// Direct connections that stand at a time: one that carries, and one that has fallen silent and is still waited for. With more of them the
/// other end would only take memory and threads.
const STANDING: usize = 2;

#[derive(Default)]
struct Lines {
    over: bool,
    streams: Vec<(u32, TcpStream)>,
}

impl Lines {
    /// Whether there is room for one more, which stands from now on.
    fn add(&mut self, number: u32, stream: TcpStream) -> bool {
        let room = self.streams.len() < STANDING;
        if room {
            self.streams.push((number, stream));
        }
        room
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        let mut lines = lock(&self.lines);
        lines.over = true;
        for (_, stream) in lines.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Paths {
    /// Looks for direct paths, in threads of the scope, until what is returned is told to stop. The addresses of this end are said by `say`;
    /// `told` hears what [`Direct::run`] tells.
    pub(super) fn look<'scope>(
        &mut self,
        direct: Direct,
        cancel: &'scope Cancel,
        scope: &'scope Scope<'scope, '_>,
        say: impl Fn(&Addresses) -> Result<(), Error> + Send + 'scope,
        told: impl Fn(Option<SocketAddr>) + Send + 'scope,
    ) -> Notes {
        let (notes, of) = (direct.notes(), direct.notes());
        let (beside, lines, connections) = (self.beside.clone(), self.lines.clone(), self.connections.take());
        scope.spawn(move || direct.run(cancel, &say, &told));
        scope.spawn(move || {
            let next = || connections.as_ref().and_then(Connections::next);
            while let Some(Ok(connection)) = next() {
                if let Err(error) = begin(connection, &beside, &lines, &of) {
                    tracing::debug!(%error, "a direct connection that is not used");
                    of.lost();
                }
            }
        });
        notes
    }
}

/// From now on content goes by this connection.
fn begin(connection: Connection, beside: &Beside, lines: &Arc<Mutex<Lines>>, notes: &Notes) -> Result<(), Error> {
    // It ends with the session, once all has been said.
    connection.release();
    let (number, stream) = (connection.index, connection.stream()?);
    let mut standing = lock(lines);
    if standing.over {
        return Ok(());
    }
    if !standing.add(number, stream) {
        return Err(Error::Protocol("more direct connections than are of use"));
    }
    drop(standing);
    let (beside, lines, notes) = (beside.clone(), lines.clone(), notes.clone());
    spawn("beside", move || {
        let ended = beside.run(connection);
        lock(&lines).streams.retain(|(of, _)| *of != number);
        notes.lost();
        if let Err(error) = ended
            && !matches!(error, Error::Network { .. })
        {
            tracing::warn!(%error, "content stays with the relay from now on");
            notes.stop();
        }
    })
}

/// Hears what the other end says until it is done.
pub(super) fn listen(reader: &mut Reader, notes: Option<&Notes>) -> Result<(), Error> {
    loop {
        match (hear(reader)?, notes) {
            (None, _) => return Ok(()),
            (Some(Body::Paths(paths)), Some(notes)) => notes.heard((&paths).into()),
            (Some(_), _) => return Err(Error::Protocol("a message out of place")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::TcpListener;

    use super::*;

    #[test]
    fn no_more_connections_stand_than_are_of_use() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut lines = Lines::default();
        assert!(lines.add(17, stream()) && lines.add(18, stream()));
        assert!(!lines.add(19, stream()));
        assert_eq!(lines.streams.len(), STANDING);
        // One is over.
        lines.streams.remove(0);
        assert!(lines.add(20, stream()));
    }
}
