//! Who is let in while this end waits: so many at a time, and so many of one address.
//!
//! Where there is no room, the one that has been silent for longest makes some: the other end speaks as soon as it is there. Where all
//! have spoken, it is one of those that have come to nothing since, of the address with the most.

use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sealway_net::sock::network;

use crate::lock;

/// Connections at a time.
pub(super) const ALL: usize = 64;

/// Those of one address, more than a session has connections; of IPv6, of one network of 64 bits, which is what one machine may have.
const OF_ONE: usize = 24;

/// How long who has asked keeps its place from others: what is left of a handshake is one round trip.
const ASKING: Duration = Duration::from_secs(2);

/// Ends that speak the protocol and were turned away, of which somebody is told: so many at once.
pub(super) const NAMED: usize = 8;

/// How long until somebody is told of one more: a share may wait for weeks.
const NAMED_AGAIN: Duration = Duration::from_secs(300);

/// Counts of whom somebody is told: strangers do not fill a screen.
#[derive(Default)]
pub(super) struct Named(Mutex<Told>);

#[derive(Default)]
struct Told {
    /// Of how many, less those that are forgotten.
    count: usize,
    /// When one was forgotten last, or the first was told of.
    since: Option<Instant>,
}

impl Named {
    /// Whether somebody is told of one more.
    pub(super) fn one_more(&self) -> bool {
        self.one_more_at(Instant::now())
    }

    fn one_more_at(&self, now: Instant) -> bool {
        let mut told = lock(&self.0);
        let since = told.since.unwrap_or(now);
        let forgotten = now.saturating_duration_since(since).as_secs() / NAMED_AGAIN.as_secs();
        let forgotten = usize::try_from(forgotten).unwrap_or(NAMED).min(NAMED);
        told.count = told.count.saturating_sub(forgotten);
        told.since = Some(match told.count {
            0 => now,
            _ => since + NAMED_AGAIN * forgotten as u32,
        });
        let one_more = told.count < NAMED;
        told.count += usize::from(one_more);
        one_more
    }
}

/// Those that are here, in the order in which they came.
#[derive(Default)]
pub(super) struct Admission {
    here: Mutex<Here>,
}

#[derive(Default)]
struct Here {
    next: u64,
    admitted: Vec<Entry>,
    /// The waiting is over.
    over: bool,
}

struct Entry {
    number: u64,
    from: Option<IpAddr>,
    stream: TcpStream,
    stage: Stage,
    /// When it came so far.
    since: Instant,
}

/// How far one has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// It has said nothing.
    Silent,
    /// It has said that it begins a session, and not all of what an end says first.
    Begins,
    /// It has said all of that, and is being answered.
    Asks,
    /// The same with a code: it has the turn, or waits for it.
    Turn,
    /// It stays when the waiting is over.
    Stays,
}

/// One of them, until it is dropped.
pub(super) struct Admitted {
    admission: Arc<Admission>,
    number: u64,
}

impl Admission {
    /// Lets one in; `None` if there is no room, and none that somebody could make.
    pub(super) fn admit(self: &Arc<Self>, stream: &TcpStream) -> Option<Admitted> {
        self.admit_at(stream, Instant::now())
    }

    fn admit_at(self: &Arc<Self>, stream: &TcpStream, now: Instant) -> Option<Admitted> {
        let from = stream.peer_addr().ok().map(|address| network(address.ip()));
        let stream = stream.try_clone().ok()?;
        let mut here = lock(&self.here);
        let same = |entry: &Entry| entry.from == from;
        if here.admitted.iter().filter(|entry| same(entry)).count() >= OF_ONE {
            here.make_room(now, same)?;
        } else if here.admitted.len() >= ALL {
            here.make_room(now, |_| true)?;
        }
        let number = here.next;
        here.next += 1;
        here.admitted.push(Entry {
            number,
            from,
            stream,
            stage: Stage::Silent,
            since: now,
        });
        drop(here);
        let admission = self.clone();
        Some(Admitted { admission, number })
    }

