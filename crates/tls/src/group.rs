//! Key agreement: X25519, and X25519 with ML-KEM-768 (draft-ietf-tls-ecdhe-mlkem).
//!
//! A hybrid share is the encapsulation key of ML-KEM, or its ciphertext, and behind it the key of X25519. The shared secret is
//! both secrets in the same order.

use libcrux_ml_kem::mlkem768;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::error::{Alert, Error};

/// Bytes of a key of X25519, and of what two ends agree on with it.
pub const X25519_LEN: usize = 32;
/// Bytes of an encapsulation key of ML-KEM-768.
pub const MLKEM_KEY_LEN: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768.
pub const MLKEM_CIPHERTEXT_LEN: usize = 1088;

/// Words of eight bytes that are overwritten behind ML-KEM, which keeps vectors and its private key in frames of some tens of KiB.
const STACK_WORDS: usize = 16 * 1024;

fn leaving_no_stack<T>(f: impl FnOnce() -> T) -> T {
    sealway_aead::wipe::leaving_no_stack::<STACK_WORDS, T>(f)
}

/// A group that both ends may agree on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Group {
    /// X25519 (RFC 7748).
    X25519,
    /// X25519MLKEM768: no recording gives it away, not even to a quantum computer.
    X25519MlKem768,
}

impl Group {
    /// Both, the better one first.
    pub const ALL: [Group; 2] = [Group::X25519MlKem768, Group::X25519];

    /// Its number in hellos.
    pub const fn id(self) -> u16 {
        match self {
            Group::X25519 => 0x001d,
            Group::X25519MlKem768 => 0x11ec,
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
        }
    }

    /// Bytes of a server's share.
    pub const fn server_len(self) -> usize {
        match self {
            Group::X25519 => X25519_LEN,
            Group::X25519MlKem768 => MLKEM_CIPHERTEXT_LEN + X25519_LEN,
        }
    }

    /// Where a share's key of X25519 begins, in a client's share.
    pub const fn client_x25519_at(self) -> usize {
        self.client_len() - X25519_LEN
    }
}

/// What both ends share, and nobody else: 32 bytes, or 64 of the hybrid group. Wiped when dropped.
pub type SharedSecret = Zeroizing<Vec<u8>>;

fn refused(what: &'static str) -> Error {
    Error::peer(Alert::IllegalParameter, what)
}

/// The secret of X25519, wiped when dropped. It can be used more than once: a client of REALITY agrees with two keys.
pub struct X25519Secret(StaticSecret);

impl X25519Secret {
    /// From 32 random bytes.
    pub fn new(random: &[u8; 32]) -> Self {
        X25519Secret(StaticSecret::from(*random))
    }

    /// The key to send.
    pub fn public(&self) -> [u8; X25519_LEN] {
        PublicKey::from(&self.0).to_bytes()
    }

    /// What this secret and another's public key make.
    ///
    /// # Errors
    /// [`Error::Peer`] for a key of small order, with which the outcome would be known to everybody (RFC 8446 section 7.4.2).
    pub fn agree(&self, public: &[u8; X25519_LEN]) -> Result<Zeroizing<[u8; 32]>, Error> {
        let shared = self.0.diffie_hellman(&PublicKey::from(*public));
        if !shared.was_contributory() {
            return Err(refused("a key share of small order"));
        }
        Ok(Zeroizing::new(shared.to_bytes()))
    }
}

/// What a client keeps until the server has answered. Wiped when dropped.
pub struct ClientSecret {
    x25519: X25519Secret,
    /// Seed of the decapsulation key, which is made again when it is needed: 64 bytes instead of 2,400.
    seed: Zeroizing<[u8; 64]>,
}

impl ClientSecret {
    /// One secret of X25519, which stands in both shares, as the standard allows, and the seed of a key of ML-KEM.
    pub fn new(random: &mut dyn FnMut(&mut [u8])) -> Self {
        let (mut x25519, mut seed) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 64]));
        random(&mut *x25519);
        random(&mut *seed);
        ClientSecret {
            x25519: X25519Secret::new(&x25519),
            seed,
        }
    }

    /// The secret of X25519, for what else it is agreed with.
    pub fn x25519(&self) -> &X25519Secret {
        &self.x25519
    }

    /// What stands in the hello for this group: [`Group::client_len`] bytes.
    pub fn share(&self, group: Group) -> Vec<u8> {
        let mut share = Vec::with_capacity(group.client_len());
        if group == Group::X25519MlKem768 {
            let key = leaving_no_stack(|| *mlkem768::generate_key_pair(*self.seed).pk());
            share.extend_from_slice(&key);
        }
        share.extend_from_slice(&self.x25519.public());
        share
    }

    /// What both share, by the server's answer.
    ///
    /// # Errors
    /// [`Error::Peer`] for a share of another length, or of small order.
    pub fn agree(&self, group: Group, answer: &[u8]) -> Result<SharedSecret, Error> {
        if answer.len() != group.server_len() {
            return Err(refused("a key share of a wrong length"));
        }
        let (ciphertext, public) = answer.split_at(answer.len() - X25519_LEN);
        let agreed = self.x25519.agree(array(public)?)?;
        let mut shared = Zeroizing::new(Vec::with_capacity(64));
        if group == Group::X25519MlKem768 {
            let ciphertext = mlkem768::MlKem768Ciphertext::from(*array::<MLKEM_CIPHERTEXT_LEN>(ciphertext)?);
            leaving_no_stack(|| {
                let pair = mlkem768::generate_key_pair(*self.seed);
                let secret = Zeroizing::new(mlkem768::decapsulate(pair.private_key(), &ciphertext));
                shared.extend_from_slice(&*secret);
            });
        }
        shared.extend_from_slice(&*agreed);
        Ok(shared)
    }
}

fn array<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], Error> {
    bytes.try_into().map_err(|_| refused("a key share of a wrong length"))
}

/// A server's answer to a client's share: its own share of [`Group::server_len`] bytes, and what both share.
///
/// 32 random bytes are drawn for X25519, and as many more for ML-KEM.
///
/// # Errors
/// [`Error::Peer`] for a share of another length, an encapsulation key that is none (FIPS 203 section 7.2), or a key of small order.
pub fn answer(group: Group, share: &[u8], random: &mut dyn FnMut(&mut [u8])) -> Result<(Vec<u8>, SharedSecret), Error> {
    if share.len() != group.client_len() {
        return Err(refused("a key share of a wrong length"));
    }
    let mut seed = Zeroizing::new([0; 32]);
    random(&mut *seed);
    let (key, public) = share.split_at(group.client_x25519_at());
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
