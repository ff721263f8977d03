//! Ends that are let in by their keys.

use super::Refused;
use crate::identity::Known;
use crate::key::PublicKey;

/// The key that is meant: of an end that is known by this name, else the key that this text is. A name goes first, so that what a
/// person has called an end means that end.
///
/// # Errors
/// [`Refused::NoKey`] if it is neither.
pub fn key_named(text: &str, known: &[Known]) -> Result<[u8; 32], Refused> {
    if let Some(known) = known.iter().find(|known| known.name == text) {
        return Ok(*known.key.bytes());
    }
    match text.parse::<PublicKey>() {
        Ok(key) => Ok(*key.bytes()),
        Err(error) => Err(Refused::NoKey {
            text: text.to_owned(),
            error,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_known_goes_before_a_key_and_anything_else_is_refused() {
        let key = |byte| PublicKey::new([byte; 32]);
        let known = |name: String, byte| Known {
            name,
            key: key(byte),
            first_seen: "2026-01-02".into(),
        };
        // Somebody may have called one end by the key of another.
        let all = [known("laptop".into(), 1), known(key(3).to_string(), 2)];
        for (text, expected) in [
            ("laptop".to_owned(), Some(1)),
            (key(1).to_string(), Some(1)),
            (key(9).to_string(), Some(9)),
            (key(3).to_string(), Some(2)),
            ("Laptop".to_owned(), None),
            ("lap".to_owned(), None),
            (String::new(), None),
        ] {
            let found = key_named(&text, &all);
            match expected {
                Some(byte) => assert_eq!(found, Ok([byte; 32]), "{text}"),
                None => assert!(matches!(found, Err(Refused::NoKey { text: named, .. }) if named == text)),
            }
        }
    }
}
