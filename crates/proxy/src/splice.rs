//! Moving bytes between two sockets inside the kernel.
//!
//! A pipe is taken only when there is something to move and goes back when it is empty, so a waiting connection holds
//! no extra descriptors. Bytes are counted as they arrive at the target.

use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// Bytes asked for in a pipe. The kernel lets any user have up to 1 MiB (`fs.pipe-max-size`).
const PIPE_BYTES: usize = 512 << 10;

/// Empty pipes that a thread keeps.
const KEPT: usize = 16;

thread_local! {
    static FREE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

/// A pipe and the number of bytes in it.
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    capacity: usize,
    filled: usize,
}

impl Pipe {
    /// An empty pipe.
    ///
    /// # Errors
    /// When the process has no descriptors left; the caller then copies through memory.
    pub(crate) fn take() -> io::Result<Pipe> {
        if let Some(pipe) = FREE.with_borrow_mut(Vec::pop) {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Over the user's allowance the kernel refuses to enlarge; the default of 64 KiB works too.
        let capacity = fcntl_setpipe_size(&write, PIPE_BYTES).unwrap_or(64 << 10);
        Ok(Pipe {
            read,
            write,
            capacity,
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
