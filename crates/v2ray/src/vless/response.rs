//! The response header.

use super::VERSION;
use super::request::field;
use crate::step::parse;
use crate::{Error, Step};

/// The response header a server sends: the version and no addons.
pub const RESPONSE: [u8; 2] = [VERSION, 0];

/// Reads a response header, as the client. Addons are skipped.
///
/// # Errors
/// [`Error::Field`] for another version: the server does not speak VLESS, or it refused and something else answers.
pub fn decode_response(bytes: &[u8]) -> Result<Step<()>, Error> {
    parse(bytes, |cursor| {
        let version = cursor.u8()?;
        if version != VERSION {
            return Err(field("the version of the response", version).into());
        }
        let addons = cursor.u8()?;
        cursor.take(usize::from(addons))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_boundary() {
        assert_eq!(decode_response(&RESPONSE), Ok(Step::Done { value: (), used: 2 }));
        let bytes = [0, 3, 9, 9, 9, b'p'];
        for n in 0..5 {
            assert!(matches!(decode_response(&bytes[..n]), Ok(Step::More(m)) if m > 0));
        }
        assert_eq!(decode_response(&bytes), Ok(Step::Done { value: (), used: 5 }));
        assert!(decode_response(b"HTTP/1.1 400").is_err());
    }
}
