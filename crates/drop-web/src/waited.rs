//! Work in a thread that ends when nobody waits for it any more.

use std::sync::{Arc, Weak};

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinError;

/// Whether somebody still waits for the work.
pub(crate) struct Waited(Weak<()>);

impl Waited {
    pub(crate) fn on(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Does the work in a thread of its own. Dropped, this waits no more, and the work is to look for that; the permit is given back when
/// the work has ended, and not before.
pub(crate) async fn blocking<T: Send + 'static>(
    permit: OwnedSemaphorePermit,
    work: impl FnOnce(&Waited) -> T + Send + 'static,
) -> Result<(T, OwnedSemaphorePermit), JoinError> {
    let waiting = Arc::new(());
    let waited = Waited(Arc::downgrade(&waiting));
    let working = tokio::task::spawn_blocking(move || (work(&waited), permit));
    let done = working.await;
    drop(waiting);
    done
}
