//! Cuts what is sent into blocks.

use std::ops::Range;

use super::records::{APPLICATION, Records, Walk};
use super::{Command, FIRST_HEAD, Filter, HEAD, MAX_BLOCK, MAX_CONTENT, Seed};
use crate::UserId;

/// Application data of the inner TLS in a row, bytes, behind which no handshake is hidden any more: from there on the end of
/// any of its records will do to leave the blocks.
const SURE: usize = 16 << 10;
/// Batches in a row that are no TLS although a ServerHello went by. It was none, or TLS is over.
const MAX_ASTRAY: u32 = 8;

/// A block to be sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    head: [u8; FIRST_HEAD],
    /// Where the head begins: only the first block of a direction has the id.
    from: usize,
    /// Its content, in the batch.
    pub content: Range<usize>,
    /// Bytes of padding, of whatever value, behind the content.
    pub padding: usize,
}

impl Block {
    /// What precedes the content.
    pub fn head(&self) -> &[u8] {
        &self.head[self.from..]
    }
}

/// What becomes of a batch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Padded {
    /// The blocks, in their order.
    pub blocks: Vec<Block>,
    /// Where in the batch they end. What is left follows them as [`Writer::is_through`] says.
    pub end: usize,
}

/// Writes the blocks of one direction.
#[derive(Clone, Debug)]
pub struct Writer {
    id: Option<UserId>,
    seed: Seed,
    leaves: bool,
    records: Records,
    /// Batches in a row that are no TLS.
    astray: u32,
    through: Option<bool>,
}

impl Writer {
    /// A writer of blocks for this user, whose id is as the client sent it. `leaves`: what follows them may go without the
    /// outer layer.
    pub fn new(id: UserId, seed: Seed, leaves: bool) -> Self {
        Writer {
            id: Some(id),
            seed,
            leaves,
            records: Records::default(),
            astray: 0,
            through: None,
        }
    }

    /// Whether the blocks have ended. `Some(true)`: what follows the last is to go without the outer layer.
    pub fn is_through(&self) -> Option<bool> {
        self.through
    }

    /// Makes blocks of the next batch, which [`Filter::look`] has not seen. An empty batch gives one block without content.
    /// `random` gives a random number of any value for each block.
    ///
    /// Blocks end with the batch in which the payload is found to be no TLS, or to be behind its handshake; without the outer
    /// layer, if `filter` says so. They then end where a record of the inner TLS does, so that who sees the connection from
    /// outside sees whole records of TLS. Not to be called behind that end.
    ///
    /// # Errors
    /// Those of `random`.
    pub fn pad<E>(
        &mut self,
        batch: &[u8],
        filter: &mut Filter,
        mut random: impl FnMut() -> Result<u32, E>,
    ) -> Result<Padded, E> {
        filter.look(batch);
        let (command, end) = self.ending(batch, filter);
        let mut blocks = Vec::new();
        let mut at = 0;
        while blocks.is_empty() || at < end {
            let content = at..at + first_length(&batch[at..end]);
            at = content.end;
            let last = if at == end { command } else { Command::Continue };
            let long = batch.is_empty() || filter.is_tls();
            let padding = self.seed.padding(content.len(), long, random()?);
            blocks.push(self.block(last, content, padding));
        }
        self.through = match command {
            Command::Continue => None,
            Command::End => Some(false),
            Command::Direct => Some(true),
        };
        Ok(Padded { blocks, end })
    }

    /// What is to follow the blocks of a batch, and where they end.
    fn ending(&mut self, batch: &[u8], filter: &Filter) -> (Command, usize) {
        let Walk { aligned, end, sealed } = self.records.walk(batch);
        let begins = aligned && batch.starts_with(&APPLICATION);
        if filter.is_tls() && !filter.is_within_handshake() && end > 0 && (begins || sealed >= SURE) {
            return match self.leaves && filter.may_go_direct() {
                true => (Command::Direct, end),
                false => (Command::End, batch.len()),
            };
        }
        if !batch.is_empty() && !filter.is_tls12() && filter.is_nearly_spent() {
            return (Command::End, first_length(batch));
        }
        match self.records.is_lost() {
            true => self.astray += 1,
            false => self.astray = 0,
        }
        if self.astray >= MAX_ASTRAY {
            return (Command::End, batch.len());
        }
        (Command::Continue, batch.len())
    }

    fn block(&mut self, command: Command, content: Range<usize>, padding: usize) -> Block {
        let mut head = [0; FIRST_HEAD];
        let id = self.id.take();
        if let Some(id) = &id {
            head[..16].copy_from_slice(id.as_bytes());
        }
        head[16] = command.byte();
        // Both fit: a block has at most `MAX_BLOCK` bytes.
        head[17..19].copy_from_slice(&(content.len() as u16).to_be_bytes());
        head[19..].copy_from_slice(&(padding as u16).to_be_bytes());
        Block {
            head,
            from: if id.is_some() { 0 } else { FIRST_HEAD - HEAD },
            content,
            padding,
        }
    }
}

/// How much of `content` goes into the next block.
fn first_length(content: &[u8]) -> usize {
    if content.len() < MAX_CONTENT {
        return content.len();
    }
    let window = &content[..content.len().min(MAX_BLOCK)];
    let record = window
        .windows(APPLICATION.len())
        .rposition(|three| three == APPLICATION);
    match record {
        Some(at @ FIRST_HEAD..=MAX_CONTENT) => at,
        _ => MAX_BLOCK / 2,
    }
}
