//! What servers have to do with the system: signals that end them, and descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A connection needs descriptors, and the usual soft limit of 1024 is for programs that use `select`.
pub(crate) fn take_every_descriptor() {
    let now = getrlimit(Resource::Nofile);
    // What is refused stays as it is; a server short of descriptors waits and says so.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: now.maximum,
            ..now
        },
    );
}

/// The signals that end a server.
pub(crate) struct Stops {
    interrupt: Signal,
    terminate: Signal,
}

impl Stops {
    pub(crate) fn new() -> std::io::Result<Stops> {
        Ok(Stops {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
