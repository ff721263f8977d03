//! The four suites and their numbers.

use core::fmt;

/// An AEAD suite. Printed and parsed by one name everywhere: configuration, wire offers, lab and command line.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Suite {
    /// AES-128 in Galois/Counter Mode (RFC 5116 section 5.1, NIST SP 800-38D).
    Aes128Gcm,
    /// AES-256 in Galois/Counter Mode (RFC 5116 section 5.2, NIST SP 800-38D).
    Aes256Gcm,
    /// ChaCha20 and Poly1305 (RFC 8439).
    ChaCha20Poly1305,
    /// ChaCha20-Poly1305 with a 24-byte nonce (draft-irtf-cfrg-xchacha-03): random nonces are safe with it.
    XChaCha20Poly1305,
}

impl Suite {
    /// Every suite, in the order of this type.
    pub const ALL: [Suite; 4] = [
        Suite::Aes128Gcm,
        Suite::Aes256Gcm,
        Suite::ChaCha20Poly1305,
        Suite::XChaCha20Poly1305,
    ];

    /// Longest key of any suite, bytes.
    pub const MAX_KEY_LEN: usize = 32;

    /// Longest nonce of any suite, bytes.
    pub const MAX_NONCE_LEN: usize = 24;

    /// Length of the tag, bytes; the same in every suite.
    pub const TAG_LEN: usize = 16;

    /// The name, such as `aes-256-gcm`.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Aes128Gcm => "aes-128-gcm",
            Suite::Aes256Gcm => "aes-256-gcm",
            Suite::ChaCha20Poly1305 => "chacha20-poly1305",
            Suite::XChaCha20Poly1305 => "xchacha20-poly1305",
        }
    }

    /// Length of the key, bytes.
    pub const fn key_len(self) -> usize {
        match self {
            Suite::Aes128Gcm => 16,
            Suite::Aes256Gcm | Suite::ChaCha20Poly1305 | Suite::XChaCha20Poly1305 => 32,
        }
    }

    /// Length of the nonce, bytes.
    pub const fn nonce_len(self) -> usize {
        match self {
            Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => 12,
            Suite::XChaCha20Poly1305 => 24,
        }
    }

    /// Length of the tag, bytes.
    pub const fn tag_len(self) -> usize {
        Self::TAG_LEN
    }

    /// Longest message that one nonce may seal, bytes.
    ///
    /// AES-GCM: 2^36 - 32, where the 32-bit block counter would wrap (NIST SP 800-38D section 5.2.1.1).
    /// ChaCha20-Poly1305 and XChaCha20-Poly1305: 2^38 - 64, likewise with the counter starting at 1 (RFC 8439 section 2.8).
    pub const fn max_message_len(self) -> u64 {
        match self {
            Suite::Aes128Gcm | Suite::Aes256Gcm => (1 << 36) - 32,
            Suite::ChaCha20Poly1305 | Suite::XChaCha20Poly1305 => (1 << 38) - 64,
        }
    }

    /// True for the suites that need AES and carry-less multiply in hardware to be fast and free of table look-ups.
    pub const fn is_aes(self) -> bool {
        matches!(self, Suite::Aes128Gcm | Suite::Aes256Gcm)
    }

    /// True if this build has the suite: all but those of AES, and those too with feature `aes`.
    pub const fn is_built(self) -> bool {
        cfg!(feature = "aes") || !self.is_aes()
    }

    /// The number that stands for the suite in key derivation. Never reused, never changed.
    pub(crate) const fn derivation_id(self) -> u8 {
        match self {
            Suite::Aes128Gcm => 1,
            Suite::Aes256Gcm => 2,
            Suite::ChaCha20Poly1305 => 3,
            Suite::XChaCha20Poly1305 => 4,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_nothing_else_parses() {
        for suite in Suite::ALL {
            assert_eq!(suite.name().parse(), Ok(suite));
            assert_eq!(suite.to_string(), suite.name());
            assert!(suite.name().to_uppercase().parse::<Suite>().is_err());
            assert!(format!("{suite} ").parse::<Suite>().is_err());
        }
        assert!("".parse::<Suite>().is_err());
        assert!("none".parse::<Suite>().is_err());
    }

    #[test]
    fn derivation_ids_are_distinct() {
        let mut ids = Suite::ALL.map(Suite::derivation_id);
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4]);
    }

    #[test]
    fn numbers_of_the_specifications() {
        assert_eq!(Suite::Aes128Gcm.max_message_len(), 68_719_476_704);
        assert_eq!(Suite::ChaCha20Poly1305.max_message_len(), 274_877_906_880);
        assert_eq!(Suite::XChaCha20Poly1305.nonce_len(), Suite::MAX_NONCE_LEN);
        assert!(
            Suite::ALL
                .iter()
                .all(|s| s.key_len() <= Suite::MAX_KEY_LEN && s.tag_len() == 16)
        );
    }
}
