//! Control messages over a connection.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use prost::Message as _;

use super::control::{Body, Hello, Message, VERSION};
use super::kind;
use crate::link::{Reader, Writer};
use crate::names::Escaped;
use crate::{Error, lock};

/// How often a connection on which nothing else is said shows that it is alive. Relays end those that are silent for long.
pub(crate) const BEAT: Duration = Duration::from_secs(60);

/// Sends a control message.
pub(crate) fn say(writer: &mut Writer, body: Body) -> Result<(), Error> {
    writer.push(kind::CONTROL, 0, &Message { body: Some(body) }.encode_to_vec())?;
    writer.flush()
}

/// Receives a control message. `None` at the end of the connection; those that this version does not know are passed over.
pub(crate) fn hear(reader: &mut Reader) -> Result<Option<Body>, Error> {
    loop {
        let Some(record) = reader.next()? else { return Ok(None) };
        match record.kind {
            kind::CONTROL => {}
            kind::PULSE => continue,
            _ => return Err(Error::Protocol("content on the control connection")),
        }
        let message =
            Message::decode(record.payload).map_err(|_| Error::Protocol("a control message that cannot be read"))?;
        match message.body {
            Some(Body::Stop(stop)) => return Err(Error::Remote(Escaped(stop.reason.as_bytes()).to_string())),
            Some(body) => return Ok(Some(body)),
            None => {}
        }
    }
}

/// Says `ours`, the first message, and hears that of the other end, which must speak this version.
pub(crate) fn greet(writer: &mut Writer, reader: &mut Reader, ours: Hello) -> Result<Hello, Error> {
    greet_or_part(writer, reader, ours)?.ok_or_else(|| Error::Remote("it closed the connection".into()))
}

/// The same; `None` if the other end says goodbye instead.
pub(crate) fn greet_or_part(writer: &mut Writer, reader: &mut Reader, ours: Hello) -> Result<Option<Hello>, Error> {
    say(writer, Body::Hello(ours))?;
    match hear(reader)? {
        None => Ok(None),
        Some(Body::Hello(hello)) if hello.version == VERSION => Ok(Some(hello)),
        Some(Body::Hello(hello)) => Err(Error::Remote(format!(
            "it speaks version {} of the protocol, this end {VERSION}",
            hello.version
        ))),
        _ => Err(Error::Protocol("no greeting")),
    }
}

/// Keeps a control connection from being silent.
pub(crate) struct Pulse {
    every: Duration,
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Pulse {
    /// One beat in this time.
    pub(crate) fn every(time: Duration) -> Self {
        Self {
            every: time,
            stopped: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Beats until it is stopped, or the connection fails.
    pub(crate) fn beat(&self, writer: &Mutex<Writer>) {
        let mut stopped = lock(&self.stopped);
        while !*stopped {
            let (now, waited) = self
                .changed
                .wait_timeout(stopped, self.every)
                .unwrap_or_else(PoisonError::into_inner);
            stopped = now;
            if !*stopped && waited.timed_out() {
                let mut writer = lock(writer);
                if writer.push(kind::PULSE, 0, &[0]).and_then(|()| writer.flush()).is_err() {
                    return;
                }
            }
        }
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        *lock(&self.stopped) = true;
        self.changed.notify_all();
    }

    /// Ends it when what this returns is dropped.
    pub(crate) fn stop_at_end(&self) -> impl Drop + '_ {
        struct AtEnd<'a>(&'a Pulse);
        impl Drop for AtEnd<'_> {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        AtEnd(self)
    }
}
