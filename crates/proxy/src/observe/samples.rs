//! The latest measurements of an outbound.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::balance::Reading;

/// The latest measurements, each with its time. What is too old does not count.
pub(super) struct Samples {
    kept: VecDeque<(Instant, Option<Duration>)>,
    most: usize,
    valid: Duration,
}

impl Samples {
    pub(super) fn new(most: u16, valid: Duration) -> Self {
        Samples {
            kept: VecDeque::new(),
            most: usize::from(most.max(1)),
            valid,
        }
    }

    /// Adds a measurement; without a time it failed.
    pub(super) fn push(&mut self, now: Instant, took: Option<Duration>) {
        if self.kept.len() == self.most {
            self.kept.pop_front();
        }
        self.kept.push_back((now, took));
    }

    /// What they show together.
    pub(super) fn reading(&self, now: Instant) -> Reading {
        let counting = self.kept.iter().filter(|(at, _)| now - *at <= self.valid);
        let times: Vec<Option<Duration>> = counting.map(|(_, took)| *took).collect();
        let took: Vec<f64> = times.iter().flatten().map(Duration::as_secs_f64).collect();
        let count = took.len() as f64;
        let average = took.iter().sum::<f64>() / count.max(1.0);
        let deviation = match took.len() {
            // Nothing says how far one measurement is off. It must not look as if it were exact.
            1 => average / 2.0,
            _ => (took.iter().map(|time| (time - average).powi(2)).sum::<f64>() / count.max(1.0)).sqrt(),
        };
        let all = u32::try_from(times.len()).unwrap_or(u32::MAX);
        Reading {
            alive: !took.is_empty(),
            delay: Duration::from_secs_f64(average),
            deviation: Duration::from_secs_f64(deviation),
            all,
            failed: all - u32::try_from(took.len()).unwrap_or(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_count_together() {
        let (now, ms) = (Instant::now(), Duration::from_millis);
        let mut samples = Samples::new(3, ms(1000));
        assert_eq!(samples.reading(now), Reading::default());
        samples.push(now, Some(ms(100)));
        let one = samples.reading(now);
        assert_eq!((one.alive, one.delay, one.deviation), (true, ms(100), ms(50)));
        samples.push(now + ms(500), Some(ms(300)));
        let two = samples.reading(now + ms(500));
        assert_eq!(
            (two.delay, two.deviation, two.all, two.failed),
            (ms(200), ms(100), 2, 0)
        );
        samples.push(now + ms(600), None);
        samples.push(now + ms(700), None);
        // The first has gone, for only three are kept.
        let three = samples.reading(now + ms(700));
        assert_eq!((three.delay, three.all, three.failed), (ms(300), 3, 2));
        // The second is too old.
        let late = samples.reading(now + ms(1550));
        assert_eq!((late.alive, late.all, late.failed), (false, 2, 2));
    }
}
