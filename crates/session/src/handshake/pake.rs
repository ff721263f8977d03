//! SPAKE2 over edwards25519, as in magic-wormhole.

use rand_core::{CryptoRng, RngCore};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use zeroize::Zeroizing;

use super::Role;
use super::flight::PART;
use crate::Error;
use crate::wipe::leaving_no_stack;

/// The names of the two ends.
const INITIATOR: &[u8] = b"sealway session 1 initiator";
const RESPONDER: &[u8] = b"sealway session 1 responder";

/// One end of an exchange. What the library keeps of the password and of its scalar is not wiped when it is freed: a code
/// phrase is used once, and traffic is protected by two other secrets besides.
pub(super) struct Pake {
    role: Role,
    state: Box<Spake2<Ed25519Group>>,
    share: [u8; PART],
}

/// The caller's random bytes as the library wants them.
struct CallerRng<'a>(&'a mut dyn FnMut(&mut [u8]));

impl RngCore for CallerRng<'_> {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        (self.0)(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        (self.0)(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, out: &mut [u8]) {
        (self.0)(out);
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(out);
        Ok(())
    }
}

/// The caller promises that: see [`super::Handshake::new`].
impl CryptoRng for CallerRng<'_> {}

impl Pake {
    pub(super) fn start(role: Role, password: &[u8; 32], random: &mut dyn FnMut(&mut [u8])) -> Result<Self, Error> {
        let (initiator, responder) = (Identity::new(INITIATOR), Identity::new(RESPONDER));
        let (state, message) = leaving_no_stack(|| {
            let (password, rng) = (Password::new(password), CallerRng(random));
            let (state, message) = match role {
                Role::Initiator => Spake2::start_a_with_rng(&password, &initiator, &responder, rng),
                Role::Responder => Spake2::start_b_with_rng(&password, &initiator, &responder, rng),
            };
            (Box::new(state), message)
        });
        // The first byte names the side, which the flight says already.
        let share = message
            .last_chunk()
            .copied()
            .ok_or(Error::Aead(sealway_aead::Error::Backend))?;
        Ok(Pake { role, state, share })
    }

    pub(super) const fn share(&self) -> [u8; PART] {
        self.share
    }

    /// The key in common, or an unrelated one if the other end has another password.
    pub(super) fn finish(self, theirs: &[u8; PART]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut message = [0; 1 + PART];
        message[0] = match self.role {
            Role::Initiator => b'B',
            Role::Responder => b'A',
        };
        message[1..].copy_from_slice(theirs);
        leaving_no_stack(|| self.state.finish(&message))
            .map(Zeroizing::new)
            .map_err(|_| Error::Malformed { what: "SPAKE2 share" })
    }
}
