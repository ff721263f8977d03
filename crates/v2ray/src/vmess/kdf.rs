//! The key derivation of the AEAD header: HMAC-SHA256 whose hash function is HMAC-SHA256 whose hash function …
//!
//! `H0` is HMAC-SHA256 with the key `VMess AEAD KDF`. `Hi` is HMAC (block 64 bytes) over the hash `H(i-1)` with the i-th path
//! item as the key. The result is `Hn(key)`. What depends on constants alone is computed once.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// Block length of SHA-256 and of every hash built on it here, bytes.
const BLOCK: usize = 64;

/// A hash whose state can be copied.
trait Hash: Clone {
    fn update(&mut self, bytes: &[u8]);
    fn finish(self) -> [u8; 32];
}

impl Hash for Sha256 {
    fn update(&mut self, bytes: &[u8]) {
        Digest::update(self, bytes);
    }

    fn finish(self) -> [u8; 32] {
        self.finalize().into()
    }
}

/// HMAC over a hash: both states behind their key blocks.
#[derive(Clone)]
struct Hmac<H> {
    inner: H,
    outer: H,
}

impl<H: Hash> Hmac<H> {
    fn new(hash: &H, key: &[u8]) -> Self {
        let mut block = [0u8; BLOCK];
        if key.len() > BLOCK {
            let mut hash = hash.clone();
            hash.update(key);
            block[..32].copy_from_slice(&hash.finish());
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let (mut inner, mut outer) = (hash.clone(), hash.clone());
        inner.update(&block.map(|b| b ^ 0x36));
        outer.update(&block.map(|b| b ^ 0x5c));
        Hmac { inner, outer }
    }
}

impl<H: Hash> Hash for Hmac<H> {
    fn update(&mut self, bytes: &[u8]) {
        self.inner.update(bytes);
    }

    fn finish(self) -> [u8; 32] {
        let mut outer = self.outer;
        outer.update(&self.inner.finish());
        outer.finish()
    }
}

type Level0 = Hmac<Sha256>;
type Level1 = Hmac<Level0>;

/// The hash without any path.
static ROOT: LazyLock<Level0> = LazyLock::new(|| Hmac::new(&Sha256::new(), b"VMess AEAD KDF"));

/// The first item of every path, with its hash state.
pub(super) struct Label(LazyLock<Level1>);

macro_rules! labels {
    ($($name:ident = $text:literal;)*) => {
        $(pub(super) static $name: Label = Label(LazyLock::new(|| Hmac::new(&ROOT, $text)));)*
    };
}

labels! {
    AUTH_ID = b"AES Auth ID Encryption";
    LENGTH_KEY = b"VMess Header AEAD Key_Length";
    LENGTH_IV = b"VMess Header AEAD Nonce_Length";
    HEADER_KEY = b"VMess Header AEAD Key";
    HEADER_IV = b"VMess Header AEAD Nonce";
    RESPONSE_LENGTH_KEY = b"AEAD Resp Header Len Key";
    RESPONSE_LENGTH_IV = b"AEAD Resp Header Len IV";
    RESPONSE_KEY = b"AEAD Resp Header Key";
    RESPONSE_IV = b"AEAD Resp Header IV";
    CHUNK_LENGTH = b"auth_len";
}

fn of<H: Hash>(hash: &H, key: &[u8]) -> [u8; 32] {
    let mut hash = hash.clone();
    hash.update(key);
    hash.finish()
}

impl Label {
    /// KDF(key, label).
    pub(super) fn derive<const N: usize>(&self, key: &[u8]) -> [u8; N] {
        cut(of(&*self.0, key))
    }

    /// KDF(key, label, a, b).
    pub(super) fn derive_with<const N: usize>(&self, key: &[u8], a: &[u8], b: &[u8]) -> [u8; N] {
        cut(of(&Hmac::new(&Hmac::new(&*self.0, a), b), key))
    }
}

/// The first `N` bytes; `N` is at most 32.
fn cut<const N: usize>(hash: [u8; 32]) -> [u8; N] {
    const { assert!(N <= 32) };
    let mut out = [0; N];
    out.copy_from_slice(&hash[..N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::unhex;

    #[test]
    fn vectors() {
        assert_eq!(
            of(&*ROOT, b"Demo Key for Auth ID Test").to_vec(),
            unhex("7b9d2c2e1fab0b407a2ec00bab371b9667ca35f6674086ef384251821f6005f8")
        );
        let one = Label(LazyLock::new(|| Hmac::new(&ROOT, b"Demo Path for Auth ID Test")));
        assert_eq!(
            one.derive::<32>(b"Demo Key for Auth ID Test").to_vec(),
            unhex("66e41ad47fa745fbfd1e97325e93dbf4a04daac03e50fdf3052da7136662dfe1")
        );
        let three = Label(LazyLock::new(|| Hmac::new(&ROOT, b"Demo Path for KDF Value Test")));
        let key = b"Demo Key for KDF Value Test";
        let (a, b) = (b"Demo Path for KDF Value Test2", b"Demo Path for KDF Value Test3");
        assert_eq!(
            three.derive_with::<32>(key, a, b).to_vec(),
            unhex("53e9d7e1bd7bd25022b71ead07d8a596efc8a845c7888652fd684b4903dc8892")
        );
        assert_eq!(
            three.derive_with::<16>(key, a, b).to_vec(),
            unhex("53e9d7e1bd7bd25022b71ead07d8a596")
        );
    }

    /// RFC 4231, test case 6: a key longer than the block.
    #[test]
    fn long_keys_are_hashed_as_hmac_says() {
        let mac = of(
            &Hmac::new(&Sha256::new(), &[0xaa; 131]),
            b"Test Using Larger Than Block-Size Key - Hash Key First",
        );
        assert_eq!(
            mac.to_vec(),
            unhex("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
        );
    }
}
