//! Parts of a file: `Range` of a request (RFC 9110 section 14.2) and `Content-Range` of an upload (section 14.4).

use std::ops::Range;

/// What a `Range` header wants of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Wanted {
    /// All of it: no range, none that is understood, or several, which a server may ignore.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// What is not there.
    Nothing,
}

/// Reads a `Range` header of a request for a file of `size` bytes.
pub fn wanted(header: Option<&[u8]>, size: u64) -> Wanted {
    header.and_then(|header| one(header, size)).unwrap_or(Wanted::Whole)
}

fn one(header: &[u8], size: u64) -> Option<Wanted> {
    let text = std::str::from_utf8(header).ok()?;
    let (unit, set) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    let range = match (first, last) {
        ("", last) => size.saturating_sub(number(last)?)..size,
        (first, "") => number(first)?..size,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(size)
        }
    };
    Some(match range.start < range.end {
        true => Wanted::Part(range),
        false => Wanted::Nothing,
    })
}

/// A `Content-Range` of an upload: what is sent, and of how many bytes in all.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sent {
    /// Which bytes; `None` asks where to go on.
    pub range: Option<Range<u64>>,
    /// The size of the whole file.
    pub size: u64,
}

/// Reads `bytes FIRST-LAST/SIZE` or `bytes */SIZE`; `None` if it is anything else.
pub fn sent(header: &[u8]) -> Option<Sent> {
    let text = std::str::from_utf8(header).ok()?;
    let (unit, rest) = text.trim().split_once(' ')?;
    let (range, size) = rest.trim_start().split_once('/')?;
    let size = number(size)?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    if range == "*" {
        return Some(Sent { range: None, size });
    }
    let (first, last) = range.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    let range = Some(first..last.saturating_add(1));
    (first <= last && last < size).then_some(Sent { range, size })
}

/// Digits and nothing else, not even a sign. What is too large for a file counts as the largest.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_part_all_or_nothing() {
        use Wanted::{Nothing, Part, Whole};
        for (header, expected) in [
            ("bytes=0-0", Part(0..1)),
            ("bytes=0-", Part(0..100)),
            ("bytes=99-", Part(99..100)),
            ("bytes=-1", Part(99..100)),
            ("bytes=-100", Part(0..100)),
            ("bytes=-1000", Part(0..100)),
            ("bytes=10-19", Part(10..20)),
            ("bytes=10-1000", Part(10..100)),
            ("Bytes= 10-18446744073709551615", Part(10..100)),
            ("bytes=10-99999999999999999999999", Part(10..100)),
            ("bytes=100-", Nothing),
            ("bytes=100-200", Nothing),
            ("bytes=-0", Nothing),
            ("bytes=99999999999999999999999-", Nothing),
            ("bytes=19-10", Whole),
            ("bytes=0-1,3-4", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=--1", Whole),
            ("bytes=-", Whole),
            ("bytes=", Whole),
            ("bytes", Whole),
            ("lines=0-1", Whole),
            ("", Whole),
        ] {
            assert_eq!(wanted(Some(header.as_bytes()), 100), expected, "{header}");
        }
        assert_eq!(wanted(None, 100), Whole);
        assert_eq!(wanted(Some(b"bytes=\xff-"), 100), Whole);
        assert_eq!(wanted(Some(b"bytes=0-"), 0), Nothing);
        assert_eq!(wanted(Some(b"bytes=-5"), 0), Nothing);
    }

    #[test]
    fn what_is_sent_lies_within_its_file() {
        let part = |range, size| {
            Some(Sent {
                range: Some(range),
                size,
            })
        };
        let asked = Some(Sent { range: None, size: 10 });
        for (header, expected) in [
            ("bytes 0-0/1", part(0..1, 1)),
            ("bytes 5-9/10", part(5..10, 10)),
            ("BYTES  5-9/10", part(5..10, 10)),
            ("bytes 5-10/10", None),
            ("bytes 9-5/10", None),
            ("bytes */10", asked),
            ("bytes */*", None),
            ("bytes 5-9/*", None),
            ("bytes 5-9", None),
            ("bytes=5-9/10", None),
            ("bytes 0-18446744073709551615/18446744073709551615", None),
            ("", None),
        ] {
            assert_eq!(sent(header.as_bytes()), expected, "{header}");
        }
    }
}
