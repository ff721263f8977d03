//! Memory that content arrives in and is served from, used again.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use sealway_drop::lock;

/// Vectors kept for use at most; new memory costs the system a page fault for every 4 KiB.
const KEPT: usize = 16;

/// Content below this is copied out rather than keep a large vector for it.
const SMALL: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    /// A vector, of any length.
    pub(crate) fn take(&self) -> Vec<u8> {
        lock(&self.0).pop().unwrap_or_default()
    }

    pub(crate) fn give(&self, buffer: Vec<u8>) {
        let mut kept = lock(&self.0);
        if kept.len() < KEPT && !buffer.is_empty() {
            kept.push(buffer);
        }
    }

    /// A part of a vector, which comes back here when the last of those who read it is done.
    pub(crate) fn share(self: &Arc<Self>, buffer: Vec<u8>, range: Range<usize>) -> Bytes {
        if range.len() < SMALL {
            let bytes = Bytes::copy_from_slice(&buffer[range]);
            self.give(buffer);
            return bytes;
        }
        Bytes::from_owner(Shared {
            buffer,
            pool: Arc::clone(self),
        })
        .slice(range)
    }
}

struct Shared {
    buffer: Vec<u8>,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_when_nobody_reads_it_and_not_before() {
        let pool = Arc::new(Pool::default());
        let bytes = pool.share(vec![7; 2 * SMALL], 1..SMALL + 1);
        let part = bytes.slice(5..10);
        drop(bytes);
        assert!(pool.take().is_empty());
        assert_eq!(&part[..], [7; 5]);
        drop(part);
        assert_eq!(pool.take().len(), 2 * SMALL);
        // What is small does not hold what is large.
        let small = pool.share(vec![8; SMALL], 0..3);
        assert_eq!(pool.take().len(), SMALL);
        assert_eq!(&small[..], [8; 3]);
        for _ in 0..2 * KEPT {
            pool.give(vec![0; 10]);
        }
        assert_eq!(lock(&pool.0).len(), KEPT);
    }
}
