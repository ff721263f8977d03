//! Methods: a cipher, and the rules it is used by.

use std::fmt;

use sealway_aead::Suite;

/// A method of Shadowsocks.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Method {
    /// `aes-128-gcm`, of 2017.
    Aes128Gcm,
    /// `aes-256-gcm`, of 2017.
    Aes256Gcm,
    /// `chacha20-ietf-poly1305`, of 2017.
    ChaCha20Poly1305,
    /// `xchacha20-ietf-poly1305`, of 2017.
    XChaCha20Poly1305,
    /// `2022-blake3-aes-128-gcm`.
    Blake3Aes128Gcm,
    /// `2022-blake3-aes-256-gcm`.
    Blake3Aes256Gcm,
    /// `2022-blake3-chacha20-poly1305`.
    Blake3ChaCha20Poly1305,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 7] = [
        Method::Aes128Gcm,
        Method::Aes256Gcm,
        Method::ChaCha20Poly1305,
        Method::XChaCha20Poly1305,
        Method::Blake3Aes128Gcm,
        Method::Blake3Aes256Gcm,
        Method::Blake3ChaCha20Poly1305,
    ];

    /// The name in configurations and links.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Aes128Gcm => "aes-128-gcm",
            Method::Aes256Gcm => "aes-256-gcm",
            Method::ChaCha20Poly1305 => "chacha20-ietf-poly1305",
            Method::XChaCha20Poly1305 => "xchacha20-ietf-poly1305",
            Method::Blake3Aes128Gcm => "2022-blake3-aes-128-gcm",
            Method::Blake3Aes256Gcm => "2022-blake3-aes-256-gcm",
            Method::Blake3ChaCha20Poly1305 => "2022-blake3-chacha20-poly1305",
        }
    }

    /// The method of a name, whatever its letter case. Older programs leave `ietf` out.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = match name.as_str() {
            "chacha20-poly1305" | "aead_chacha20_poly1305" => "chacha20-ietf-poly1305",
            "xchacha20-poly1305" | "aead_xchacha20_poly1305" => "xchacha20-ietf-poly1305",
            "aead_aes_128_gcm" => "aes-128-gcm",
            "aead_aes_256_gcm" => "aes-256-gcm",
            other => other,
        };
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether it is one of 2022.
    pub const fn is_2022(self) -> bool {
        matches!(
            self,
            Method::Blake3Aes128Gcm | Method::Blake3Aes256Gcm | Method::Blake3ChaCha20Poly1305
        )
    }

    /// Whether requests can say whose they are, so that several users have one port: the AES methods of 2022.
    pub const fn has_identities(self) -> bool {
        matches!(self, Method::Blake3Aes128Gcm | Method::Blake3Aes256Gcm)
    }

    /// The suite that streams are sealed with, and datagrams but for those of ChaCha20 in 2022.
    pub const fn suite(self) -> Suite {
        match self {
            Method::Aes128Gcm | Method::Blake3Aes128Gcm => Suite::Aes128Gcm,
            Method::Aes256Gcm | Method::Blake3Aes256Gcm => Suite::Aes256Gcm,
            Method::ChaCha20Poly1305 | Method::Blake3ChaCha20Poly1305 => Suite::ChaCha20Poly1305,
            Method::XChaCha20Poly1305 => Suite::XChaCha20Poly1305,
        }
    }

    /// Bytes of a key.
    pub const fn key_len(self) -> usize {
        self.suite().key_len()
    }

    /// Bytes of a salt: as many as a key has.
    pub const fn salt_len(self) -> usize {
        self.key_len()
    }

    /// Most payload of a chunk, by the rules.
    pub const fn max_chunk(self) -> usize {
        if self.is_2022() { 0xffff } else { 0x3fff }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
