//! Keys for an encrypted client hello, in the form of RFC 9849.

use zeroize::Zeroizing;

/// Version of the configuration (`encrypted_client_hello`).
const VERSION: u16 = 0xfe0d;
/// DHKEM(X25519, HKDF-SHA256).
const KEM: u16 = 0x0020;
/// HKDF-SHA256, -SHA384 and -SHA512, each with AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305.
const SUITES: [[u16; 2]; 9] = [[1, 1], [1, 2], [1, 3], [2, 1], [2, 2], [2, 3], [3, 1], [3, 2], [3, 3]];
/// Bytes of a key of X25519.
const KEY: u16 = 32;

/// A list with the one configuration for a public name of at most 255 bytes.
pub(super) fn list(public: &[u8; 32], name: &str) -> Option<Vec<u8>> {
    let one = config(public, name)?;
    let len = u16::try_from(one.len()).ok()?;
    Some([&len.to_be_bytes()[..], &one].concat())
}

/// What the server keeps: the private key and the configuration, each behind its length.
pub(super) fn server_keys(private: &[u8; 32], public: &[u8; 32], name: &str) -> Option<Zeroizing<Vec<u8>>> {
    let one = list(public, name)?;
    Some(Zeroizing::new([&KEY.to_be_bytes()[..], private, &one].concat()))
}

/// The list that belongs to what a server keeps, if it is of this form.
pub(super) fn list_of(server_keys: &[u8]) -> Option<&[u8]> {
    let rest = server_keys.strip_prefix(&KEY.to_be_bytes())?.get(usize::from(KEY)..)?;
    let (len, one) = rest.split_first_chunk()?;
    let fits = usize::from(u16::from_be_bytes(*len)) == one.len() && one.starts_with(&VERSION.to_be_bytes());
    fits.then_some(rest)
}

fn config(public: &[u8; 32], name: &str) -> Option<Vec<u8>> {
    let name_len = u8::try_from(name.len()).ok().filter(|len| *len > 0)?;
    let mut contents = vec![0];
    contents.extend(KEM.to_be_bytes());
    contents.extend(KEY.to_be_bytes());
    contents.extend(public);
    contents.extend(u16::try_from(SUITES.len() * 4).ok()?.to_be_bytes());
    contents.extend(SUITES.iter().flatten().flat_map(|id| id.to_be_bytes()));
    // No longest name is told.
    contents.extend([0, name_len]);
    contents.extend(name.as_bytes());
    // No extensions.
    contents.extend([0, 0]);
    let len = u16::try_from(contents.len()).ok()?;
    Some([&VERSION.to_be_bytes()[..], &len.to_be_bytes(), &contents].concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sealway_tls::reality::keys::x25519_public;

    use super::*;

    /// Made by Xray for `ex.org`.
    const LIST: &str = "AFn+DQBVAAAgACBY4hM9IBpC1wKwRornHku/yK+0RYgNcTEZdTIjWQIbJAAkAAEAAQABAAIAAQADAAIAAQACAAIAAgAD\
                        AAMAAQADAAIAAwADAAZleC5vcmcAAA==";
    const KEYS: &str = "ACDW/LlhOzmHs6Cf9pZR3NIRa5NfRfjQqEPes/aiRMABRwBZ/g0AVQAAIAAgWOITPSAaQtcCsEaK5x5Lv8ivtEWIDXExGXUy\
                        I1kCGyQAJAABAAEAAQACAAEAAwACAAEAAgACAAIAAwADAAEAAwACAAMAAwAGZXgub3JnAAA=";

    #[test]
    fn the_bytes_are_those_of_xray() {
        let keys = STANDARD.decode(KEYS).unwrap();
        let private: [u8; 32] = keys[2..34].try_into().unwrap();
        let public = x25519_public(&private);
        assert_eq!(STANDARD.encode(list(&public, "ex.org").unwrap()), LIST);
        assert_eq!(
            STANDARD.encode(&*server_keys(&private, &public, "ex.org").unwrap()),
            KEYS
        );
        assert_eq!(STANDARD.encode(list_of(&keys).unwrap()), LIST);
    }

    #[test]
    fn what_is_no_such_key_is_refused() {
        let keys = STANDARD.decode(KEYS).unwrap();
        for cut in [0, 1, 33, 34, 35, keys.len() - 1] {
            assert_eq!(list_of(&keys[..cut]), None, "{cut}");
        }
        assert_eq!(list(&[0; 32], ""), None);
        assert_eq!(list(&[0; 32], &"x".repeat(256)), None);
        assert!(list(&[0; 32], &"x".repeat(255)).is_some());
    }
}
