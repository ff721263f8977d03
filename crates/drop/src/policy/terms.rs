//! How two ends find each other, and what lets one in.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Check, End, Refused};
use crate::address;
use crate::invite::Meet;

/// How long an end that dials waits for the other one to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same where a person types a code first.
const TYPING: Duration = Duration::from_secs(600);

/// How two ends come together, from one of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Route {
    /// It connects to an address at which the other one waits.
    Dial,
    /// It waits for the other one.
    Wait,
    /// Both come to a relay.
    Relay,
    /// It looks for the other one on the networks that it is in.
    Lan,
}

/// What somebody wants, as far as was said.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// What this end does.
    pub end: End,
    /// How to come together.
    pub route: Option<Route>,
    /// There is a relay to use where nothing is said of that.
    pub usual_relay: bool,
    /// Ends on one network may find each other where nothing is said.
    pub lan: bool,
    /// The address says itself that it is of this machine.
    pub local: bool,
    /// A code is to be used even there.
    pub code: bool,
    /// A code was given, so nobody need type it.
    pub given: bool,
    /// Keys of other ends were named.
    pub keys: bool,
    /// Anyone is let in.
    pub anyone: bool,
    /// Nobody is to be asked about that.
    pub unchecked: bool,
    /// There is a person to ask.
    pub person: bool,
}

/// Where a code comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// This end makes it.
    Made,
    /// It was given beforehand.
    Given,
    /// A person types it when asked.
    Typed,
    /// It is the first line of what comes in.
    Read,
}

/// What lets the other end in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Proof {
    /// It knows the same code.
    Code(Source),
    /// It has one of the keys that were named.
    Keys,
    /// Nothing: a person may be asked about the check words.
    Anyone,
}

/// When a code that is to be passed on is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shows {
    /// Not at all: this end was told it.
    Never,
    /// At once.
    AtOnce,
    /// When a relay has given it a number.
    Numbered,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Terms {
    /// How the ends come together.
    pub route: Route,
    /// What lets the other one in.
    pub proof: Proof,
    /// What becomes of the check words.
    pub check: Check,
    /// When the code is shown.
    pub shows: Shows,
    /// How long this end tries again where nobody listens yet.
    pub patience: Duration,
    /// Whether this end waits before it says how the other one is to come, so that what it says holds.
    pub waits_first: bool,
    /// Whether the networks that this end is in are told that it waits.
    pub announces: bool,
    /// Whether the other end must be told to use a code, as it would do without.
    pub says_code: bool,
}

impl Wishes {
    /// What follows.
    ///
    /// A code lets in, unless keys were named or anyone is welcome. Between ends on this machine itself nothing is needed, unless a
    /// code is wanted or given. Where nothing is said of a place, ends on one network look for each other, if something proves who they are.
    ///
    /// # Errors
    /// [`Refused::Nowhere`], [`Refused::NobodyCompares`], [`Refused::RelayNeedsProof`].
    pub fn terms(&self) -> Result<Terms, Refused> {
        let route = match self.route {
            Some(route) => route,
            None if self.usual_relay => Route::Relay,
            None if self.end.is_first() => Route::Wait,
            None if self.is_found() => Route::Lan,
            None => return Err(Refused::Nowhere(self.end)),
        };
        let local = self.local && route != Route::Relay;
        let proof = self.proof(local);
        let check = match proof {
            Proof::Code(_) | Proof::Keys => Check::Proved,
            Proof::Anyone if local => Check::Local,
            Proof::Anyone if self.unchecked => Check::Shown,
            Proof::Anyone if self.person => Check::Asked,
            Proof::Anyone => return Err(Refused::NobodyCompares),
        };
        let shows = match (proof, route) {
            (Proof::Code(_), Route::Relay) if self.end.is_first() => Shows::Numbered,
            (Proof::Code(Source::Made), _) => Shows::AtOnce,
            (Proof::Anyone, Route::Relay) => return Err(Refused::RelayNeedsProof),
            _ => Shows::Never,
        };
        Ok(Terms {
            route,
            proof,
            check,
            shows,
            // Somebody must type the code before anybody listens.
            patience: match shows {
                Shows::AtOnce => TYPING,
                Shows::Never | Shows::Numbered => PATIENCE,
            },
            waits_first: self.end.is_first() && route == Route::Wait,
            announces: self.route.is_none() && route == Route::Wait && self.is_found(),
            says_code: local && matches!(proof, Proof::Code(_)),
        })
    }

    /// Whether ends may find each other: the one that comes must know for whom it looks.
    fn is_found(&self) -> bool {
        self.lan && (self.keys || !self.anyone)
    }

    fn proof(&self, local: bool) -> Proof {
        if self.keys {
            return Proof::Keys;
        }
        if self.anyone || (local && !self.given && !self.code) {
            return Proof::Anyone;
        }
        Proof::Code(match (self.given, self.end.is_first()) {
            (true, _) => Source::Given,
            (false, true) => Source::Made,
            (false, false) if self.person => Source::Typed,
            (false, false) => Source::Read,
        })
    }
}

/// How ends come together whose connection is not sealed at all: on this machine itself, at an address that was said.
///
/// # Errors
/// [`Refused::PlainNowhere`], [`Refused::PlainElsewhere`].
pub fn unsealed(route: Option<Route>, local: bool) -> Result<Route, Refused> {
    match route {
        None | Some(Route::Relay | Route::Lan) => Err(Refused::PlainNowhere),
        Some(_) if !local => Err(Refused::PlainElsewhere),
        Some(route) => Ok(route),
    }
}

impl Terms {
    /// The addresses that the other end is told: those at which a port of this end that waits at `waits_at` may be reached, else those
    /// that it is to listen at, which this end has been told; or the relay, if it was named and is not the usual one.
    pub fn meet(&self, waits_at: Option<SocketAddr>, told: &[SocketAddr], relay: Option<&str>) -> Meet {
        match (self.route, waits_at) {
            (Route::Relay, _) => Meet::Relay(relay.map(str::to_owned)),
            (Route::Dial | Route::Lan, _) => Meet::There(told.to_vec()),
            (Route::Wait, Some(address)) => Meet::Here(address::reachable(address)),
            (Route::Wait, None) => Meet::Here(vec![]),
        }
    }

    /// Where the code comes from, if one lets in.
    pub const fn code(&self) -> Option<Source> {
        match self.proof {
            Proof::Code(source) => Some(source),
            Proof::Keys | Proof::Anyone => None,
        }
    }
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
