//! Key agreement: X25519, X25519 with ML-KEM-768 (draft-ietf-tls-ecdhe-mlkem), and two curves of NIST's, which some servers have
//! nothing beside.
//!
//! A hybrid share is the encapsulation key of ML-KEM, or its ciphertext, and behind it the key of X25519. The shared secret is
//! both secrets in the same order.

mod curve;

use std::alloc::{Layout, handle_alloc_error};

use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, PrivateKey, UnparsedPublicKey, X25519};
use libcrux_ml_kem::mlkem768;
use sealway_aead::wipe;
use zeroize::Zeroizing;

use crate::error::{Alert, Error};

use curve::Curve;

/// Bytes of a key of X25519, and of what two ends agree on with it.
pub const X25519_LEN: usize = 32;
/// Bytes of an encapsulation key of ML-KEM-768.
pub const MLKEM_KEY_LEN: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768.
pub const MLKEM_CIPHERTEXT_LEN: usize = 1088;

/// Words of eight bytes that are overwritten behind X25519.
const X25519_STACK_WORDS: usize = 1024;
/// Words of eight bytes that are overwritten behind ML-KEM, which keeps vectors and its private key in frames of some tens of KiB.
const STACK_WORDS: usize = 16 * 1024;

fn leaving_no_stack<T>(f: impl FnOnce() -> T) -> T {
    wipe::leaving_no_stack::<STACK_WORDS, T>(f)
}

/// The encapsulation key that belongs to a seed.
pub(crate) fn mlkem768_public(seed: &[u8; 64]) -> [u8; MLKEM_KEY_LEN] {
    leaving_no_stack(|| *mlkem768::generate_key_pair(*seed).pk())
}

/// A group that both ends may agree on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Group {
    /// X25519 (RFC 7748).
    X25519,
    /// X25519MLKEM768: no recording gives it away, not even to a quantum computer.
    X25519MlKem768,
    /// The curve P-256 (RFC 8446 section 4.2.7).
    Secp256r1,
    /// The curve P-384.
    Secp384r1,
}

impl Group {
    /// All of them, the better ones first.
    pub const ALL: [Group; 4] = [Group::X25519MlKem768, Group::X25519, Group::Secp256r1, Group::Secp384r1];
    /// Those that a hello has key shares for, unless it is told otherwise. The others are asked for.
    pub const SHARED: [Group; 2] = [Group::X25519MlKem768, Group::X25519];

    /// Its number in hellos.
    pub const fn id(self) -> u16 {
        match self {
            Group::X25519 => 0x001d,
            Group::X25519MlKem768 => 0x11ec,
            Group::Secp256r1 => 0x0017,
            Group::Secp384r1 => 0x0018,
        }
    }

    /// The group of this number.
    pub fn from_id(id: u16) -> Option<Group> {
        Group::ALL.into_iter().find(|group| group.id() == id)
    }

    /// Bytes of a client's share.
    pub const fn client_len(self) -> usize {
        match self {
            Group::X25519 => X25519_LEN,
            Group::X25519MlKem768 => MLKEM_KEY_LEN + X25519_LEN,
            Group::Secp256r1 => 65,
            Group::Secp384r1 => 97,
        }
    }

    /// Bytes of a server's share.
    pub const fn server_len(self) -> usize {
        match self {
            Group::X25519MlKem768 => MLKEM_CIPHERTEXT_LEN + X25519_LEN,
            _ => self.client_len(),
        }
    }

    /// Where the key of X25519 begins in a client's share. `None`: the group has none.
    pub const fn client_x25519_at(self) -> Option<usize> {
        match self {
            Group::X25519 | Group::X25519MlKem768 => Some(self.client_len() - X25519_LEN),
            Group::Secp256r1 | Group::Secp384r1 => None,
        }
    }

    const fn curve(self) -> Option<Curve> {
        let (algorithm, len) = match self {
            Group::X25519 | Group::X25519MlKem768 => return None,
            Group::Secp256r1 => (&ECDH_P256, 32),
            Group::Secp384r1 => (&ECDH_P384, 48),
        };
        Some(Curve { algorithm, len })
    }
}

