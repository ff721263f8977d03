//! What each end does between its flights.

use sealway_aead::Suite;
use sealway_aead::choose::{Offer, negotiate};
use sealway_aead::derive::Direction;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::flight::{First, PART, Parts, Second, split_third};
use super::kem::{ENCAPSULATION_LEN, SEED_LEN};
use super::pake::Pake;
use super::schedule::{self, CONFIRM_INITIATOR, CONFIRM_RESPONDER, Schedule};
use super::{Auth, Config, Established, Kem, Mode, PeerKey, Role, StaticKey};
use crate::{CheckString, Error, Session};

/// How an end makes itself known, once the handshake runs.
enum Proof {
    Code(Pake),
    Keys { own: StaticKey, peer: PeerKey },
}

impl Proof {
    fn new(role: Role, auth: Auth, start: &[u8; 32], random: &mut dyn FnMut(&mut [u8])) -> Result<Self, Error> {
        match auth {
            Auth::Code(code) if code.is_empty() => Err(Error::EmptyCode),
            Auth::Code(code) => Pake::start(role, &*schedule::password(&code, start)?, random).map(Proof::Code),
            Auth::Keys { own, peer } => Ok(Proof::Keys { own, peer }),
        }
    }

    const fn share(&self) -> Option<[u8; PART]> {
        match self {
            Proof::Code(pake) => Some(pake.share()),
            Proof::Keys { .. } => None,
        }
    }

    const fn mode(&self) -> Mode {
        match self {
            Proof::Code(_) => Mode::Code,
            Proof::Keys { .. } => Mode::Keys,
        }
    }
}

fn draw<const N: usize>(random: &mut dyn FnMut(&mut [u8])) -> Box<Zeroizing<[u8; N]>> {
    let mut bytes = Box::new(Zeroizing::new([0; N]));
    random(&mut **bytes);
    bytes
}

fn check(schedule: &mut Schedule, label: &str, theirs: &[u8; PART]) -> Result<(), Error> {
    if !bool::from(schedule.confirmation(label)?.ct_eq(theirs)) {
        return Err(Error::Unauthentic);
    }
    schedule.hash(theirs);
    Ok(())
}

/// Appends a confirmation to a flight.
fn confirm(schedule: &mut Schedule, label: &str, flight: &mut Vec<u8>) -> Result<(), Error> {
    let confirmation = schedule.confirmation(label)?;
    flight.extend_from_slice(&*confirmation);
    schedule.hash(&*confirmation);
    Ok(())
}

/// What both ends know when the third flight is made or read.
struct Agreed {
    role: Role,
    suite: Suite,
    kem: Kem,
    check: CheckString,
    peer_key: Option<[u8; 32]>,
}

impl Agreed {
    fn establish(self, schedule: Schedule) -> Result<Box<Established>, Error> {
        let (secret, hash) = schedule.finish()?;
        let (session, send, recv) = Session::establish(self.role, self.suite, &secret, hash)?;
        Ok(Box::new(Established {
            suite: self.suite,
            role: self.role,
            kem: self.kem,
            peer_key: self.peer_key,
            check: self.check,
            send,
            recv,
            session,
        }))
    }
}

/// An initiator that waits for flight 2.
pub(super) struct Initiator {
    kem: Kem,
    offer: Offer,
    proof: Proof,
    ephemeral: StaticKey,
    seed: Box<Zeroizing<[u8; SEED_LEN]>>,
    nonce: Box<Zeroizing<[u8; PART]>>,
    schedule: Schedule,
}

impl Initiator {
    /// With flight 1.
    pub(super) fn start(config: Config, random: &mut dyn FnMut(&mut [u8])) -> Result<(Self, Vec<u8>), Error> {
        let start = schedule::start(&config.prologue);
        let mode = config.auth.mode();
        let ephemeral = StaticKey::from_bytes(&draw(random));
        let seed = draw(random);
        let proof = Proof::new(Role::Initiator, config.auth, &start, random)?;
        let nonce = draw(random);
        let flight = First {
            mode,
            kem: config.kem,
            offer: config.offer.clone(),
            ephemeral: *ephemeral.public(),
            kem_key: &config.kem.public_key(&seed),
            share: proof.share(),
            commitment: schedule::commitment(&nonce),
        }
        .encode();
        let initiator = Initiator {
            kem: config.kem,
            offer: config.offer,
            proof,
            ephemeral,
            seed,
            nonce,
            schedule: Schedule::new(&start, &flight),
        };
        Ok((initiator, flight))
    }

    pub(super) const fn mode(&self) -> Mode {
        self.proof.mode()
    }

