//! Sharing that goes on: an end that was lost is found again, and a port serves several.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::session::{Life, folder};
use super::{Options, Ready};
use crate::local::LocalTree;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Again, Connected, Host, Identity, Path, Place, Returns, Setup, connect_telling};
use sealway_drop::{Error, lock};

/// Ends that mount what is shared at one port at a time.
pub const MOUNTS: usize = 16;

/// How often a thread that waits looks whether it still should.
const TICK: Duration = Duration::from_millis(50);

/// Pause between two tries to find the other end again; twice as long each time, from the first to the last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// A session that lasted less was no success of finding the other end.
const LASTING: Duration = Duration::from_secs(5);

/// What happens while folders are shared and mounted, for whoever tells people. Called on several threads.
pub trait Telling: Sync {
    /// Another end is there for the first time. An error refuses it.
    ///
    /// # Errors
    /// Why it is refused.
    fn connected(&self, connected: &mut Connected) -> Result<(), Error>;

    /// An end that speaks the protocol was turned away for this reason; the waiting goes on.
    fn turned_away(&self, why: &Error);

    /// What was asked for stands, at every session but those after a loss.
    fn ready(&self, ready: Ready);

    /// Content goes directly to this address from now on, or, with `None`, through the relay again.
    fn path(&self, direct: Option<SocketAddr>);

    /// The other end was lost for this reason. It is tried again, or waited for, for so long.
    fn lost(&self, why: &Error, time: Duration);

    /// The other end that was lost is there again.
    fn again(&self);

    /// It was not found again within this time.
    fn gave_up(&self, time: Duration);

    /// One of several ends is done, as said; others may come.
    fn left(&self, how: &Result<(), Error>);
}

/// Shares and mounts as [`super::share`] does, with the end at `place`, and with the same one again when it was lost, for
/// [`Options::again`] each time.
///
/// An end that listens with keys, and only shares, serves up to [`MOUNTS`] ends until `cancel` says that it is enough. With a code it is
/// the one end that knew it. An end that is refused by `telling` ends the sharing, unless there may be others.
///
/// # Errors
/// As [`sealway_drop::link::connect`] and [`super::share`]. That of a session which was lost, if the other end was not found again.
pub fn keep(
    options: &Options,
    place: Place,
    setup: &Setup,
    cancel: &Cancel,
    telling: &dyn Telling,
) -> Result<(), Error> {
    let keeper = Keeper {
        options,
        setup,
        cancel,
        telling,
        local: folder(options)?,
    };
    let path = match &place {
        Place::Listen(_) => None,
        Place::Dial { addresses, .. } => Some(Path::Dial(addresses.clone())),
        Place::Relay { address, .. } => Some(Path::Relay(address.clone())),
    };
    match (place, path) {
        (Place::Listen(listener), _) => keeper.host(&Host::start(listener, setup.clone(), cancel)?),
        (place, Some(path)) => {
            let told = |error: &Error| telling.turned_away(error);
            let mut connected = connect_telling(place, setup, 1, cancel, &told)?;
            telling.connected(&mut connected)?;
            keeper.chain(connected, &|_| Way::Goes(path.clone()))
        }
        // Every place is one of these.
        (_, None) => Ok(()),
    }
}

/// How the other end is found again.
enum Way {
    /// This end goes there.
    Goes(Path),
    /// The other end comes.
    Comes(Returns),
}

struct Keeper<'a> {
    options: &'a Options,
    setup: &'a Setup,
    cancel: &'a Cancel,
    telling: &'a dyn Telling,
    local: Option<Arc<LocalTree>>,
}

