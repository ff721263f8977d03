//! The sealing half of a connection.

use std::fmt;

use sealway_aead::{NonceSequence, RekeyPolicy, Sealer, SealingKey};

use super::{CLOSE, Epochs, HEADER_LEN, Header, MAX_KIND, MAX_PAYLOAD, OVERHEAD, State, TAG_LEN};
use crate::Error;

/// Seals records of one direction, in the order in which they must be sent.
pub struct SendHalf {
    sealer: Sealer,
    /// Key and nonces of the next epoch, made while there is time.
    next: Option<(SealingKey, NonceSequence)>,
    epochs: Epochs,
    epoch: u64,
    policy: RekeyPolicy,
    rekey_asked: bool,
    records: u64,
    bytes: u64,
    state: State,
}

impl SendHalf {
    pub(crate) fn new(mut epochs: Epochs) -> Result<Self, Error> {
        let sealer = epochs.next()?.into_sealer()?;
        Ok(SendHalf {
            sealer,
            next: None,
            epochs,
            epoch: 0,
            policy: RekeyPolicy::DEFAULT,
            rekey_asked: false,
            records: 0,
            bytes: 0,
            state: State::Open,
        })
    }

    /// Seals the payload that stands in `record` from byte 8 on. `record` is exactly header, payload and tag; it is what is
    /// to be sent afterwards.
    ///
    /// # Errors
    /// [`Error::ReservedKind`] above [`MAX_KIND`], [`Error::RecordLength`] below [`OVERHEAD`] bytes,
    /// [`Error::PayloadTooLong`] above [`MAX_PAYLOAD`], [`Error::Closed`]: nothing was done. [`Error::Aead`] if memory ran
    /// out or rekeying was forbidden until the key was used up, and [`Error::Dead`] from then on.
    pub fn seal(&mut self, kind: u8, stream: u32, record: &mut [u8]) -> Result<(), Error> {
        if kind > MAX_KIND {
            return Err(Error::ReservedKind { kind });
        }
        self.seal_kind(kind, stream, record)
    }

    /// Appends a record of these parts to `out`: for small messages, whose bytes are copied once.
    ///
    /// # Errors
    /// As [`SendHalf::seal`]; `out` is then as before.
    pub fn seal_from(&mut self, kind: u8, stream: u32, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        out.resize(start + HEADER_LEN, 0);
        for part in parts {
            out.extend_from_slice(part);
        }
        out.resize(out.len() + TAG_LEN, 0);
        let sealed = self.seal(kind, stream, &mut out[start..]);
        if sealed.is_err() {
            out.truncate(start);
        }
        sealed
    }

    /// The closing record, the last of this direction. Without it the other end takes the end of the connection for an attack.
    ///
    /// # Errors
    /// [`Error::Closed`] the second time, otherwise as [`SendHalf::seal`].
    pub fn close(&mut self) -> Result<[u8; OVERHEAD], Error> {
        let mut record = [0; OVERHEAD];
        self.seal_kind(CLOSE, 0, &mut record)?;
        self.state = State::Closed;
        Ok(record)
    }

    #[inline]
    fn seal_kind(&mut self, kind: u8, stream: u32, record: &mut [u8]) -> Result<(), Error> {
        let got = record.len();
        let short = || Error::RecordLength { need: OVERHEAD, got };
        let (header, rest) = record.split_first_chunk_mut::<HEADER_LEN>().ok_or_else(short)?;
        let (payload, tag) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or_else(short)?;
        if payload.len() > MAX_PAYLOAD {
            return Err(Error::PayloadTooLong { got: payload.len() });
        }
        match self.state {
            State::Open => {}
            State::Closed => return Err(Error::Closed),
            State::Dead => return Err(Error::Dead),
        }
        if self.is_rekey_due() {
            self.flip().inspect_err(|_| self.state = State::Dead)?;
        }
        *header = Header {
            phase: self.epoch & 1 == 1,
            kind,
            len: payload.len(),
            stream,
        }
        .encode();
        let sealed = self.sealer.seal_in_place(header, payload);
        let sealed = sealed.inspect_err(|_| self.state = State::Dead)?;
        *tag = sealed.tag.0;
        self.records += 1;
        self.bytes += payload.len() as u64;
        if self.next.is_none() {
            self.prepare().inspect_err(|_| self.state = State::Dead)?;
        }
        Ok(())
    }

    /// Changes to the keys of the next epoch.
    fn flip(&mut self) -> Result<(), Error> {
        self.prepare()?;
        if let Some((key, nonces)) = self.next.take() {
            // Numbers go on: if they began anew, records before the change could be left out unnoticed.
            self.sealer = Sealer::new(key, nonces.starting_at(self.records)?)?;
            self.epoch += 1;
            self.rekey_asked = false;
        }
        Ok(())
    }

    /// Makes the keys of the next epoch, unless they are there.
    fn prepare(&mut self) -> Result<(), Error> {
        if self.next.is_none() {
            let keys = self.epochs.next()?;
            let nonces = NonceSequence::xor(keys.suite(), keys.iv())?;
            self.next = Some((SealingKey::new(keys.suite(), keys.key())?, nonces));
        }
        Ok(())
    }

    fn is_rekey_due(&self) -> bool {
        self.rekey_asked || self.policy.is_due(self.sealer.bytes(), self.sealer.messages())
    }

    /// When to change keys: [`RekeyPolicy::DEFAULT`] unless set otherwise. The other end follows whatever the policy.
    ///
    /// The change comes with the first record after either limit was reached. [`RekeyPolicy::NEVER`] is for measuring.
    pub fn set_rekey(&mut self, policy: RekeyPolicy) {
        self.policy = policy;
    }

    /// Has the next record sealed under the next key.
    pub fn rekey(&mut self) {
        self.rekey_asked = true;
    }

    /// How often keys were changed.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records sealed so far, the closing one included.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Payload bytes sealed so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True after [`SendHalf::close`].
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }
}

impl fmt::Debug for SendHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendHalf")
            .field("suite", &self.epochs.suite())
            .field("epoch", &self.epoch)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}