    pub(super) const fn kem(&self) -> Kem {
        self.kem
    }

    /// Reads flight 2; gives flight 3 and what is established.
    pub(super) fn second(self, flight: &[u8]) -> Result<(Vec<u8>, Box<Established>), Error> {
        let (
            second,
            Parts {
                clear,
                sealed,
                confirmation,
            },
        ) = Second::decode(flight, self.mode(), self.kem)?;
        let suite = negotiate(&self.offer, &second.offer).map_err(Error::Suites)?;
        if second.suite != suite {
            return Err(Error::OtherSuite);
        }
        let mut schedule = self.schedule;
        schedule.hash(clear);
        schedule.mix(&*self.kem.decapsulate(&self.seed, second.ciphertext)?)?;
        schedule.mix(self.ephemeral.agree(&second.ephemeral)?.as_bytes())?;
        let mut text = Vec::with_capacity(2 * PART + Suite::TAG_LEN);
        let (own, peer_key) = match self.proof {
            Proof::Code(pake) => {
                let share = second.share.ok_or(Error::Malformed { what: "SPAKE2 share" })?;
                schedule.mix(&pake.finish(&share)?)?;
                check(&mut schedule, CONFIRM_RESPONDER, &confirmation)?;
                (None, None)
            }
            Proof::Keys { own, peer } => {
                let key = *schedule.open(suite, Direction::ResponderToInitiator, sealed)?;
                schedule.mix(self.ephemeral.agree(&key)?.as_bytes())?;
                check(&mut schedule, CONFIRM_RESPONDER, &confirmation)?;
                // Before this end says who it is.
                if !peer.accepts(&key) {
                    return Err(Error::UnknownPeer { key });
                }
                text.extend_from_slice(own.public());
                (Some(own), Some(key))
            }
        };
        let string = schedule.checker()?.string(&self.nonce)?;
        text.extend_from_slice(&**self.nonce);
        schedule.seal(suite, Direction::InitiatorToResponder, &mut text)?;
        if let Some(own) = own {
            schedule.mix(own.agree(&second.ephemeral)?.as_bytes())?;
        }
        confirm(&mut schedule, CONFIRM_INITIATOR, &mut text)?;
        let agreed = Agreed {
            role: Role::Initiator,
            suite,
            kem: self.kem,
            check: string,
            peer_key,
        };
        Ok((text, agreed.establish(schedule)?))
    }
}

/// A responder that waits for flight 1.
pub(super) struct Responder {
    weakest: Kem,
    offer: Offer,
    proof: Proof,
    ephemeral: StaticKey,
    encapsulation: Box<Zeroizing<[u8; ENCAPSULATION_LEN]>>,
    nonce: Box<Zeroizing<[u8; PART]>>,
    start: [u8; 32],
}

impl Responder {
    pub(super) fn start(config: Config, random: &mut dyn FnMut(&mut [u8])) -> Result<Self, Error> {
        let start = schedule::start(&config.prologue);
        let ephemeral = StaticKey::from_bytes(&draw(random));
        let encapsulation = draw(random);
        let proof = Proof::new(Role::Responder, config.auth, &start, random)?;
        Ok(Responder {
            weakest: config.kem,
            offer: config.offer,
            proof,
            ephemeral,
            encapsulation,
            nonce: draw(random),
            start,
        })
    }

    pub(super) const fn mode(&self) -> Mode {
        self.proof.mode()
    }

    pub(super) const fn weakest(&self) -> Kem {
        self.weakest
    }

    /// Reads flight 1; gives flight 2.
    pub(super) fn first(self, flight: &[u8]) -> Result<(Vec<u8>, Answered), Error> {
        let first = First::decode(flight)?;
        let suite = negotiate(&self.offer, &first.offer).map_err(Error::Suites)?;
        let encapsulated = first.kem.encapsulate(first.kem_key, &self.encapsulation)?;
        let mut schedule = Schedule::new(&self.start, flight);
        let mut answer = Second {
            suite,
            offer: self.offer,
            ephemeral: *self.ephemeral.public(),
            ciphertext: &encapsulated.ciphertext,
            share: self.proof.share(),
            nonce: **self.nonce,
        }
        .encode();
        schedule.hash(&answer);
        schedule.mix(&*encapsulated.secret)?;
        schedule.mix(self.ephemeral.agree(&first.ephemeral)?.as_bytes())?;
        let peer = match self.proof {
            Proof::Code(pake) => {
                let share = first.share.ok_or(Error::Malformed { what: "SPAKE2 share" })?;
                schedule.mix(&pake.finish(&share)?)?;
                None
            }
            Proof::Keys { own, peer } => {
                let mut sealed = own.public().to_vec();
                schedule.seal(suite, Direction::ResponderToInitiator, &mut sealed)?;
                answer.extend_from_slice(&sealed);
                schedule.mix(own.agree(&first.ephemeral)?.as_bytes())?;
                Some(peer)
            }
        };
        confirm(&mut schedule, CONFIRM_RESPONDER, &mut answer)?;
        let answered = Answered {
            suite,
            kem: first.kem,
            peer,
            ephemeral: self.ephemeral,
            commitment: first.commitment,
            schedule,
        };
        Ok((answer, answered))
    }
}

