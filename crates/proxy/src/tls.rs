//! TLS: settings turned into what `rustls` takes, and the handshake, which leaves the records to `sealway-tls`.

pub(crate) mod build;
pub(crate) mod certs;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub(crate) mod handshake;
pub(crate) mod provider;
pub(crate) mod reality;
pub(crate) mod verify;

#[cfg(test)]
mod hello_tests;
#[cfg(test)]
mod settings_tests;
#[cfg(test)]
pub(crate) mod tests;
