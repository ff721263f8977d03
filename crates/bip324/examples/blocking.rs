//! Both ends of a connection over TCP with threads and `std::io`, and a stream with a deadline for the handshake.
//!
//! `cargo run -p sealway-bip324 --example blocking`

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use sealway_bip324::blocking::{Accepted, Messages, accept, connect, draw_garbage, draw_key};
use sealway_bip324::{Magic, Options};

/// Messages that are sent and come back.
const MESSAGES: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    run()
}

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || serve(&listener).map_err(|error| error.to_string()));
    let messages = dial(TcpStream::connect(address)?)?;
    println!("session id {:02x?}…", &messages.session_id()[..4]);

    // One thread sends while another listens.
    let clone = messages.get_ref().tcp.try_clone()?;
    let (mut receiver, mut sender) = messages.split_with(|stream| (clone, stream.tcp));
    let sending = thread::spawn(move || {
        for number in 0..MESSAGES {
            sender.feed(&number.to_le_bytes()).map_err(|error| error.to_string())?;
        }
        sender.flush().map_err(|error| error.to_string())?;
        // The stream's own way of saying that nothing more comes.
        let ended = sender.get_ref().shutdown(std::net::Shutdown::Write);
        ended.map_err(|error| error.to_string())
    });
    let mut came = 0;
    while let Some(contents) = receiver.recv()? {
        assert_eq!(contents, u32::to_le_bytes(came));
        came += 1;
    }
    sending.join().map_err(|_| "the sender panicked")??;
    server.join().map_err(|_| "the server panicked")??;
    println!("{came} messages came back, in {} bytes", receiver.received().bytes);
    assert_eq!(came, MESSAGES);
    Ok(())
}

/// Sends every message back.
fn serve(listener: &TcpListener) -> Result<(), Box<dyn Error>> {
    let (tcp, _) = listener.accept()?;
    let stream = Deadline::new(tcp, Duration::from_secs(60))?;
    let mut messages = match accept(stream, Magic::REGTEST, draw_key(&mut system)?, options()?)? {
        Accepted::V2(messages) => messages,
        Accepted::V1 { received, .. } => return Err(format!("v1 peer, {} bytes read", received.len()).into()),
    };
    messages.get_ref().end()?;
    while let Some(contents) = messages.recv()? {
        let contents = contents.to_vec();
        messages.feed(&contents)?;
    }
    messages.flush()?;
    Ok(())
}

fn dial(tcp: TcpStream) -> Result<Messages<Deadline>, Box<dyn Error>> {
    let stream = Deadline::new(tcp, Duration::from_secs(60))?;
    let messages = connect(stream, Magic::REGTEST, draw_key(&mut system)?, options()?)?;
    messages.get_ref().end()?;
    Ok(messages)
}

fn options() -> io::Result<Options> {
    let mut options = Options::default();
    options.garbage = draw_garbage(&mut system)?;
    Ok(options)
}

/// Random bytes of the system.
fn system(out: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(out)
}

/// A socket whose reads end at one time all together, so that a peer that sends a byte now and then wins nothing.
struct Deadline {
    tcp: TcpStream,
    at: std::cell::Cell<Option<Instant>>,
}

impl Deadline {
    fn new(tcp: TcpStream, limit: Duration) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        tcp.set_write_timeout(Some(limit))?;
        let at = std::cell::Cell::new(Instant::now().checked_add(limit));
        Ok(Deadline { tcp, at })
    }

    /// After the handshake a peer may be silent for as long as it likes.
    fn end(&self) -> io::Result<()> {
        self.at.set(None);
        self.tcp.set_read_timeout(None)
    }
}

impl Read for Deadline {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(at) = self.at.get() {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.tcp.set_read_timeout(Some(left))?;
        }
        self.tcp.read(out)
    }
}

impl Write for Deadline {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}
