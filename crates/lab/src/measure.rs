//! Clocks, CPU meters, the canary and the noise of the machine: what a window is measured with, and what spoils it.
//!
//! Nothing here changes a setting of the machine. Every source may be missing (another operating system, a container,
//! no privilege): a missing source gives an absent value, never a zero. Parsers are pure functions over text and
//! accept anything; files are read below a root folder so that tests can use a made-up machine.

pub mod canary;
pub mod cgroup;
pub mod clock;
pub mod cpu;
pub mod cycles;
pub mod energy;
pub mod noise;
pub mod parse;
pub(crate) mod place;
pub mod warning;

use std::path::Path;
use std::str::FromStr;

pub use canary::Canary;
pub use clock::ClockFacts;
pub use cpu::Method;
pub use noise::{Noise, NoiseReader, NoiseSample};
pub use warning::WarningCode;

/// The number that a file of the kernel has for its text.
fn number<T: FromStr>(path: &Path) -> Option<T> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}
