//! Messages of the handshake of TLS 1.3, read and written (RFC 8446 section 4).
//!
//! Readers borrow: a parsed message is a view of the bytes it came in, so that who needs them as they were (a transcript, a
//! REALITY server) has them. Every reader is total: whatever the bytes, it gives a value or an error, in time that is linear in
//! their number. Lengths must fit exactly; an extension that comes twice is an error.

mod compressed;
pub mod extension;
mod fields;
mod flight;
mod hello;
mod join;
mod message;
pub mod record;

#[cfg(test)]
mod tests;

pub use compressed::CompressedCertificate;
pub use extension::{Extensions, KeyShare, KeyShares, Numbers};
pub use flight::{
    Certificate, CertificateEntry, CertificateVerify, EncryptedExtensions, KeyUpdate, NewSessionTicket,
    signed_by_server, write_certificate, write_certificate_verify, write_encrypted_extensions, write_finished,
    write_key_update,
};
pub use hello::{ClientHello, RETRY_RANDOM, SESSION_ID_AT, ServerHello, write_client_hello, write_server_hello};
pub use join::Joiner;
pub use message::{HEAD, Kind, Message};

/// Longest ClientHello and ServerHello, with its head, bytes.
pub const MAX_HELLO: usize = 16 << 10;
/// Longest message of a server's flight, with its head, bytes: chains of certificates are what takes room.
pub const MAX_MESSAGE: usize = 64 << 10;
/// Longest flight of a server after its hello, bytes.
pub const MAX_FLIGHT: usize = 96 << 10;
/// Most extensions of one message.
pub const MAX_EXTENSIONS: usize = 128;
