//! The first packet: does a user speak, or should a fallback answer?

use super::{Match, Users, VERSION};
use crate::UserId;

/// Fewer bytes than this in the first read cannot be a request: version, id and the length of the addons.
pub const MIN_FIRST: usize = 18;

/// What the first bytes are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum First<'a, T> {
    /// A known user speaks. Go on with [`super::Request::decode`]; whatever is wrong from here on closes the connection and
    /// no fallback is tried.
    User(Match<'a, T>),
    /// Not (yet) a request.
    Stranger(Stranger),
}

/// Why the first bytes are not a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stranger {
    /// Fewer than [`MIN_FIRST`] bytes. With fallbacks configured this is final, for a web server would answer now;
    /// without, read on.
    Short,
    /// The version byte is not 0.
    Version(u8),
    /// No user has this id.
    UnknownId,
}

/// Judges the first bytes of a connection.
///
/// With fallbacks, `first` is what the first read gave. Without fallbacks it may be called again with more bytes after
/// [`Stranger::Short`]; any other stranger is closed without an answer.
pub fn inspect<'a, T>(first: &[u8], users: &'a Users<T>) -> First<'a, T> {
    let Some((version, rest)) = first.split_first() else {
        return First::Stranger(Stranger::Short);
    };
    if first.len() < MIN_FIRST {
        return First::Stranger(Stranger::Short);
    }
    if *version != VERSION {
        return First::Stranger(Stranger::Version(*version));
    }
    let Some(id) = rest.first_chunk::<16>() else {
        return First::Stranger(Stranger::Short);
    };
    match users.find(&UserId::from_bytes(*id)) {
        Some(found) => First::User(found),
        None => First::Stranger(Stranger::UnknownId),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_rules() {
        let mut users = Users::new();
        users.insert(UserId::from_bytes([7; 16]), "u").unwrap();
        let mut good = vec![0];
        good.extend_from_slice(&[7; 16]);
        good.push(0);
        for n in 0..18 {
            assert_eq!(inspect(&good[..n], &users), First::Stranger(Stranger::Short));
        }
        assert!(matches!(inspect(&good, &users), First::User(m) if *m.user == "u" && m.exact));
        good[16] ^= 1;
        assert_eq!(inspect(&good, &users), First::Stranger(Stranger::UnknownId));
        good[0] = b'G';
        assert_eq!(inspect(&good, &users), First::Stranger(Stranger::Version(b'G')));
    }
}