    /// The waiting is over: sends away who has begun and does not stay. Who has said nothing may be of the session that stands.
    pub(super) fn send_home(&self) {
        let mut here = lock(&self.here);
        here.over = true;
        for entry in &here.admitted {
            if matches!(entry.stage, Stage::Begins | Stage::Asks | Stage::Turn) {
                let _ = entry.stream.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Here {
    /// Sends away the one of these that has been silent for longest; if there is none, one that has asked for too long.
    fn make_room(&mut self, now: Instant, of: impl Fn(&Entry) -> bool) -> Option<()> {
        let waits = |entry: &Entry| matches!(entry.stage, Stage::Silent | Stage::Begins);
        let silent = self.admitted.iter().position(|entry| waits(entry) && of(entry));
        let goes = silent.or_else(|| self.lingers(now, of))?;
        // Its thread wakes, and ends.
        let _ = self.admitted.remove(goes).stream.shutdown(Shutdown::Both);
        Some(())
    }

    /// The one of these that has asked for longest, and for too long, of the address with the most connections: a first flight needs no
    /// secret.
    fn lingers(&self, now: Instant, of: impl Fn(&Entry) -> bool) -> Option<usize> {
        let late = |entry: &Entry| entry.stage == Stage::Asks && now.saturating_duration_since(entry.since) >= ASKING;
        let beside = |entry: &Entry| self.admitted.iter().filter(|other| other.from == entry.from).count();
        let lingering = self
            .admitted
            .iter()
            .enumerate()
            .filter(|(_, entry)| late(entry) && of(entry));
        lingering
            .min_by_key(|(_, entry)| (std::cmp::Reverse(beside(entry)), entry.since))
            .map(|(at, _)| at)
    }
}

impl Admitted {
    /// It has come so far; false if the waiting is over.
    pub(super) fn is_at(&self, stage: Stage) -> bool {
        let mut here = lock(&self.admission.here);
        if let Some(entry) = here.admitted.iter_mut().find(|entry| entry.number == self.number) {
            entry.stage = stage;
            entry.since = Instant::now();
        }
        !here.over
    }

    /// Whether it has not been sent away.
    pub(super) fn is_here(&self) -> bool {
        let here = lock(&self.admission.here);
        here.admitted.iter().any(|entry| entry.number == self.number)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        lock(&self.admission.here)
            .admitted
            .retain(|entry| entry.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::testing::streams;

    #[test]
    fn the_oldest_that_is_silent_makes_room() {
        let admission: Arc<Admission> = Arc::default();
        let mut here: Vec<_> = (0..OF_ONE).map(|_| streams()).collect();
        let mut admitted: Vec<_> = here.iter().map(|(here, _)| admission.admit(here).unwrap()).collect();
        assert!(admitted[0].is_at(Stage::Asks));
        let more = streams();
        admitted.push(admission.admit(&more.0).unwrap());
        assert_eq!(here[1].1.read(&mut [0]).unwrap(), 0, "sent away");
        for at in [0, 2] {
            here[at].1.set_nonblocking(true).unwrap();
            assert!(here[at].1.read(&mut [0]).is_err(), "{at} is still here");
        }
        assert!(!admitted[1].is_here() && admitted[0].is_here());
        // Where all speak, there is no room.
        let now = Instant::now();
        assert!(admitted.iter().all(|admitted| admitted.is_at(Stage::Asks)));
        assert!(admission.admit_at(&more.0, now).is_none());
        admitted.clear();
        assert!(admission.admit(&more.0).is_some());
        assert!(lock(&admission.here).admitted.is_empty());
    }

    #[test]
    fn who_asks_for_too_long_makes_room_and_who_has_the_turn_does_not() {
        let admission: Arc<Admission> = Arc::default();
        let mut here: Vec<_> = (0..OF_ONE).map(|_| streams()).collect();
        let admitted: Vec<_> = here.iter().map(|(here, _)| admission.admit(here).unwrap()).collect();
        assert!(admitted.iter().all(|admitted| admitted.is_at(Stage::Turn)));
        let (more, later) = (streams(), Instant::now() + ASKING);
        assert!(
            admission.admit_at(&more.0, later).is_none(),
            "it has or awaits the turn"
        );
        assert!(admitted[5].is_at(Stage::Asks));
        assert!(admission.admit_at(&more.0, later + ASKING).is_some());
        assert_eq!(here[5].1.read(&mut [0]).unwrap(), 0, "sent away");
        assert!(!admitted[5].is_here() && admitted[4].is_here());
    }

    #[test]
    fn the_address_with_the_most_makes_room_first() {
        let now = Instant::now();
        let entry = |number: u64, last: u8, since| Entry {
            number,
            from: Some(IpAddr::from([192, 0, 2, last])),
            stream: streams().0,
            stage: Stage::Asks,
            since,
        };
        let here = Here {
            admitted: vec![
                entry(0, 1, now),
                entry(1, 2, now + ASKING / 2),
                entry(2, 2, now + ASKING / 4),
            ],
            ..Here::default()
        };
        assert_eq!(here.lingers(now + ASKING * 2, |_| true), Some(2));
        assert_eq!(
            here.lingers(now + ASKING, |_| true),
            Some(0),
            "the others have time left"
        );
        assert_eq!(here.lingers(now + ASKING / 2, |_| true), None);
    }

    #[test]
    fn so_many_are_named() {
        let named = Named::default();
        assert_eq!((0..100).filter(|_| named.one_more()).count(), NAMED);
    }

    #[test]
    fn after_a_while_somebody_is_told_again() {
        let (named, begun) = (Named::default(), Instant::now());
        let told = |at: Duration, many: usize| (0..many).filter(|_| named.one_more_at(begun + at)).count();
        assert_eq!(told(Duration::ZERO, 100), NAMED);
        assert_eq!(told(NAMED_AGAIN - Duration::from_millis(1), 100), 0);
        assert_eq!(told(NAMED_AGAIN, 100), 1);
        assert_eq!(told(NAMED_AGAIN * 3 / 2, 100), 0);
        // The half that had passed counts.
        assert_eq!(told(NAMED_AGAIN * 2, 100), 1);
        assert_eq!(told(NAMED_AGAIN * 5, 100), 3);
        // However long nobody came, there are not more at once.
        assert_eq!(told(NAMED_AGAIN * 10_000, 100), NAMED);
        assert_eq!(told(NAMED_AGAIN * 10_001, 100), 1);
        // A moment that lies before another one gives nothing.
        assert_eq!(told(Duration::ZERO, 100), 0);
    }

    #[test]
    fn who_has_begun_goes_when_the_waiting_is_over() {
        let admission: Arc<Admission> = Arc::default();
        let stages = [Stage::Silent, Stage::Begins, Stage::Asks, Stage::Turn, Stage::Stays];
        let mut here: Vec<_> = stages.iter().map(|_| streams()).collect();
        let admitted: Vec<_> = here.iter().map(|(here, _)| admission.admit(here).unwrap()).collect();
        for (admitted, stage) in admitted.iter().zip(stages) {
            assert!(admitted.is_at(stage));
        }
        admission.send_home();
        assert!(!admitted[0].is_at(Stage::Begins), "too late");
        for ((_, there), stage) in here.iter_mut().zip(stages) {
            there.set_nonblocking(true).unwrap();
            let gone = there.read(&mut [0]).is_ok();
            assert_eq!(gone, !matches!(stage, Stage::Silent | Stage::Stays), "{stage:?}");
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
