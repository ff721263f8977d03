//! Messages written where the device reads them, and read where it writes them.

use std::sync::Arc;

use sealway_aead::JobError;
use sealway_aead::batch::Status;

use crate::Error;
use crate::engine::{Engine, Report, State};
use crate::error::Wrong;
use crate::plan::Message;

/// A chunk of the ring being filled. Dropped without [`Batch::submit`], nothing of it happens.
#[derive(Debug)]
pub struct Batch<'e> {
    engine: &'e mut Engine,
    chunk: usize,
    submitted: bool,
}

/// Room for a message, to be filled by the caller; what it holds before is not defined.
#[derive(Debug)]
pub struct Reserved<'b> {
    /// The number of the message in its batch.
    pub index: usize,
    /// Its text. Starts at 16 bytes, or a multiple of them, from any other.
    pub text: &'b mut [u8],
    /// Its tag, 16 bytes, if it is opened; else empty.
    pub tag: &'b mut [u8],
    /// Its associated data.
    pub aad: &'b mut [u8],
}

/// A batch under way. Dropped without [`Engine::collect`], nobody gets its results.
#[derive(Debug)]
pub struct Ticket {
    chunk: usize,
    serial: u64,
    report: Report,
    _alive: Arc<()>,
}

/// A batch that is done; its outputs stay where the device put them until this is dropped.
#[derive(Debug)]
pub struct Finished<'e> {
    engine: &'e mut Engine,
    chunk: usize,
    report: Report,
    sent_again: bool,
}

impl Engine {
    /// A batch to fill; `None` if all chunks of the ring are under way.
    ///
    /// # Errors
    /// [`Error::Lost`] if the device has failed, and its errors while a batch is waited for whose ticket was dropped.
    pub fn batch(&mut self) -> Result<Option<Batch<'_>>, Error> {
        self.check_lost()?;
        Ok(self.take_chunk()?.map(|chunk| Batch {
            engine: self,
            chunk,
            submitted: false,
        }))
    }

    /// True if a batch is done, so that [`Engine::collect`] will not wait.
    ///
    /// # Errors
    /// [`Error::NotStarted`] for the ticket of another engine; those of the device.
    pub fn is_done(&mut self, ticket: &Ticket) -> Result<bool, Error> {
        self.check_ticket(ticket)?;
        let done = self.ring[ticket.chunk].done;
        self.device.is_done(done).map_err(|error| self.noted(error))
    }

    /// Waits for a batch and shows its results.
    ///
    /// # Errors
    /// [`Error::NotStarted`] for the ticket of another engine; those of the device, after which none of its results count.
    pub fn collect(&mut self, ticket: Ticket) -> Result<Finished<'_>, Error> {
        self.check_ticket(&ticket)?;
        let mut report = ticket.report;
        if let Err(error) = self.wait_chunk(ticket.chunk, &mut report) {
            let _ = self.settle_chunk(ticket.chunk);
            return Err(error);
        }
        let chunk = &mut self.ring[ticket.chunk];
        let output = chunk.output(&mut *self.device)?;
        chunk.state = State::Held;
        for message in 0..chunk.plan.len() {
            report.count(chunk.status(output, message));
        }
        Ok(Finished {
            engine: self,
            chunk: ticket.chunk,
            report,
            sent_again: false,
        })
    }

    /// The ticket of a chunk that was sent off.
    fn ticket(&mut self, chunk: usize, report: Report) -> Ticket {
        let alive = Arc::new(());
        let serial = self.next_serial();
        self.ring[chunk].state = State::Ticket {
            serial,
            alive: Arc::downgrade(&alive),
        };
        Ticket {
            chunk,
            serial,
            report,
            _alive: alive,
        }
    }

    fn check_ticket(&self, ticket: &Ticket) -> Result<(), Error> {
        let alive = match self.ring.get(ticket.chunk).map(|chunk| &chunk.state) {
            Some(State::Ticket { serial, alive }) if *serial == ticket.serial => alive,
            _ => return Err(Error::NotStarted),
        };
        // Another engine may have given the same number.
        if std::ptr::eq(alive.as_ptr(), Arc::as_ptr(&ticket._alive)) {
            Ok(())
        } else {
            Err(Error::NotStarted)
        }
    }
}

