//! Which suite to use: by this machine alone, or by what both ends can do.
//!
//! The rule: AES-256-GCM if both ends have AES and carry-less multiply in hardware, else ChaCha20-Poly1305. Each end
//! sends an [`Offer`]; both compute [`negotiate`] and get the same answer, whichever offer they call their own. Offers
//! belong in the authenticated transcript of the handshake, or an attacker will edit them.

use alloc::vec::Vec;

use crate::cpu::Cpu;
use crate::{Error, Suite};

/// The order in which [`negotiate`] takes a suite that both ends may use. Part of the protocol: both ends must have it alike.
///
/// The first two are the rule, and both have keys of 256 bits. AES-128-GCM is behind ChaCha20-Poly1305 although it is
/// faster where it may be used at all: nobody gets the shorter key, with its smaller margin when many keys are attacked at
/// once, who offers one of the two. Where the ends share neither, speed decides: AES-128-GCM may only be taken when both
/// have it in hardware, and XChaCha20-Poly1305 pays a sub-key for every message and for a longer nonce that a counter has
/// no use for.
const ORDER: [Suite; 4] = [
    Suite::Aes256Gcm,
    Suite::ChaCha20Poly1305,
    Suite::Aes128Gcm,
    Suite::XChaCha20Poly1305,
];

/// What one end can do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Offer {
    suites: Vec<Suite>,
    aes_hardware: bool,
}

impl Offer {
    /// An offer of these suites, by an end that has AES and carry-less multiply in hardware or has not.
    ///
    /// # Errors
    /// [`Error::EmptyOffer`] or [`Error::RepeatedSuite`].
    pub fn new(suites: &[Suite], aes_hardware: bool) -> Result<Self, Error> {
        if suites.is_empty() {
            return Err(Error::EmptyOffer);
        }
        for (i, &suite) in suites.iter().enumerate() {
            if suites[..i].contains(&suite) {
                return Err(Error::RepeatedSuite { suite });
            }
        }
        Ok(Offer {
            suites: suites.to_vec(),
            aes_hardware,
        })
    }

    /// An offer from the names a peer sent.
    ///
    /// # Errors
    /// [`Error::UnknownSuite`] for a name that is none of the four, [`Error::EmptyOffer`] for no name,
    /// [`Error::RepeatedSuite`] for one given twice. Nothing is skipped: a name we do not know means that we and the peer
    /// do not speak the same protocol.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>, aes_hardware: bool) -> Result<Self, Error> {
        let mut suites = Vec::with_capacity(Suite::ALL.len());
        for name in names {
            let suite = name.parse()?;
            if suites.contains(&suite) {
                return Err(Error::RepeatedSuite { suite });
            }
            suites.push(suite);
        }
        Offer::new(&suites, aes_hardware)
    }

    /// What a machine with this CPU offers: all suites of this build, in its order of preference.
    pub fn of(cpu: &Cpu) -> Self {
        Offer {
            suites: preference(cpu).into_iter().filter(|suite| suite.is_built()).collect(),
            aes_hardware: cpu.has_aes_gcm(),
        }
    }

    /// The suites.
    pub fn suites(&self) -> &[Suite] {
        &self.suites
    }

    /// Whether this end has AES and carry-less multiply in hardware.
    pub const fn aes_hardware(&self) -> bool {
        self.aes_hardware
    }
}

/// All suites, the best for a machine with this CPU first.
///
/// By speed on this machine alone, keys of 256 bits first within a cipher; [`negotiate`] has an order of its own, because
/// there the longer key matters more. With AES and carry-less multiply in hardware the AES suites lead; without, they come last, being slow there and on
/// some systems not free of table look-ups. XChaCha20-Poly1305 costs a sub-key for every message, so it comes after
/// ChaCha20-Poly1305; it is for random nonces, not for speed.
pub const fn preference(cpu: &Cpu) -> [Suite; 4] {
    if cpu.has_aes_gcm() {
        [
            Suite::Aes256Gcm,
            Suite::Aes128Gcm,
            Suite::ChaCha20Poly1305,
            Suite::XChaCha20Poly1305,
        ]
    } else {
        [
            Suite::ChaCha20Poly1305,
            Suite::XChaCha20Poly1305,
            Suite::Aes256Gcm,
            Suite::Aes128Gcm,
        ]
    }
}

/// The suite that both ends shall use; the same whichever offer comes first and however they are ordered inside.
///
/// AES suites only if both ends have the hardware, AES-256-GCM before all else; otherwise ChaCha20-Poly1305. The other two
/// are taken only if an end offers nothing better.
///
/// # Errors
/// [`Error::NoCommonSuite`] if no suite of both offers may be used under that rule. There is no silent fallback.
pub fn negotiate(ours: &Offer, theirs: &Offer) -> Result<Suite, Error> {
    let aes = ours.aes_hardware && theirs.aes_hardware;
    ORDER
        .into_iter()
        .filter(|suite| aes || !suite.is_aes())
        .find(|suite| ours.suites.contains(suite) && theirs.suites.contains(suite))
        .ok_or(Error::NoCommonSuite)
}

