//! The PIN of a receiver, and how often it may be guessed.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

use sealway_net::sock::network;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::fingerprint::Fingerprint;

/// Wrong guesses of one network (a /64, or an IPv4 address), and of one certificate.
const EACH: u32 = 3;
/// Wrong guesses of everybody together. After that nobody is let in until the program starts again.
const ALL: u32 = 10;

/// What a guess was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is the PIN, or none is wanted.
    Right,
    /// There was none; that counts as no guess.
    Missing,
    /// It is another one.
    Wrong,
    /// There were too many, so it was not looked at.
    Locked,
}

/// The PIN and the guesses so far.
pub struct Pin {
    pin: Option<Zeroizing<String>>,
    all: u32,
    networks: HashMap<IpAddr, u32>,
    certificates: HashMap<Fingerprint, u32>,
}

impl Pin {
    /// With no PIN everybody is let in.
    pub fn new(pin: Option<Zeroizing<String>>) -> Pin {
        Pin {
            pin,
            all: 0,
            networks: HashMap::new(),
            certificates: HashMap::new(),
        }
    }

    /// Judges a guess from an address, made under a certificate if there was one.
    pub fn judge(&mut self, guess: Option<&str>, from: IpAddr, certificate: Option<Fingerprint>) -> Verdict {
        let Some(pin) = &self.pin else {
            return Verdict::Right;
        };
        let network = network(from);
        let spent = |count: Option<&u32>| count.is_some_and(|count| *count >= EACH);
        let by_certificate = certificate.and_then(|one| self.certificates.get(&one));
        if self.all >= ALL || spent(self.networks.get(&network)) || spent(by_certificate) {
            return Verdict::Locked;
        }
        let Some(guess) = guess else {
            return Verdict::Missing;
        };
        if pin.as_bytes().ct_eq(guess.as_bytes()).into() {
            return Verdict::Right;
        }
        // No more than ten of each are ever kept.
        self.all += 1;
        count(&mut self.networks, network);
        if let Some(certificate) = certificate {
            count(&mut self.certificates, certificate);
        }
        Verdict::Wrong
    }
}

fn count<K: Eq + Hash>(counts: &mut HashMap<K, u32>, key: K) {
    *counts.entry(key).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin() -> Pin {
        Pin::new(Some(Zeroizing::new("123456".into())))
    }

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn three_guesses_a_network_however_many_addresses_it_has() {
        let mut pin = pin();
        assert_eq!(pin.judge(None, at("fe80::1"), None), Verdict::Missing);
        for host in 1..=3 {
            assert_eq!(pin.judge(Some("1"), at(&format!("fe80::{host}")), None), Verdict::Wrong);
        }
        assert_eq!(pin.judge(Some("123456"), at("fe80::4"), None), Verdict::Locked);
        assert_eq!(pin.judge(None, at("fe80::4"), None), Verdict::Locked);
        assert_eq!(pin.judge(Some("123456"), at("fe80:0:0:1::4"), None), Verdict::Right);
        for _ in 0..3 {
            assert_eq!(pin.judge(Some(""), at("::ffff:10.0.0.1"), None), Verdict::Wrong);
        }
        assert_eq!(pin.judge(Some("123456"), at("10.0.0.1"), None), Verdict::Locked);
    }

    #[test]
    fn three_guesses_a_certificate_and_ten_in_all() {
        let mut pin = pin();
        let one = Some(Fingerprint::of(b"one"));
        for host in 1..=3 {
            assert_eq!(pin.judge(Some("0"), at(&format!("10.0.0.{host}")), one), Verdict::Wrong);
        }
        assert_eq!(pin.judge(Some("123456"), at("10.0.0.9"), one), Verdict::Locked);
        assert_eq!(pin.judge(Some("123456"), at("10.0.0.9"), None), Verdict::Right);
        for host in 4..=10 {
            assert_eq!(
                pin.judge(Some("0"), at(&format!("10.0.0.{host}")), None),
                Verdict::Wrong
            );
        }
        assert_eq!(pin.judge(Some("123456"), at("10.0.1.1"), None), Verdict::Locked);
    }

    #[test]
    fn without_a_pin_nothing_is_asked() {
        assert_eq!(Pin::new(None).judge(None, at("10.0.0.1"), None), Verdict::Right);
    }
}
