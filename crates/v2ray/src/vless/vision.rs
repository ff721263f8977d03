//! XTLS Vision: what a VLESS request with the flow `xtls-rprx-vision` carries in place of the bare payload.
//!
//! ```text
//! block: [id of the user 16, in the first block of a direction] | command u8 | content u16 | padding u16 | content | padding
//! ```
//!
//! Each direction begins with such blocks, right behind the request or response header, so that the lengths of an inner TLS
//! handshake do not show. It ends them by itself ([`Command`]): what follows is the payload as it is or, where the payload is
//! TLS 1.3 of its own, the payload without the outer layer of TLS.
//!
//! [`Filter`] looks for the inner handshake in the payload of both directions. A [`Writer`] cuts what is sent into blocks, a
//! [`Reader`] finds the content in what is received. Random numbers come from the caller.

mod filter;
mod read;
mod records;
mod write;

pub use filter::Filter;
pub use read::{Part, Reader};
pub use write::{Block, Padded, Writer};

/// Most bytes of a block with its head.
pub const MAX_BLOCK: usize = 8192;
/// Bytes of the head of the first block of a direction.
pub const FIRST_HEAD: usize = 16 + HEAD;
/// Most content that is written in one block, bytes.
pub const MAX_CONTENT: usize = MAX_BLOCK - FIRST_HEAD;
/// Blocks without content that are taken in a row. A client sends one where it has nothing to say for a while.
pub const MAX_EMPTY: u32 = 32;

/// Bytes of the head of every other block.
const HEAD: usize = 5;

/// What follows a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Command {
    /// Another block (0).
    Continue,
    /// The payload as it is, within the outer layer (1).
    End,
    /// The payload as it is, without the outer layer (2).
    Direct,
}

impl Command {
    const fn byte(self) -> u8 {
        match self {
            Command::Continue => 0,
            Command::End => 1,
            Command::Direct => 2,
        }
    }

    const fn of_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Command::Continue),
            1 => Some(Command::End),
            2 => Some(Command::Direct),
            _ => None,
        }
    }
}

/// How much padding blocks get (`testseed`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Seed {
    /// Content below this many bytes may be padded long.
    content: u32,
    /// The random part of a long padding is below this many bytes.
    long: u32,
    /// Content and long padding together have at least this many bytes.
    base: u32,
    /// A short padding is below this many bytes.
    short: u32,
}

impl Default for Seed {
    fn default() -> Self {
        Seed::new([900, 500, 900, 256])
    }
}

impl Seed {
    /// The numbers that it was made of, as far as they are not beyond what makes a difference.
    pub const fn numbers(&self) -> [u32; 4] {
        [self.content, self.long, self.base, self.short]
    }

    /// The four numbers of `testseed`: the content below which a padding may be long, the bound of its random part, the least
    /// length of content and padding together, and the bound of a short padding, all in bytes. No block exceeds
    /// [`MAX_BLOCK`], so larger numbers are as good as that, and a bound of 0 is one of 1.
    pub const fn new([content, long, base, short]: [u32; 4]) -> Self {
        Seed {
            content,
            long: clamp(long, 1),
            base: clamp(base, 0),
            short: clamp(short, 1),
        }
    }

    /// Bytes of padding for this content, by a random number.
    fn padding(&self, content: usize, long: bool, random: u32) -> usize {
        let below = |bound: u32| ((u64::from(random) * u64::from(bound)) >> 32) as usize;
        let padding = if long && content < self.content as usize {
            below(self.long) + (self.base as usize).saturating_sub(content)
        } else {
            below(self.short)
        };
        padding.min(MAX_CONTENT.saturating_sub(content))
    }
}

const fn clamp(number: u32, least: u32) -> u32 {
    if number < least {
        least
    } else if number > MAX_BLOCK as u32 {
        MAX_BLOCK as u32
    } else {
        number
    }
}

#[cfg(test)]
mod tests;
