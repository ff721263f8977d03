//! Finding the end of the garbage.

use alloc::vec::Vec;

use crate::{Error, GARBAGE_MAX, TERMINATOR_LEN};

/// Bytes in which the terminator must have come.
const LIMIT: usize = GARBAGE_MAX + TERMINATOR_LEN;

/// Garbage gathered so far, and what ends it. Never more than 4111 bytes.
pub(super) struct Scan {
    terminator: [u8; TERMINATOR_LEN],
    bytes: Vec<u8>,
}

impl Scan {
    pub(super) const fn new(terminator: [u8; TERMINATOR_LEN]) -> Self {
        Scan {
            terminator,
            bytes: Vec::new(),
        }
    }

    /// Takes bytes up to the end of the terminator; gives how many, and whether it is there. The first one counts.
    pub(super) fn push(&mut self, input: &[u8]) -> Result<(usize, bool), Error> {
        let had = self.bytes.len();
        let taken = &input[..input.len().min(LIMIT - had)];
        self.bytes.extend_from_slice(taken);
        // A terminator that ends in the new bytes starts at most 15 bytes before them.
        let from = had.saturating_sub(TERMINATOR_LEN - 1);
        let place = self.bytes[from..]
            .windows(TERMINATOR_LEN)
            .position(|window| *window == self.terminator);
        match place {
            Some(place) => {
                let garbage = from + place;
                self.bytes.truncate(garbage);
                Ok((garbage + TERMINATOR_LEN - had, true))
            }
            None if self.bytes.len() == LIMIT => Err(Error::NoTerminator),
            None => Ok((taken.len(), false)),
        }
    }

    pub(super) const fn received(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn into_garbage(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: [u8; 16] = *b"0123456789abcdef";

    /// Pushes in pieces of a length and gives how many bytes were taken and the garbage, or the error.
    fn scan(input: &[u8], piece: usize) -> Result<Option<(usize, Vec<u8>)>, Error> {
        let mut scan = Scan::new(MARK);
        let mut taken = 0;
        while taken < input.len() {
            let end = input.len().min(taken + piece);
            let (used, found) = scan.push(&input[taken..end])?;
            taken += used;
            assert!(found || taken == end, "bytes were left without a terminator");
            if found {
                return Ok(Some((taken, scan.into_garbage())));
            }
        }
        Ok(None)
    }

    #[test]
    fn the_first_terminator_counts_at_every_place_and_split() {
        for garbage in (0..40).chain([63, 64, 4000, 4094, 4095]) {
            let mut input = vec![b'0'; garbage];
            input.extend_from_slice(&MARK);
            input.extend_from_slice(b"rest");
            input.extend_from_slice(&MARK);
            for piece in (1..40).chain([4095, 4111, 5000]) {
                assert_eq!(
                    scan(&input, piece),
                    Ok(Some((garbage + 16, vec![b'0'; garbage]))),
                    "{garbage} bytes of garbage in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn a_terminator_that_is_late_or_absent_is_an_error() {
        let mut late = vec![b'0'; 4096];
        late.extend_from_slice(&MARK);
        for piece in [1, 16, 4111, 4112] {
            assert_eq!(scan(&late, piece), Err(Error::NoTerminator), "{piece}");
            assert_eq!(scan(&late[..4110], piece), Ok(None), "{piece}");
            assert_eq!(scan(&[7; 4111], piece), Err(Error::NoTerminator), "{piece}");
        }
    }

    #[test]
    fn beginnings_of_terminators_are_garbage() {
        let mut input = Vec::new();
        for n in 0..16 {
            input.extend_from_slice(&MARK[..n]);
        }
        let garbage = input.clone();
        input.extend_from_slice(&MARK);
        for piece in 1..20 {
            assert_eq!(scan(&input, piece), Ok(Some((input.len(), garbage.clone()))));
        }
    }
}
