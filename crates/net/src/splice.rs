//! Moving bytes from one socket to another: inside the kernel through a pipe, or, where that is not to be had, through
//! memory.
//!
//! A pipe is taken only when there is something to move and goes back when it is empty, so a waiting connection holds
//! nothing but its two sockets. Each thread keeps a few for the next one.

use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::SendFlags;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

/// Size asked for of a pipe. It is counted in pages, of which what the network brings seldom fills more than a part. The
/// kernel lets any user have up to 1 MiB (`fs.pipe-max-size`).
const PIPE_BYTES: usize = 512 << 10;

/// Most bytes put into a pipe whose target did not take all of the last ones at once. One that keeps up is given whole pipes,
/// because a call costs more than the bytes it moves; if it stalls in full flow, the last of them is held until it goes on.
const CAREFUL: usize = 224 << 10;

/// A pipe of less moves a page or two at a time, which is slower than copying.
const SMALLEST_PIPE: usize = 64 << 10;

/// Bytes that are copied at once.
const COPY_BYTES: usize = 64 << 10;

/// Empty pipes and buffers, of each so many, that a thread keeps.
const KEPT: usize = 16;

thread_local! {
    static PIPES: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
    static BUFFERS: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

fn keep<T>(kept: &mut Vec<T>, one: T) {
    if kept.len() < KEPT {
        kept.push(one);
    }
}

/// What was to be moved and was not would be tried again for ever.
fn moved_some(moved: usize) -> io::Result<usize> {
    match moved {
        0 => Err(io::ErrorKind::WriteZero.into()),
        _ => Ok(moved),
    }
}

/// True for an error that says: the kernel cannot do this with these sockets at all.
pub fn is_unable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// A pipe and the number of bytes in it.
#[derive(Debug)]
pub struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    capacity: usize,
    filled: usize,
    /// Bytes that the last [`Pipe::fill`] moved, and the most that the next one may.
    last: usize,
    grant: usize,
}

