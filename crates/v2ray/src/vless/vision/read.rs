//! Finds the content in what is received.

use subtle::ConstantTimeEq;

use super::{Command, HEAD, MAX_EMPTY};
use crate::{Error, Protocol, UserId};

/// What the next bytes are: first some that carry nothing, then some of the payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Part {
    /// Bytes to leave out.
    pub skip: usize,
    /// Bytes of payload behind them.
    pub content: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Nothing has come.
    Start,
    /// A block begins.
    Head,
    /// Within a block: what is left of its content and of its padding.
    Body(Command, usize, usize),
    /// What follows is the payload as it is; without the outer layer, if true.
    Through(bool),
}

/// Reads the blocks of one direction, in whatever pieces they come.
#[derive(Clone, Debug)]
pub struct Reader {
    id: UserId,
    state: State,
    /// Blocks without content since the last with some.
    empty: u32,
}

impl Reader {
    /// A reader for the blocks of this user, whose id is as the client sent it.
    pub const fn new(id: UserId) -> Self {
        Reader {
            id,
            state: State::Start,
            empty: 0,
        }
    }

    /// Whether the blocks have ended. `Some(true)`: what follows the last has no outer layer any more.
    pub const fn is_through(&self) -> Option<bool> {
        match self.state {
            State::Through(direct) => Some(direct),
            _ => None,
        }
    }

    /// Whether all may end here, with nothing left of what was given: between two blocks, or where there are none. A block says
    /// how long it is, so one that breaks off was cut.
    pub const fn may_end(&self) -> bool {
        !matches!(self.state, State::Body(_, 1.., _) | State::Body(_, _, 1..))
    }

    /// What the front of `bytes` is. `None`: more has to come, or [`Reader::is_through`] has an answer. A part is done with:
    /// the next call is to be given what follows it.
    ///
    /// A direction that does not begin with the id has no blocks.
    ///
    /// # Errors
    /// [`Error::Field`] for an unknown command, [`Error::Malformed`] for more than [`MAX_EMPTY`] blocks without content in a
    /// row.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<Part>, Error> {
        let mut skip = 0;
        loop {
            let rest = &bytes[skip..];
            match self.state {
                State::Start => {
                    let id = self.id.as_bytes();
                    let known = rest.len().min(id.len());
                    if !bool::from(rest[..known].ct_eq(&id[..known])) {
                        self.state = State::Through(false);
                    } else if known < id.len() {
                        break;
                    } else {
                        skip += id.len();
                        self.state = State::Head;
                    }
                }
                State::Head => {
                    let Some(&[command, a, b, c, d]) = rest.first_chunk::<HEAD>() else {
                        break;
                    };
                    let command = Command::of_byte(command)
                        .ok_or(Protocol::Vless.field("the command of a padded block", u64::from(command)))?;
                    let content = usize::from(u16::from_be_bytes([a, b]));
                    let padding = usize::from(u16::from_be_bytes([c, d]));
                    self.empty = if content > 0 { 0 } else { self.empty + 1 };
                    if self.empty > MAX_EMPTY {
                        return Err(Protocol::Vless.malformed("too many padded blocks without content in a row"));
                    }
                    skip += HEAD;
                    self.state = State::Body(command, content, padding);
                }
                State::Body(command, 0, 0) => {
                    self.state = match command {
                        Command::Continue => State::Head,
                        Command::End => State::Through(false),
                        Command::Direct => State::Through(true),
                    };
                }
                State::Body(command, 0, padding) => {
                    let some = padding.min(rest.len());
                    if some == 0 {
                        break;
                    }
                    skip += some;
                    self.state = State::Body(command, 0, padding - some);
                }
                State::Body(command, content, padding) => {
                    let some = content.min(rest.len());
                    if some == 0 {
                        break;
                    }
                    self.state = State::Body(command, content - some, padding);
                    return Ok(Some(Part { skip, content: some }));
                }
                State::Through(_) => break,
            }
        }
        Ok((skip > 0).then_some(Part { skip, content: 0 }))
    }
}