impl Batch<'_> {
    /// Messages so far.
    pub fn len(&self) -> usize {
        self.engine.ring[self.chunk].plan.len()
    }

    /// True if there is no message yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Room for one more message; `None` if the chunk is full.
    ///
    /// # Errors
    /// [`Error::Job`] with the number that the message would have had, if there is no key in its slot or it is too long for
    /// any chunk.
    pub fn reserve(&mut self, message: &Message) -> Result<Option<Reserved<'_>>, Error> {
        let Engine { device, ring, keys, .. } = &mut *self.engine;
        let chunk = &mut ring[self.chunk];
        let index = chunk.plan.len();
        if !keys.has(message.slot) {
            let wrong = JobError::NoKey.into();
            return Err(Error::Job { index, wrong });
        }
        let Some(place) = chunk.plan.push(*message) else {
            let refuse = |wrong: Wrong| Error::Job { index, wrong };
            return chunk.plan.check(message).map(|()| None).map_err(refuse);
        };
        // Text, tag and associated data follow each other.
        let room = chunk.input(&mut **device)?;
        let (front, aad) = room.split_at_mut(place.aad);
        let (text, tag) = front[place.src..].split_at_mut(place.src_tag - place.src);
        Ok(Some(Reserved {
            index,
            text: &mut text[..message.len as usize],
            tag,
            aad: &mut aad[..message.aad_len as usize],
        }))
    }

    /// Sends the batch to the device.
    ///
    /// # Errors
    /// Those of the device; nothing of the batch happens then.
    pub fn submit(mut self) -> Result<Ticket, Error> {
        let mut report = Report::default();
        self.engine.submit_chunk(self.chunk, &mut report)?;
        self.submitted = true;
        Ok(self.engine.ticket(self.chunk, report))
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.submitted {
            // If sending failed, some of it may be under way.
            let _ = self.engine.settle_chunk(self.chunk);
        }
    }
}

impl Finished<'_> {
    /// Sends the same messages off once more, as they lie in pinned memory with their tables, for the same bytes. For measuring.
    ///
    /// # Errors
    /// [`Error::KeysChanged`] if a key was set or cleared since they were sent: under another key these would not be the same
    /// messages. Those of the device. The chunk is then free.
    pub fn again(mut self) -> Result<Ticket, Error> {
        if !self.engine.same_keys(self.chunk) {
            return Err(Error::KeysChanged);
        }
        let mut report = Report::default();
        let sent = self.engine.resubmit_chunk(self.chunk, &mut report);
        match sent.map(|()| self.engine.ticket(self.chunk, report)) {
            Ok(ticket) => {
                self.sent_again = true;
                Ok(ticket)
            }
            Err(error) => {
                // Some of it may be under way.
                let _ = self.engine.settle_chunk(self.chunk);
                Err(error)
            }
        }
    }

    /// Messages of the batch.
    pub fn len(&self) -> usize {
        self.engine.ring[self.chunk].plan.len()
    }

    /// True if there was none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was done.
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// What became of a message, with its text and, if it was sealed, its tag. The text of one that is not authentic is zeros.
    /// `None` above the last message.
    pub fn get(&mut self, index: usize) -> Option<(Status, &[u8], &[u8])> {
        let chunk = &self.engine.ring[self.chunk];
        let (message, place) = chunk.get(index)?;
        let output = &*chunk.output(&mut *self.engine.device).ok()?;
        let status = chunk.status(output, index);
        let text = &output[place.dst..place.dst + message.len as usize];
        let tag = if message.opens { 0 } else { 16 };
        Some((status, text, &output[place.dst_tag..place.dst_tag + tag]))
    }
}

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        if self.sent_again {
            return;
        }
        self.engine.ring[self.chunk].state = State::Free;
    }
}
