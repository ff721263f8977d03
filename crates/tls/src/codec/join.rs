//! Messages put together from the records that they come in (RFC 8446 section 5.1).

use super::message::{Message, too_long};
use crate::{Alert, Error};

/// Joins fragments to messages. Holds no more than one message and one record.
#[derive(Debug)]
pub struct Joiner {
    held: Vec<u8>,
    /// Where what has not been taken begins.
    at: usize,
    /// Longest message, bytes.
    longest: usize,
    /// Bytes that may still come.
    budget: usize,
}

impl Joiner {
    /// For messages of at most `longest` bytes, heads included, and `flight` bytes of them together.
    pub fn new(longest: usize, flight: usize) -> Self {
        Joiner {
            held: Vec::new(),
            at: 0,
            longest,
            budget: flight,
        }
    }

    /// From here on, other limits.
    pub fn limit(&mut self, longest: usize, flight: usize) {
        (self.longest, self.budget) = (longest, flight);
    }

    /// The content of one handshake record.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is empty, which no fragment may be, or if more came than a flight may have.
    pub fn push(&mut self, fragment: &[u8]) -> Result<(), Error> {
        if fragment.is_empty() {
            return Err(Error::peer(Alert::DecodeError, "a handshake record without content"));
        }
        let budget = self.budget.checked_sub(fragment.len());
        self.budget = budget.ok_or(too_long("a handshake that is too long"))?;
        if self.at == self.held.len() {
            self.held.clear();
        } else {
            self.held.drain(..self.at);
        }
        self.at = 0;
        self.held.extend_from_slice(fragment);
        Ok(())
    }

    /// The next whole message.
    ///
    /// # Errors
    /// [`Error::Peer`] if it says that it is longer than one may be, as soon as its head is there.
    pub fn next_message(&mut self) -> Result<Option<Message<'_>>, Error> {
        let message = Message::first(&self.held[self.at..], self.longest)?;
        if let Some(message) = &message {
            self.at += message.bytes.len();
        }
        Ok(message)
    }

    /// True if nothing of a further message is there: only then may keys change (RFC 8446 section 5.1).
    pub fn is_between(&self) -> bool {
        self.at == self.held.len()
    }
}
