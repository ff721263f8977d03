//! Moving bytes between two sockets inside the kernel.
//!
//! A pipe is taken only when there is something to move and goes back when it is empty, so a waiting connection holds
//! no extra descriptors. Bytes are counted as they arrive at the target.

use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

/// Size asked for of a pipe. It is counted in pages, of which what the network brings seldom fills more than a part. The
/// kernel lets any user have up to 1 MiB (`fs.pipe-max-size`).
const PIPE_BYTES: usize = 512 << 10;

/// Most bytes in a pipe: what one direction of a connection may hold.
const MOST: usize = 224 << 10;

/// A pipe of less moves a page or two at a time, which is slower than copying.
const SMALLEST_PIPE: usize = 64 << 10;

/// Empty pipes that a thread keeps.
const KEPT: usize = 16;

thread_local! {
    static FREE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

/// A pipe and the number of bytes in it.
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    /// Most bytes that are put into it.
    capacity: usize,
    filled: usize,
}

impl Pipe {
    /// An empty pipe.
    ///
    /// # Errors
    /// When the process has no descriptors left, or the user no pages for pipes; the caller then copies through memory.
    pub(crate) fn take() -> io::Result<Pipe> {
        if let Some(pipe) = FREE.with_borrow_mut(Vec::pop) {
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
            capacity: capacity.min(MOST),
            filled: 0,
        })
    }

    /// Gives an empty pipe back; one with something in it is closed.
    pub(crate) fn give_back(self) {
        if self.filled == 0 {
            FREE.with_borrow_mut(|free| {
                if free.len() < KEPT {
                    free.push(self);
                }
            });
        }
    }

    /// Bytes in it.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Moves what the socket has into the empty pipe; 0 is the end of the stream.
    pub(crate) fn fill(&mut self, from: BorrowedFd<'_>) -> io::Result<usize> {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let moved = splice(from, None, &self.write, None, self.capacity, flags)?;
        self.filled += moved;
        Ok(moved)
    }

    /// Moves some of the pipe's bytes into the socket.
    pub(crate) fn drain(&mut self, to: BorrowedFd<'_>) -> io::Result<usize> {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let moved = splice(&self.read, None, to, None, self.filled, flags)?;
        if moved == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.filled -= moved.min(self.filled);
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

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

    #[test]
    fn a_pipe_holds_what_a_direction_may_hold() {
        let (mut near, far) = pair();
        let writing = std::thread::spawn(move || {
            // Fails when the reader has seen enough.
            let _ = near.write_all(&vec![7; 16 << 20]);
        });
        let mut pipe = Pipe::take().unwrap();
        for _ in 0..64 {
            let _ = pipe.fill(far.as_fd());
            assert!(pipe.filled() <= MOST, "{} bytes in a pipe", pipe.filled());
            pipe = Pipe::take().unwrap();
        }
        drop(far);
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
            drop(held);
            assert!(Pipe::take().is_ok());
        };
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }
}
