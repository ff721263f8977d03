//! The other end on the networks that this machine is in.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_drop::cancel::Cancel;
use sealway_drop::identity::Identity;
use sealway_drop::policy::{End, Refused};
use sealway_drop_lan::{Announced, Error, Sign};

use super::events::Events;
use crate::exit::Exit;
use crate::problem::Problem;

/// By what this end is known to those with these keys.
pub(super) fn sign_of(own: &Identity, peers: &[[u8; 32]]) -> Result<Sign, Problem> {
    let pairs = peers.iter().map(|peer| own.pair_secret(peer));
    Ok(Sign::Pairs(pairs.collect::<Result<_, _>>()?))
}

/// Lets the network know that this end waits. Where that does not work the other end needs an address, as it is told.
pub(super) fn announce(port: u16, sign: Sign, events: Events) -> Option<Announced> {
    sealway_drop_lan::announce(port, sign)
        .inspect_err(|error| events.warn(&format!("the network cannot be told that this end waits: {error}")))
        .ok()
}

/// Where the other end waits.
pub(super) fn find(
    sign: Option<Sign>,
    limit: Duration,
    end: End,
    events: Events,
    cancel: &Cancel,
) -> Result<Vec<SocketAddr>, Problem> {
    let choices = Refused::Nowhere(end);
    let Some(sign) = sign else { return Err(choices.into()) };
    let found = sealway_drop_lan::search(&sign, limit, &|| cancel.is_set());
    let known = match sign {
        Sign::Number(number) => format!("to the number {number}"),
        Sign::Pairs(_) => "to the keys that were named".to_owned(),
    };
    let failed = |error: &Error| Problem::new(Exit::Remote, format!("{error} {known}"));
    let addresses = found.map_err(|error| match error {
        Error::Stopped => sealway_drop::Error::Cancelled.into(),
        Error::Nobody => failed(&error).hint_if(choices.hint()),
        Error::Several => {
            failed(&error).hint("at most one of them is meant: give --connect HOST:PORT as the other end shows it")
        }
        error => Problem::new(Exit::Remote, error).hint("give --connect HOST:PORT as the other end shows it"),
    })?;
    events.found(&addresses);
    Ok(addresses)
}
