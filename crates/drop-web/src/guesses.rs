//! How often a PIN may be guessed, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;

use sealway_drop::lock;
use sealway_drop::places::Limits;
use sealway_net::sock::network;

/// Wrong PINs, counted for each address and in all; never forgotten while the server runs.
#[derive(Default)]
pub(crate) struct Guesses(Mutex<Wrong>);

#[derive(Default)]
struct Wrong {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// What a wrong PIN leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Guess {
    /// Another try.
    Again,
    /// None of this address.
    Enough,
    /// None of anybody; said once.
    Locked,
}

impl Guesses {
    /// Wrong PINs of one address, and of all: of a million PINs, one in ten thousand is found.
    const LIMITS: Limits = Limits { all: 100, each: 10 };

    /// Whether an address may try.
    pub(crate) fn may(&self, client: IpAddr) -> bool {
        let wrong = lock(&self.0);
        let of = wrong.of.get(&network(client)).copied().unwrap_or(0);
        wrong.all < Self::LIMITS.all && of < Self::LIMITS.each
    }

    /// Counts a wrong one.
    pub(crate) fn wrong(&self, client: IpAddr) -> Guess {
        let mut wrong = lock(&self.0);
        wrong.all += 1;
        let all = wrong.all;
        // Bounded: no more addresses than guesses.
        let of = wrong.of.entry(network(client)).or_default();
        *of += 1;
        match (all == Self::LIMITS.all, *of >= Self::LIMITS.each) {
            (true, _) => Guess::Locked,
            (false, true) => Guess::Enough,
            (false, false) => Guess::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn guesses_end_for_an_address_and_then_for_all() {
        let guesses = Guesses::default();
        let one = address("192.0.2.1");
        for _ in 1..10 {
            assert_eq!(guesses.wrong(one), Guess::Again);
        }
        assert!(guesses.may(one));
        assert_eq!(guesses.wrong(one), Guess::Enough);
        assert!(!guesses.may(one) && guesses.may(address("192.0.2.2")));
        for at in 11..100 {
            guesses.wrong(address(&format!("10.0.{at}.1")));
        }
        assert_eq!(guesses.wrong(address("10.1.0.1")), Guess::Locked);
        assert!(!guesses.may(address("192.0.2.2")));
    }
}
