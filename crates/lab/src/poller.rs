//! Waiting for many sockets at once, with time-outs shorter than a millisecond.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

/// Events taken at once.
const MOST: usize = 256;

/// What happened to a socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ready {
    /// The number that it was added with.
    pub(crate) token: u64,
    /// The other end has closed, or the connection is broken.
    pub(crate) closing: bool,
}

/// A set of sockets. Each is told about once for every change, so whoever is told has to go on until nothing is left.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Ready>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(MOST),
        })
    }

    /// Watches a socket both ways until it is closed.
    pub(crate) fn add(&self, source: impl AsFd, token: u64) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        Ok(epoll::add(
            &self.epoll,
            source,
            epoll::EventData::new_u64(token),
            flags,
        )?)
    }

    /// Watches a listener or a signal: told about as long as something is there.
    pub(crate) fn add_input(&self, source: impl AsFd, token: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, source, data, epoll::EventFlags::IN)?)
    }

    /// Waits for at most `timeout`: how many events there are for [`Poller::event`].
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        self.events.clear();
        if timeout.is_zero() || self.readable(timeout)? {
            let mut room = [MaybeUninit::uninit(); MOST];
            match epoll::wait(&self.epoll, &mut room[..], Some(&Timespec::default())) {
                Ok((events, _)) => self.events.extend(events.iter().map(Ready::of)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.events.len())
    }

    /// Waits for the set itself: `epoll_wait` has only milliseconds before Linux 5.11.
    fn readable(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// One of the events of the last wait.
    pub(crate) fn event(&self, index: usize) -> Option<Ready> {
        self.events.get(index).copied()
    }
}

impl Ready {
    fn of(event: &epoll::Event) -> Ready {
        let (flags, data) = (event.flags, event.data);
        let ended = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        Ready {
            token: data.u64(),
            closing: flags.intersects(ended),
        }
    }
}
