//! The real clock, canary and counters behind the runner's view of the world.

use std::path::Path;
use std::time::Instant;

use super::Probe;
use crate::measure::{Canary, NoiseReader, NoiseSample};
use crate::result::CanarySample;

/// Watches this machine. Use it from the thread that measures: the canary and some counters are that thread's.
#[derive(Clone, Debug)]
pub struct SystemProbe {
    /// The system's monotonic clock: never stepped, and it stands still while the machine sleeps.
    start: Instant,
    canary: Canary,
    noise: NoiseReader,
}

impl SystemProbe {
    /// Calibrates the canary (some 30 ms) and starts the clock of the run.
    pub fn start() -> Self {
        let canary = Canary::calibrate();
        Self {
            canary,
            noise: NoiseReader::new(Path::new("/")),
            start: Instant::now(),
        }
    }
}

impl Probe for SystemProbe {
    fn now(&mut self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn canary(&mut self) -> CanarySample {
        self.canary.run()
    }

    fn noise(&mut self) -> NoiseSample {
        self.noise.read()
    }
}
