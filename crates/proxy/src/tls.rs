//! TLS: settings turned into what `rustls` takes, the handshake, and the records after it.

pub(crate) mod build;
pub(crate) mod certs;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub(crate) mod handshake;
pub(crate) mod provider;
pub(crate) mod reality;
pub(crate) mod records;
pub(crate) mod verify;

#[cfg(test)]
mod hello_tests;
#[cfg(test)]
mod settings_tests;
#[cfg(test)]
pub(crate) mod tests;
