//! TLS records after a handshake of `rustls`.
//!
//! `rustls` does the handshake, the authentication and the key schedule. When it is through, the connection is taken
//! apart (`dangerous_into_kernel_connection`, made for kTLS) and the records are those of `sealway-tls`, opened and sealed in
//! place, to which what `rustls` remembers is a [`Schedule`].

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{ConnectionTrafficSecrets, ExtractedSecrets, ProtocolVersion};
use sealway_aead::Suite;
use sealway_tls::records::{Records, Schedule, Version};
use sealway_tls::schedule::Keys;
use sealway_tls::{Alert, Error};

/// The end of the handshake that remembers the key schedule.
pub enum Kernel {
    /// This end dialled.
    Client(KernelConnection<ClientConnectionData>),
    /// This end accepted.
    Server(KernelConnection<ServerConnectionData>),
}

/// The record layer after a handshake.
///
/// # Errors
/// [`Error::Library`] if memory ran out, or for a suite that there are no records for.
pub fn after(secrets: &ExtractedSecrets, kernel: Kernel) -> Result<Records, Error> {
    let version = match &kernel {
        Kernel::Client(kernel) => kernel.protocol_version(),
        Kernel::Server(kernel) => kernel.protocol_version(),
    };
    let version = match version {
        ProtocolVersion::TLSv1_3 => Version::Tls13,
        _ => Version::Tls12,
    };
    let (tx, rx) = (keys(secrets.tx.0, &secrets.tx.1)?, keys(secrets.rx.0, &secrets.rx.1)?);
    Records::new(version, &tx, &rx, Box::new(kernel))
}

fn keys(next: u64, secrets: &ConnectionTrafficSecrets) -> Result<Keys, Error> {
    let (suite, key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Suite::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Suite::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Suite::ChaCha20Poly1305, key, iv),
        _ => return Err(Error::Library("agreed on a cipher that there are no records for")),
    };
    let iv = iv.as_ref().try_into();
    let iv = iv.map_err(|_| Error::Library("initialisation vector of another length"))?;
    Keys::new(suite, key.as_ref(), iv, next)
}

fn no_keys(_: rustls::Error) -> Error {
    Error::Library("no further keys")
}

impl Schedule for Kernel {
    fn next_sending(&mut self) -> Result<Keys, Error> {
        let secrets = match self {
            Kernel::Client(kernel) => kernel.update_tx_secret(),
            Kernel::Server(kernel) => kernel.update_tx_secret(),
        };
        let (next, secrets) = secrets.map_err(no_keys)?;
        keys(next, &secrets)
    }

    fn next_receiving(&mut self) -> Result<Keys, Error> {
        let secrets = match self {
            Kernel::Client(kernel) => kernel.update_rx_secret(),
            Kernel::Server(kernel) => kernel.update_rx_secret(),
        };
        let (next, secrets) = secrets.map_err(no_keys)?;
        keys(next, &secrets)
    }

    fn takes_tickets(&self) -> bool {
        matches!(self, Kernel::Client(_))
    }

    fn ticket(&mut self, ticket: &[u8]) -> Result<(), Error> {
        let Kernel::Client(kernel) = self else { return Ok(()) };
        let taken = kernel.handle_new_session_ticket(ticket);
        taken.map_err(|_| Error::peer(Alert::DecodeError, "session ticket that cannot be read"))
    }
}
