//! The PROXY protocol on a socket.

use std::future::poll_fn;
use std::net::SocketAddr;

use sealway_net::sock::Sock;
use sealway_v2ray::Step;
use sealway_v2ray::proxy_protocol::{Endpoints, MAX_V2, Version, decode, encode};

use crate::Error;

/// What was told about the connection, and what was read behind it.
type Told = (Option<(SocketAddr, SocketAddr)>, Vec<u8>);

/// Reads the header, which must be there. Returns the client's address and the one it connected to, unless the header says
/// that the socket's own stand, and what was read behind it.
pub(crate) async fn read(sock: &mut Sock) -> Result<Told, Error> {
    let mut bytes = vec![0; 512];
    let mut filled = 0;
    loop {
        if filled == bytes.len() {
            if filled > MAX_V2 {
                return Err(Error::protocol("PROXY protocol", "header too long"));
            }
            bytes.resize(filled * 4, 0);
        }
        let got = poll_fn(|cx| sock.poll_read(cx, &mut bytes[filled..])).await?;
        if got == 0 {
            return Err(Error::Closed);
        }
        filled += got;
        if let Step::Done { value, used } = decode(&bytes[..filled])? {
            let ends = value.map(|ends| (ends.source, ends.destination));
            return Ok((ends, bytes[used..filled].to_vec()));
        }
    }
}

/// A header of the version for a connection between these.
pub(crate) fn header(version: u8, source: Option<SocketAddr>, destination: Option<SocketAddr>) -> Vec<u8> {
    let ends = source
        .zip(destination)
        .map(|(source, destination)| Endpoints { source, destination });
    let mut header = Vec::new();
    encode(if version == 1 { Version::V1 } else { Version::V2 }, ends, &mut header);
    header
}

/// Writes a header of the version for a connection between these.
pub(crate) async fn write(
    sock: &mut Sock,
    version: u8,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
) -> Result<(), Error> {
    let mut header = header(version, source, destination);
    while !header.is_empty() {
        let wrote = poll_fn(|cx| sock.poll_write(cx, &header)).await?;
        header.drain(..wrote);
    }
    Ok(())
}
