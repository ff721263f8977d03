//! Text form of points in time.

use std::time::{SystemTime, UNIX_EPOCH};

/// `time` as RFC 3339 in UTC with whole seconds, such as `2026-07-01T12:34:56Z`.
///
/// Times outside of the years 0 to 9999, which the format cannot say, become its first or last second.
pub fn rfc3339(time: SystemTime) -> String {
    const FIRST: i64 = -62_167_219_200; // 0000-01-01T00:00:00Z
    const LAST: i64 = 253_402_300_799; // 9999-12-31T23:59:59Z
    let seconds = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(LAST),
        Err(error) => {
            let before = error.duration();
            // A part of a second before the epoch belongs to the second that began earlier.
            let whole = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            whole
                .saturating_neg()
                .saturating_sub(i64::from(before.subsec_nanos() > 0))
        }
    }
    .clamp(FIRST, LAST);
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(day);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Year, month and day of a number of days since 1970-01-01 in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year and month lengths follow one formula.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097; // days in 400 years
    let shifted = days + 719_468; // since 0000-03-01
    let era = shifted.div_euclid(ERA);
    let in_era = shifted.rem_euclid(ERA);
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / (ERA - 1)) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, day)
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

    #[test]
    fn every_day_follows_the_one_before() {
        let lengths = |year: i64| {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        };
        let (mut year, mut month, mut day) = (1969, 1, 1);
        for days in -365..=150_000 {
            assert_eq!(civil(days), (year, month, day), "day {days}");
            day += 1;
            if day > lengths(year)[usize::try_from(month).unwrap_or(0) - 1] {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
