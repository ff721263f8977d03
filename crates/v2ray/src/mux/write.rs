//! Frames as they are written: appended to what goes out next, so that many of them leave in one piece.

use super::frame::{DATA, END, ERROR, KEEP, NEW, TCP, UDP};
use super::{GlobalId, MAX_META};
use crate::address::{Network, write_port_first};
use crate::{Destination, Error, Protocol};

/// Most bytes that a frame adds to its data: lengths, a longest domain name and a GlobalID.
pub const MAX_HEAD: usize = 2 + 4 + 1 + 2 + 2 + 255 + GlobalId::LEN + 2;

/// Appends the frame that begins a session, perhaps with its first data.
///
/// # Errors
/// [`Error::DoesNotFit`] for more than 65,535 bytes of data.
pub fn push_new(
    out: &mut Vec<u8>,
    id: u16,
    to: &Destination,
    global: Option<GlobalId>,
    data: Option<&[u8]>,
) -> Result<(), Error> {
    let option = if data.is_some() { DATA } else { 0 };
    let len = data.map(length).transpose()?;
    let at = begin(out, id, NEW, option);
    target(out, to);
    if let Some(global) = global {
        out.extend_from_slice(&global.to_bytes());
    }
    finish(out, at);
    if let (Some(len), Some(data)) = (len, data) {
        out.extend_from_slice(&len);
        out.extend_from_slice(data);
    }
    Ok(())
}

/// Appends a frame with data of a stream, or with a datagram of the session's one target.
///
/// # Errors
/// [`Error::DoesNotFit`] for more than 65,535 bytes.
pub fn push_keep(out: &mut Vec<u8>, id: u16, data: &[u8]) -> Result<(), Error> {
    let len = length(data)?;
    let at = begin(out, id, KEEP, DATA);
    finish(out, at);
    out.extend_from_slice(&len);
    out.extend_from_slice(data);
    Ok(())
}

/// Appends a datagram with where it goes or came from.
///
/// # Errors
/// [`Error::DoesNotFit`] for more than 65,535 bytes.
pub fn push_packet(out: &mut Vec<u8>, id: u16, peer: &Destination, data: &[u8]) -> Result<(), Error> {
    let len = length(data)?;
    let at = begin(out, id, KEEP, DATA);
    out.push(UDP);
    write_port_first(&peer.address, peer.port, out);
    finish(out, at);
    out.extend_from_slice(&len);
    out.extend_from_slice(data);
    Ok(())
}

/// Appends the end of a session.
pub fn push_end(out: &mut Vec<u8>, id: u16, error: bool) {
    let at = begin(out, id, END, if error { ERROR } else { 0 });
    finish(out, at);
}

fn begin(out: &mut Vec<u8>, id: u16, status: u8, option: u8) -> usize {
    let at = out.len();
    let [high, low] = id.to_be_bytes();
    out.extend_from_slice(&[0, 0, high, low, status, option]);
    at
}

/// Fills in the length of the head that began at `at`. Addresses have at most 255 bytes, so it is less than [`MAX_META`].
fn finish(out: &mut [u8], at: usize) {
    let len = out.len() - at - 2;
    debug_assert!(len <= MAX_META);
    out[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
}

fn target(out: &mut Vec<u8>, to: &Destination) {
    out.push(match to.network {
        Network::Tcp => TCP,
        Network::Udp => UDP,
    });
    write_port_first(&to.address, to.port, out);
}

fn length(data: &[u8]) -> Result<[u8; 2], Error> {
    match u16::try_from(data.len()) {
        Ok(len) => Ok(len.to_be_bytes()),
        Err(_) => Err(Protocol::Mux.does_not_fit("the data of a frame", usize::from(u16::MAX), data.len())),
    }
}
