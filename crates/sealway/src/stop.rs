//! Ctrl-C and SIGTERM: the first asks a command to end in good order, the second leaves at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;
use crate::problem::{Problem, note};

/// Calls `first` at the first signal. At the second the program ends, after `leave`: nothing is unwound on that way out. Once a
/// process.
pub(crate) fn on_signal(mut first: impl FnMut() + Send + 'static, leave: fn()) -> Result<(), Problem> {
    let mut second = false;
    let handler = move || {
        if std::mem::replace(&mut second, true) {
            leave();
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
        first();
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Problem::new(Exit::Internal, format!("cannot listen for Ctrl-C: {error}")))
}

/// Set by the first Ctrl-C of a measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Installs the handler; once a process. `clear` makes room for what is said at the first signal; false if it could not, as
    /// when a terminal takes nothing more: nothing is said then, so that the second signal is heard.
    pub(crate) fn install(clear: impl Fn() -> bool + Send + 'static) -> Result<Stop, Problem> {
        let stop = Stop::default();
        let flag = stop.clone();
        let first = move || {
            flag.0.store(true, Ordering::Relaxed);
            sealway_lab::peer::hurry();
            if clear() {
                note("\nstopping after this window; Ctrl-C again leaves at once");
            }
        };
        // What the lab has started hears no Ctrl-C of its own.
        on_signal(first, sealway_lab::peer::end_all)?;
        Ok(stop)
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
