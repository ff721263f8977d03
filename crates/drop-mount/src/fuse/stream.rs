//! What is read ahead of one open file: a machine without I/O.
//!
//! Reads come in, fetches and answers go out. A reader that goes on where it stopped gets a window of segments ahead of
//! it, as large as what it has read in one go, within limits. One that jumps about gets exactly what it asks for. A read
//! is answered with all its bytes, with fewer only where the file ends, or with an error.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::tree::{Cancel, Chunk, TreeError};

/// One fetch of a window: segments end at multiples of this. As long as the longest read of the kernel, so that an answer is
/// rarely made of two; larger ones leave the processor's caches on their way.
pub(super) const SEGMENT: u64 = 256 << 10;
/// Bytes kept behind the reader: kernel requests of two threads overtake each other.
const BEHIND: u64 = 2 << 20;
/// A first read from the start of a file that is this long is taken for the beginning of a reading in one go.
const EAGER: u64 = 64 << 10;

/// Memory that all windows together may hold.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicU64,
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
struct Hold {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    pub(super) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(bytes),
        })
    }

    fn take(self: &Arc<Self>, bytes: u64) -> Option<Hold> {
        let take = |left: u64| left.checked_sub(bytes);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .ok()?;
        Some(Hold {
            budget: Arc::clone(self),
            bytes,
        })
    }

    /// Bytes nobody holds.
    #[cfg(test)]
    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// What the owner of a [`Stream`] has to do, outside its lock.
#[derive(Debug)]
pub(super) enum Step<W> {
    /// Read these bytes and bring them to [`Stream::handle_fetched`].
    Fetch {
        id: u64,
        offset: u64,
        len: u32,
        cancel: Cancel,
    },
    /// Tell the reader: these pieces, one after the other.
    Answer { who: W, pieces: Pieces },
    /// Tell the reader that it failed.
    Fail { who: W, error: TreeError },
    /// Fire this token: nobody waits for that fetch any more.
    Cancel(Cancel),
    /// The file has another content than before.
    Changed { version: u64, size: u64 },
}

/// An answer: nearly always one piece.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) first: Bytes,
    pub(super) rest: Vec<Bytes>,
}

/// The state of one open file.
#[derive(Debug)]
pub(super) struct Stream<W> {
    size: u64,
    version: u64,
    /// Contiguous and ascending.
    segments: VecDeque<Segment>,
    waiting: Vec<Waiting<W>>,
    next_id: u64,
    /// Where the present reading in one go began, and how far it came.
    begun: Option<u64>,
    position: u64,
    max_window: u64,
    budget: Arc<Budget>,
}

#[derive(Debug)]
struct Segment {
    id: u64,
    start: u64,
    len: u32,
    chunk: Option<Chunk>,
    cancel: Cancel,
    _hold: Hold,
}

#[derive(Debug)]
struct Waiting<W> {
    offset: u64,
    len: u32,
    who: W,
    /// The fetch for this read alone.
    single: Option<(u64, Cancel)>,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

impl<W> Stream<W> {
    pub(super) fn new(size: u64, version: u64, max_window: u64, budget: Arc<Budget>) -> Self {
        let (segments, waiting) = (VecDeque::new(), Vec::new());
        Self {
            size,
            version,
            segments,
            waiting,
            next_id: 0,
            begun: None,
            position: 0,
            max_window,
            budget,
        }
    }

    /// All of the file has come already, as far as the budget has room for it.
    pub(super) fn holds(&mut self, data: Bytes) {
        let Some(hold) = self.budget.take(data.len() as u64) else {
            return;
        };
        self.next_id += 1;
        self.segments.push_back(Segment {
            id: self.next_id,
            start: 0,
            len: data.len() as u32,
            chunk: Some(Chunk {
                data,
                size: self.size,
                version: self.version,
            }),
            cancel: Cancel::new(),
            _hold: hold,
        });
    }

