//! The payloads of the messages; numbers are big-endian.

use sealway_session::record::MAX_PAYLOAD;

use crate::tree::TreeError;

/// Bytes of a [`Read`].
pub const READ_LEN: usize = 20;

/// Bytes before the content in an answer.
pub const CONTENT_HEADER: usize = 16;

/// Longest read that fits one answer.
pub const MAX_LEN: usize = MAX_PAYLOAD - CONTENT_HEADER;

/// A read: `handle: u64, offset: u64, length: u32`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Read {
    /// Of the gRPC service.
    pub handle: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes wanted, [`MAX_LEN`] at most.
    pub len: u32,
}

impl Read {
    /// The payload.
    pub fn encode(self) -> [u8; READ_LEN] {
        let mut out = [0; READ_LEN];
        out[..8].copy_from_slice(&self.handle.to_be_bytes());
        out[8..16].copy_from_slice(&self.offset.to_be_bytes());
        out[16..].copy_from_slice(&self.len.to_be_bytes());
        out
    }

    /// Reads a payload; `None` if it is of another length, asks for too much, or for what lies past what a file can have.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let (handle, rest) = payload.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let len = u32::from_be_bytes(*rest.first_chunk().filter(|len| len.len() == rest.len())?);
        let (handle, offset) = (u64::from_be_bytes(*handle), u64::from_be_bytes(*offset));
        let end = offset.checked_add(u64::from(len))?;
        (len as usize <= MAX_LEN && end <= i64::MAX as u64).then_some(Self { handle, offset, len })
    }
}

/// What stands before the content: `size: u64, version: u64` of the file.
pub fn content_header(size: u64, version: u64) -> [u8; CONTENT_HEADER] {
    let mut out = [0; CONTENT_HEADER];
    out[..8].copy_from_slice(&size.to_be_bytes());
    out[8..].copy_from_slice(&version.to_be_bytes());
    out
}

/// Size and version before the content; `None` if the payload is too short.
pub fn parse_content(payload: &[u8]) -> Option<(u64, u64)> {
    let (size, rest) = payload.split_first_chunk()?;
    let version = rest.first_chunk()?;
    Some((u64::from_be_bytes(*size), u64::from_be_bytes(*version)))
}

/// The one byte that says why nothing was read or changed.
pub fn code(error: TreeError) -> u8 {
    match error {
        TreeError::NotFound => 1,
        TreeError::NotDirectory => 2,
        TreeError::NotFile => 3,
        TreeError::NotLink => 4,
        TreeError::Denied => 5,
        TreeError::Stale => 6,
        TreeError::Invalid(_) => 7,
        TreeError::Limit => 8,
        TreeError::Timeout => 10,
        TreeError::Cancelled => 11,
        TreeError::Failed | TreeError::Lost | TreeError::Protocol(_) => 9,
        TreeError::ReadOnly => 12,
        TreeError::Exists => 13,
        TreeError::NotEmpty => 14,
        TreeError::Full => 15,
        TreeError::TooBig => 16,
        TreeError::CrossDevice => 17,
        TreeError::Locked => 18,
        TreeError::Refused => 19,
        TreeError::Unsupported => 20,
    }
}

/// What a code says; one that says nothing is the peer's fault.
pub fn error(code: u8) -> TreeError {
    match code {
        1 => TreeError::NotFound,
        2 => TreeError::NotDirectory,
        3 => TreeError::NotFile,
        4 => TreeError::NotLink,
        5 => TreeError::Denied,
        6 => TreeError::Stale,
        7 => TreeError::Invalid("the peer refused it"),
        8 => TreeError::Limit,
        9 => TreeError::Failed,
        10 => TreeError::Timeout,
        11 => TreeError::Cancelled,
        12 => TreeError::ReadOnly,
        13 => TreeError::Exists,
        14 => TreeError::NotEmpty,
        15 => TreeError::Full,
        16 => TreeError::TooBig,
        17 => TreeError::CrossDevice,
        18 => TreeError::Locked,
        19 => TreeError::Refused,
        20 => TreeError::Unsupported,
        _ => TreeError::Protocol("an unknown error"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_read_back_and_nothing_else_does() {
        let read = Read {
            handle: 7,
            offset: 1 << 40,
            len: MAX_LEN as u32,
        };
        let payload = read.encode();
        assert_eq!(Read::parse(&payload), Some(read));
        for len in 0..READ_LEN {
            assert_eq!(Read::parse(&payload[..len]), None, "cut at {len}");
        }
        assert_eq!(Read::parse(&[&payload[..], &[0]].concat()), None);
        assert_eq!(
            Read::parse(
                &Read {
                    len: MAX_LEN as u32 + 1,
                    ..read
                }
                .encode()
            ),
            None
        );
        for offset in [u64::MAX, i64::MAX as u64] {
            assert_eq!(Read::parse(&Read { offset, ..read }.encode()), None);
        }
    }

    #[test]
    fn headers_and_errors_read_back() {
        let header = content_header(1 << 50, 3);
        assert_eq!(parse_content(&header), Some((1 << 50, 3)));
        assert_eq!(parse_content(&header[..CONTENT_HEADER - 1]), None);
        for of in 1..=20 {
            assert_eq!(code(error(of)), of);
        }
        assert!(matches!(error(0), TreeError::Protocol(_)));
        assert!(matches!(error(21), TreeError::Protocol(_)));
    }
}