/// A responder that waits for flight 3.
pub(super) struct Answered {
    suite: Suite,
    kem: Kem,
    /// Without it a code phrase is used.
    peer: Option<PeerKey>,
    ephemeral: StaticKey,
    commitment: [u8; PART],
    schedule: Schedule,
}

impl Answered {
    pub(super) const fn mode(&self) -> Mode {
        match self.peer {
            Some(_) => Mode::Keys,
            None => Mode::Code,
        }
    }

    /// Reads flight 3.
    pub(super) fn third(self, flight: &[u8]) -> Result<Box<Established>, Error> {
        let (sealed, confirmation) = split_third(flight)?;
        let direction = Direction::InitiatorToResponder;
        let mut schedule = self.schedule;
        let checker = schedule.checker()?;
        let (key, nonce) = match self.peer {
            None => (None, *schedule.open::<PART>(self.suite, direction, sealed)?),
            Some(_) => {
                let text = schedule.open::<{ 2 * PART }>(self.suite, direction, sealed)?;
                let (mut key, mut nonce) = ([0; PART], [0; PART]);
                key.copy_from_slice(&text[..PART]);
                nonce.copy_from_slice(&text[PART..]);
                (Some(key), nonce)
            }
        };
        if let Some(key) = &key {
            schedule.mix(self.ephemeral.agree(key)?.as_bytes())?;
        }
        check(&mut schedule, CONFIRM_INITIATOR, confirmation)?;
        if !bool::from(schedule::commitment(&nonce).ct_eq(&self.commitment)) {
            return Err(Error::Unauthentic);
        }
        if let (Some(peer), Some(key)) = (&self.peer, key)
            && !peer.accepts(&key)
        {
            return Err(Error::UnknownPeer { key });
        }
        let agreed = Agreed {
            role: Role::Responder,
            suite: self.suite,
            kem: self.kem,
            check: checker.string(&nonce)?,
            peer_key: key,
        };
        agreed.establish(schedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(role: Role) -> Config {
        Config {
            role,
            auth: Auth::Keys {
                own: StaticKey::from_bytes(&[role.id(); 32]),
                peer: PeerKey::Unknown,
            },
            offer: Offer::new(&[Suite::ChaCha20Poly1305], false).unwrap(),
            kem: Kem::MlKem768,
            prologue: Vec::new(),
        }
    }

    /// An initiator that has all secrets, but shows another nonce than the one it committed to, having seen the responder's.
    #[test]
    fn a_nonce_that_was_not_committed_to_is_refused() {
        for change in [0, 1] {
            let (mut initiator, first) = Initiator::start(config(Role::Initiator), &mut |out| out.fill(3)).unwrap();
            let responder = Responder::start(config(Role::Responder), &mut |out| out.fill(4)).unwrap();
            let (second, answered) = responder.first(&first).unwrap();
            initiator.nonce[31] ^= change;
            let (third, here) = initiator.second(&second).unwrap();
            match answered.third(&third) {
                Ok(there) => assert!(change == 0 && here.check == there.check),
                Err(error) => assert!(change == 1 && error == Error::Unauthentic),
            }
        }
    }

    /// A static key of small order, shown by an end that has all other secrets.
    #[test]
    fn a_static_key_of_small_order_is_refused() {
        let (_, first) = Initiator::start(config(Role::Initiator), &mut |out| out.fill(3)).unwrap();
        let responder = Responder::start(config(Role::Responder), &mut |out| out.fill(4)).unwrap();
        let (_, mut answered) = responder.first(&first).unwrap();
        // Secrets that this test knows, so that it can seal what the responder opens.
        let known = || Schedule::new(&schedule::start(&[]), &first);
        answered.schedule = known();
        let mut flight = vec![0; 2 * PART];
        known()
            .seal(answered.suite, Direction::InitiatorToResponder, &mut flight)
            .unwrap();
        flight.extend([0; PART]);
        let wrong = Error::Malformed { what: "X25519 key" };
        assert_eq!(answered.third(&flight).err(), Some(wrong));
    }
}