    /// A read of the kernel.
    pub(super) fn handle_read(&mut self, offset: u64, len: u32, who: W, steps: &mut Vec<Step<W>>) {
        let end = offset.saturating_add(u64::from(len)).min(self.size);
        let inside = self
            .back()
            .is_some_and(|back| offset >= self.segments[0].start && offset < back);
        let first = self.begun.is_none() && offset == 0;
        let goes_on = self.begun.is_some() && offset == self.position;
        if inside || goes_on || first {
            self.begun.get_or_insert(offset);
            self.position = self.position.max(end);
            if offset < self.size && (inside || goes_on || u64::from(len) >= EAGER) {
                self.extend(offset, end, steps);
            }
        } else if self.begun.is_some() && offset.abs_diff(self.position) <= BEHIND {
            // Perhaps only overtaken: keep what is there, fetch this apart.
            self.position = self.position.max(end);
        } else {
            self.discard(0, steps);
            self.begun = Some(offset);
            self.position = end;
        }
        self.waiting.push(Waiting {
            offset,
            len,
            who,
            single: None,
        });
        self.settle(steps);
    }

    /// The answer of a fetch; one that is not awaited any more is ignored.
    pub(super) fn handle_fetched(&mut self, id: u64, result: Result<Chunk, TreeError>, steps: &mut Vec<Step<W>>) {
        if let Some(at) = self
            .waiting
            .iter()
            .position(|wait| wait.single.as_ref().is_some_and(|(of, _)| *of == id))
        {
            let Waiting { offset, len, who, .. } = self.waiting.swap_remove(at);
            match result.and_then(|chunk| chunk.checked(offset, len)) {
                Ok(chunk) => {
                    self.note(chunk.version, chunk.size, steps);
                    steps.push(Step::Answer {
                        who,
                        pieces: Pieces {
                            first: chunk.data,
                            rest: Vec::new(),
                        },
                    });
                }
                Err(error) => steps.push(Step::Fail { who, error }),
            }
        } else if let Some(at) = self.segments.iter().position(|segment| segment.id == id) {
            let (start, len) = (self.segments[at].start, self.segments[at].len);
            match result.and_then(|chunk| chunk.checked(start, len)) {
                Ok(chunk) if chunk.version == self.version && chunk.size == self.size => {
                    self.segments[at].chunk = Some(chunk);
                }
                // What is there belongs to another content: it all goes, and who waits is served anew.
                Ok(chunk) => self.note(chunk.version, chunk.size, steps),
                Err(error) => {
                    let end = self.segments[at].end();
                    self.discard(at, steps);
                    let failed = |wait: &mut Waiting<W>| {
                        wait.single.is_none() && wait.offset < end && wait.offset + u64::from(wait.len) > start
                    };
                    let failed: Vec<_> = self.waiting.extract_if(.., failed).collect();
                    steps.extend(failed.into_iter().map(|wait| Step::Fail { who: wait.who, error }));
                }
            }
        }
        self.settle(steps);
    }

    /// Somebody learnt what the file is like now.
    pub(super) fn handle_changed(&mut self, version: u64, size: u64, steps: &mut Vec<Step<W>>) {
        self.note(version, size, steps);
        self.settle(steps);
    }

    /// The file changed, nobody knows how: what was read ahead is not to be trusted.
    pub(super) fn handle_doubt(&mut self, steps: &mut Vec<Step<W>>) {
        self.discard(0, steps);
        self.settle(steps);
    }

    /// Gives up the reads that `why` names a reason for.
    pub(super) fn handle_given_up(&mut self, mut why: impl FnMut(&W) -> Option<TreeError>, steps: &mut Vec<Step<W>>) {
        let mut at = 0;
        while at < self.waiting.len() {
            match why(&self.waiting[at].who) {
                Some(error) => {
                    let wait = self.waiting.swap_remove(at);
                    steps.extend(wait.single.map(|(_, cancel)| Step::Cancel(cancel)));
                    steps.push(Step::Fail { who: wait.who, error });
                }
                None => at += 1,
            }
        }
    }

    /// Nobody reads any more.
    pub(super) fn handle_closed(&mut self, steps: &mut Vec<Step<W>>) {
        self.discard(0, steps);
        self.handle_given_up(|_| Some(TreeError::Stale), steps);
    }

    fn back(&self) -> Option<u64> {
        self.segments.back().map(Segment::end)
    }

    /// Drops the segments from `from` on.
    fn discard(&mut self, from: usize, steps: &mut Vec<Step<W>>) {
        let pending = self.segments.drain(from..).filter(|segment| segment.chunk.is_none());
        steps.extend(pending.map(|segment| Step::Cancel(segment.cancel)));
    }

