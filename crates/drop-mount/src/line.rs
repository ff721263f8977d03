//! A connection as everything uses it that goes by it.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use sealway_drop::link::{Connection, Reader, Writer};
use sealway_drop::{Error, lock};

/// The sending side of a connection, for several threads.
pub(crate) struct Line {
    /// Number of the connection in its session.
    pub(crate) number: u32,
    writer: Mutex<Writer>,
    stream: TcpStream,
    over: AtomicBool,
}

impl Line {
    /// The two sides of a connection.
    pub(crate) fn new(connection: Connection) -> Result<(Self, Reader), Error> {
        let stream = connection.stream()?;
        let Connection { index, reader, writer } = connection;
        let line = Self {
            number: index,
            writer: Mutex::new(writer),
            stream,
            over: AtomicBool::new(false),
        };
        Ok((line, reader))
    }

    /// For as long as one thread writes.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    /// Sends one record.
    pub(crate) fn say(&self, kind: u8, tag: u32, payload: &[u8]) -> Result<(), Error> {
        let mut writer = self.writer();
        writer.push(kind, tag, payload)?;
        writer.flush()
    }

    /// Whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Ends it: whoever reads or writes notices.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).map_err(Error::network("starting threads"))
}
