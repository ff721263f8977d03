//! Trojan.
//!
//! A request is `key[56] | CR LF | command | type | address | port u16 | CR LF`, and what follows it is the payload itself,
//! or datagrams ([`packet`]). The key is the SHA-224 of the password in hexadecimal digits. There is no response header, no
//! encryption, no checksum and no protection against replay: all that is left to TLS around it.
//!
//! A server reads once, asks [`first::inspect`] whether a user speaks, and then either decodes a [`Request`] or picks a
//! fallback ([`crate::vless::fallback::Fallbacks`], which are the same for both protocols).

pub mod first;
mod key;
pub mod packet;
mod request;
mod users;

pub use key::Key;
pub use request::Request;
pub use users::Users;

use crate::{Error, Protocol};

/// What ends the key, the address and the length of a datagram.
const CRLF: [u8; 2] = *b"\r\n";

fn check_crlf(bytes: [u8; 2], problem: &'static str) -> Result<(), Error> {
    let protocol = Protocol::Trojan;
    match bytes == CRLF {
        true => Ok(()),
        false => Err(protocol.malformed(problem)),
    }
}
