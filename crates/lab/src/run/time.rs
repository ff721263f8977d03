//! Text form of points in time.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::{DateTime, date};

/// `time` as RFC 3339 in UTC with whole seconds, such as `2026-07-01T12:34:56Z`.
///
/// Times outside of the years 0 to 9999, which the format cannot say, become its first or last second.
pub fn rfc3339(time: SystemTime) -> String {
    const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);
    const FIRST: DateTime = date(0, 1, 1).at(0, 0, 0, 0);
    let moment = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => EPOCH.saturating_add(after),
        Err(before) => EPOCH.saturating_sub(before.duration()),
    };
    moment.max(FIRST).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> String {
        rfc3339(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn known_instants() {
        // Checked with `date -u -d @N`.
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(at(253_402_300_799), "9999-12-31T23:59:59Z");
        assert_eq!(at(253_402_300_800), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn before_the_epoch() {
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1969-12-31T23:59:59Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_millis(1)), "1969-12-31T23:59:59Z");
        assert_eq!(
            rfc3339(UNIX_EPOCH - Duration::from_secs(86_400 * 365)),
            "1969-01-01T00:00:00Z"
        );
        assert_eq!(
            rfc3339(UNIX_EPOCH - Duration::from_secs(62_167_219_200)),
            "0000-01-01T00:00:00Z"
        );
    }
}
