//! What a link holds that nobody guesses, and the PIN beside it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A text that whoever asks must know: the token in a link, or a PIN. It is compared in constant time and never shown by accident.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A token of 16 random bytes, as 22 characters of base64url.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn token() -> Result<Secret, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; 16]);
        getrandom::fill(&mut *bytes)?;
        Ok(Secret(Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes))))
    }

    /// A PIN of six digits.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn pin() -> Result<Secret, getrandom::Error> {
        // 2^64 is so many times a million that no PIN is likelier than another to speak of.
        let number = getrandom::u64()? % 1_000_000;
        Ok(Secret(Zeroizing::new(format!("{number:06}"))))
    }

    /// A text that somebody chose.
    pub fn given(text: String) -> Secret {
        Secret(Zeroizing::new(text))
    }

    /// Whether somebody said the same.
    pub fn is(&self, said: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(said).into()
    }

    /// The text, for the one place where it is told.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// The password in an `Authorization` header of the scheme Basic (RFC 7617), whatever the user name.
pub fn password(header: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (scheme, rest) = header.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let both = Zeroizing::new(STANDARD.decode(rest.trim_ascii()).ok()?);
    let colon = both.iter().position(|byte| *byte == b':')?;
    both.get(colon + 1..).map(|said| Zeroizing::new(said.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_16_bytes_and_are_told_apart() {
        let (one, other) = (Secret::token().unwrap(), Secret::token().unwrap());
        assert_eq!(one.reveal().len(), 22);
        assert!(one.is(one.reveal().as_bytes()) && !one.is(other.reveal().as_bytes()));
        for wrong in ["", &one.reveal()[..21], &format!("{}A", one.reveal())] {
            assert!(!one.is(wrong.as_bytes()), "{wrong}");
        }
        let pin = Secret::pin().unwrap();
        assert!(pin.reveal().len() == 6 && pin.reveal().bytes().all(|byte| byte.is_ascii_digit()));
    }

    #[test]
    fn passwords_are_found_in_headers() {
        for (header, found) in [
            (&b"Basic OjEyMzQ1Ng=="[..], Some(&b"123456"[..])),
            (b"basic  dXNlcjpwYTpzcw==", Some(b"pa:ss")),
            (b"Basic OjEyMzQ1Ng", None),
            (b"Basic bm9jb2xvbg==", None),
            (b"Bearer OjEyMzQ1Ng==", None),
            (b"Basic", None),
            (b"", None),
        ] {
            assert_eq!(password(header).as_ref().map(|said| &***said), found, "{header:?}");
        }
    }
}
