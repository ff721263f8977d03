//! Random bytes, drawn from the system a page at a time.

use std::cell::RefCell;

use crate::Error;

struct Drawn {
    bytes: [u8; 2048],
    used: usize,
}

thread_local! {
    static DRAWN: RefCell<Drawn> = const { RefCell::new(Drawn { bytes: [0; 2048], used: 2048 }) };
}

/// Fills `out` with random bytes, each given out once only.
///
/// # Errors
/// [`Error::Io`] if the system has none.
pub(crate) fn fill(out: &mut [u8]) -> Result<(), Error> {
    DRAWN.with_borrow_mut(|drawn| {
        if drawn.bytes.len() - drawn.used < out.len() {
            if out.len() > drawn.bytes.len() {
                return getrandom::fill(out).map_err(|error| Error::Io(std::io::Error::other(error)));
            }
            getrandom::fill(&mut drawn.bytes).map_err(|error| Error::Io(std::io::Error::other(error)))?;
            drawn.used = 0;
        }
        let given = &mut drawn.bytes[drawn.used..drawn.used + out.len()];
        out.copy_from_slice(given);
        given.fill(0);
        drawn.used += out.len();
        Ok(())
    })
}

/// Fills what it is given with random bytes. Whoever uses them looks first whether it has `failed`.
pub(crate) fn filler(failed: &mut Result<(), Error>) -> impl FnMut(&mut [u8]) + '_ {
    |out| {
        if let Err(error) = fill(out) {
            *failed = Err(error);
        }
    }
}

/// `N` random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut out = [0; N];
    fill(&mut out)?;
    Ok(out)
}

/// A random number below `end`, each as likely as the others. 0 for an `end` of 0.
pub(crate) fn below(end: usize) -> Result<usize, Error> {
    let drawn = u64::from_le_bytes(bytes()?);
    // Of 64 bits the bias is less than anybody could measure.
    Ok(((u128::from(drawn) * end as u128) >> 64) as usize)
}
