//! One pass through a file.

use super::wire::{Read, varint};
use super::{Error, Item, Kind, MAX_ITEM, Name, network};

/// What comes next in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// An item, which ends after `used` bytes of the window.
    Item {
        /// What it is.
        item: Item<'a>,
        /// Bytes of the window that are done with.
        used: usize,
    },
    /// So many bytes, in the window or beyond it, are of no interest.
    Skip(u64),
    /// The window is too short to go on. It never has to be longer than [`WINDOW`](super::WINDOW) bytes.
    More,
}

/// The first bytes of a field.
struct Head {
    number: u64,
    has_bytes: bool,
    /// Bytes behind the head.
    len: u64,
    /// Bytes of the head.
    start: usize,
}

/// Reads a file from its beginning to its end. Keeps nothing of it: the caller shows a window that begins where the last step
/// ended.
#[derive(Clone, Debug)]
pub struct Scanner {
    kind: Kind,
    /// Bytes that the entry still has.
    left: u64,
    /// The entry has begun and its code has not been seen.
    is_fresh: bool,
    at: u64,
}

impl Scanner {
    /// A reader at the beginning of a file.
    pub fn new(kind: Kind) -> Self {
        Scanner {
            kind,
            left: 0,
            is_fresh: false,
            at: 0,
        }
    }

    /// A reader inside of an entry: behind its code, at the byte `at` of the file, with `left` bytes of it to come.
    pub fn within(kind: Kind, at: u64, left: u64) -> Self {
        Scanner {
            kind,
            left,
            is_fresh: false,
            at,
        }
    }

    /// How many bytes of the file are done with.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Passes over the rest of the entry that began last.
    pub fn skip_entry(&mut self) -> u64 {
        self.at = self.at.saturating_add(self.left);
        std::mem::take(&mut self.left)
    }

    /// How many bytes the entry that began last still has.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Whether a file of `size` bytes has been read to its end.
    ///
    /// # Errors
    /// [`Error::Truncated`] if it should have more bytes, or if the last ones are a part of an item.
    pub fn finish(&self, size: u64) -> Result<(), Error> {
        match self.left == 0 && self.at == size {
            true => Ok(()),
            false => Err(Error::Truncated),
        }
    }

    /// What comes next. `window` holds the bytes of the file from where the last step ended.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::TooLong`]; the file cannot be read further then.
    pub fn next<'a>(&mut self, window: &'a [u8]) -> Result<Step<'a>, Error> {
        let wrong = Error::Malformed(self.at);
        let Head {
            number,
            has_bytes,
            len,
            start,
        } = match Self::head(window) {
            Read::Done(head, _) => head,
            Read::More => return Ok(Step::More),
            Read::Wrong => return Err(wrong),
        };
        let whole = (start as u64).checked_add(len).ok_or(wrong)?;
        if self.left == 0 {
            if number != 1 || !has_bytes {
                return Ok(self.pass(whole));
            }
            (self.left, self.is_fresh) = (len, true);
            self.at += start as u64;
            // An entry without a code is called by nobody; it is told of all the same, so that it can be counted.
            if len == 0 {
                self.is_fresh = false;
                return Ok(Step::Item {
                    item: Item::Entry(""),
                    used: start,
                });
            }
            return Ok(Step::Skip(start as u64));
        }
        if whole > self.left {
            return Err(wrong);
        }
        let is_code = number == 1 && has_bytes;
        if self.is_fresh && !is_code {
            self.is_fresh = false;
            return Ok(Step::Item {
                item: Item::Entry(""),
                used: 0,
            });
        }
        let is_item = number == 2 || (number == 3 && self.kind == Kind::Networks);
        if !(self.is_fresh || is_item) {
            self.left -= whole;
            return Ok(self.pass(whole));
        }
        if len > MAX_ITEM as u64 {
            return Err(Error::TooLong(self.at));
        }
        let used = start + len as usize;
        let Some(bytes) = window.get(start..used) else {
            return Ok(Step::More);
        };
        let item = match (number, self.kind) {
            _ if self.is_fresh => Item::Entry(std::str::from_utf8(bytes).map_err(|_| wrong)?),
            (2, Kind::Names) if has_bytes => Item::Name(Name::read(bytes).ok_or(wrong)?),
            (2, Kind::Networks) if has_bytes => Item::Network(network(bytes).ok_or(wrong)?),
            (3, _) => match varint(bytes) {
                Read::Done(0, _) => {
                    self.left -= whole;
                    return Ok(self.pass(whole));
                }
                Read::Done(..) if !has_bytes => Item::Inverse,
                _ => return Err(wrong),
            },
            _ => return Err(wrong),
        };
        self.is_fresh = false;
        self.left -= whole;
        self.at += whole;
        Ok(Step::Item { item, used })
    }

    /// The head of the field that the window begins with.
    fn head(window: &[u8]) -> Read<Head> {
        let (tag, start) = match varint(window) {
            Read::Done(tag, used) => (tag, used),
            Read::More => return Read::More,
            Read::Wrong => return Read::Wrong,
        };
        let behind = &window[start..];
        let (len, start) = match (tag & 7, varint(behind)) {
            (1, _) => (8, start),
            (5, _) => (4, start),
            (0, Read::Done(_, used)) => (used as u64, start),
            (2, Read::Done(len, used)) => (len, start + used),
            (0 | 2, Read::More) => return Read::More,
            _ => return Read::Wrong,
        };
        let head = Head {
            number: tag >> 3,
            has_bytes: tag & 7 == 2,
            len,
            start,
        };
        if head.number == 0 {
            Read::Wrong
        } else {
            Read::Done(head, start)
        }
    }

    fn pass<'a>(&mut self, len: u64) -> Step<'a> {
        self.at = self.at.saturating_add(len);
        Step::Skip(len)
    }
}
