//! The terminal that progress is drawn on, while something else is to be said there.

use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

use crate::output;

/// What is drawn at the moment. There is one terminal.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Says what is drawn from now on.
pub(super) fn draw(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// Does something that writes to standard error, or asks on the terminal. Nothing is drawn until it is over.
pub(super) fn suspend<T>(what: impl FnOnce() -> T) -> T {
    // Not held meanwhile: what is drawn may end while somebody thinks.
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bar {
        Some(bar) => bar.suspend(what),
        None => what(),
    }
}

/// Columns of the terminal that people read.
pub(super) fn columns() -> usize {
    output::size(&std::io::stderr()).0
}
