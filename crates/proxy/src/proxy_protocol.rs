//! PROXY protocol.
use std::net::SocketAddr;
use crate::Error;
use crate::sock::Sock;
pub(crate) async fn read(_s: &mut Sock) -> Result<(Option<(SocketAddr, SocketAddr)>, Vec<u8>), Error> { Err(Error::Unsupported("proxy")) }
pub(crate) fn header(_v: u8, _f: Option<SocketAddr>, _t: Option<SocketAddr>) -> Vec<u8> { Vec::new() }
