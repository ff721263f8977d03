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
    use crate::step::whole;

    #[test]
    fn every_boundary() {
        whole(&RESPONSE, decode_response);
        whole(&[0, 3, 9, 9, 9], decode_response);
        assert!(decode_response(b"HTTP/1.1 400").is_err());
    }
}
