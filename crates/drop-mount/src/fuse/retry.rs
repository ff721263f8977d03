//! What is tried again and again until it is done, by one thread that is there while something waits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sealway_drop::lock;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// One try; whether it was the last.
pub(super) type Try = Box<dyn FnMut() -> bool + Send>;

/// Everything that waits.
#[derive(Default)]
pub(super) struct Retry(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    tries: Vec<Try>,
    /// Whether a thread looks after them.
    running: bool,
}

impl Retry {
    /// Tries from now on. Gives it back if there is no thread for it.
    pub(super) fn add(self: &Arc<Self>, again: Try) -> Result<(), Try> {
        let mut queue = lock(&self.0);
        if !queue.running {
            let waiting = Arc::clone(self);
            let thread = std::thread::Builder::new().name("mount-locks".into());
            if thread.spawn(move || waiting.run()).is_err() {
                return Err(again);
            }
            queue.running = true;
        }
        queue.tries.push(again);
        Ok(())
    }

    fn run(&self) {
        loop {
            std::thread::sleep(PAUSE);
            let mut tries = {
                let mut queue = lock(&self.0);
                if queue.tries.is_empty() {
                    queue.running = false;
                    return;
                }
                std::mem::take(&mut queue.tries)
            };
            tries.retain_mut(|again| !again());
            lock(&self.0).tries.append(&mut tries);
        }
    }
}
