//! Logs: lines that go out by a thread of their own, and limits on how many of a kind there are.
//!
//! Whoever has something to say puts a line into a queue and goes on. If what stands at the other end of a log does not
//! take it, a pipe that nobody reads or a disk that hangs, lines are dropped and counted, and the log says how many when
//! it is taken again. Nothing that carries bytes or hears signals ever waits for a log.

mod connection;
mod limit;
mod rotate;
mod sink;

pub use connection::connection;
pub(crate) use connection::{about_new, about_this};
pub(crate) use limit::Limits;
pub use limit::{Kept, Limit};
pub use rotate::Rotation;
pub use sink::{Lost, Sink, flush, reopen};

/// The time of a line, in the form that log watchers parse: `2026/01/02 03:04:05.123456`.
pub fn stamp() -> String {
    jiff::Zoned::now().strftime("%Y/%m/%d %H:%M:%S%.6f").to_string()
}

/// The line that says in a log how many of its lines were dropped.
pub fn dropped(lines: u64) -> String {
    let plural = if lines == 1 { " was" } else { "s were" };
    format!(
        "{} [Warning] {lines} line{plural} dropped here, because nobody took them in time",
        stamp()
    )
}
