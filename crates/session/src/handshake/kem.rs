//! ML-KEM (FIPS 203).

use libcrux_ml_kem::{mlkem768, mlkem1024};
use zeroize::Zeroizing;

use crate::Error;
use crate::terms::Kem;
use crate::wipe::leaving_no_stack;

/// Random bytes of a key.
pub(super) const SEED_LEN: usize = 64;
/// Random bytes of an encapsulation.
pub(super) const ENCAPSULATION_LEN: usize = 32;

/// The secret that an encapsulation gives both ends, and the ciphertext that carries it.
pub(super) struct Encapsulated {
    pub(super) ciphertext: Vec<u8>,
    pub(super) secret: Zeroizing<[u8; 32]>,
}

impl Kem {
    /// Length of a public key, bytes.
    pub const fn public_key_len(self) -> usize {
        match self {
            Kem::MlKem768 => 1184,
            Kem::MlKem1024 => 1568,
        }
    }

    /// Length of a ciphertext, bytes.
    pub const fn ciphertext_len(self) -> usize {
        match self {
            Kem::MlKem768 => 1088,
            Kem::MlKem1024 => 1568,
        }
    }

    /// The public key of a seed.
    pub(super) fn public_key(self, seed: &[u8; SEED_LEN]) -> Vec<u8> {
        leaving_no_stack(|| match self {
            Kem::MlKem768 => mlkem768::generate_key_pair(*seed).pk().to_vec(),
            Kem::MlKem1024 => mlkem1024::generate_key_pair(*seed).pk().to_vec(),
        })
    }

    /// A secret for the owner of `public_key`.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it is not in range (FIPS 203 section 7.2).
    pub(super) fn encapsulate(
        self,
        public_key: &[u8],
        random: &[u8; ENCAPSULATION_LEN],
    ) -> Result<Encapsulated, Error> {
        let wrong = Error::Malformed { what: "ML-KEM key" };
        leaving_no_stack(|| {
            let mut secret = Zeroizing::new([0; 32]);
            let ciphertext = match self {
                Kem::MlKem768 => {
                    let key = public_key.try_into().map_err(|_| wrong.clone())?;
                    if !mlkem768::validate_public_key(&key) {
                        return Err(wrong);
                    }
                    let (ciphertext, shared) = mlkem768::encapsulate(&key, *random);
                    secret.copy_from_slice(&shared);
                    ciphertext.as_slice().to_vec()
                }
                Kem::MlKem1024 => {
                    let key = public_key.try_into().map_err(|_| wrong.clone())?;
                    if !mlkem1024::validate_public_key(&key) {
                        return Err(wrong);
                    }
                    let (ciphertext, shared) = mlkem1024::encapsulate(&key, *random);
                    secret.copy_from_slice(&shared);
                    ciphertext.as_slice().to_vec()
                }
            };
            Ok(Encapsulated { ciphertext, secret })
        })
    }

    /// The secret in a ciphertext; an unrelated one if it was not made for this seed.
    ///
    /// The key pair is made anew of the seed: only the seed has to be kept and wiped in between.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it has not the length of a ciphertext.
    pub(super) fn decapsulate(self, seed: &[u8; SEED_LEN], ciphertext: &[u8]) -> Result<Zeroizing<[u8; 32]>, Error> {
        let wrong = Error::Malformed {
            what: "ML-KEM ciphertext",
        };
        leaving_no_stack(|| {
            let mut secret = Zeroizing::new([0; 32]);
            match self {
                Kem::MlKem768 => {
                    let ciphertext = ciphertext.try_into().map_err(|_| wrong)?;
                    let pair = mlkem768::generate_key_pair(*seed);
                    secret.copy_from_slice(&mlkem768::decapsulate(pair.private_key(), &ciphertext));
                }
                Kem::MlKem1024 => {
                    let ciphertext = ciphertext.try_into().map_err(|_| wrong)?;
                    let pair = mlkem1024::generate_key_pair(*seed);
                    secret.copy_from_slice(&mlkem1024::decapsulate(pair.private_key(), &ciphertext));
                }
            }
            Ok(secret)
        })
    }
}
