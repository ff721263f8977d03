//! A relay in a thread, and clients that keep to no rule.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::relay::wire::{ANSWER_LEN, Answer, Request};
use sealway_drop::relay::{Meeting, meet};
use sealway_drop_relay::{Counters, Limits, Server, Stats};
use sealway_session::handshake::Role;

/// What takes longer has failed. Far more than a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Relay {
    pub(crate) address: String,
    pub(crate) counters: Arc<Counters>,
    cancel: Cancel,
    thread: Option<JoinHandle<Result<Stats, Error>>>,
}

impl Relay {
    pub(crate) fn start(limits: Limits) -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let (address, counters, cancel) = (server.address().to_string(), server.counters().clone(), Cancel::new());
        let thread = std::thread::spawn({
            let cancel = cancel.clone();
            move || server.run(&cancel)
        });
        Relay {
            address,
            counters,
            cancel,
            thread: Some(thread),
        }
    }

    /// Tells it to end, without waiting.
    pub(crate) fn end(&self) {
        self.cancel.cancel();
    }

    /// Ends it.
    pub(crate) fn stop(mut self) -> Stats {
        self.end();
        self.thread.take().unwrap().join().unwrap().unwrap()
    }

    /// Waits until the counters are as wanted.
    pub(crate) fn until(&self, wanted: impl Fn(&Stats) -> bool) -> Stats {
        let begun = Instant::now();
        loop {
            let stats = self.counters.read();
            if wanted(&stats) {
                return stats;
            }
            assert!(begun.elapsed() < PATIENCE, "it stays at {stats:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Opens a nameplate in a thread. Gives the number and what comes of it.
    pub(crate) fn open(&self, cancel: &Cancel) -> (u32, JoinHandle<Result<(TcpStream, Role), Error>>) {
        let (meeting, told) = opening();
        let (address, cancel) = (self.address.clone(), cancel.clone());
        let thread = std::thread::spawn(move || meet(&address, &meeting, &cancel));
        (told.recv_timeout(PATIENCE).unwrap(), thread)
    }

    pub(crate) fn claim(&self, nameplate: u32) -> Result<(TcpStream, Role), Error> {
        meet(&self.address, &Meeting::Claim(nameplate), &Cancel::new())
    }

    pub(crate) fn pair(&self, token: [u8; 32], role: Role) -> JoinHandle<Result<TcpStream, Error>> {
        let address = self.address.clone();
        std::thread::spawn(move || sealway_drop::relay::pair(&address, &token, role, &|| false))
    }

    /// A connection that says what it likes.
    pub(crate) fn raw(&self) -> Raw {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Raw(stream)
    }

    pub(crate) fn ask(&self, request: &Request) -> Raw {
        let mut raw = self.raw();
        raw.0.write_all(&request.encode()).unwrap();
        raw
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn opening() -> (Meeting, Receiver<u32>) {
    let (tell, told) = channel();
    (
        Meeting::Open(Arc::new(move |nameplate| tell.send(nameplate).unwrap())),
        told,
    )
}

pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) fn answer(&mut self) -> Answer {
        let mut bytes = [0; ANSWER_LEN];
        self.0.read_exact(&mut bytes).unwrap();
        Answer::parse(&bytes).unwrap()
    }

    /// Whether the relay has closed, without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.0.read(&mut [0; 64]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// The kind of the system's error in what a client was told.
pub(crate) fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    match result {
        Err(Error::Network { source, .. }) => source.kind(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it worked"),
    }
}

/// Sends a word each way.
pub(crate) fn converse(one: &mut TcpStream, two: &mut TcpStream) {
    say(one, two);
    say(two, one);
}

fn say(from: &mut TcpStream, to: &mut TcpStream) {
    from.write_all(b"words").unwrap();
    let mut got = [0; 5];
    to.set_read_timeout(Some(PATIENCE)).unwrap();
    to.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"words");
}
