//! Sums that wait to be written.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Error, MOST_WAITING, Row};

/// Rows that are written together, and their number, by which they are known if they come again.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) number: i64,
    pub(crate) rows: Vec<Row>,
}

/// What waits, and what is on its way.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    sums: HashMap<(String, i64), (i64, i64)>,
    sent: Option<Arc<Batch>>,
    last: i64,
}

impl Pending {
    pub(crate) fn add(&mut self, user: String, since: i64, up: u64, down: u64) -> Result<(), Error> {
        if up == 0 && down == 0 {
            return Ok(());
        }
        let key = (user, since);
        if self.sums.len() >= MOST_WAITING && !self.sums.contains_key(&key) {
            return Err(Error::Full);
        }
        let sum = self.sums.entry(key).or_default();
        sum.0 = sum.0.saturating_add_unsigned(up);
        sum.1 = sum.1.saturating_add_unsigned(down);
        Ok(())
    }

    /// What is to be written next: what has been tried before, or else up to `most` of the sums.
    pub(crate) fn batch(&mut self, most: usize) -> Option<Arc<Batch>> {
        if self.sent.is_none() && !self.sums.is_empty() {
            let keys: Vec<_> = self.sums.keys().take(most).cloned().collect();
            let take = |key: (String, i64)| {
                let (up, down) = self.sums.remove(&key)?;
                let (user, since) = key;
                Some(Row { user, since, up, down })
            };
            let mut rows: Vec<Row> = keys.into_iter().filter_map(take).collect();
            // Two that write the same users take their locks in the same order.
            rows.sort_by(|a, b| (&a.user, a.since).cmp(&(&b.user, b.since)));
            self.last += 1;
            self.sent = Some(Arc::new(Batch {
                number: self.last,
                rows,
            }));
        }
        self.sent.clone()
    }

    /// What was on its way has arrived.
    pub(crate) fn written(&mut self) {
        self.sent = None;
        if self.sums.is_empty() {
            self.sums.shrink_to(1024);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.sums.len() + self.sent.as_ref().map_or(0, |batch| batch.rows.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(pending: &mut Pending, user: &str, since: i64, up: u64) -> Result<(), Error> {
        pending.add(user.to_owned(), since, up, 1)
    }

    #[test]
    fn a_batch_stays_the_same_until_it_has_arrived() {
        let mut pending = Pending::default();
        assert!(pending.batch(10).is_none());
        add(&mut pending, "b", 1, 5).unwrap();
        add(&mut pending, "a", 1, 5).unwrap();
        add(&mut pending, "a", 1, 6).unwrap();
        add(&mut pending, "a", 2, 7).unwrap();
        let first = pending.batch(10).unwrap();
        let ups: Vec<_> = first
            .rows
            .iter()
            .map(|row| (row.user.as_str(), row.since, row.up))
            .collect();
        assert_eq!(ups, [("a", 1, 11), ("a", 2, 7), ("b", 1, 5)]);
        // What comes meanwhile waits for the next one.
        add(&mut pending, "a", 1, 100).unwrap();
        assert_eq!(pending.len(), 4);
        assert!(Arc::ptr_eq(&first, &pending.batch(10).unwrap()));
        pending.written();
        let next = pending.batch(10).unwrap();
        assert_eq!(
            (next.number, next.rows.len(), next.rows[0].up),
            (first.number + 1, 1, 100)
        );
    }

    #[test]
    fn no_more_users_wait_than_the_limit_and_those_that_wait_go_on() {
        let mut pending = Pending::default();
        for user in 0..MOST_WAITING {
            pending.add(user.to_string(), 0, 1, 0).unwrap();
        }
        assert!(matches!(add(&mut pending, "one more", 0, 1), Err(Error::Full)));
        add(&mut pending, "7", 0, 1).unwrap();
        assert_eq!(pending.len(), MOST_WAITING);
        assert_eq!(pending.batch(10).unwrap().rows.len(), 10);
        assert_eq!(pending.len(), MOST_WAITING);
    }

    #[test]
    fn sums_do_not_overflow() {
        let mut pending = Pending::default();
        for _ in 0..3 {
            add(&mut pending, "a", 0, u64::MAX).unwrap();
        }
        assert_eq!(pending.batch(1).unwrap().rows[0].up, i64::MAX);
    }
}
