//! The control connection beside the service: each end says there what it does, and at the end what came of it or why it ends.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use sealway_drop::cancel::Cancel;
use sealway_drop::ending::{AHEAD, Ending, next};
use sealway_drop::link::{Connection, Writer};
use sealway_drop::wire::control::{Accept, Body, Done, Hello, Role, VERSION};
use sealway_drop::wire::talk::{BEAT, Pulse, greeting, say};
use sealway_drop::{Error, lock};

/// How long the other end may take to say whether it took what it was shown, once it has gone.
const FAREWELL: Duration = Duration::from_secs(5);

/// A control connection on which the other end is heard.
pub(super) struct Talk<'a> {
    control: &'a Mutex<Writer>,
    heard: &'a Receiver<Body>,
    over: &'a Ending,
}

/// Does `work` while the other end is heard, so that its end, or the throwing of `cancel`, ends both; the other end is told why.
///
/// # Errors
/// Why it ended: what the other end said, else what was noticed first.
pub(super) fn talking<T>(
    connection: Connection,
    role: Role,
    cancel: &Cancel,
    work: impl FnOnce(&Talk<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let over = Ending::new(&connection, cancel)?;
    let (mut reader, control) = (connection.reader, Mutex::new(connection.writer));
    let pulse = Pulse::every(BEAT);
    let (tell, heard) = sync_channel(AHEAD);
    let result = std::thread::scope(|scope| {
        // However this ends, so do the threads.
        let _finish = over.finish_at_end();
        let _stop = pulse.stop_at_end();
        scope.spawn(|| pulse.beat(&control));
        scope.spawn(|| over.last_words(&control));
        let over = &over;
        scope.spawn(move || over.hears(&mut reader, &tell));
        let heard = heard;
        let talk = Talk {
            control: &control,
            heard: &heard,
            over,
        };
        let worked = talk.meet(role).and_then(|()| work(&talk));
        worked.map_err(|error| over.end(error))
    });
    result.map_err(|()| over.why().unwrap_or(Error::Cancelled))
}

impl Talk<'_> {
    /// Each end says what it does. Somebody at the other one may be asked before it goes on, so there is no limit.
    fn meet(&self, role: Role) -> Result<(), Error> {
        let ours = Hello {
            version: VERSION,
            role: role as i32,
            ..Hello::default()
        };
        self.say(Body::Hello(ours))?;
        let wanted = match role {
            Role::Sender => Role::Receiver,
            _ => Role::Sender,
        };
        match greeting(next(self.heard)?)?.role == wanted as i32 {
            true => Ok(()),
            false => Err(Error::Usage(
                "the ends do not fit: one end sends, the other receives".into(),
            )),
        }
    }

    fn say(&self, body: Body) -> Result<(), Error> {
        say(&mut lock(self.control), body)
    }

    /// This end takes what it was shown.
    pub(super) fn accept(&self) -> Result<(), Error> {
        self.say(Body::Accept(Accept::default()))
    }

    /// Whether it is over, for a reason that was noted.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_over()
    }

    /// All is there and right, whatever becomes of the other end.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it is over already.
    pub(super) fn settle(&self) -> Result<(), Error> {
        self.over.settle()
    }

    /// This end cannot do what it settled on.
    pub(super) fn fail(&self, error: Error) {
        self.over.fail(error);
    }

    /// Says what came of it, and nothing after that. All is in place: what becomes of the connection from here on changes nothing.
    pub(super) fn done(&self, done: Done) {
        let _ = self.say(Body::Done(done));
        let _ = lock(self.control).close();
    }

    /// What the other end says of what it was shown, now that it needs no more of it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it is over, for a reason that was noted; [`Error::Network`] if nothing comes in time.
    pub(super) fn answered(&self) -> Result<(), Error> {
        let until = Instant::now() + FAREWELL;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok(Body::Accept(_)) => {}
                Ok(Body::Done(_)) => return Ok(()),
                Ok(_) => return Err(Error::Protocol("a message out of place")),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Cancelled),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Error::network("waiting for its answer")(
                        std::io::ErrorKind::TimedOut.into(),
                    ));
                }
            }
        }
    }
}
