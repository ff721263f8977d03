//! The ClientHello of TLS (RFC 8446 section 4.1.2, RFC 6066 section 3).

use std::borrow::Cow;

use super::{Kind, Look, name};
use crate::Domain;

/// Longest ClientHello that is read.
pub(super) const MAX_HELLO: usize = 16 << 10;
/// Longest record (RFC 8446 section 5.1).
const MAX_RECORD: usize = 1 << 14;
/// Bytes in front of the content of a record.
const RECORD_HEAD: usize = 5;
/// Bytes in front of the content of a handshake message.
pub(super) const HEAD: usize = 4;

/// Reads fields off the front; every read may find too little.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// A field behind its length, which is a big-endian number of `width` bytes.
    fn sized(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.take(width)?;
        let length = length.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        self.take(length)
    }
}

/// Bytes of the handshake message that begins here, with its head. `None`: it is no ClientHello, or too long a one. Of less
/// than a head, what is there must fit.
pub(super) fn whole(message: &[u8]) -> Option<usize> {
    match message {
        [] => Some(HEAD),
        [1, a, b, c, ..] => {
            let len = HEAD + u32::from_be_bytes([0, *a, *b, *c]) as usize;
            (len <= MAX_HELLO).then_some(len)
        }
        [1, ..] => Some(HEAD),
        _ => None,
    }
}

/// The server name in a ClientHello without its head: `None` if it is none.
pub(super) fn server_name(hello: &[u8]) -> Option<Option<Domain>> {
    let mut hello = Fields(hello);
    hello.take(2 + 32)?;
    hello.sized(1)?;
    hello.sized(2)?;
    hello.sized(1)?;
    if hello.0.is_empty() {
        return Some(None);
    }
    let mut extensions = Fields(hello.sized(2)?);
    while !extensions.0.is_empty() {
        let kind = extensions.take(2)?;
        let body = extensions.sized(2)?;
        if kind == [0, 0] {
            let mut names = Fields(Fields(body).sized(2)?);
            while let Some(kind) = names.take(1) {
                let text = names.sized(2)?;
                if kind == [0] {
                    return Some(name(text));
                }
            }
            return Some(None);
        }
    }
    Some(None)
}

/// Whether what is there of the head of a record fits: a handshake's, of 1 to [`MAX_RECORD`] bytes.
fn fits(head: &[u8]) -> bool {
    match head {
        [] | [0x16] | [0x16, 3] | [0x16, 3, _] => true,
        [0x16, 3, _, high] => usize::from(*high) << 8 <= MAX_RECORD,
        [0x16, 3, _, high, low, ..] => (1..=MAX_RECORD).contains(&usize::from(u16::from_be_bytes([*high, *low]))),
        _ => false,
    }
}

pub(super) fn look(bytes: &[u8]) -> Look {
    // One record is looked at where it lies, several are joined.
    let mut message = Cow::Borrowed(&[][..]);
    let mut rest = bytes;
    loop {
        let Some(need) = whole(&message) else {
            return Look::Nothing;
        };
        if message.len() >= need && message.len() > HEAD {
            return match server_name(&message[HEAD..need]) {
                Some(domain) => Look::found(Kind::Tls, domain),
                None => Look::Nothing,
            };
        }
        if !fits(rest) {
            return Look::Nothing;
        }
        let missing = need.saturating_sub(message.len()).max(1);
        let [_, _, _, high, low, content @ ..] = rest else {
            return Look::More(missing + RECORD_HEAD - rest.len());
        };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if content.is_empty() {
            return Look::More(missing);
        }
        let (part, after) = content.split_at(len.min(content.len()));
        match message.is_empty() {
            true => message = Cow::Borrowed(part),
            false => message.to_mut().extend_from_slice(part),
        }
        if part.len() < len {
            // Nothing of the next record is there.
            let need = match whole(&message) {
                None => return Look::Nothing,
                Some(need) => need.max(HEAD + 1),
            };
            if message.len() < need {
                return Look::More(need - message.len());
            }
        }
        rest = after;
    }
}
