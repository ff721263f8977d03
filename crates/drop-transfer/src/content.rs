//! Content of files in records.
//!
//! A *piece* is `file: u32, offset: u64` (big-endian) and then bytes of that file from that offset on. A *pack* is any number
//! of `file: u32, length: u32, bytes`, each a whole file, for files too small to be worth a record of their own; the BLAKE3 (32 bytes)
//! of each that is hashed follows its bytes.

/// Bytes before the content of a piece.
pub const PIECE_HEADER: usize = 12;

/// Bytes before each file of a pack.
pub const PACKED_HEADER: usize = 8;

/// Content bytes of a full piece. A multiple of the page size, so that files are written by whole pages.
pub const PIECE: usize = 256 << 10;

/// Files up to this many bytes travel in packs.
pub const SMALL: u64 = 128 << 10;

/// A piece of one file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece<'a> {
    /// Number of the file in the list of entries.
    pub file: u32,
    /// Where its bytes stand in the file.
    pub offset: u64,
    /// The bytes, at least one.
    pub bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Writes the header of a piece.
    pub fn header(file: u32, offset: u64) -> [u8; PIECE_HEADER] {
        let mut header = [0; PIECE_HEADER];
        header[..4].copy_from_slice(&file.to_be_bytes());
        header[4..].copy_from_slice(&offset.to_be_bytes());
        header
    }

    /// Reads a payload; `None` if it is too short or its end lies past what a file can have.
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        let (file, rest) = payload.split_first_chunk()?;
        let (offset, bytes) = rest.split_first_chunk()?;
        let (file, offset) = (u32::from_be_bytes(*file), u64::from_be_bytes(*offset));
        let end = offset.checked_add(bytes.len() as u64)?;
        (!bytes.is_empty() && end <= i64::MAX as u64).then_some(Self { file, offset, bytes })
    }
}

/// The files of a pack, one after another.
#[derive(Clone, Debug)]
pub struct Packed<'a, F> {
    rest: &'a [u8],
    hashed: F,
}

/// A file of a pack.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PackedFile<'a> {
    /// Number of the file in the list of entries.
    pub file: u32,
    /// All of its bytes.
    pub bytes: &'a [u8],
    /// Its BLAKE3, if it is hashed.
    pub hash: Option<[u8; 32]>,
}

/// Writes the header of one file of a pack.
pub fn packed_header(file: u32, len: u32) -> [u8; PACKED_HEADER] {
    let mut header = [0; PACKED_HEADER];
    header[..4].copy_from_slice(&file.to_be_bytes());
    header[4..].copy_from_slice(&len.to_be_bytes());
    header
}

impl<'a, F: Fn(u32) -> bool> Packed<'a, F> {
    /// Reads a payload, in which its hash follows each file that is `hashed`.
    pub fn new(payload: &'a [u8], hashed: F) -> Self {
        Self { rest: payload, hashed }
    }
}

impl<'a, F: Fn(u32) -> bool> Iterator for Packed<'a, F> {
    /// A file; `None` inside if the rest of the pack makes no sense.
    type Item = Option<PackedFile<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = |rest: &'a [u8]| {
            let (file, rest) = rest.split_first_chunk()?;
            let file = u32::from_be_bytes(*file);
            let (len, rest) = rest.split_first_chunk()?;
            let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
            let (bytes, rest) = rest.split_at_checked(len)?;
            let (hash, rest) = match (self.hashed)(file) {
                true => rest.split_first_chunk().map(|(hash, rest)| (Some(*hash), rest))?,
                false => (None, rest),
            };
            Some((PackedFile { file, bytes, hash }, rest))
        };
        match read(self.rest) {
            Some((file, rest)) => {
                self.rest = rest;
                Some(Some(file))
            }
            None => {
                self.rest = &[];
                Some(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_read_back() {
        let mut payload = Piece::header(7, 1 << 40).to_vec();
        assert_eq!(Piece::parse(&payload), None, "a piece without bytes says nothing");
        payload.extend(b"content");
        assert_eq!(
            Piece::parse(&payload),
            Some(Piece {
                file: 7,
                offset: 1 << 40,
                bytes: b"content"
            })
        );
        for len in 0..PIECE_HEADER {
            assert_eq!(Piece::parse(&payload[..len]), None);
        }
        let mut past = Piece::header(7, u64::MAX).to_vec();
        past.push(1);
        assert_eq!(Piece::parse(&past), None);
    }

    fn pack(hashed: impl Fn(u32) -> bool) -> (Vec<u8>, Vec<usize>) {
        let (mut payload, mut ends) = (Vec::new(), Vec::new());
        for (file, bytes) in [(1, &b"one"[..]), (2, b""), (9, b"nine")] {
            payload.extend(packed_header(file, bytes.len() as u32));
            payload.extend(bytes);
            if hashed(file) {
                payload.extend(blake3::hash(bytes).as_bytes());
            }
            ends.push(payload.len());
        }
        (payload, ends)
    }

    #[test]
    fn packs_read_back_and_broken_ones_end() {
        for hashed in [|_: u32| false, |_: u32| true, |file: u32| file == 2] {
            let (payload, ends) = pack(hashed);
            let files: Option<Vec<_>> = Packed::new(&payload, hashed).collect();
            let files = files.expect("the pack is whole");
            let named: Vec<_> = files.iter().map(|file| (file.file, file.bytes)).collect();
            assert_eq!(named, [(1, &b"one"[..]), (2, b""), (9, b"nine")]);
            assert!(
                files
                    .iter()
                    .all(|file| file.hash == hashed(file.file).then(|| *blake3::hash(file.bytes).as_bytes()))
            );
            for len in 1..payload.len() {
                let cut: Vec<_> = Packed::new(&payload[..len], hashed).collect();
                assert_eq!(
                    cut.last().is_some_and(Option::is_none),
                    !ends.contains(&len),
                    "cut at {len}"
                );
            }
        }
    }
}
