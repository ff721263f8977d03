//! SOCKS.
use sealway_v2ray::Destination;
use crate::Error;
use crate::settings::Account;
use crate::stream::Stream;
pub(crate) async fn request(_s: &mut Stream, _a: Option<&Account>, _to: &Destination) -> Result<(), Error> { Err(Error::Unsupported("socks")) }
pub(crate) enum Asked { Stream(super::Taken), Associate(Association) }
pub(crate) struct Association;
pub(crate) async fn take(_f: super::Fresh, _s: &crate::settings::Socks, _u: std::sync::Arc<super::UserRecord>) -> Result<Asked, Error> { Err(Error::Unsupported("socks")) }
pub(crate) async fn serve_udp(_e: &crate::engine::Engine, _i: &std::sync::Arc<super::Inbound>, _a: Association) -> Result<(), Error> { Ok(()) }
