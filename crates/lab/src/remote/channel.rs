//! Messages over a connection: the handshake of `sealway-session` with the token as its code, then its records.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use sealway_aead::choose::Offer;
use sealway_aead::cpu::Cpu;
use sealway_session::handshake::{Auth, Config, Handshake, Kem, Role};
use sealway_session::record::{HEADER_LEN, OVERHEAD, Opened, RecvHalf, SendHalf};

use super::{HANDSHAKE, MAX_MESSAGE, RemoteError, Token};

/// Bound into the handshake, so that an end of another protocol is never taken for one of this.
const PROLOGUE: &[u8] = b"sealway lab";

/// Kinds of records: a message of the job, and a sign of life.
pub(super) const MESSAGE: u8 = 1;
pub(super) const PING: u8 = 2;

/// An end of a channel that stands.
pub(super) struct Channel {
    stream: TcpStream,
    send: SendHalf,
    recv: RecvHalf,
}

impl Channel {
    /// Proves the token, and has it proved.
    pub(super) fn establish(mut stream: TcpStream, token: &Token, role: Role) -> Result<Channel, RemoteError> {
        let mut handshake = begin(token, role)?;
        let until = Instant::now() + HANDSHAKE;
        exchange(&mut stream, &mut handshake, until).map_err(|()| RemoteError::Refused)?;
        let done = handshake.finish().map_err(|_| RemoteError::Refused)?;
        Ok(Channel {
            stream,
            send: done.send,
            recv: done.recv,
        })
    }

    /// Sends a record; `patience` bounds the wait for an end that does not read.
    pub(super) fn send(&mut self, kind: u8, payload: &[u8], patience: Duration) -> Result<(), RemoteError> {
        if payload.len() > MAX_MESSAGE {
            return Err(RemoteError::malformed("a message of this end is too long"));
        }
        let mut record = Vec::with_capacity(payload.len() + OVERHEAD);
        self.send
            .seal_from(kind, 0, &[payload], &mut record)
            .map_err(RemoteError::lost)?;
        let sent = self
            .stream
            .set_write_timeout(Some(patience))
            .and_then(|()| self.stream.write_all(&record));
        sent.map_err(RemoteError::lost)
    }

    /// The next record, its kind and payload, within `patience`; `None` after the end.
    pub(super) fn receive(&mut self, patience: Duration) -> Result<Option<(u8, Vec<u8>)>, RemoteError> {
        let until = Instant::now() + patience;
        let mut header = [0; HEADER_LEN];
        fill(&mut self.stream, &mut header, until).map_err(RemoteError::lost)?;
        let len = self.recv.record_len(&header).map_err(RemoteError::malformed)?;
        if len > MAX_MESSAGE + OVERHEAD {
            return Err(RemoteError::malformed(format_args!("a message of {len} bytes")));
        }
        let mut record = vec![0; len];
        record[..HEADER_LEN].copy_from_slice(&header);
        fill(&mut self.stream, &mut record[HEADER_LEN..], until).map_err(RemoteError::lost)?;
        match self.recv.open(&mut record).map_err(RemoteError::malformed)? {
            Opened::Close => Ok(None),
            Opened::Data { kind, payload, .. } => Ok(Some((kind, record[payload].to_vec()))),
        }
    }

    /// Says that nothing more comes.
    pub(super) fn close(&mut self) {
        if let Ok(record) = self.send.close() {
            // An end that is gone need not hear it.
            let _ = self.stream.write_all(&record);
        }
    }
}

fn begin(token: &Token, role: Role) -> Result<Handshake, RemoteError> {
    let config = Config {
        role,
        auth: Auth::Code(token.secret()),
        offer: Offer::of(Cpu::get()),
        kem: Kem::MlKem768,
        prologue: PROLOGUE.to_vec(),
    };
    let mut failed = None;
    let handshake = Handshake::new(config, &mut |bytes| {
        failed = getrandom::fill(bytes).err().or(failed.take())
    });
    const DOING: &str = "begin a handshake";
    match failed {
        Some(error) => Err(RemoteError::system(DOING, error)),
        None => handshake.map_err(|error| RemoteError::system(DOING, error)),
    }
}

/// Carries the flights. What went wrong is nobody's business: all failures look alike.
fn exchange(stream: &mut TcpStream, handshake: &mut Handshake, until: Instant) -> Result<(), ()> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(flight) = handshake.write() {
            let left = until.saturating_duration_since(Instant::now());
            stream
                .set_write_timeout(Some(left.max(Duration::from_millis(1))))
                .map_err(drop)?;
            stream.write_all(&flight).map_err(drop)?;
        }
        if handshake.is_done() {
            return Ok(());
        }
        let read = read(stream, &mut buffer, until).map_err(drop)?;
        let used = handshake.read(&buffer[..read]).map_err(drop)?;
        // Nobody speaks before the responder has greeted, which it does once it is done.
        if used < read {
            return Err(());
        }
    }
}

/// Reads at least a byte, by a moment.
fn read(stream: &mut TcpStream, buffer: &mut [u8], until: Instant) -> io::Result<usize> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "nothing was heard of it in time"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(buffer) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
            Ok(read) => return Ok(read),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Fills `buffer`, by a moment.
fn fill(stream: &mut TcpStream, buffer: &mut [u8], until: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        filled += read(stream, &mut buffer[filled..], until)?;
    }
    Ok(())
}
