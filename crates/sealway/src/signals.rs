//! What servers have to do with the system: signals, and descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sealway_proxy::log;
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

/// The signals that end a server. Others that would, and are meant to do something else, are heard while it waits for these:
/// SIGUSR1 has logs opened again after a rotation, and SIGHUP does nothing yet.
pub(crate) struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    user: Signal,
}

impl Stops {
    pub(crate) fn new() -> std::io::Result<Stops> {
        Ok(Stops {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => {
                    tracing::warn!("SIGHUP: not supported yet: loading the configuration again; restart to take up changes");
                }
                _ = self.user.recv() => {
                    log::reopen();
                    tracing::info!("SIGUSR1: the logs were opened again");
                }
            }
        }
    }
}