/// What both ends share, and nobody else: 32 bytes, 64 of the hybrid group, or 48 of P-384. Wiped when dropped.
pub type SharedSecret = Zeroizing<Vec<u8>>;

fn refused(what: &'static str) -> Error {
    Error::peer(Alert::IllegalParameter, what)
}

/// The secret of X25519, wiped when dropped. It can be used more than once: a client of REALITY agrees with two keys.
pub struct X25519Secret {
    secret: PrivateKey,
    public: [u8; X25519_LEN],
}

impl X25519Secret {
    /// From 32 random bytes.
    pub fn new(random: &[u8; 32]) -> Self {
        let made = wipe::leaving_no_stack::<X25519_STACK_WORDS, _>(|| {
            let secret = PrivateKey::from_private_key(&X25519, random).ok()?;
            let public = secret.compute_public_key().ok()?.as_ref().try_into().ok()?;
            Some(X25519Secret { secret, public })
        });
        // Any 32 bytes are a secret, so there was no memory for it.
        made.unwrap_or_else(|| handle_alloc_error(Layout::new::<[u8; 2 * X25519_LEN]>()))
    }

    /// The key to send.
    pub fn public(&self) -> [u8; X25519_LEN] {
        self.public
    }

    /// What this secret and another's public key make.
    ///
    /// # Errors
    /// [`Error::Peer`] for a key of small order, with which the outcome would be known to everybody (RFC 8446 section 7.4.2).
    pub fn agree(&self, public: &[u8; X25519_LEN]) -> Result<Zeroizing<[u8; 32]>, Error> {
        let theirs = UnparsedPublicKey::new(&X25519, public);
        let small = refused("a key share of small order");
        wipe::leaving_no_stack::<X25519_STACK_WORDS, _>(|| {
            agreement::agree(&self.secret, theirs, small.clone(), |shared| {
                shared.try_into().map(Zeroizing::new).map_err(|_| small)
            })
        })
    }
}

/// What a client keeps until the server has answered. Wiped when dropped.
pub struct ClientSecret(Secret);

enum Secret {
    X25519 {
        x25519: X25519Secret,
        /// Seed of the decapsulation key, which is made again when it is needed: 64 bytes instead of 2,400.
        seed: Zeroizing<[u8; 64]>,
    },
    Curve(Curve, Zeroizing<Vec<u8>>),
}

impl ClientSecret {
    /// For a share of this group.
    pub fn of(group: Group, random: &mut dyn FnMut(&mut [u8])) -> Self {
        match group.curve() {
            Some(curve) => ClientSecret(Secret::Curve(curve, curve.draw(random))),
            None => ClientSecret::new(random),
        }
    }

