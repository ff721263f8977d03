//! Ctrl-C: once asks the run to end with what is known, twice leaves at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sealway_lab::exit::Exit;

use crate::problem::{Problem, note};

/// Set by the first Ctrl-C.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Installs the handler; once a process.
    pub(crate) fn install() -> Result<Stop, Problem> {
        let stop = Stop::default();
        let flag = stop.clone();
        let handler = move || {
            if flag.0.swap(true, Ordering::Relaxed) {
                // Nothing is unwound on this way out, and what the lab has started hears no Ctrl-C of its own.
                sealway_lab::peer::end_all();
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
            note("\nstopping after this window; Ctrl-C again leaves at once");
        };
        ctrlc::set_handler(handler)
            .map_err(|e| Problem::new(Exit::Internal, format!("cannot listen for Ctrl-C: {e}")))?;
        Ok(stop)
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
