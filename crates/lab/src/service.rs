//! A listener on loopback with a thread of its own, which can be woken and stopped: what the server of loads and the relay of an
//! emulated link have in common.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use socket2::{Domain, Socket, Type};

use crate::poller::{Poller, Ready};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Tokens that no connection has.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

/// Nothing happens after this long but another look at whether to stop.
const STEP: Duration = Duration::from_secs(1);

/// What whoever started the thread tells it.
#[derive(Debug)]
struct Signal {
    stop: AtomicBool,
    wake: OwnedFd,
}

/// A running service. Dropping it stops its thread and waits for its end.
#[derive(Debug)]
pub(crate) struct Service {
    address: SocketAddr,
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Runs `serve` in a thread called `name`, which gets the connections that come to `door`.
    pub(crate) fn start(name: &str, door: Door, serve: impl FnOnce(Door) + Send + 'static) -> io::Result<Service> {
        let (address, signal) = (door.address()?, Arc::clone(&door.signal));
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || serve(door))?;
        Ok(Service {
            address,
            signal,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the thread's wait.
    pub(crate) fn wake(&self) {
        // Unwritten, it looks for itself within a step.
        let _ = rustix::io::write(&self.signal.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.signal.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's side: the listener, and all sockets that are waited for.
pub(crate) struct Door {
    listener: TcpListener,
    poller: Poller,
    signal: Arc<Signal>,
}

/// Something that has happened.
pub(crate) enum Event {
    /// Somebody connects.
    Arrival,
    /// The service was woken.
    Woken,
    /// To a socket.
    Socket(Ready),
}

impl Door {
    /// Listens at a port of 127.0.0.1. Sockets that are accepted may hold `receive_buffer` bytes on their way in, or what the system
    /// gives them.
    pub(crate) fn open(receive_buffer: Option<usize>) -> io::Result<Door> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        if let Some(bytes) = receive_buffer {
            // Those that are accepted have it too.
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let (listener, poller) = (TcpListener::from(socket), Poller::new()?);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        poller.add_input(&listener, LISTENER)?;
        poller.add_input(&wake, WAKE)?;
        let stop = AtomicBool::new(false);
        Ok(Door {
            listener,
            poller,
            signal: Arc::new(Signal { stop, wake }),
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// False once the thread is to end.
    pub(crate) fn is_open(&self) -> bool {
        !self.signal.stop.load(Ordering::Acquire)
    }

    /// Waits for `time` at most, and never long: how many events there are for [`Door::event`].
    pub(crate) fn wait(&mut self, time: Duration) -> io::Result<usize> {
        self.poller.wait(time.min(STEP))
    }

    /// One of the events of the last wait.
    pub(crate) fn event(&self, index: usize) -> Option<Event> {
        let ready = self.poller.event(index)?;
        Some(match ready.token {
            LISTENER => Event::Arrival,
            WAKE => {
                let _ = rustix::io::read(&self.signal.wake, &mut [0; 8]);
                Event::Woken
            }
            _ => Event::Socket(ready),
        })
    }

    /// The next connection, which does not block; `None` if nobody waits.
    pub(crate) fn accept(&self) -> io::Result<Option<TcpStream>> {
        loop {
            match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(stream) => return Ok(Some(TcpStream::from(stream))),
                Err(Errno::AGAIN) => return Ok(None),
                // The client is gone already.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for a socket too, whose events have this token.
    pub(crate) fn watch(&self, socket: &TcpStream, token: u64) -> io::Result<()> {
        self.poller.add(socket, token)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_service_is_told_of_arrivals_and_calls_and_ends_with_its_owner() {
        let (tell, told) = channel();
        let service = Service::start("test", Door::open(None).unwrap(), move |mut door| {
            while door.is_open() {
                for index in 0..door.wait(Duration::MAX).unwrap() {
                    match door.event(index).unwrap() {
                        Event::Arrival => while door.accept().unwrap().is_some_and(|_| tell.send("arrival").is_ok()) {},
                        Event::Woken => tell.send("call").unwrap(),
                        Event::Socket(_) => {}
                    }
                }
            }
            tell.send("end").unwrap();
        });
        let service = service.unwrap();
        service.wake();
        assert_eq!(told.recv(), Ok("call"));
        let _stream = TcpStream::connect(service.address()).unwrap();
        assert_eq!(told.recv(), Ok("arrival"));
        drop(service);
        // The call that ends its wait, as soon as it is heard, and then nothing more.
        let rest: Vec<&str> = told.iter().collect();
        assert_eq!(rest.last(), Some(&"end"), "{rest:?}");
    }
}
