//! The suites of TLS 1.3, and their hashes (RFC 8446 appendix B.4).

use hmac::{Hmac, KeyInit, Mac};
use sealway_aead::Suite;
use sealway_aead::wipe::leaving_no_stack;
use sha2::{Digest as _, Sha256, Sha384};
use zeroize::{Zeroize, Zeroizing};

/// Longest output of a hash, bytes.
pub const MAX_HASH: usize = 48;

/// Stack that is overwritten behind a hash that takes a secret, in words of eight bytes.
const STACK_WORDS: usize = 1024;

/// A suite: an AEAD, and the hash of the key schedule.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CipherSuite {
    /// TLS_AES_128_GCM_SHA256
    Aes128GcmSha256,
    /// TLS_AES_256_GCM_SHA384
    Aes256GcmSha384,
    /// TLS_CHACHA20_POLY1305_SHA256
    ChaCha20Poly1305Sha256,
}

impl CipherSuite {
    /// All three, in the order of their numbers.
    pub const ALL: [CipherSuite; 3] = [
        CipherSuite::Aes128GcmSha256,
        CipherSuite::Aes256GcmSha384,
        CipherSuite::ChaCha20Poly1305Sha256,
    ];

    /// Its number in hellos.
    pub const fn id(self) -> u16 {
        match self {
            CipherSuite::Aes128GcmSha256 => 0x1301,
            CipherSuite::Aes256GcmSha384 => 0x1302,
            CipherSuite::ChaCha20Poly1305Sha256 => 0x1303,
        }
    }

    /// The suite of this number.
    pub fn from_id(id: u16) -> Option<CipherSuite> {
        CipherSuite::ALL.into_iter().find(|suite| suite.id() == id)
    }

    /// The AEAD of its records.
    pub const fn aead(self) -> Suite {
        match self {
            CipherSuite::Aes128GcmSha256 => Suite::Aes128Gcm,
            CipherSuite::Aes256GcmSha384 => Suite::Aes256Gcm,
            CipherSuite::ChaCha20Poly1305Sha256 => Suite::ChaCha20Poly1305,
        }
    }

    /// The hash of its key schedule and of its transcript.
    pub const fn hash(self) -> HashKind {
        match self {
            CipherSuite::Aes256GcmSha384 => HashKind::Sha384,
            _ => HashKind::Sha256,
        }
    }
}

/// A hash of the key schedule.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HashKind {
    /// SHA-256
    Sha256,
    /// SHA-384
    Sha384,
}

/// The output of a hash: 32 or 48 bytes, which are [`Digest::as_ref`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Digest {
    bytes: [u8; MAX_HASH],
    len: usize,
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Zeroize for Digest {
    fn zeroize(&mut self) {
        self.bytes.zeroize();
    }
}

impl Digest {
    pub(crate) fn new(output: &[u8]) -> Digest {
        let mut bytes = [0; MAX_HASH];
        let len = output.len().min(MAX_HASH);
        bytes[..len].copy_from_slice(&output[..len]);
        Digest { bytes, len }
    }
}

impl HashKind {
    /// Bytes of its output.
    pub const fn output_len(self) -> usize {
        match self {
            HashKind::Sha256 => 32,
            HashKind::Sha384 => 48,
        }
    }

    /// The hash of these bytes.
    pub fn digest(self, bytes: &[u8]) -> Digest {
        match self {
            HashKind::Sha256 => Digest::new(&Sha256::digest(bytes)),
            HashKind::Sha384 => Digest::new(&Sha384::digest(bytes)),
        }
    }

    /// HMAC (RFC 2104) over the parts as if they were one. The key is at most 64 bytes long.
    pub(crate) fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Zeroizing<Digest> {
        leaving_no_stack::<STACK_WORDS, _>(|| {
            // A key shorter than a block of the hash is filled with zeros: so no length can be wrong.
            let mut block = Zeroizing::new([0; 128]);
            let len = key.len().min(64);
            block[..len].copy_from_slice(&key[..len]);
            Zeroizing::new(match self {
                HashKind::Sha256 => {
                    let mut half = Zeroizing::new([0; 64]);
                    half.copy_from_slice(&block[..64]);
                    let mut mac = Hmac::<Sha256>::new((&*half).into());
                    parts.iter().for_each(|part| mac.update(part));
                    Digest::new(&mac.finalize().into_bytes())
                }
                HashKind::Sha384 => {
                    let mut mac = Hmac::<Sha384>::new((&*block).into());
                    parts.iter().for_each(|part| mac.update(part));
                    Digest::new(&mac.finalize().into_bytes())
                }
            })
        })
    }
}
