//! A connection through a link: a socket at each end, and a direction each way.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

use super::Link;
use super::flow::{Due, Flow, Item};
use crate::stats::SplitMix64;

/// Directions, and the ends that are their sources: from who connected, and back.
pub(super) const UP: usize = 0;
pub(super) const DOWN: usize = 1;

/// Buffers of the sockets, within which windows of loopback's large segments move freely.
const BUFFERS: std::ops::RangeInclusive<u64> = (256 << 10)..=(4 << 20);

/// Bytes that a socket of the relay may hold on their way in: they stand for the sender's own buffer.
pub(super) fn buffer(link: &Link) -> usize {
    usize::try_from(link.most_held().clamp(*BUFFERS.start(), *BUFFERS.end())).unwrap_or(usize::MAX)
}

/// What a source gave.
#[derive(Debug)]
pub(super) enum Taken {
    Data(Vec<u8>),
    /// It has ended, or broken.
    Over(Item),
    /// Nothing for now.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Pair {
    /// The near one, and the far one once it is dialled.
    ends: [Option<TcpStream>; 2],
    pub(super) flows: [Flow; 2],
    /// When the far end is dialled, and when the first byte of each direction may enter: a client sends when the answer to its
    /// handshake has come, a server when the acknowledgement of that has.
    pub(super) dial_at: u64,
    pub(super) open_at: [u64; 2],
    /// Something may be there to be read, of each end; and nothing more can be written there.
    readable: [bool; 2],
    full: [bool; 2],
    /// The end of each direction has been delivered.
    finished: [bool; 2],
    /// A direction waits for room in the queue.
    pub(super) queued: [bool; 2],
    /// The connection is no more.
    broken: bool,
}

impl Pair {
    /// A connection that was accepted at `now`; its choices come from `random`.
    pub(super) fn new(near: TcpStream, link: &Link, now: u64, model: bool, random: [SplitMix64; 2]) -> Pair {
        let one_way = if model { link.one_way() } else { 0 };
        Pair {
            ends: [Some(near), None],
            flows: random.map(|random| Flow::new(link, random)),
            dial_at: now + one_way,
            open_at: [now + 2 * one_way, now + 3 * one_way],
            readable: [true; 2],
            full: [false; 2],
            finished: [false; 2],
            queued: [false; 2],
            broken: false,
        }
    }

    pub(super) fn is_dialled(&self) -> bool {
        self.ends[DOWN].is_some() || self.broken
    }

    /// Begins to connect the far end; the socket, to be waited for.
    pub(super) fn dial(&mut self, to: SocketAddr, buffer: usize) -> io::Result<&TcpStream> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.set_recv_buffer_size(buffer)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&to.into()) {
            // Until it is connected nothing can be read or written, and a refusal is an error of reading.
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Err(error),
            _ => Ok(&*self.ends[DOWN].insert(socket.into())),
        }
    }

    /// Something has happened to an end.
    pub(super) fn wake(&mut self, end: usize) {
        self.readable[end] = true;
        self.full[end] = false;
    }

    /// True if `direction` would take something in at `now`.
    pub(super) fn wants(&self, direction: usize, now: u64, model: bool) -> bool {
        let open = now >= self.open_at[direction] || !model;
        let ready = self.readable[direction] && self.is_dialled() && !self.queued[direction] && !self.broken;
        open && ready && self.flows[direction].room(model) > 0
    }

    /// Reads from the source of `direction`, as much as there is room for.
    pub(super) fn take(&mut self, direction: usize, model: bool, buffer: &mut [u8]) -> Taken {
        let room = self.flows[direction].room(model).min(buffer.len());
        let Some(mut source) = self.ends[direction].as_ref() else {
            return Taken::Nothing;
        };
        loop {
            match source.read(&mut buffer[..room]) {
                Ok(0) => return Taken::Over(Item::End),
                Ok(count) => return Taken::Data(buffer[..count].to_vec()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable[direction] = false;
                    return Taken::Nothing;
                }
                Err(_) => return Taken::Over(Item::Broken),
            }
        }
    }

    /// Delivers what is due in `direction`. False if its receiver is gone: the other direction has to say so.
    pub(super) fn deliver(&mut self, direction: usize, now: u64) -> bool {
        let end = 1 - direction;
        while let (Some(mut receiver), Some(due), false) =
            (self.ends[end].as_ref(), self.flows[direction].due(now), self.full[end])
        {
            let given = match due {
                Due::Data(data) => match receiver.write(data) {
                    Ok(count) => count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.full[end] = true;
                        break;
                    }
                    Err(_) => {
                        self.flows[direction].abandon();
                        self.finished[direction] = true;
                        return false;
                    }
                },
                Due::End => {
                    // A receiver that is gone says so in the other direction.
                    let _ = receiver.shutdown(std::net::Shutdown::Write);
                    self.finished[direction] = true;
                    0
                }
                Due::Broken => {
                    self.cut();
                    return true;
                }
            };
            self.flows[direction].delivered(given);
        }
        true
    }

    /// Breaks the connection: both ends get a reset.
    pub(super) fn cut(&mut self) {
        for end in self.ends.iter_mut().filter_map(Option::take) {
            // Without it they get an ordinary end, which is the best there is.
            let _ = SockRef::from(&end).set_linger(Some(Duration::ZERO));
        }
        self.broken = true;
    }

    /// Nothing more will happen.
    pub(super) fn is_over(&self) -> bool {
        self.broken || self.finished == [true; 2]
    }
}
