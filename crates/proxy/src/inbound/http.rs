//! HTTP proxy.
use sealway_v2ray::Destination;
use crate::Error;
use crate::settings::Account;
use crate::stream::Stream;
pub(crate) async fn request(_s: &mut Stream, _a: Option<&Account>, _to: &Destination) -> Result<(), Error> { Err(Error::Unsupported("http")) }
pub(crate) async fn take(_f: super::Fresh, _s: &crate::settings::HttpProxy, _u: std::sync::Arc<super::UserRecord>) -> Result<super::Taken, Error> { Err(Error::Unsupported("http")) }
