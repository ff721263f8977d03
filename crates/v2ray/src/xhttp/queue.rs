//! Numbered requests in their order.
//!
//! The next one's body can be passed on while it arrives. Those that came too early wait, whole, and at most so many of them.

use std::collections::BTreeMap;

/// What to do with a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Turn {
    /// It is the next one: pass its body on while it arrives, then say [`Queue::finish`].
    Now,
    /// One before it is missing: read its body whole and [`Queue::hold`] it.
    Later,
    /// It has been here before, or something with its number.
    Repeated,
}

/// More requests wait than may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Full;

/// The order of the numbered requests of a session.
#[derive(Debug)]
pub struct Queue {
    next: u64,
    /// The next one's body is arriving.
    busy: bool,
    held: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    most: usize,
}

impl Queue {
    /// Begins with number 0. At most `most` requests wait.
    pub fn new(most: usize) -> Self {
        Queue {
            next: 0,
            busy: false,
            held: BTreeMap::new(),
            bytes: 0,
            most,
        }
    }

    /// What to do with the request of this number, whose body is still to be read.
    pub fn turn(&mut self, seq: u64) -> Turn {
        if seq < self.next || self.held.contains_key(&seq) || seq == self.next && self.busy {
            Turn::Repeated
        } else if seq == self.next {
            self.busy = true;
            Turn::Now
        } else {
            Turn::Later
        }
    }

    /// The body of the next request has been passed on whole.
    pub fn finish(&mut self) {
        self.busy = false;
        // There is nothing behind the last number.
        self.next = self.next.saturating_add(1);
    }

    /// The body of the next request has broken off before any of it was passed on: it may come again.
    pub fn leave(&mut self) {
        self.busy = false;
    }

    /// Keeps a body whose turn has not come. If it has come meanwhile, [`Queue::pop`] gives it back. One that is there twice
    /// is dropped.
    ///
    /// # Errors
    /// [`Full`]: the session has failed.
    pub fn hold(&mut self, seq: u64, body: Vec<u8>) -> Result<(), Full> {
        if seq < self.next || self.held.contains_key(&seq) || seq == self.next && self.busy {
            return Ok(());
        }
        if self.held.len() >= self.most && seq != self.next {
            return Err(Full);
        }
        self.bytes += body.len();
        self.held.insert(seq, body);
        Ok(())
    }

    /// The body of the next request, if it waits. It counts as passed on.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        if self.busy {
            return None;
        }
        let body = self.held.remove(&self.next)?;
        self.bytes -= body.len();
        self.next = self.next.saturating_add(1);
        Some(body)
    }

    /// Whether this number is the next, and its body has not begun to arrive.
    pub fn is_next(&self, seq: u64) -> bool {
        seq == self.next && !self.busy
    }

    /// Whether this number is the next, and its body has begun to arrive.
    pub fn is_arriving(&self, seq: u64) -> bool {
        seq == self.next && self.busy
    }

    /// Whether the next one's body is arriving.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Bodies that wait.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no body waits.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Bytes of bodies that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a session reads when requests come whole, one after another.
    fn run(most: usize, posts: &[(u64, Vec<u8>)]) -> Result<Vec<u8>, Full> {
        let (mut queue, mut out) = (Queue::new(most), Vec::new());
        for (seq, body) in posts {
            match queue.turn(*seq) {
                Turn::Now => {
                    out.extend_from_slice(body);
                    queue.finish();
                }
                Turn::Later => queue.hold(*seq, body.clone())?,
                Turn::Repeated => {}
            }
            while let Some(body) = queue.pop() {
                out.extend_from_slice(&body);
            }
        }
        Ok(out)
    }

    #[test]
    fn late_twice_and_far_ahead() {
        let post = |seq, text: &str| (seq, text.as_bytes().to_vec());
        let posts = [
            post(2, "c"),
            post(0, "a"),
            post(0, "x"),
            post(2, "y"),
            post(1, "b"),
            post(1, "z"),
        ];
        assert_eq!(run(9, &posts).unwrap(), b"abc");
        assert_eq!(run(2, &[post(u64::MAX, ""), post(5, ""), post(0, "a")]).unwrap(), b"a");
        assert_eq!(run(1, &[post(u64::MAX, ""), post(5, "")]), Err(Full));
        // Behind the last number nothing follows, and nothing overflows.
        let mut queue = Queue::new(1);
        queue.next = u64::MAX;
        assert_eq!(queue.turn(u64::MAX), Turn::Now);
        queue.finish();
        assert_eq!(queue.turn(u64::MAX - 1), Turn::Repeated);
    }

    #[test]
    fn what_arrives_is_passed_on_alone() {
        let mut queue = Queue::new(4);
        assert_eq!(queue.turn(0), Turn::Now);
        assert_eq!(queue.turn(0), Turn::Repeated);
        assert!(queue.is_arriving(0) && !queue.is_arriving(1));
        assert_eq!(queue.turn(1), Turn::Later);
        queue.hold(1, vec![1; 10]).unwrap();
        assert_eq!((queue.pop(), queue.bytes()), (None, 10));
        assert_eq!(queue.turn(1), Turn::Repeated);
        queue.finish();
        assert_eq!((queue.pop(), queue.bytes()), (Some(vec![1; 10]), 0));
        assert!(queue.is_next(2));
    }

    proptest! {
        #[test]
        fn any_order_gives_the_bytes_in_order(order in Just((0..20u64).collect::<Vec<_>>()).prop_shuffle()) {
            let posts: Vec<(u64, Vec<u8>)> = order.into_iter().map(|seq| (seq, vec![seq as u8; seq as usize % 3])).collect();
            let mut sorted = posts.clone();
            sorted.sort();
            prop_assert_eq!(run(20, &posts), Ok(sorted.concat_bodies()));
        }
    }

    trait Concat {
        fn concat_bodies(&self) -> Vec<u8>;
    }

    impl Concat for Vec<(u64, Vec<u8>)> {
        fn concat_bodies(&self) -> Vec<u8> {
            self.iter().flat_map(|(_, body)| body.clone()).collect()
        }
    }
}
