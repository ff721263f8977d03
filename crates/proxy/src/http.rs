//! HTTP upgrades.
use crate::Error;
use crate::settings::HttpNetwork;
use crate::stream::Stream;
pub(crate) enum Upgrade { WebSocket, Plain }
pub(crate) async fn accept(_s: &mut Stream, _h: &HttpNetwork, _u: Upgrade) -> Result<(), Error> { Err(Error::Unsupported("ws")) }
pub(crate) async fn connect(_s: &mut Stream, _h: &HttpNetwork, _host: &str, _u: Upgrade, _first: &[u8]) -> Result<usize, Error> { Err(Error::Unsupported("ws")) }
