//! The server at the end of every route: a thread of the lab that answers, and checks what it gets.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::script::{Ending, Script, Talk};
use super::wire::{Buffers, Pumped, ended, pump};
use crate::run::CellError;
use crate::service::{Door, Event, Service};

/// A running server. Dropping it closes all its connections.
#[derive(Debug)]
pub(crate) struct Sink {
    service: Service,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    served: AtomicU64,
    /// The first thing that went wrong since it was last asked for.
    fault: Mutex<Option<CellError>>,
}

impl Shared {
    fn blame(&self, what: CellError) {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert(what);
    }

    fn failed(&self, doing: &str, error: &io::Error) {
        self.blame(CellError::failed(format_args!("the sink cannot {doing}: {error}")));
    }
}

impl Sink {
    /// Serves `script` on a port of the system's choice on loopback.
    pub(crate) fn start(script: &'static Script) -> io::Result<Sink> {
        Sink::start_with(script, Duration::ZERO)
    }

    /// The same with `work` that keeps the thread busy after each exchange.
    pub(crate) fn start_with(script: &'static Script, work: Duration) -> io::Result<Sink> {
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let service = Service::start("sink", Door::open(None)?, move |door| {
            let server = Server {
                script,
                work,
                door,
                connections: Vec::new(),
                free: Vec::new(),
                buffers: Buffers::new(),
                shared: seen,
            };
            server.run();
        })?;
        Ok(Sink { service, shared })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.service.address()
    }

    /// Exchanges served to their end.
    pub(crate) fn served(&self) -> u64 {
        self.shared.served.load(Ordering::Relaxed)
    }

    /// Fails with the first thing that went wrong here since this was last asked.
    ///
    /// # Errors
    /// [`CellError::Wrong`] where other bytes came than were sent, [`CellError::Failed`] where the sink itself could not go on.
    pub(crate) fn check(&self) -> Result<(), CellError> {
        let mut fault = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.take().map_or(Ok(()), Err)
    }
}

/// Keeps this thread busy.
fn spin(work: Duration) {
    if work.is_zero() {
        return;
    }
    let until = Instant::now() + work;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// What the thread has.
struct Server {
    script: &'static Script,
    work: Duration,
    door: Door,
    /// Each with the number of those that had its place before, so that an event for one of them is not taken for its own.
    connections: Vec<(u32, Option<Connection>)>,
    free: Vec<u32>,
    buffers: Buffers,
    shared: Arc<Shared>,
}

struct Connection {
    stream: TcpStream,
    talk: Talk,
    /// Nothing may follow but the end.
    over: bool,
}

impl Server {
    fn run(mut self) {
        while self.door.is_open() {
            let count = match self.door.wait(Duration::MAX) {
                Ok(count) => count,
                Err(error) => return self.shared.failed("wait", &error),
            };
            for index in 0..count {
                match self.door.event(index) {
                    Some(Event::Arrival) => self.accept(),
                    Some(Event::Socket(ready)) => {
                        self.serve(ready.token as u32, (ready.token >> 32) as u32, ready.closing);
                    }
                    Some(Event::Woken) | None => {}
                }
            }
        }
    }

    fn accept(&mut self) {
        loop {
            let stream = match self.door.accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(error) => return self.shared.failed("accept", &error),
            };
            let place = self.free.pop().unwrap_or_else(|| {
                self.connections.push((0, None));
                (self.connections.len() - 1) as u32
            });
            let entry = &mut self.connections[place as usize];
            entry.0 = entry.0.wrapping_add(1) & 0x7fff_ffff;
            let token = u64::from(entry.0) << 32 | u64::from(place);
            let added = stream.set_nodelay(true).and_then(|()| self.door.watch(&stream, token));
            if added.is_err() {
                // Broken before it began: its client will notice.
                self.free.push(place);
                continue;
            }
            entry.1 = Some(Connection {
                stream,
                talk: Talk::server(),
                over: false,
            });
        }
    }

    fn serve(&mut self, place: u32, generation: u32, closing: bool) {
        let Some((now, Some(connection))) = self.connections.get_mut(place as usize) else {
            return;
        };
        if *now != generation {
            return;
        }
        let Connection { stream, talk, over } = connection;
        let mut pumped = if *over {
            ended(stream, &mut self.buffers)
        } else {
            pump(stream, self.script, talk, &mut self.buffers, true, closing)
        };
        if matches!(pumped, Pumped::Done) {
            self.shared.served.fetch_add(1, Ordering::Relaxed);
            spin(self.work);
            *talk = Talk::server();
            *over = self.script.ending == Ending::ClientCloses;
            pumped = match self.script.ending {
                Ending::ServerCloses => Pumped::Closed,
                // The event was for the end too, and nobody tells of it again.
                Ending::Stays | Ending::ClientCloses if closing => ended(stream, &mut self.buffers),
                Ending::Stays | Ending::ClientCloses => Pumped::Waits,
            };
        }
        match pumped {
            Pumped::Waits | Pumped::Done => return,
            Pumped::Wrong(mismatch) => self
                .shared
                .blame(CellError::wrong(format_args!("to the sink: {mismatch}"))),
            // A client may go at any time: what it had of it counts on its side.
            Pumped::Closed | Pumped::Broken(_) => {}
        }
        self.connections[place as usize].1 = None;
        self.free.push(place);
    }
}
