//! Periods of a month that begin on a day of it, in UTC.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A month from one reset to the next, Unix time in seconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Period {
    /// Its first second.
    pub since: i64,
    /// The first second of the next one.
    pub until: i64,
}

impl Period {
    /// The period in which `now` lies, Unix time in seconds, where periods begin at midnight UTC of day `reset` of each month. In
    /// a month that has no such day it is the last one. 0 is taken for 1.
    pub fn of(now: i64, reset: u8) -> Period {
        let reset = i8::try_from(reset.clamp(1, 31)).unwrap_or(31);
        let today = Timestamp::from_second(now).map_or(Date::ZERO, |now| TimeZone::UTC.to_datetime(now).date());
        let begin = |month: Date| {
            month
                .with()
                .day(reset.min(month.days_in_month()))
                .build()
                .unwrap_or(month)
        };
        let month = today.first_of_month();
        let this = begin(month);
        let since = match today >= this {
            true => this,
            false => begin(month.yesterday().unwrap_or(month).first_of_month()),
        };
        let until = match today >= this {
            true => begin(month.last_of_month().tomorrow().unwrap_or(month)),
            false => this,
        };
        Period {
            since: seconds(since),
            until: seconds(until),
        }
    }
}

fn seconds(day: Date) -> i64 {
    TimeZone::UTC
        .to_timestamp(day.at(0, 0, 0, 0))
        .map_or(0, Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_second()
    }

    #[track_caller]
    fn check(now: &str, reset: u8, since: &str, until: &str) {
        let midnight = |day: &str| at(&format!("{day}T00:00:00Z"));
        let wanted = Period {
            since: midnight(since),
            until: midnight(until),
        };
        assert_eq!(Period::of(at(now), reset), wanted, "{now}, reset on {reset}");
    }

    #[test]
    fn periods_begin_on_their_day_and_on_the_last_one_of_short_months() {
        check("2026-11-23T11:00:00Z", 1, "2026-11-01", "2026-12-01");
        check("2026-11-23T11:00:00Z", 23, "2026-11-23", "2026-12-23");
        check("2026-11-23T11:00:00Z", 24, "2026-10-24", "2026-11-24");
        check("2026-11-23T23:59:59Z", 24, "2026-10-24", "2026-11-24");
        check("2026-11-24T00:00:00Z", 24, "2026-11-24", "2026-12-24");
        check("2026-01-01T00:00:00Z", 15, "2025-12-15", "2026-01-15");
        check("2026-12-31T23:59:59Z", 1, "2026-12-01", "2027-01-01");
        check("2026-02-27T12:00:00Z", 31, "2026-01-31", "2026-02-28");
        check("2026-02-28T00:00:00Z", 31, "2026-02-28", "2026-03-31");
        check("2026-03-30T12:00:00Z", 31, "2026-02-28", "2026-03-31");
        check("2026-04-30T12:00:00Z", 31, "2026-04-30", "2026-05-31");
        check("2028-02-28T12:00:00Z", 30, "2028-01-30", "2028-02-29");
        check("2028-02-29T12:00:00Z", 30, "2028-02-29", "2028-03-30");
        check("2026-05-05T12:00:00Z", 0, "2026-05-01", "2026-06-01");
        check("2026-05-31T12:00:00Z", 200, "2026-05-31", "2026-06-30");
    }

    #[test]
    fn periods_follow_each_other_without_a_gap() {
        for reset in 1..=31 {
            let mut period = Period::of(at("2023-12-31T00:00:00Z"), reset);
            for _ in 0..60 {
                assert_eq!(Period::of(period.since, reset), period);
                assert_eq!(Period::of(period.until - 1, reset), period);
                let next = Period::of(period.until, reset);
                assert_eq!(next.since, period.until);
                assert!(
                    (28 * 86_400..=31 * 86_400).contains(&(next.until - next.since)),
                    "{reset}"
                );
                period = next;
            }
        }
    }

    #[test]
    fn the_ends_of_time_are_periods_too() {
        for now in [i64::MIN, i64::MAX, 0, -1] {
            let period = Period::of(now, 31);
            assert!(period.since <= period.until, "{now}: {period:?}");
        }
    }
}
