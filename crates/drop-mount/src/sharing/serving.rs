//! Threads that serve the shared folder beside its service: what its files hold, and changes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::bulk;
use crate::changes::Serving;
use crate::grpc::Handles;
use crate::line::spawn;
use crate::tree::RemoteTree;
use sealway_drop::Error;
use sealway_drop::link::Connection;

/// How long the change at hand may take once its session has ended. A disk that does not answer holds up nobody for longer.
const LAST_CHANGE: Duration = Duration::from_secs(30);

/// The thread that changes the folder for the other end. It is waited for when this is dropped, for [`LAST_CHANGE`] at most: nothing
/// is changed after a session has ended. Its connection must have been shut down before.
pub(super) struct Changing {
    /// Of what may come by direct connections too.
    over: Box<dyn Fn() + Send>,
    /// Nothing is ever sent: it ends with the thread.
    ended: Receiver<()>,
}

impl Changing {
    fn start(over: impl Fn() + Send + 'static, work: impl FnOnce() + Send + 'static) -> Result<Self, Error> {
        let (working, ended) = channel();
        let working = move || {
            work();
            drop(working);
        };
        spawn("change-serve", working)?;
        Ok(Self {
            over: Box::new(over),
            ended,
        })
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        (self.over)();
        if let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(LAST_CHANGE) {
            tracing::warn!("the last change of the other end is still being made, though its session has ended");
        }
    }
}

pub(super) fn serve_changes(connection: Connection, serving: Arc<Serving>) -> Result<Changing, Error> {
    let of = serving.clone();
    Changing::start(
        move || of.end(),
        move || {
            if let Err(error) = serving.serve(connection) {
                tracing::debug!(%error, "serving changes ended");
            }
        },
    )
}

pub(super) fn serve_content(
    connection: Connection,
    tree: Arc<dyn RemoteTree>,
    handles: Arc<Handles>,
) -> Result<(), Error> {
    let serving = move || {
        if let Err(error) = bulk::serve(connection, &*tree, &handles) {
            tracing::debug!(%error, "serving content ended");
        }
    };
    spawn("bulk-serve", serving)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_change_at_hand_is_done_when_its_session_has_ended() {
        let (started, has_started) = channel();
        let done = Arc::new(AtomicBool::new(false));
        let doing = done.clone();
        let work = move || {
            started.send(()).unwrap_or(());
            std::thread::sleep(Duration::from_millis(300));
            doing.store(true, Ordering::SeqCst);
        };
        let changing = Changing::start(|| (), work);
        has_started.recv().unwrap();
        drop(changing.unwrap());
        assert!(done.load(Ordering::SeqCst));
    }
}