    fn note(&mut self, version: u64, size: u64, steps: &mut Vec<Step<W>>) {
        if version != self.version || size != self.size {
            (self.version, self.size) = (version, size);
            self.discard(0, steps);
            steps.push(Step::Changed { version, size });
        }
    }

    /// Lengthens the window: over the read at `offset` up to `end` if the budget has room, and ahead of it.
    fn extend(&mut self, offset: u64, end: u64, steps: &mut Vec<Step<W>>) {
        if self.back().is_some_and(|back| back + SEGMENT <= offset) {
            self.discard(0, steps);
        }
        let so_far = self.position - self.begun.unwrap_or(self.position).min(self.position);
        let window = so_far.clamp(SEGMENT.min(self.max_window), self.max_window);
        let target = self.position.saturating_add(window).max(end).min(self.size);
        let mut from = self.back().unwrap_or(offset);
        while from < target {
            let len = (SEGMENT - from % SEGMENT).min(self.size - from);
            let Some(hold) = self.budget.take(len) else { break };
            self.next_id += 1;
            let (id, len, cancel) = (self.next_id, len as u32, Cancel::new());
            steps.push(Step::Fetch {
                id,
                offset: from,
                len,
                cancel: cancel.clone(),
            });
            self.segments.push_back(Segment {
                id,
                start: from,
                len,
                chunk: None,
                cancel,
                _hold: hold,
            });
            from += u64::from(len);
        }
    }

    /// Answers what can be answered, fetches apart what no segment will bring, and drops what lies behind.
    fn settle(&mut self, steps: &mut Vec<Step<W>>) {
        let mut at = 0;
        while at < self.waiting.len() {
            let wait = &self.waiting[at];
            if wait.single.is_some() {
                at += 1;
                continue;
            }
            let end = wait.offset.saturating_add(u64::from(wait.len)).min(self.size);
            match self.cover(wait.offset, end) {
                Cover::Ready(pieces) => {
                    let who = self.waiting.swap_remove(at).who;
                    steps.push(Step::Answer { who, pieces });
                }
                Cover::Pending => at += 1,
                Cover::None => {
                    self.next_id += 1;
                    let (id, cancel) = (self.next_id, Cancel::new());
                    let wait = &mut self.waiting[at];
                    wait.single = Some((id, cancel.clone()));
                    steps.push(Step::Fetch {
                        id,
                        offset: wait.offset,
                        len: wait.len,
                        cancel,
                    });
                    at += 1;
                }
            }
        }
        let waiting = self
            .waiting
            .iter()
            .filter(|wait| wait.single.is_none())
            .map(|wait| wait.offset)
            .min();
        let needed = waiting.unwrap_or(u64::MAX).min(self.position.saturating_sub(BEHIND));
        while self
            .segments
            .front()
            .is_some_and(|front| front.chunk.is_some() && front.end() <= needed)
        {
            self.segments.pop_front();
        }
        if self.position >= self.size && self.waiting.is_empty() && self.segments.iter().all(|s| s.chunk.is_some()) {
            // Read to the end: most files are never read again through this handle.
            self.segments.clear();
        }
    }

    fn cover(&self, offset: u64, end: u64) -> Cover {
        let (Some(front), Some(back)) = (self.segments.front(), self.back()) else {
            return Cover::None;
        };
        if offset >= end || offset < front.start || end > back {
            return Cover::None;
        }
        let mut pieces = Pieces::default();
        let from = self.segments.partition_point(|segment| segment.end() <= offset);
        for segment in self.segments.range(from..).take_while(|segment| segment.start < end) {
            let Some(chunk) = &segment.chunk else {
                return Cover::Pending;
            };
            let low = (offset.max(segment.start) - segment.start) as usize;
            let high = (end.min(segment.end()) - segment.start) as usize;
            let piece = chunk.data.slice(low..high);
            if pieces.first.is_empty() {
                pieces.first = piece;
            } else {
                pieces.rest.push(piece);
            }
        }
        Cover::Ready(pieces)
    }
}

enum Cover {
    Ready(Pieces),
    Pending,
    None,
}
