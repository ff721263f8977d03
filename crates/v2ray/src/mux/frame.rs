//! Frames as they are read.

use std::ops::Range;

use super::{GlobalId, MAX_META, MIN_META};
use crate::address::{Network, read_port_first};
use crate::step::{Cursor, Stop, parse};
use crate::{Destination, Error, Protocol, Step};

/// The option bit of a frame with data.
pub(super) const DATA: u8 = 1;
/// The option bit of a session that broke.
pub(super) const ERROR: u8 = 2;

pub(super) const NEW: u8 = 1;
pub(super) const KEEP: u8 = 2;
pub(super) const END: u8 = 3;
pub(super) const KEEP_ALIVE: u8 = 4;

pub(super) const TCP: u8 = 1;
pub(super) const UDP: u8 = 2;

/// What a frame says of its session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Status {
    /// A session begins.
    New {
        /// Where it goes.
        to: Destination,
        /// The client's source address, hashed: whose association this is, whatever carrier it comes in.
        global: Option<GlobalId>,
    },
    /// A session goes on.
    Keep {
        /// Where this datagram goes or came from. `None`: the session's target.
        peer: Option<Destination>,
    },
    /// A session is over, both ways.
    End,
    /// The carrier is to stay open. Data is to be thrown away.
    KeepAlive,
}

/// A frame.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frame {
    /// The session.
    pub id: u16,
    /// What becomes of it.
    pub status: Status,
    /// The session broke.
    pub error: bool,
    /// Where its data stands in the bytes that were shown. `None`: the frame has none, which is not the same as an empty
    /// datagram.
    pub data: Option<Range<usize>>,
}

/// Finds the frame at the front of `bytes`. It is at most 2 + [`MAX_META`] + 2 + 65,535 bytes long.
///
/// # Errors
/// [`Error::Malformed`] and those of addresses: nothing can be found behind such a frame.
pub fn decode(bytes: &[u8]) -> Result<Step<Frame>, Error> {
    parse(bytes, |cursor| {
        let len = usize::from(cursor.u16()?);
        if !(MIN_META..=MAX_META).contains(&len) {
            return Err(malformed("the length of a frame's head is not from 4 to 512").into());
        }
        let mut meta = Cursor::new(cursor.take(len)?);
        let (id, status, option) = head(&mut meta).map_err(whole)?;
        let has_data = option & DATA != 0;
        let status = match status {
            NEW => fields_of_new(&mut meta, has_data).map_err(whole)?,
            KEEP => Status::Keep {
                peer: match meta.rest().first() {
                    Some(&UDP) => Some(target(&mut meta).map_err(whole)?),
                    // Padding.
                    _ => None,
                },
            },
            END => Status::End,
            KEEP_ALIVE => Status::KeepAlive,
            _ => return Err(malformed("a frame has an unknown status").into()),
        };
        let data = match has_data {
            false => None,
            true => {
                let len = usize::from(cursor.u16()?);
                let at = cursor.position();
                cursor.take(len)?;
                Some(at..at + len)
            }
        };
        Ok(Frame {
            id,
            status,
            error: option & ERROR != 0,
            data,
        })
    })
}

fn head(meta: &mut Cursor<'_>) -> Result<(u16, u8, u8), Stop> {
    Ok((meta.u16()?, meta.u8()?, meta.u8()?))
}

fn fields_of_new(meta: &mut Cursor<'_>, has_data: bool) -> Result<Status, Stop> {
    let to = target(meta)?;
    let mut global = None;
    if has_data && to.network == Network::Udp && meta.rest().len() >= GlobalId::LEN {
        global = GlobalId::from_wire(meta.array()?);
    }
    Ok(Status::New { to, global })
}

fn target(meta: &mut Cursor<'_>) -> Result<Destination, Stop> {
    let network = match meta.u8()? {
        TCP => Network::Tcp,
        UDP => Network::Udp,
        _ => return Err(malformed("a frame has an unknown network").into()),
    };
    let (address, port) = read_port_first(meta, Protocol::Mux)?;
    Ok(Destination { network, address, port })
}

/// The head of a frame is all there: what it lacks will not come.
fn whole(stop: Stop) -> Stop {
    match stop {
        Stop::More(_) => malformed("the head of a frame is too short for what it holds").into(),
        failed => failed,
    }
}

fn malformed(problem: &'static str) -> Error {
    Protocol::Mux.malformed(problem)
}
