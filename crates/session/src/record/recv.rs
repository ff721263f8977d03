//! The opening half of a connection.

use std::fmt;
use std::ops::Range;

use sealway_aead::{NonceSequence, Opener, OpeningKey, Tag};

use super::{CLOSE, Epochs, HEADER_LEN, Header, OVERHEAD, State, TAG_LEN};
use crate::Error;
use crate::refusal::Refusal;

/// Opens records of one direction, in the order in which they were sealed.
///
/// The first record that is not the next one as sealed ends it: whatever comes after is not looked at.
pub struct RecvHalf {
    opener: Opener,
    /// Key and nonces of the next epoch, made while there is time.
    next: Option<(OpeningKey, NonceSequence)>,
    epochs: Epochs,
    epoch: u64,
    records: u64,
    bytes: u64,
    state: State,
}

/// What a record was.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Opened {
    /// One of the application.
    Data {
        /// Its kind, at most [`super::MAX_KIND`].
        kind: u8,
        /// Its stream.
        stream: u32,
        /// Where the payload stands in the buffer.
        payload: Range<usize>,
    },
    /// The closing record: the other end has sent everything, and nothing may follow.
    Close,
}

impl RecvHalf {
    pub(crate) fn new(mut epochs: Epochs) -> Result<Self, Error> {
        let opener = epochs.next()?.into_opener()?;
        Ok(RecvHalf {
            opener,
            next: None,
            epochs,
            epoch: 0,
            records: 0,
            bytes: 0,
            state: State::Open,
        })
    }

    /// Length of the whole record that begins with this header, bytes: [`OVERHEAD`] to [`OVERHEAD`] and
    /// [`super::MAX_PAYLOAD`]. The header is not authentic before [`RecvHalf::open`].
    ///
    /// # Errors
    /// [`Error::BadHeader`] for one that no correct end sends, [`Error::Refused`] for what stands in the place of the first record
    /// where a responder did not accept the initiator after all, [`Error::AfterClose`] after the closing record,
    /// [`Error::Dead`] after an error of [`RecvHalf::open`].
    pub fn record_len(&self, header: &[u8; HEADER_LEN]) -> Result<usize, Error> {
        self.check_open()?;
        if self.records == 0
            && let Some(refusal) = Refusal::parse(header)
        {
            return Err(Error::Refused(refusal));
        }
        Header::decode(header).map(|header| OVERHEAD + header.len)
    }

    /// Opens a record in place.
    ///
    /// # Errors
    /// [`Error::RecordLength`] unless `record` is as long as [`RecvHalf::record_len`] says: nothing was done.
    /// [`Error::Unauthentic`] if it is not the next record, with its payload zeroed, [`Error::BadHeader`],
    /// [`Error::AfterClose`]: this end of the connection is over, and [`Error::Dead`] is all it says from then on.
    pub fn open(&mut self, record: &mut [u8]) -> Result<Opened, Error> {
        self.check_open().inspect_err(|_| self.state = State::Dead)?;
        let got = record.len();
        let short = || Error::RecordLength { need: OVERHEAD, got };
        let (bytes, rest) = record.split_first_chunk_mut::<HEADER_LEN>().ok_or_else(short)?;
        let (payload, tag) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or_else(short)?;
        let header = Header::decode(bytes).inspect_err(|_| self.state = State::Dead)?;
        let need = OVERHEAD + header.len;
        if payload.len() != header.len {
            return Err(Error::RecordLength { need, got });
        }
        let opened = self.open_payload(header, bytes, payload, &Tag(*tag));
        if let Err(error) = opened {
            payload.fill(0);
            self.state = State::Dead;
            return Err(error);
        }
        self.records += 1;
        self.bytes += header.len as u64;
        if header.kind == CLOSE {
            self.state = State::Closed;
            return Ok(Opened::Close);
        }
        Ok(Opened::Data {
            kind: header.kind,
            stream: header.stream,
            payload: HEADER_LEN..HEADER_LEN + header.len,
        })
    }

    #[inline]
    fn open_payload(&mut self, header: Header, aad: &[u8], payload: &mut [u8], tag: &Tag) -> Result<(), Error> {
        if header.phase == (self.epoch & 1 == 1) {
            self.opener.open_in_place(aad, payload, tag)?;
        } else {
            self.prepare()?;
            let (key, nonces) = self.next.take().ok_or(Error::Dead)?;
            // Numbers go on: records before the change cannot be left out unnoticed.
            let mut next = Opener::new(key, nonces.starting_at(self.records)?)?;
            next.open_in_place(aad, payload, tag)?;
            // Only now is it certain that the other end changed keys. The old ones are wiped.
            self.opener = next;
            self.epoch += 1;
        }
        self.prepare()
    }

    /// Makes the keys of the next epoch, unless they are there.
    fn prepare(&mut self) -> Result<(), Error> {
        if self.next.is_none() {
            let keys = self.epochs.next()?;
            let nonces = NonceSequence::xor(keys.suite(), keys.iv())?;
            self.next = Some((OpeningKey::new(keys.suite(), keys.key())?, nonces));
        }
        Ok(())
    }

    fn check_open(&self) -> Result<(), Error> {
        match self.state {
            State::Open => Ok(()),
            State::Closed => Err(Error::AfterClose),
            State::Dead => Err(Error::Dead),
        }
    }

    /// To be called when the connection has ended.
    ///
    /// # Errors
    /// [`Error::Truncated`] unless the closing record was the last that came, [`Error::Dead`] after an earlier error.
    pub fn end(&self) -> Result<(), Error> {
        match self.state {
            State::Closed => Ok(()),
            State::Open => Err(Error::Truncated),
            State::Dead => Err(Error::Dead),
        }
    }

    /// True after the closing record.
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// How often the other end changed keys.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records opened so far, the closing one included.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Payload bytes opened so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl fmt::Debug for RecvHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvHalf")
            .field("suite", &self.epochs.suite())
            .field("epoch", &self.epoch)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}
