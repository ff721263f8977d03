//! What servers have to do with the system: a runtime, signals, and descriptors.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sealway_proxy::Server;
use sealway_proxy::log::reopen;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::exit::Exit;
use crate::log;
use crate::problem::Problem;

/// How long connections may go on after the first signal.
const GRACE: Duration = Duration::from_secs(10);

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

/// Threads that carry connections, one for each processor.
pub(crate) fn runtime() -> Result<Runtime, Problem> {
    of(&mut Builder::new_multi_thread())
}

/// So many threads that carry connections.
pub(crate) fn runtime_of(threads: usize) -> Result<Runtime, Problem> {
    of(Builder::new_multi_thread().worker_threads(threads))
}

fn of(builder: &mut Builder) -> Result<Runtime, Problem> {
    builder
        // Tasks that move a lot take long: what has become ready meanwhile is asked for after a few of them, not after 61.
        .event_interval(7)
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Exit::Internal, format!("cannot start: {error}")))
}

/// From now on SIGHUP does not end the process. What it asks for comes with [`Stops`]. Must be called within a runtime.
///
/// # Errors
/// The system does not let it.
pub(crate) fn stay_on_hangup() -> Result<(), Problem> {
    listen(SignalKind::hangup()).map(drop)
}

fn listen(kind: SignalKind) -> Result<Signal, Problem> {
    signal(kind).map_err(|error| Problem::new(Exit::Internal, format!("cannot wait for signals: {error}")))
}

/// The signals that end a server. Others that would, and are meant to do something else, are heard while it waits for these:
/// SIGUSR1 has logs opened again after a rotation, and SIGHUP does what the server says.
pub(crate) struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    user: Signal,
}

impl Stops {
    /// Listens from now on.
    pub(crate) fn new() -> Result<Stops, Problem> {
        Ok(Stops {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            user: listen(SignalKind::user_defined1())?,
        })
    }

    /// Waits for a signal, then shuts down: connections may finish until the time or another signal ends them.
    /// `hangup` is called for every SIGHUP, and must not take long.
    pub(crate) async fn until_told<F: Future>(mut self, hangup: impl Fn(), shutdown: impl FnOnce(Duration) -> F) {
        self.next(&hangup).await;
        self.end(GRACE, hangup, shutdown(GRACE)).await;
    }

    /// The same of the proxy, which is not ready any more from the signal on, and accepts for a while all the same.
    pub(crate) async fn drain(
        mut self,
        hangup: impl Fn(),
        server: Server,
        (delay, grace): (Duration, Duration),
        stopping: impl FnOnce(),
    ) {
        self.next(&hangup).await;
        server.leave();
        stopping();
        if !delay.is_zero() {
            log::tell(format_args!(
                "stopping: new connections are accepted for {delay:?} more; a second signal ends everything at once"
            ));
            tokio::select! {
                () = sleep(delay) => {}
                () = self.next(&hangup) => return,
            }
        }
        let remaining = |count| log::tell(format_args!("stopping: {count} connections go on"));
        let ending = async {
            if !server.shutdown_telling(grace, remaining).await && !grace.is_zero() {
                log::tell("stopping: connections that remained were cut off");
            }
        };
        self.end(grace, hangup, ending).await;
    }

    async fn end(&mut self, grace: Duration, hangup: impl Fn(), ending: impl Future) {
        if !grace.is_zero() {
            log::tell(format_args!(
                "stopping: open connections may go on for {grace:?}; a second signal ends them at once"
            ));
        }
        tokio::select! {
            _ = ending => {}
            () = self.next(&hangup) => {}
        }
    }

    async fn next(&mut self, hangup: impl Fn()) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => hangup(),
                _ = self.user.recv() => {
                    reopen();
                    tracing::info!("SIGUSR1: the logs were opened again");
                }
            }
        }
    }
}
