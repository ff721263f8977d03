//! The server's second state: its flight is out, the client's Finished has to come.

use super::flight::Flight;
use super::{Agreed, Connected};
use crate::codec::{Joiner, Kind, record};
use crate::error::{Error, unexpected};
use crate::records::{Opening, Records};
use crate::schedule::Handshake;
use crate::suite::Digest;

/// Longest flight of a client: one Finished.
const MAX_ANSWER: usize = 4 + crate::suite::MAX_HASH;

/// Waits for the client's Finished.
pub struct AwaitFinished {
    opening: Opening,
    joiner: Joiner,
    handshake: Handshake,
    transcript: Digest,
    agreed: Agreed,
    /// Those of the connection, for who takes it over. `None` when they are handed over, or after an error.
    records: Option<Records>,
    /// How many records with a change_cipher_spec may still come.
    changes: u32,
}

impl AwaitFinished {
    pub(super) fn new(flight: Flight, agreed: Agreed, changes: u32) -> Self {
        AwaitFinished {
            opening: flight.opening,
            joiner: Joiner::new(MAX_ANSWER, MAX_ANSWER),
            handshake: flight.handshake,
            transcript: flight.transcript,
            agreed,
            records: Some(flight.records),
            changes,
        }
    }

    /// What was agreed on.
    pub fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// Appends a record of this length by its header that carries nothing, ahead of the client's Finished.
    ///
    /// # Errors
    /// Those of [`Records::push_nothing`], and [`Error::Given`] for a handshake that is over.
    pub fn push_nothing(&mut self, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let records = self.records.as_mut().ok_or(super::DEAD)?;
        records.push_nothing(length, out)
    }

    /// Reads what the client has sent, opening it in place. Returns the bytes that are done with and, once the Finished was there,
    /// the connection: what stands behind those bytes is for its record layer.
    ///
    /// # Errors
    /// Whatever is wrong, and then never anything else. The alert that the client is owed is appended to `out`.
    pub fn read(&mut self, input: &mut [u8], out: &mut Vec<u8>) -> Result<(usize, Option<Connected>), Error> {
        let mut used = 0;
        let found = self.read_on(input, &mut used);
        match (found, self.records.take()) {
            (_, None) => Err(super::DEAD),
            (Ok(false), records) => {
                self.records = records;
                Ok((used, None))
            }
            (Ok(true), Some(records)) => {
                let agreed = self.agreed.clone();
                Ok((used, Some(Connected { records, agreed })))
            }
            (Err(error), Some(mut records)) => {
                if let Some(alert) = error.alert() {
                    drop(records.push(record::ALERT, &alert.message(), out));
                }
                Err(error)
            }
        }
    }

    /// True once the Finished was there.
    fn read_on(&mut self, input: &mut [u8], used: &mut usize) -> Result<bool, Error> {
        while let Some((head, rest)) = input.get_mut(*used..).and_then(|rest| rest.split_first_chunk_mut()) {
            let (kind, length) = record::length(head)?;
            let Some(body) = rest.get_mut(..length) else { break };
            *used += record::HEAD + length;
            match (kind, &*body) {
                (record::APPLICATION, _) => {}
                (record::CHANGE_CIPHER_SPEC, [1]) if self.joiner.is_between() => {
                    let left = self.changes.checked_sub(1);
                    self.changes = left.ok_or(unexpected("more records with a change_cipher_spec than are taken"))?;
                    continue;
                }
                // A client that could not read our flight has no keys to seal its alert with.
                (record::ALERT, [_, description]) => return Err(Error::Alerted(*description)),
                _ => return Err(unexpected("a record in the clear where Finished had to come")),
            }
            let (kind, plain) = self.opening.open(head, body)?;
            let plain = &body[plain];
            match (kind, plain) {
                (record::HANDSHAKE, _) => self.joiner.push(plain)?,
                (record::ALERT, [_, description]) => return Err(Error::Alerted(*description)),
                _ => return Err(unexpected("a record of another kind where Finished had to come")),
            }
            let Some(message) = self.joiner.next_message()? else {
                continue;
            };
            if message.kind != Kind::FINISHED {
                return Err(unexpected("a message where Finished had to come"));
            }
            let client = &self.handshake.secrets.client;
            client.check_finished(&self.transcript, message.body())?;
            if !self.joiner.is_between() {
                return Err(unexpected("something behind Finished under its keys"));
            }
            return Ok(true);
        }
        Ok(false)
    }
}
