//! Keys: made of passwords, and others made of them.

use std::fmt;
use std::hash::{Hash, Hasher};

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256, Block};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hkdf::Hkdf;
use md5::{Digest, Md5};
use sha1::Sha1;
use zeroize::Zeroizing;

use super::{MAX_SALT, Method};
use crate::{Error, same_secret};

/// What keys of sessions are derived for (SIP022 section 2.2).
const SESSION: &str = "shadowsocks 2022 session subkey";
/// What keys of identity headers are derived for (SIP023).
const IDENTITY: &str = "shadowsocks 2022 identity subkey";

/// The key of a password, with its method. Wiped when dropped.
#[derive(Clone)]
pub struct Key {
    method: Method,
    bytes: Box<Zeroizing<[u8; 32]>>,
}

impl Key {
    /// The key of a password: hashed in 2017 (`EVP_BytesToKey` with MD5), in base64 in 2022.
    ///
    /// # Errors
    /// [`Error::EmptyPassword`]; for methods of 2022 [`Error::KeyText`] and [`Error::KeyLength`].
    pub fn new(method: Method, password: &str) -> Result<Self, Error> {
        if password.is_empty() {
            return Err(Error::EmptyPassword);
        }
        let mut bytes = Box::new(Zeroizing::new([0; 32]));
        if !method.is_2022() {
            let first = Zeroizing::new(<[u8; 16]>::from(Md5::digest(password)));
            let second = Md5::new().chain_update(*first).chain_update(password).finalize();
            let second = Zeroizing::new(<[u8; 16]>::from(second));
            bytes[..16].copy_from_slice(&*first);
            if method.key_len() > 16 {
                bytes[16..].copy_from_slice(&*second);
            }
            return Ok(Key { method, bytes });
        }
        let decoded = Zeroizing::new(STANDARD.decode(password).map_err(|_| Error::KeyText)?);
        let need = method.key_len();
        if decoded.len() != need {
            return Err(Error::KeyLength {
                method: method.name(),
                need,
                got: decoded.len(),
            });
        }
        bytes[..need].copy_from_slice(&decoded);
        Ok(Key { method, bytes })
    }

    /// A key of bytes as they are.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn of_bytes(method: Method, given: &[u8]) -> Self {
        let mut bytes = Box::new(Zeroizing::new([0; 32]));
        bytes[..method.key_len()].copy_from_slice(given);
        Key { method, bytes }
    }

    /// The method.
    pub const fn method(&self) -> Method {
        self.method
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.method.key_len()]
    }

    /// The key of a direction, or of a session, for the suite.
    pub(super) fn subkey(&self, salt: &[u8]) -> Subkey {
        let mut out = Subkey::empty(self.method.key_len());
        if self.method.is_2022() {
            out.bytes = self.derive(SESSION, salt);
        } else {
            let derived = Hkdf::<Sha1>::new(Some(salt), self.as_bytes());
            // Refused are lengths above 255 hashes only.
            let _ = derived.expand(b"ss-subkey", &mut out.bytes[..out.len]);
        }
        out
    }

    /// The cipher of the identity header of a request.
    pub(super) fn identity(&self, salt: &[u8]) -> BlockCipher {
        let key = self.derive(IDENTITY, salt);
        BlockCipher::new(&key[..self.method.key_len()])
    }

    /// The cipher of blocks under the key itself.
    pub(super) fn block_cipher(&self) -> BlockCipher {
        BlockCipher::new(self.as_bytes())
    }

    /// What names a user in identity headers.
    pub(super) fn name(&self) -> [u8; 16] {
        let mut name = [0; 16];
        name.copy_from_slice(&blake3::hash(self.as_bytes()).as_bytes()[..16]);
        name
    }

    fn derive(&self, context: &str, salt: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut material = Zeroizing::new([0; 32 + MAX_SALT]);
        let len = self.method.key_len();
        material[..len].copy_from_slice(self.as_bytes());
        material[len..len + salt.len()].copy_from_slice(salt);
        Zeroizing::new(blake3::derive_key(context, &material[..len + salt.len()]))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method && same_secret(&self.bytes[..], &other.bytes[..])
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.method)
    }
}

/// The keys that a client has: its own, behind those of the servers that lead to it (SIP023).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyChain {
    /// Those of servers on the way, the first of them first.
    pub(super) identities: Vec<Key>,
    pub(super) own: Key,
}

/// Most keys of a chain: more would be a mistake.
const MAX_CHAIN: usize = 8;

impl KeyChain {
    /// The keys of a password. In the AES methods of 2022 that is several with colons between, the client's own last.
    ///
    /// # Errors
    /// As [`Key::new`]; [`Error::KeyCount`] for several keys where the method has one, or more than eight.
    pub fn new(method: Method, password: &str) -> Result<Self, Error> {
        if !method.is_2022() {
            return Ok(KeyChain {
                identities: Vec::new(),
                own: Key::new(method, password)?,
            });
        }
        let mut keys = Vec::new();
        for part in password.split(':') {
            keys.push(Key::new(method, part)?);
            if keys.len() > MAX_CHAIN || keys.len() > 1 && !method.has_identities() {
                return Err(Error::KeyCount { method: method.name() });
            }
        }
        let own = keys.pop().ok_or(Error::EmptyPassword)?;
        Ok(KeyChain { identities: keys, own })
    }

    /// The method.
    pub const fn method(&self) -> Method {
        self.own.method
    }

    /// The client's own key, which seals.
    pub const fn own(&self) -> &Key {
        &self.own
    }

    /// Each key that has an identity header, and the key that this one names.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&Key, &Key)> {
        let next = self.identities.iter().skip(1).chain([&self.own]);
        self.identities.iter().zip(next)
    }
}

/// A derived key. Wiped when dropped.
pub(super) struct Subkey {
    bytes: Zeroizing<[u8; 32]>,
    len: usize,
}

impl Subkey {
    fn empty(len: usize) -> Self {
        Subkey {
            bytes: Zeroizing::new([0; 32]),
            len,
        }
    }
}

impl AsRef<[u8]> for Subkey {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// AES on single blocks.
pub(super) enum BlockCipher {
    Aes128(Box<Aes128>),
    Aes256(Box<Aes256>),
}

impl BlockCipher {
    /// `key` has 32 bytes, or else its first 16 count.
    fn new(key: &[u8]) -> Self {
        if let Ok(key) = <&[u8; 32]>::try_from(key) {
            return BlockCipher::Aes256(Box::new(Aes256::new(key.into())));
        }
        let mut short = Zeroizing::new([0; 16]);
        let len = key.len().min(16);
        short[..len].copy_from_slice(&key[..len]);
        BlockCipher::Aes128(Box::new(Aes128::new(&(*short).into())))
    }

    pub(super) fn encrypt(&self, block: &[u8; 16]) -> [u8; 16] {
        let mut block = Block::from(*block);
        match self {
            BlockCipher::Aes128(aes) => aes.encrypt_block(&mut block),
            BlockCipher::Aes256(aes) => aes.encrypt_block(&mut block),
        }
        block.into()
    }

    pub(super) fn decrypt(&self, block: &[u8; 16]) -> [u8; 16] {
        let mut block = Block::from(*block);
        match self {
            BlockCipher::Aes128(aes) => aes.decrypt_block(&mut block),
            BlockCipher::Aes256(aes) => aes.decrypt_block(&mut block),
        }
        block.into()
    }
}
