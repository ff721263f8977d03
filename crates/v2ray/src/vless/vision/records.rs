//! Where the records of an inner TLS begin and end.

/// Header of a record, bytes.
const HEADER: usize = 5;
/// Most bytes behind a header (RFC 8446 section 5.2; RFC 5246 section 6.2.3 allows more than RFC 8446).
const MAX_BODY: u16 = (1 << 14) + 2048;
/// What records of application data begin with, and in TLS 1.3 all that are sealed.
pub(super) const APPLICATION: [u8; 3] = [23, 3, 3];

/// Follows the records of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    header: [u8; HEADER],
    /// Bytes of the header that have come.
    known: usize,
    /// Bytes of the record that have not.
    left: usize,
    /// These are no records.
    lost: bool,
    /// Bytes of application data so far, in a row.
    sealed: usize,
    /// Application data has gone by.
    has_sealed: bool,
}

/// What a batch is made of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Walk {
    /// It begins with the beginning of a record.
    pub(super) aligned: bool,
    /// Where the last record ends, if all of the batch is application data, with what it begins of another record. 0: nowhere.
    pub(super) end: usize,
    /// Bytes of application data that went by up to there, in this batch and in others before, in a row.
    pub(super) sealed: usize,
}

impl Records {
    /// Goes over the next batch. Where the records were lost, one may begin with it.
    pub(super) fn walk(&mut self, batch: &[u8]) -> Walk {
        if self.lost {
            *self = self.afresh();
        }
        let mut walk = Walk {
            aligned: self.known == 0 && self.left == 0,
            ..Walk::default()
        };
        let mut only_sealed = true;
        let mut at = 0;
        while at < batch.len() {
            if self.left == 0 {
                let more = (HEADER - self.known).min(batch.len() - at);
                self.header[self.known..self.known + more].copy_from_slice(&batch[at..at + more]);
                self.known += more;
                at += more;
                if self.known < HEADER {
                    only_sealed &= APPLICATION.starts_with(&self.header[..self.known.min(3)]);
                    break;
                }
                let [kind, major, minor, high, low] = self.header;
                let body = u16::from_be_bytes([high, low]);
                if !(20..=24).contains(&kind) || major != 3 || minor > 4 || body > MAX_BODY {
                    *self = Records {
                        lost: true,
                        ..self.afresh()
                    };
                    only_sealed = false;
                    break;
                }
                match self.is_sealed() {
                    true => self.has_sealed = true,
                    false => (only_sealed, self.sealed) = (false, 0),
                }
                self.left = usize::from(body);
            } else {
                only_sealed &= self.is_sealed();
                let some = self.left.min(batch.len() - at);
                self.left -= some;
                at += some;
                if self.is_sealed() {
                    self.sealed += some;
                }
            }
            if self.left == 0 && self.known == HEADER {
                self.known = 0;
                (walk.end, walk.sealed) = (at, self.sealed);
            }
        }
        if !only_sealed {
            walk.end = 0;
        }
        walk
    }

    fn afresh(&self) -> Records {
        Records {
            has_sealed: self.has_sealed,
            ..Records::default()
        }
    }

    /// What went by last are no records.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Application data has gone by.
    pub(super) fn has_sealed(&self) -> bool {
        self.has_sealed
    }

    /// Whether the record at hand is one of application data.
    fn is_sealed(&self) -> bool {
        self.header.starts_with(&APPLICATION)
    }
}
