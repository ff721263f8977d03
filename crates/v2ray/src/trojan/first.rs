//! The first packet: does a user speak, or should a fallback answer?

use super::{Key, Users};

/// Fewer bytes than this in the first read cannot be a request: a key, CR and LF.
pub const MIN_FIRST: usize = Key::LEN + 2;

/// What the first bytes are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum First<'a, T> {
    /// A known user speaks. Go on with [`super::Request::decode`]; whatever is wrong from here on closes the connection and
    /// no fallback is tried.
    User(&'a T),
    /// Not (yet) a request.
    Stranger(Stranger),
}

/// Why the first bytes are not a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stranger {
    /// Fewer than [`MIN_FIRST`] bytes. With fallbacks configured this is final, for a web server would answer now;
    /// without, read on.
    Short,
    /// No CR stands where the key would end.
    NoKey,
    /// No user has this key.
    UnknownKey,
}

/// Judges the first bytes of a connection.
///
/// With fallbacks, `first` is what the first read gave. Without fallbacks it may be called again with more bytes after
/// [`Stranger::Short`]; any other stranger is closed without an answer.
pub fn inspect<'a, T>(first: &[u8], users: &'a Users<T>) -> First<'a, T> {
    let Some((key, rest)) = first.split_first_chunk::<{ Key::LEN }>() else {
        return First::Stranger(Stranger::Short);
    };
    if first.len() < MIN_FIRST {
        return First::Stranger(Stranger::Short);
    }
    if rest.first() != Some(&b'\r') {
        return First::Stranger(Stranger::NoKey);
    }
    match users.find(&Key::from_bytes(*key)) {
        Some(user) => First::User(user),
        None => First::Stranger(Stranger::UnknownKey),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_rules() {
        let key = Key::of_password("password");
        let mut users = Users::new();
        users.insert(key.clone(), "u").unwrap();
        let mut good = key.as_bytes().to_vec();
        good.extend_from_slice(b"\r\n");
        for n in 0..MIN_FIRST {
            assert_eq!(inspect(&good[..n], &users), First::Stranger(Stranger::Short));
        }
        assert_eq!(inspect(&good, &users), First::User(&"u"));
        good[10] ^= 1;
        assert_eq!(inspect(&good, &users), First::Stranger(Stranger::UnknownKey));
        good[Key::LEN] = b'\n';
        assert_eq!(inspect(&good, &users), First::Stranger(Stranger::NoKey));
    }
}