/// What a VMess client means by the security `auto`: AES-128-GCM where AES-GCM is in hardware, else ChaCha20-Poly1305.
///
/// One end decides alone there; the server takes what the client chose. The rule is that of the V2Ray family on amd64
/// (AES and PCLMULQDQ) and arm64 (AES and PMULL).
pub const fn vmess_auto(cpu: &Cpu) -> Suite {
    if cpu.has_aes_gcm() && Suite::Aes128Gcm.is_built() {
        Suite::Aes128Gcm
    } else {
        Suite::ChaCha20Poly1305
    }
}

#[cfg(all(test, feature = "aes"))]
mod tests {
    use super::*;
    use crate::cpu::{Feature, FeatureSet};

    fn with_aes() -> Cpu {
        Cpu::new(FeatureSet::EMPTY.with(Feature::Aes).with(Feature::Pclmulqdq), "")
    }

    fn without() -> Cpu {
        Cpu::new(FeatureSet::EMPTY.with(Feature::Aes), "")
    }

    #[test]
    fn the_rule() {
        let (aes, plain) = (Offer::of(&with_aes()), Offer::of(&without()));
        assert_eq!(negotiate(&aes, &aes), Ok(Suite::Aes256Gcm));
        assert_eq!(negotiate(&aes, &plain), Ok(Suite::ChaCha20Poly1305));
        assert_eq!(negotiate(&plain, &aes), Ok(Suite::ChaCha20Poly1305));
        assert_eq!(negotiate(&plain, &plain), Ok(Suite::ChaCha20Poly1305));
    }

    #[test]
    fn no_silent_fallback() {
        let aes_only = Offer::new(&[Suite::Aes256Gcm, Suite::Aes128Gcm], true).unwrap();
        let plain = Offer::of(&without());
        assert_eq!(negotiate(&aes_only, &plain), Err(Error::NoCommonSuite));
        let chacha_only = Offer::new(&[Suite::ChaCha20Poly1305], true).unwrap();
        assert_eq!(negotiate(&aes_only, &chacha_only), Err(Error::NoCommonSuite));
        assert_eq!(Offer::new(&[], true), Err(Error::EmptyOffer));
        assert_eq!(Offer::from_names([], true), Err(Error::EmptyOffer));
        assert!(matches!(
            Offer::from_names(["aes-256-gcm", "rot13"], true),
            Err(Error::UnknownSuite { .. })
        ));
        assert!(matches!(Offer::from_names([""], true), Err(Error::UnknownSuite { .. })));
        let twice = Offer::from_names(["aes-256-gcm", "aes-256-gcm"], true);
        assert_eq!(
            twice,
            Err(Error::RepeatedSuite {
                suite: Suite::Aes256Gcm
            })
        );
    }

    #[test]
    fn vmess_auto_never_means_none() {
        assert_eq!(vmess_auto(&with_aes()), Suite::Aes128Gcm);
        assert_eq!(vmess_auto(&without()), Suite::ChaCha20Poly1305);
    }

    /// The suite that two ends with these suites in common agree on: every set of suites, both kinds of hardware.
    #[test]
    fn the_order_of_negotiation() {
        use Suite::{Aes128Gcm, Aes256Gcm, ChaCha20Poly1305, XChaCha20Poly1305};
        let hardware = [Aes256Gcm, ChaCha20Poly1305, Aes128Gcm, XChaCha20Poly1305];
        let plain = [ChaCha20Poly1305, XChaCha20Poly1305];
        for set in 1..16usize {
            let shared: Vec<_> = (0..4).filter(|i| set >> i & 1 == 1).map(|i| Suite::ALL[i]).collect();
            let first = |order: &[Suite]| order.iter().copied().find(|suite| shared.contains(suite));
            for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
                let expected = first(if ours && theirs { &hardware } else { &plain });
                let (ours, theirs) = (Offer::new(&shared, ours).unwrap(), Offer::new(&shared, theirs).unwrap());
                assert_eq!(negotiate(&ours, &theirs).ok(), expected, "{ours:?} {theirs:?}");
            }
        }
        let both = |suites: &[Suite]| negotiate(&Offer::new(suites, true)?, &Offer::of(&with_aes()));
        assert_eq!(both(&[XChaCha20Poly1305, Aes128Gcm]), Ok(Aes128Gcm));
        assert_eq!(both(&[Aes128Gcm, ChaCha20Poly1305]), Ok(ChaCha20Poly1305));
    }

    #[test]
    fn the_order_of_preference() {
        use Suite::{Aes128Gcm, Aes256Gcm, ChaCha20Poly1305, XChaCha20Poly1305};
        let hardware = [Aes256Gcm, Aes128Gcm, ChaCha20Poly1305, XChaCha20Poly1305];
        let plain = [ChaCha20Poly1305, XChaCha20Poly1305, Aes256Gcm, Aes128Gcm];
        assert_eq!(preference(&with_aes()), hardware);
        assert_eq!(preference(&without()), plain);
        assert_eq!(Offer::of(&with_aes()).suites(), hardware);
        assert_eq!(Offer::of(&without()).suites(), plain);
    }

    #[test]
    fn preference_names_every_suite_once() {
        for cpu in [with_aes(), without()] {
            let mut suites = preference(&cpu);
            suites.sort_unstable();
            assert_eq!(suites, Suite::ALL);
        }
    }
}
