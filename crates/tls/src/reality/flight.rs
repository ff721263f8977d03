//! The target's first flight: what a server of REALITY has to look like.
//!
//! Of TLS 1.3 only the hello can be read on the way, but the lengths of the records behind it show. [`Flight`] takes the bytes
//! as they come and says when enough is known, or that this target cannot be borrowed from.

use crate::codec::record::{APPLICATION, CHANGE_CIPHER_SPEC, HANDSHAKE, HEAD};
use crate::codec::{Kind, Message, ServerHello};
use crate::group::Group;
use crate::suite::CipherSuite;

/// Longest record of a target that is borrowed from, with its header, bytes.
pub const MAX_RECORD: usize = 8192;
/// Most bytes of a flight that are looked at: a hello, a change of ciphers, and five sealed records.
pub const MAX_FLIGHT: usize = 7 * MAX_RECORD;
/// A first sealed record longer than this, with its header, holds the whole flight.
const WHOLE_ABOVE: usize = 512;
/// The record that says that ciphers change.
const CHANGE: [u8; 6] = [CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1];

/// What a target's flight looks like.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shape {
    /// Its hello, the whole message.
    pub hello: Vec<u8>,
    /// The group of its key share.
    pub group: Group,
    /// Lengths of the sealed records of the flight, with their headers: of four, one for each message of the server (extensions,
    /// certificate, signature, end), or of one that holds them all.
    pub records: Vec<usize>,
    /// Lengths of the records that had begun behind them.
    pub more: Vec<usize>,
}

/// What is known after some bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Look {
    /// Not enough.
    More,
    /// Everything.
    Whole(Shape),
    /// This is no server of TLS 1.3 with a group and a suite of ours, or it asks for another hello.
    Unfit(&'static str),
    /// Behind a hello that fits came what does not.
    Broken(&'static str),
}

/// A flight of which a part has come.
#[derive(Debug, Default)]
pub struct Flight {
    /// Bytes of whole records that have been looked at.
    seen: usize,
    hello: Option<(Vec<u8>, Group)>,
    changed: bool,
    records: Vec<usize>,
}

impl Flight {
    /// Looks at a flight, all of it that has come so far: the same bytes as before and what has been added.
    pub fn look(&mut self, flight: &[u8]) -> Look {
        loop {
            let rest = flight.get(self.seen..).unwrap_or_default();
            let Some(head) = rest.first_chunk::<HEAD>() else {
                return Look::More;
            };
            let (kind, len) = (head[0], HEAD + usize::from(u16::from_be_bytes([head[3], head[4]])));
            let expected = match (&self.hello, self.changed) {
                (None, _) => HANDSHAKE,
                (_, false) => CHANGE_CIPHER_SPEC,
                _ => APPLICATION,
            };
            let wrong = |what| match &self.hello {
                None => Look::Unfit(what),
                Some(_) => Look::Broken(what),
            };
            if kind != expected || head[1] != 3 || len <= HEAD {
                return wrong("a record of another kind");
            }
            if len > MAX_RECORD {
                return wrong("a record of more than 8 KiB");
            }
            let Some(record) = rest.get(..len) else {
                return Look::More;
            };
            if self.hello.is_none() {
                match hello(&record[HEAD..]) {
                    Ok(hello) => self.hello = Some(hello),
                    Err(what) => return Look::Unfit(what),
                }
            } else if !self.changed {
                if record != CHANGE {
                    return Look::Broken("no record that changes ciphers");
                }
                self.changed = true;
            } else {
                self.records.push(len);
            }
            self.seen += len;
            let whole = self.records.first().is_some_and(|first| *first > WHOLE_ABOVE);
            if whole || self.records.len() == 4 {
                return self.whole(&flight[self.seen..]);
            }
        }
    }

    fn whole(&mut self, rest: &[u8]) -> Look {
        let Some((hello, group)) = self.hello.take() else {
            return Look::Broken("a flight that was looked at before");
        };
        let (mut more, mut rest) = (Vec::new(), rest);
        while let Some([kind, major, _, high, low]) = rest.first_chunk::<HEAD>() {
            let len = HEAD + usize::from(u16::from_be_bytes([*high, *low]));
            if *kind != APPLICATION || *major != 3 {
                return Look::Broken("a record of another kind");
            }
            if !(HEAD + 1..=MAX_RECORD).contains(&len) {
                return Look::Broken("a record of a length that none has");
            }
            more.push(len);
            rest = rest.get(len..).unwrap_or_default();
        }
        Look::Whole(Shape {
            hello,
            group,
            records: std::mem::take(&mut self.records),
            more,
        })
    }
}

/// Checks that a hello fits.
fn hello(message: &[u8]) -> Result<(Vec<u8>, Group), &'static str> {
    let first = Message::first(message, MAX_RECORD).ok().flatten();
    let whole = first.filter(|first| first.bytes.len() == message.len() && first.kind == Kind::SERVER_HELLO);
    let Some(hello) = whole.and_then(|whole| ServerHello::read(whole).ok()) else {
        return Err("no hello of a server");
    };
    if hello.is_retry() {
        return Err("the target asks for another hello");
    }
    if hello.version() != Ok(crate::codec::extension::TLS13) {
        return Err("the target does not speak TLS 1.3");
    }
    if CipherSuite::from_id(hello.suite).is_none() {
        return Err("the target chose a suite that is unknown here");
    }
    let share = hello.key_share().ok().flatten();
    let group = share.and_then(|share| Some((Group::from_id(share.group)?, share.key.len())));
    match group {
        Some((group, len)) if len == group.server_len() => Ok((message.to_vec(), group)),
        _ => Err("the target chose a group that is unknown here"),
    }
}

#[cfg(test)]
mod tests;