impl Keeper<'_> {
    /// Serves who comes to a port.
    fn host(&self, host: &Host) -> Result<(), Error> {
        let way = |again: &Again| Way::Comes(host.expect(again.clone()));
        let keys = matches!(self.setup.identity, Identity::Keys { .. });
        if !keys || self.options.mount.is_some() {
            let mut connected = loop {
                self.name(host);
                if let Some(connected) = host.next(TICK)? {
                    break connected;
                }
            };
            host.let_in(false);
            // Who came in the same moment is not kept waiting.
            while let Ok(Some(other)) = host.next(Duration::ZERO) {
                drop(other);
            }
            self.telling.connected(&mut connected)?;
            return self.chain(connected, &way);
        }
        // Somebody is asked about one at a time.
        let asking = Mutex::new(());
        std::thread::scope(|scope| {
            let mut serving = Vec::new();
            loop {
                serving.retain(|thread: &std::thread::ScopedJoinHandle<'_, ()>| !thread.is_finished());
                host.let_in(serving.len() < MOUNTS);
                self.name(host);
                let mut connected = match host.next(TICK) {
                    Ok(Some(connected)) => connected,
                    Ok(None) => continue,
                    // To be stopped is how this ends.
                    Err(Error::Cancelled) => return Ok(()),
                    Err(error) => {
                        self.cancel.cancel();
                        return Err(error);
                    }
                };
                let (asking, way) = (&asking, &way);
                let serve = move || {
                    let asked = lock(asking);
                    let taken = self.telling.connected(&mut connected);
                    drop(asked);
                    let how = taken.and_then(|()| self.chain(connected, way));
                    if !self.cancel.is_set() {
                        self.telling.left(&how);
                    }
                };
                let thread = std::thread::Builder::new().name("serve".into());
                match thread.spawn_scoped(scope, serve) {
                    Ok(thread) => serving.push(thread),
                    // Those that are served go on; this one is let go and may come again.
                    Err(error) => tracing::warn!(%error, "no thread to serve an end that came"),
                }
            }
        })
    }

    /// Names who was turned away.
    fn name(&self, host: &Host) {
        while let Some(error) = host.turned_away() {
            self.telling.turned_away(&error);
        }
    }

    /// One session after the other with the same end.
    fn chain(&self, first: Connected, way: &dyn Fn(&Again) -> Way) -> Result<(), Error> {
        let wanted = !self.options.again.is_zero();
        let life = Life::new(self.options, self.local.clone(), wanted)?;
        let mut again = Again::of(&first.peered, self.setup)?;
        let mut way = way(&again);
        let (mut connected, mut pause, mut told) = (first, PAUSES.0, false);
        let result = loop {
            let begun = Instant::now();
            let stands = |line: TcpStream| {
                if let Way::Comes(returns) = &way {
                    returns.stands(line);
                }
            };
            let found = std::mem::replace(&mut told, true);
            let ready = |ready| match found {
                false => self.telling.ready(ready),
                true => self.telling.again(),
            };
            let path = |direct| self.telling.path(direct);
            let error = match life.session(connected, self.cancel, &stands, &ready, &path) {
                Err(error) if life.goes_on(&error) && !self.cancel.is_set() => error,
                result => break result,
            };
            self.telling.lost(&error, self.options.again);
            let hurry = !found || begun.elapsed() >= LASTING;
            if hurry {
                pause = PAUSES.0;
            }
            match self.find(&life, &mut again, &mut way, (&mut pause, hurry)) {
                Found::Again(found) => connected = *found,
                Found::Stopped => break Ok(()),
                Found::Late => {
                    self.telling.gave_up(self.options.again);
                    break Err(error);
                }
            }
        };
        life.end();
        result
    }

    /// Looks for an end that was lost; after a pause unless there is a `hurry`.
    fn find(&self, life: &Life<'_>, again: &mut Again, way: &mut Way, (pause, hurry): (&mut Duration, bool)) -> Found {
        let until = Instant::now().checked_add(self.options.again);
        // Whoever waits is woken by either.
        let stop = Cancel::new();
        let (one, other) = (stop.clone(), stop.clone());
        let _watches = (
            self.cancel.on_cancel(move || one.cancel()),
            life.gone().on_cancel(move || other.cancel()),
        );
        let rest = |pause: &mut Duration| {
            let resume = Instant::now() + *pause;
            while Instant::now() < resume && !stop.is_set() {
                std::thread::sleep(TICK.min(*pause));
            }
            *pause = (*pause * 2).min(PAUSES.1);
        };
        // Whoever comes rests there.
        if !hurry && matches!(way, Way::Goes(_)) {
            rest(pause);
        }
        let mut tries = 0u32;
        while !stop.is_set() {
            if until.is_some_and(|until| Instant::now() >= until) {
                return Found::Late;
            }
            let path = match way {
                Way::Comes(returns) => match returns.wait(TICK) {
                    Some(connected) => return Found::Again(Box::new(connected)),
                    None => continue,
                },
                Way::Goes(path) => path,
            };
            // The program at the other end may be another one by now that has the same key.
            let anew = tries % 2 == 1 && again.has_keys();
            match again.meet(path, anew, &stop) {
                Ok(connected) => {
                    if anew && let Ok(next) = Again::of(&connected.peered, self.setup) {
                        *again = next;
                    }
                    return Found::Again(Box::new(connected));
                }
                Err(error) => tracing::debug!(%error, "the other end is not found again yet"),
            }
            tries += 1;
            rest(pause);
        }
        Found::Stopped
    }
}

/// What came of the search for an end that was lost.
enum Found {
    Again(Box<Connected>),
    Stopped,
    Late,
}
