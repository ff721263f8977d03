//! The time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the Unix time, seconds. What speaks a protocol with times in it is given one.
pub(crate) type Clock = fn() -> i64;

/// Unix time, seconds.
pub(crate) fn unix_time() -> i64 {
    seconds(SystemTime::now())
}

/// Unix time, milliseconds.
pub(crate) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The Unix time, in seconds, that the clock as it is set now would have shown so long ago.
pub(crate) fn unix_time_before(ago: Duration) -> i64 {
    seconds(SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH))
}

/// How long it is to the next second of the clock.
pub(crate) fn to_next_second() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(1).saturating_sub(Duration::from_nanos(now.subsec_nanos().into()))
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
