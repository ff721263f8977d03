//! Asking a person whether the check words are the same at both ends, before anything else is said.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Error;
use crate::cancel::Cancel;
use crate::dial::TICK;
use crate::link::{Connected, Reader, Writer};
use crate::wire::control::Body;
use crate::wire::kind;
use crate::wire::talk::{BEAT, Pulse, last_word, say, understand};

/// How long the rest of a message may take once it has begun.
const REST: Duration = Duration::from_secs(5);

/// How long the other end may take to hear why this one goes.
const LINGER: Duration = Duration::from_secs(1);

/// Asks somebody by `ask`, which is let go by the switch that it is given if the other end goes meanwhile. The other end is told if
/// the answer is no, or none.
///
/// # Errors
/// [`Error::SaidNo`] if the answer is no, [`Error::Declined`] if it is at the other end; [`Error::Cancelled`]; what ended the other end; what `ask` fails with.
pub fn confirm(
    connected: &mut Connected,
    cancel: &Cancel,
    ask: impl FnOnce(&Cancel) -> Result<bool, Error>,
) -> Result<(), Error> {
    confirm_beating(BEAT, connected, cancel, ask)
}

/// The same with another time between two signs of life, for a relay that ends what is silent.
fn confirm_beating(
    beat: Duration,
    connected: &mut Connected,
    cancel: &Cancel,
    ask: impl FnOnce(&Cancel) -> Result<bool, Error>,
) -> Result<(), Error> {
    let control = &mut connected.peered.connection;
    let asking = Cancel::new();
    let of = asking.clone();
    let _told = cancel.on_cancel(move || of.cancel());
    control.reader.wait_at_most(Some(REST))?;
    let answered = AtomicBool::new(false);
    let (pulse, writer) = (Pulse::every(beat), Mutex::new(&mut control.writer));
    let (answer, heard) = std::thread::scope(|scope| {
        // However the asking ends, so does the thread.
        let _stop = pulse.stop_at_end();
        scope.spawn(|| pulse.beat(&writer));
        let (reader, done) = (&mut control.reader, &answered);
        let asking = &asking;
        let hearing = scope.spawn(move || {
            let heard = listen(reader, done);
            if heard.is_err() {
                asking.cancel();
            }
            heard
        });
        let answer = ask(asking);
        answered.store(true, Ordering::SeqCst);
        (answer, hearing.join())
    });
    let heard = heard.unwrap_or(Err(Error::Protocol("a thread of this end failed")));
    let error = match (answer, heard) {
        _ if cancel.is_set() => Error::Cancelled,
        (_, Err(gone)) => gone,
        (Err(error), _) => error,
        (Ok(false), _) => Error::SaidNo("the check words differ".into()),
        (Ok(true), Ok(())) => {
            control.reader.wait_at_most(None)?;
            return Ok(());
        }
    };
    part(&mut control.writer, &mut control.reader, &error);
    Err(error)
}

/// Hears until somebody has answered. What the other end says first is kept: it may have its answer already.
fn listen(reader: &mut Reader, answered: &AtomicBool) -> Result<(), Error> {
    let mut first = None;
    while !answered.load(Ordering::SeqCst) {
        if !reader.is_readable(TICK)? {
            continue;
        }
        let Some(record) = reader.next()? else {
            return Err(Error::Remote("it closed the connection".into()));
        };
        if record.kind == kind::CONTROL {
            let payload = record.payload.to_vec();
            match understand(kind::CONTROL, &payload)? {
                Some(Body::Hello(_)) if first.is_none() => first = Some(payload),
                Some(_) => return Err(Error::Protocol("a message out of place")),
                None => {}
            }
        } else {
            understand(record.kind, record.payload)?;
        }
    }
    if let Some(first) = first {
        reader.keep(first);
    }
    Ok(())
}

/// Says why this end goes, and lets the other one hear it.
fn part(writer: &mut Writer, reader: &mut Reader, error: &Error) {
    if let Some(words) = last_word(error) {
        let _ = say(writer, words);
    }
    if writer.close().is_ok() && reader.wait_at_most(Some(LINGER)).is_ok() {
        while let Ok(Some(_)) = reader.next() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Place, connect};
    use crate::testing::{listen, setup};

    fn end(own: u8, place: Place) -> Connected {
        connect(place, &setup(own), 1, &Cancel::new()).unwrap()
    }

    #[test]
    fn an_end_whose_person_compares_is_not_silent() {
        let (listener, address) = listen();
        let dial = Place::Dial {
            addresses: vec![address],
            patience: Duration::from_secs(60),
        };
        let (heard, enough) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            let mut other = end(2, dial);
            for _ in 0..3 {
                let record = other.peered.connection.reader.next().unwrap().unwrap();
                assert_eq!(record.kind, kind::PULSE);
            }
            heard.send(()).unwrap();
            other
        });
        let mut connected = end(1, Place::Listen(listener));
        // The person answers once the other end has heard this one three times.
        let answer = |_: &Cancel| Ok(enough.recv_timeout(Duration::from_secs(60)).is_ok());
        confirm_beating(Duration::from_millis(20), &mut connected, &Cancel::new(), answer).unwrap();
        let mut other = other.join().unwrap();
        // Nothing of it is in the way of what is said next, and it has ended.
        say(&mut connected.peered.connection.writer, Body::Hello(Default::default())).unwrap();
        let said = crate::wire::talk::hear(&mut other.peered.connection.reader).unwrap();
        assert!(matches!(said, Some(Body::Hello(_))), "{said:?}");
    }
}
