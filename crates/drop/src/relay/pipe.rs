//! Moving bytes from one socket to another: inside the kernel through a pipe, or, where that is not to be had, through
//! memory.
//!
//! Either holds a bounded number of bytes. One is taken when there is something to move and goes back when it is empty, so a
//! pair that is silent holds nothing but its two sockets.

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;

/// Bytes that are copied at once.
const COPY_BYTES: usize = 64 << 10;

/// Where bytes are on their way.
pub(super) enum Carrier {
    /// In the kernel.
    #[cfg(target_os = "linux")]
    Pipe(kernel::Pipe),
    /// In memory.
    Copy(Buffer),
}

impl Carrier {
    /// An empty one.
    pub(super) fn take(copy: bool) -> Self {
        #[cfg(target_os = "linux")]
        if !copy && let Ok(pipe) = kernel::Pipe::take() {
            return Carrier::Pipe(pipe);
        }
        let _ = copy;
        Carrier::Copy(Buffer::take())
    }

    /// Gives it back for others.
    pub(super) fn give_back(self) {
        match self {
            #[cfg(target_os = "linux")]
            Carrier::Pipe(pipe) => pipe.give_back(),
            Carrier::Copy(buffer) => buffer.give_back(),
        }
    }

    /// Bytes in it.
    pub(super) fn filled(&self) -> usize {
        match self {
            #[cfg(target_os = "linux")]
            Carrier::Pipe(pipe) => pipe.filled(),
            Carrier::Copy(buffer) => buffer.end - buffer.start,
        }
    }

    /// Moves what the socket has into an empty one; 0 is the end of the stream.
    pub(super) fn fill(&mut self, from: BorrowedFd<'_>) -> io::Result<usize> {
        match self {
            #[cfg(target_os = "linux")]
            Carrier::Pipe(pipe) => pipe.fill(from),
            Carrier::Copy(buffer) => {
                let read = rustix::io::read(from, &mut buffer.bytes[..])?;
                (buffer.start, buffer.end) = (0, read);
                Ok(read)
            }
        }
    }

    /// Moves some of its bytes into the socket.
    pub(super) fn drain(&mut self, to: BorrowedFd<'_>) -> io::Result<usize> {
        match self {
            #[cfg(target_os = "linux")]
            Carrier::Pipe(pipe) => pipe.drain(to),
            Carrier::Copy(buffer) => {
                let left = &buffer.bytes[buffer.start..buffer.end];
                let written = rustix::net::send(to, left, rustix::net::SendFlags::NOSIGNAL)?;
                buffer.start += written;
                moved_some(written)
            }
        }
    }
}

/// What was to be moved and was not would be tried again for ever.
fn moved_some(moved: usize) -> io::Result<usize> {
    match moved {
        0 => Err(io::ErrorKind::WriteZero.into()),
        _ => Ok(moved),
    }
}

/// Bytes copied out of one socket and not yet into the other.
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

/// Things to use again that a thread keeps.
const KEPT: usize = 16;

thread_local! {
    static BUFFERS: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

impl Buffer {
    fn take() -> Self {
        let bytes = BUFFERS
            .with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| vec![0; COPY_BYTES].into());
        Buffer {
            bytes,
            start: 0,
            end: 0,
        }
    }

    fn give_back(self) {
        BUFFERS.with_borrow_mut(|kept| {
            if kept.len() < KEPT {
                kept.push(self.bytes);
            }
        });
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::cell::RefCell;
    use std::io;
    use std::os::fd::{BorrowedFd, OwnedFd};

    use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

    use super::{KEPT, moved_some};

    /// Bytes asked for in a pipe. The kernel lets any user have up to 1 MiB (`fs.pipe-max-size`).
    const PIPE_BYTES: usize = 512 << 10;

    /// A pipe of less moves a page or two at a time, which is slower than copying.
    const SMALLEST_PIPE: usize = 64 << 10;

    thread_local! {
        static FREE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
    }

    /// A pipe and the number of bytes in it.
    pub(in crate::relay) struct Pipe {
        read: OwnedFd,
        write: OwnedFd,
        capacity: usize,
        filled: usize,
    }

    impl Pipe {
        /// An empty pipe. Fails when the process has no descriptors left, or the user no pages for pipes.
        pub(super) fn take() -> io::Result<Pipe> {
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
                capacity,
                filled: 0,
            })
        }

        /// Keeps an empty pipe for others; one with something in it is closed.
        pub(super) fn give_back(self) {
            if self.filled == 0 {
                FREE.with_borrow_mut(|free| {
                    if free.len() < KEPT {
                        free.push(self);
                    }
                });
            }
        }

        pub(super) fn filled(&self) -> usize {
            self.filled
        }

        pub(super) fn fill(&mut self, from: BorrowedFd<'_>) -> io::Result<usize> {
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            let moved = splice(from, None, &self.write, None, self.capacity, flags)?;
            self.filled += moved;
            Ok(moved)
        }

        pub(super) fn drain(&mut self, to: BorrowedFd<'_>) -> io::Result<usize> {
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            let moved = moved_some(splice(&self.read, None, to, None, self.filled, flags)?)?;
            self.filled -= moved.min(self.filled);
            Ok(moved)
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::fd::AsFd;

    use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::{Carrier, kernel};

    #[test]
    fn a_pipe_that_moves_nothing_is_an_error_and_not_a_busy_loop() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut pipe = kernel::Pipe::take().unwrap();
        let error = pipe.drain(near.as_fd()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
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
            let small = held
                .last()
                .and_then(|pipe| rustix::pipe::fcntl_getpipe_size(&pipe.1).ok())
                .is_some_and(|size| size < 64 << 10);
            if !small {
                eprintln!("skipped: this system has no limit on the pipes of a user");
                return;
            }
            assert!(matches!(Carrier::take(false), Carrier::Copy(_)));
            drop(held);
            assert!(matches!(Carrier::take(false), Carrier::Pipe(_)));
        };
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }
}
