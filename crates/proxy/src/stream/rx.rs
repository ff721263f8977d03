//! The buffer of what was received, in regions by how many layers have been opened.

use std::ops::Range;

use super::{PAYLOAD, SOCKET};
use crate::Error;
use crate::pool::{Buf, Class};

/// What was received and not yet taken.
#[derive(Default)]
pub(super) struct Rx {
    pub(super) buf: Option<Buf>,
    pub(super) regions: [Range<usize>; 4],
    /// Class to take next: grows while reads fill the buffer, shrinks when they do not.
    pub(super) want: Class,
    /// Largest class to want. Small until the peer has shown who it is: strangers get no more than 4 KiB at a time.
    pub(super) most: Class,
    /// The peer has said, on some layer, that nothing follows.
    pub(super) end: bool,
    /// Something has arrived, or a layer was put in, since everything was opened as far as it goes.
    pub(super) fresh: bool,
}

impl Rx {
    pub(super) fn is_empty(&self) -> bool {
        self.regions.iter().all(Range::is_empty)
    }

    pub(super) fn release_if_empty(&mut self) {
        if self.is_empty() {
            self.buf = None;
            self.regions = Default::default();
        }
    }

    /// Holds what is there in the smallest buffer that it fits in.
    pub(super) fn shrink(&mut self) {
        self.release_if_empty();
        let held: usize = self.regions.iter().map(Range::len).sum();
        if let (Some(buf), Some(class)) = (&self.buf, Class::holding(held))
            && class < buf.class()
        {
            let old = self.buf.take();
            self.gather(Buf::take(class), old);
        }
    }

    /// Puts what is held to the front of `buf`, out of `old` or out of itself. Returns where it ends.
    fn gather(&mut self, mut buf: Buf, old: Option<Buf>) -> usize {
        let mut at = 0;
        for region in self.regions.iter_mut().rev() {
            let len = region.len();
            match &old {
                Some(old) => buf[at..at + len].copy_from_slice(&old[region.clone()]),
                None if region.start != at => buf.copy_within(region.clone(), at),
                None => {}
            }
            *region = at..at + len;
            at += len;
        }
        self.buf = Some(buf);
        at
    }

    /// Where the output of the layer above `level` goes: behind what is there, else as far ahead as possible.
    pub(super) fn out(&mut self, level: usize) -> usize {
        if self.regions[level + 1].is_empty() {
            let floor = self.regions[level + 1..]
                .iter()
                .filter(|r| !r.is_empty())
                .map(|r| r.end)
                .max();
            let at = floor.unwrap_or(0).min(self.regions[level].start);
            self.regions[level + 1] = at..at;
        }
        self.regions[level + 1].end
    }

    /// Accounts for what a layer did.
    pub(super) fn moved(&mut self, level: usize, consumed: usize, produced: usize) {
        self.regions[level].start += consumed;
        self.regions[level + 1].end += produced;
    }

    /// Hands the bytes at `level` up unchanged, as if the layer were not there.
    pub(super) fn pass(&mut self, level: usize) {
        let from = self.regions[level].clone();
        if from.is_empty() {
            return;
        }
        if self.regions[level + 1].is_empty() {
            self.regions[level + 1] = from.clone();
        } else {
            let to = self.regions[level + 1].end;
            if to != from.start
                && let Some(buf) = &mut self.buf
            {
                buf.copy_within(from.clone(), to);
            }
            self.regions[level + 1].end = to + from.len();
        }
        self.regions[level] = from.end..from.end;
    }

    /// Makes the payload so far input of the layer at `level` instead.
    pub(super) fn demote(&mut self, level: usize) {
        self.regions[level] = std::mem::take(&mut self.regions[PAYLOAD]);
        self.fresh = true;
    }

    /// Makes room to read behind the socket's region, and returns it.
    pub(super) fn make_room(&mut self) -> Result<&mut [u8], Error> {
        let held: usize = self.regions.iter().map(Range::len).sum();
        let fits = |class: Class| held < class.size();
        let mut class = self.want;
        while !fits(class) && class != Class::LARGEST {
            class = class.larger();
        }
        if !fits(class) {
            return Err(Error::protocol("stream", "a unit longer than the largest buffer"));
        }
        let at = match self.buf.take() {
            Some(buf) if buf.class() >= class => self.gather(buf, None),
            old => self.gather(Buf::take(class), old),
        };
        Ok(self.buf.as_mut().map_or(&mut [], |buf| &mut buf[at..]))
    }

    /// Takes over a buffer with bytes of the socket, in place of one that is empty.
    pub(super) fn adopt(&mut self, buf: Buf, came: Range<usize>) {
        self.regions = Default::default();
        self.regions[SOCKET] = came;
        self.buf = Some(buf);
        self.fresh = true;
    }

    /// Accounts for a read of `got` bytes into `room`.
    pub(super) fn filled(&mut self, got: usize, room: usize) {
        self.regions[SOCKET].end += got;
        self.fresh = true;
        let class = self.buf.as_ref().map_or(self.want, Buf::class);
        self.want = if got == room {
            class.larger().min(self.most)
        } else if got < class.size() / 8 {
            class.smaller()
        } else {
            class
        };
    }
}
