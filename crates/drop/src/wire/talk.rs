//! Control messages over a connection.

use std::borrow::BorrowMut;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use prost::Message as _;

use super::control::{Body, Cause, Decline, Hello, Message, Stop, VERSION};
use super::kind;
use crate::link::{Reader, Writer};
use crate::names::Escaped;
use crate::{Error, lock};

/// How often a connection on which nothing else is said shows that it is alive. Relays end those that are silent for long.
pub const BEAT: Duration = Duration::from_secs(60);

/// The payload of a control message.
pub fn payload(body: Body) -> Vec<u8> {
    Message { body: Some(body) }.encode_to_vec()
}

/// Sends a control message.
pub fn say(writer: &mut Writer, body: Body) -> Result<(), Error> {
    writer.push(kind::CONTROL, 0, &payload(body))?;
    writer.flush()
}

/// Receives a control message. `None` at the end of the connection; those that this version does not know are passed over.
pub fn hear(reader: &mut Reader) -> Result<Option<Body>, Error> {
    if let Some(kept) = reader.take_kept() {
        return understand(kind::CONTROL, &kept);
    }
    loop {
        let Some(record) = reader.next()? else { return Ok(None) };
        if let Some(body) = understand(record.kind, record.payload)? {
            return Ok(Some(body));
        }
    }
}

/// What a record on the control connection says; `None` for signs of life and what this version does not know.
///
/// # Errors
/// What the other end gives as its reason to end, and [`Error::Protocol`].
pub fn understand(kind: u8, payload: &[u8]) -> Result<Option<Body>, Error> {
    match kind {
        kind::CONTROL => {}
        kind::PULSE => return Ok(None),
        _ => return Err(Error::Protocol("content on the control connection")),
    }
    let message = Message::decode(payload).map_err(|_| Error::Protocol("a control message that cannot be read"))?;
    match message.body {
        Some(Body::Stop(stop)) => Err(match Cause::of(stop.cause) {
            Some(cause) => Error::OtherEnd(cause),
            None => Error::Remote(Escaped(stop.reason.as_bytes()).to_string()),
        }),
        Some(Body::Decline(decline)) => Err(Error::Declined(Escaped(decline.reason.as_bytes()).to_string())),
        body => Ok(body),
    }
}

/// What an end that ends for this reason says last; `None` if that was said by the other one.
pub fn last_word(error: &Error) -> Option<Body> {
    match error {
        Error::SaidNo(reason) => Some(Body::Decline(Decline { reason: reason.clone() })),
        error if error.is_said() => None,
        error => Some(Body::Stop(Stop::of(error))),
    }
}

/// Says `ours`, the first message, and hears that of the other end, which must speak this version; `None` if it says goodbye instead.
pub fn greet_or_part(writer: &mut Writer, reader: &mut Reader, ours: Hello) -> Result<Option<Hello>, Error> {
    say(writer, Body::Hello(ours))?;
    hear(reader)?.map(greeting).transpose()
}

/// The first message of the other end, which must be a greeting in this version.
pub fn greeting(first: Body) -> Result<Hello, Error> {
    match first {
        Body::Hello(hello) if hello.version == VERSION => Ok(hello),
        Body::Hello(hello) => Err(Error::Remote(format!(
            "it speaks version {} of the protocol, this end {VERSION}",
            hello.version
        ))),
        _ => Err(Error::Protocol("no greeting")),
    }
}

/// Keeps a control connection from being silent.
pub struct Pulse {
    every: Duration,
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Pulse {
    /// One beat in this time.
    pub fn every(time: Duration) -> Self {
        Self {
            every: time,
            stopped: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Beats until it is stopped, or the connection fails.
    pub fn beat(&self, writer: &Mutex<impl BorrowMut<Writer>>) {
        let mut stopped = lock(&self.stopped);
        while !*stopped {
            let (now, waited) = self
                .changed
                .wait_timeout(stopped, self.every)
                .unwrap_or_else(PoisonError::into_inner);
            stopped = now;
            if !*stopped && waited.timed_out() {
                let mut writer = lock(writer);
                let writer: &mut Writer = (*writer).borrow_mut();
                if writer.push(kind::PULSE, 0, &[0]).and_then(|()| writer.flush()).is_err() {
                    return;
                }
            }
        }
    }

    /// Ends it.
    pub fn stop(&self) {
        *lock(&self.stopped) = true;
        self.changed.notify_all();
    }

    /// Ends it when what this returns is dropped.
    pub fn stop_at_end(&self) -> impl Drop + '_ {
        struct AtEnd<'a>(&'a Pulse);
        impl Drop for AtEnd<'_> {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        AtEnd(self)
    }
}
