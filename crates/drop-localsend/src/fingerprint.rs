//! What a device is known by: the SHA-256 of its certificate.

use std::fmt;

use sha2::{Digest, Sha256};

/// The SHA-256 of a certificate in DER. It is worth something only where the certificate is that of a connection.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a certificate.
    pub fn of(der: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(der).into())
    }

    /// That of content, which was hashed as it came.
    pub(crate) fn from_hash(hash: [u8; 32]) -> Fingerprint {
        Fingerprint(hash)
    }

    /// Reads 64 hexadecimal digits of either case; `None` for anything else, such as what devices without TLS and browsers say.
    pub fn parse(text: &str) -> Option<Fingerprint> {
        let mut bytes = [0; 32];
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return None;
        };
        if pairs.len() != bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let digit = |at: u8| char::from(at).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Fingerprint(bytes))
    }

    /// The first eight bytes as people compare them: `A4:BF:…`.
    pub fn short(&self) -> String {
        let pairs: Vec<_> = self.0.iter().take(8).map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }
}

/// As it goes over the wire: upper-case digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn either_case_is_read_and_nothing_else() {
        let one = Fingerprint::of(b"certificate");
        let text = one.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(Fingerprint::parse(&text), Some(one));
        assert_eq!(Fingerprint::parse(&text.to_lowercase()), Some(one));
        assert!(text.starts_with(&one.short().replace(':', "")));
        for wrong in [
            "",
            "A4",
            &text[1..],
            &format!("{text}00"),
            &text.replace('A', "G"),
            &"é".repeat(32),
        ] {
            assert!(wrong == text || Fingerprint::parse(wrong).is_none(), "{wrong}");
        }
    }
}
