//! Datagrams inside a VLESS stream: `length u16 | payload`, in both directions.

use std::ops::Range;

use crate::{Error, Protocol, Step};

/// Bytes before each datagram.
pub const HEAD_LEN: usize = 2;

/// Longest datagram that is written: the most a UDP packet over IPv4 can hold.
pub const MAX_WRITE: usize = 65_507;

/// The bytes to write before a datagram of this length.
///
/// # Errors
/// [`Error::DoesNotFit`] above [`MAX_WRITE`].
pub fn head(len: usize) -> Result<[u8; HEAD_LEN], Error> {
    match u16::try_from(len) {
        Ok(short) if len <= MAX_WRITE => Ok(short.to_be_bytes()),
        _ => Err(Protocol::Vless.does_not_fit("a datagram", MAX_WRITE, len)),
    }
}

/// Finds the datagram at the front of `bytes`: the range of its payload. Any length up to 65,535 is read; an empty one is
/// real and may be dropped, as the peers do.
pub fn decode(bytes: &[u8]) -> Step<Range<usize>> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LEN>() else {
        return Step::More(HEAD_LEN - bytes.len());
    };
    let len = usize::from(u16::from_be_bytes(*head));
    if rest.len() < len {
        return Step::More(len - rest.len());
    }
    Step::Done {
        value: HEAD_LEN..HEAD_LEN + len,
        used: HEAD_LEN + len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::whole;

    #[test]
    fn every_boundary() {
        for len in [0, 1, 300, MAX_WRITE] {
            let mut bytes = head(len).unwrap().to_vec();
            bytes.resize(HEAD_LEN + len, 7);
            assert_eq!(whole(&bytes, |bytes| Ok(decode(bytes))), 2..bytes.len());
        }
        assert!(head(MAX_WRITE + 1).is_err());
        assert!(head(70_000).is_err());
    }
}
