//! An end of the connections that seals and opens in batches, over epoll.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

use sealway_bip324::batch::BatchOptions;

use super::course::Course;
use super::{End, PATIENCE, broken};
use crate::bip324::ends::BatchEnd;
use crate::bip324::links::{Link, failed};
use crate::poller::{Poller, Ready};
use crate::run::CellError;

/// Bytes that are read at once.
const READ: usize = 16 * 1024;

/// Bytes of packets that are opened at the latest.
const MOST: usize = 4 << 20;

/// How often an end that waits looks whether it is over.
const TICK: Duration = Duration::from_millis(10);

/// A transport with all connections.
pub(super) struct Batches {
    end: BatchEnd,
    /// What a socket did not take, for each connection, and the bytes of all.
    waiting: Vec<Vec<u8>>,
    backlog: usize,
    /// Packets of a connection that do not lie side by side.
    gathered: Vec<u8>,
    /// Bytes that came and are not opened.
    came: usize,
}

impl Batches {
    pub(super) fn new(links: &[Link]) -> Result<Self, CellError> {
        Ok(Batches {
            end: BatchEnd::with(BatchOptions::default(), links)?,
            waiting: vec![Vec::new(); links.len()],
            backlog: 0,
            gathered: Vec::new(),
            came: 0,
        })
    }

    fn send(&mut self, course: &Course, packets: Range<usize>, sockets: &[TcpStream]) -> Result<(), CellError> {
        self.end.submit(course.traffic(), packets)?;
        for output in self.end.transport.seal().iter() {
            let connection = output.id.index();
            let bytes = match output.as_slice() {
                Some(bytes) => bytes,
                None => {
                    self.gathered.clear();
                    output.slices().for_each(|bytes| self.gathered.extend_from_slice(bytes));
                    &self.gathered
                }
            };
            let waiting = &mut self.waiting[connection];
            let taken = if waiting.is_empty() {
                write(&sockets[connection], bytes)?
            } else {
                0
            };
            waiting.extend_from_slice(&bytes[taken..]);
            self.backlog += bytes.len() - taken;
        }
        Ok(())
    }

    /// Writes what waits, and reads all that there is.
    fn serve(&mut self, course: &mut Course, ready: Ready, sockets: &[TcpStream]) -> Result<(), CellError> {
        let connection = usize::try_from(ready.token).map_err(failed)?;
        let waiting = &mut self.waiting[connection];
        if !waiting.is_empty() {
            let taken = write(&sockets[connection], waiting)?;
            waiting.drain(..taken);
            self.backlog -= taken;
        }
        loop {
            if self.came + READ > MOST {
                self.open(course)?;
            }
            let id = self.end.ids[connection];
            let room = self.end.transport.receive_room(id, READ).map_err(failed)?;
            let got = match (&sockets[connection]).read(room) {
                Ok(0) => return Err(failed("the other end has closed a connection")),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(broken(error)),
            };
            course.came(connection, &room[..got]);
            self.end.transport.receive_commit(got).map_err(failed)?;
            self.came += got;
            // Less than there was room for is all, unless the end follows.
            if got < READ && !ready.closing {
                return Ok(());
            }
        }
    }

    fn open(&mut self, course: &mut Course) -> Result<(), CellError> {
        self.came = 0;
        for message in self.end.transport.open().iter() {
            course.opened(message.id.index(), message.contents);
        }
        match self.end.transport.poll_closed() {
            None => course.tell(),
            Some((_, error)) => Err(CellError::wrong(error)),
        }
    }
}

/// Writes as much as a socket takes.
fn write(mut socket: &TcpStream, bytes: &[u8]) -> Result<usize, CellError> {
    let mut taken = 0;
    while taken < bytes.len() {
        match socket.write(&bytes[taken..]) {
            Ok(count) => taken += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(broken(error)),
        }
    }
    Ok(taken)
}

impl End for Batches {
    fn run(mut self: Box<Self>, mut course: Course, sockets: Vec<TcpStream>) -> Result<(), CellError> {
        let mut poller = Poller::new().map_err(failed)?;
        for (token, socket) in (0..).zip(&sockets) {
            poller.add(socket, token).map_err(failed)?;
        }
        let mut last = Instant::now();
        loop {
            while let Some(packets) = course.next() {
                self.send(&course, packets, &sockets)?;
            }
            if course.is_over() && self.backlog == 0 {
                break;
            }
            let mut count = poller.wait(TICK).map_err(failed)?;
            if count > 0 {
                last = Instant::now();
            } else if last.elapsed() > PATIENCE {
                return Err(failed("nothing came for 20 s"));
            }
            while count > 0 {
                for ready in (0..count).filter_map(|index| poller.event(index)) {
                    self.serve(&mut course, ready, &sockets)?;
                }
                count = poller.wait(Duration::ZERO).map_err(failed)?;
            }
            self.open(&mut course)?;
        }
        course.leave();
        Ok(())
    }
}