impl Pipe {
    /// An empty pipe.
    ///
    /// # Errors
    /// When the process has no descriptors left, or the user no pages for pipes; the caller then copies through memory.
    pub fn take() -> io::Result<Pipe> {
        if let Some(pipe) = PIPES.with_borrow_mut(Vec::pop) {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Over the user's allowance the kernel refuses to enlarge, and gives less than the default to begin with.
        let capacity = match fcntl_setpipe_size(&write, PIPE_BYTES) {
            Ok(capacity) => capacity,
            Err(_) => fcntl_getpipe_size(&write)?,
        };
        if capacity < SMALLEST_PIPE {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(Pipe {
            read,
            write,
            capacity,
            filled: 0,
            last: 0,
            grant: capacity.min(CAREFUL),
        })
    }

    /// Gives an empty pipe back; one with something in it is closed.
    pub fn give_back(mut self) {
        if self.filled == 0 {
            self.grant = self.capacity.min(CAREFUL);
            PIPES.with_borrow_mut(|kept| keep(kept, self));
        }
    }

    /// Bytes in it.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Moves what the socket has into the empty pipe; 0 is the end of the stream.
    pub fn fill(&mut self, from: BorrowedFd<'_>) -> io::Result<usize> {
        self.fill_some(from, usize::MAX)
    }

    /// As [`Pipe::fill`] with at most so many bytes, of which there must be one.
    pub fn fill_some(&mut self, from: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let moved = splice(from, None, &self.write, None, self.grant.min(most.max(1)), flags)?;
        self.filled += moved;
        self.last = moved;
        Ok(moved)
    }

    /// Moves some of the pipe's bytes into the socket.
    pub fn drain(&mut self, to: BorrowedFd<'_>) -> io::Result<usize> {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let moved = splice(&self.read, None, to, None, self.filled, flags);
        // A small filling that was taken says nothing of what the target would do with a large one.
        let kept_up = moved == Ok(self.last) && self.last >= self.capacity.min(CAREFUL);
        self.grant = if kept_up {
            self.capacity
        } else {
            self.capacity.min(CAREFUL)
        };
        let moved = moved_some(moved?)?;
        self.filled -= moved.min(self.filled);
        Ok(moved)
    }
}

/// Bytes copied out of one socket and not yet into the other.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

/// Where bytes are on their way.
#[derive(Debug)]
pub enum Carrier {
    /// In the kernel.
    Pipe(Pipe),
    /// In memory, at most 64 KiB.
    Copy(Buffer),
}

impl Carrier {
    /// An empty one: a pipe, unless that is not to be had or `copy` says that it cannot be used.
    pub fn take(copy: bool) -> Self {
        if !copy && let Ok(pipe) = Pipe::take() {
            return Carrier::Pipe(pipe);
        }
        let kept = BUFFERS.with_borrow_mut(Vec::pop);
        Carrier::Copy(Buffer {
            bytes: kept.unwrap_or_else(|| vec![0; COPY_BYTES].into()),
            start: 0,
            end: 0,
        })
    }

    /// Gives it back for others.
    pub fn give_back(self) {
        match self {
            Carrier::Pipe(pipe) => pipe.give_back(),
            Carrier::Copy(buffer) => BUFFERS.with_borrow_mut(|kept| keep(kept, buffer.bytes)),
        }
    }

    /// Bytes in it.
    pub fn filled(&self) -> usize {
        match self {
            Carrier::Pipe(pipe) => pipe.filled(),
            Carrier::Copy(buffer) => buffer.end - buffer.start,
        }
    }

    /// As [`Pipe::fill`].
    ///
    /// # Errors
    /// What the system says; where [`is_unable`] is true of it, a carrier that copies still can.
    pub fn fill(&mut self, from: BorrowedFd<'_>) -> io::Result<usize> {
        match self {
            Carrier::Pipe(pipe) => pipe.fill(from),
            Carrier::Copy(buffer) => {
                let read = rustix::io::read(from, &mut buffer.bytes[..])?;
                (buffer.start, buffer.end) = (0, read);
                Ok(read)
            }
        }
    }

    /// As [`Pipe::drain`].
    ///
    /// # Errors
    /// What the system says.
    pub fn drain(&mut self, to: BorrowedFd<'_>) -> io::Result<usize> {
        match self {
            Carrier::Pipe(pipe) => pipe.drain(to),
            Carrier::Copy(buffer) => {
                let left = &buffer.bytes[buffer.start..buffer.end];
                let written = rustix::net::send(to, left, SendFlags::NOSIGNAL)?;
                buffer.start += written;
                moved_some(written)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::Duration;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    #[test]
    fn a_pipe_that_moves_nothing_is_an_error_and_not_a_busy_loop() {
        let (_near, far) = pair();
        let mut pipe = Pipe::take().unwrap();
        let error = pipe.drain(far.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }

    /// A stream that never ends, from a thread, into what is returned.
    fn flood() -> (TcpStream, std::thread::JoinHandle<()>) {
        let (mut near, far) = pair();
        let writing = std::thread::spawn(move || {
            // Fails when the reader has seen enough.
            while near.write_all(&[7; 64 << 10]).is_ok() {}
        });
        (far, writing)
    }

    #[test]
    fn a_pipe_holds_what_a_direction_may_hold() {
        let (source, writing) = flood();
        let mut pipe = Pipe::take().unwrap();
        for _ in 0..64 {
            let _ = pipe.fill(source.as_fd());
            assert!(pipe.filled() <= CAREFUL, "{} bytes in a pipe", pipe.filled());
            pipe = Pipe::take().unwrap();
        }
        drop(source);
        writing.join().unwrap();
    }

    #[test]
    fn who_takes_a_little_is_not_given_a_whole_pipe() {
        let ((mut near, source), (target, _reader)) = (pair(), pair());
        let mut pipe = Pipe::take().unwrap();
        near.write_all(&[7; 4 << 10]).unwrap();
        // Until it is there: the pipe does not wait.
        while pipe.fill(source.as_fd()).is_err() {}
        pipe.drain(target.as_fd()).unwrap();
        assert_eq!((pipe.filled(), pipe.grant), (0, pipe.capacity.min(CAREFUL)));
    }

    #[test]
    fn whole_pipes_go_to_who_keeps_up_and_a_stall_ends_that() {
        let (source, writing) = flood();
        let (target, mut reader) = pair();
        target.set_nonblocking(true).unwrap();
        let mut pipe = Pipe::take().unwrap();
        let (mut largest, mut stalled, mut buffer) = (0, 0, vec![0; 1 << 20]);
        if pipe.capacity <= CAREFUL {
            eprintln!("skipped: pipes of this user are no larger than {} bytes", pipe.capacity);
            return;
        }
        while largest <= CAREFUL || stalled < 8 {
            let kept_up = pipe.grant > CAREFUL;
            let filled = pipe.fill(source.as_fd()).unwrap();
            assert!(filled > 0 && filled <= if kept_up { pipe.capacity } else { CAREFUL });
            largest = largest.max(filled);
            // So that there is something for the next time.
            std::thread::sleep(Duration::from_millis(1));
            while pipe.filled() > 0 {
                match pipe.drain(target.as_fd()) {
                    Ok(moved) => assert_eq!(pipe.grant > CAREFUL, moved == filled && filled >= CAREFUL),
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                        assert!(pipe.grant <= CAREFUL, "a target that takes nothing is trusted");
                        stalled += 1;
                        let _ = reader.read(&mut buffer).unwrap();
                    }
                }
            }
        }
        drop(source);
        writing.join().unwrap();
    }

    #[test]
    fn pipes_too_small_to_be_worth_it_are_not_used() {
        let test = || {
            if let Ok(mut sets) = capabilities(None) {
                sets.effective
                    .remove(CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN);
                set_capabilities(None, sets).unwrap();
            }
            // 64 MiB is what a user may have (`fs.pipe-user-pages-soft`), for new pipes as for enlarged ones.
            let mut held = Vec::new();
            for _ in 0..200 {
                let Ok(pipe) = pipe_with(PipeFlags::CLOEXEC) else { break };
                let size = fcntl_setpipe_size(&pipe.1, 1 << 20);
                held.push(pipe);
                if size.is_err() {
                    break;
                }
            }
            for _ in 0..40 {
                let Ok(pipe) = pipe_with(PipeFlags::CLOEXEC) else { break };
                held.push(pipe);
            }
            let size = |pipe: &(OwnedFd, OwnedFd)| fcntl_getpipe_size(&pipe.1).ok();
            if held.last().and_then(size).is_none_or(|size| size >= SMALLEST_PIPE) {
                eprintln!("skipped: this system has no limit on the pipes of a user");
                return;
            }
            assert!(Pipe::take().is_err(), "a pipe of a page or two is used");
            assert!(matches!(Carrier::take(false), Carrier::Copy(_)));
            drop(held);
            assert!(matches!(Carrier::take(false), Carrier::Pipe(_)));
        };
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }
}