    /// One secret of X25519, which may stand in both of its groups' shares, as the standard allows, and the seed of a key of ML-KEM.
    pub fn new(random: &mut dyn FnMut(&mut [u8])) -> Self {
        let (mut x25519, mut seed) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 64]));
        random(&mut *x25519);
        random(&mut *seed);
        ClientSecret(Secret::X25519 {
            x25519: X25519Secret::new(&x25519),
            seed,
        })
    }

    /// The secret of X25519, for what else it is agreed with. `None`: it is for another group.
    pub fn x25519(&self) -> Option<&X25519Secret> {
        match &self.0 {
            Secret::X25519 { x25519, .. } => Some(x25519),
            Secret::Curve(..) => None,
        }
    }

    /// What stands in the hello for this group: [`Group::client_len`] bytes.
    ///
    /// # Errors
    /// [`Error::Given`] if the secret is for another group; [`Error::Library`] if memory ran out.
    pub fn share(&self, group: Group) -> Result<Vec<u8>, Error> {
        let (x25519, seed) = match (&self.0, group.curve()) {
            (Secret::Curve(own, secret), Some(curve)) if own.len == curve.len => return curve.point(secret),
            (Secret::X25519 { x25519, seed }, None) => (x25519, seed),
            _ => return Err(OTHER),
        };
        let mut share = Vec::with_capacity(group.client_len());
        if group == Group::X25519MlKem768 {
            let key = mlkem768_public(seed);
            share.extend_from_slice(&key);
        }
        share.extend_from_slice(&x25519.public());
        Ok(share)
    }

    /// What both share, by the server's answer.
    ///
    /// # Errors
    /// [`Error::Peer`] for a share of another length, of small order, or that is no point; those of [`ClientSecret::share`].
    pub fn agree(&self, group: Group, answer: &[u8]) -> Result<SharedSecret, Error> {
        if answer.len() != group.server_len() {
            return Err(refused("a key share of a wrong length"));
        }
        let (x25519, seed) = match (&self.0, group.curve()) {
            (Secret::Curve(own, secret), Some(curve)) if own.len == curve.len => return curve.agree(secret, answer),
            (Secret::X25519 { x25519, seed }, None) => (x25519, seed),
            _ => return Err(OTHER),
        };
        let (ciphertext, public) = answer.split_at(answer.len() - X25519_LEN);
        let agreed = x25519.agree(array(public)?)?;
        let mut shared = Zeroizing::new(Vec::with_capacity(64));
        if group == Group::X25519MlKem768 {
            let ciphertext = mlkem768::MlKem768Ciphertext::from(*array::<MLKEM_CIPHERTEXT_LEN>(ciphertext)?);
            leaving_no_stack(|| {
                let pair = mlkem768::generate_key_pair(**seed);
                let secret = Zeroizing::new(mlkem768::decapsulate(pair.private_key(), &ciphertext));
                shared.extend_from_slice(&*secret);
            });
        }
        shared.extend_from_slice(&*agreed);
        Ok(shared)
    }
}

const OTHER: Error = Error::Given("a secret of another group");

fn array<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], Error> {
    bytes.try_into().map_err(|_| refused("a key share of a wrong length"))
}

/// A server's answer to a client's share: its own share of [`Group::server_len`] bytes, and what both share.
///
/// As many random bytes are drawn as a secret has: 32 for X25519, and as many more for ML-KEM.
///
/// # Errors
/// [`Error::Peer`] for a share of another length, an encapsulation key that is none (FIPS 203 section 7.2), a key of small order, or
/// what is no point of the curve.
pub fn answer(group: Group, share: &[u8], random: &mut dyn FnMut(&mut [u8])) -> Result<(Vec<u8>, SharedSecret), Error> {
    if share.len() != group.client_len() {
        return Err(refused("a key share of a wrong length"));
    }
    if let Some(curve) = group.curve() {
        let secret = curve.draw(random);
        return Ok((curve.point(&secret)?, curve.agree(&secret, share)?));
    }
    let mut seed = Zeroizing::new([0; 32]);
    random(&mut *seed);
    let (key, public) = share.split_at(share.len() - X25519_LEN);
    let x25519 = X25519Secret::new(&seed);
    let agreed = x25519.agree(array(public)?)?;
    let mut own = Vec::with_capacity(group.server_len());
    let mut shared = Zeroizing::new(Vec::with_capacity(64));
    if group == Group::X25519MlKem768 {
        let key = mlkem768::MlKem768PublicKey::from(*array::<MLKEM_KEY_LEN>(key)?);
        if !mlkem768::validate_public_key(&key) {
            return Err(refused("an encapsulation key that is none"));
        }
        random(&mut *seed);
        leaving_no_stack(|| {
            let (ciphertext, secret) = mlkem768::encapsulate(&key, *seed);
            own.extend_from_slice(ciphertext.as_slice());
            shared.extend_from_slice(&*Zeroizing::new(secret));
        });
    }
    own.extend_from_slice(&x25519.public());
    shared.extend_from_slice(&*agreed);
    Ok((own, shared))
}

#[cfg(test)]
mod tests;
