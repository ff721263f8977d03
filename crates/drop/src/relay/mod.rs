//! Placeholder until the relay is merged.
use std::net::TcpStream;
use std::sync::Arc;
use sealway_session::handshake::Role;
use crate::{Error, cancel::Cancel};
/// Meeting.
#[derive(Clone)]
pub enum Meeting {
    /// Open.
    Open(Arc<dyn Fn(u32) + Send + Sync>),
    /// Claim.
    Claim(u32),
}
/// Meet.
pub fn meet(_: &str, _: &Meeting, _: &Cancel) -> Result<(TcpStream, Role), Error> {
    Err(Error::Usage("no relay".into()))
}
/// Pair.
pub fn pair(_: &str, _: &[u8; 32], _: Role, _: &dyn Fn() -> bool) -> Result<TcpStream, Error> {
    Err(Error::Usage("no relay".into()))
}
