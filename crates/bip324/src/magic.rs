//! Networks and the two ends of a connection.

use core::fmt;

/// Bytes of the prefix by which a responder knows v1: the magic, then the type of a v1 `version` message.
pub const V1_PREFIX_LEN: usize = 16;

/// The four bytes that name a network, as they stand on the wire. Any are allowed: a custom signet has its own.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Magic(pub [u8; 4]);

impl Magic {
    /// Bitcoin.
    pub const MAINNET: Magic = Magic([0xf9, 0xbe, 0xb4, 0xd9]);
    /// The third test network.
    pub const TESTNET3: Magic = Magic([0x0b, 0x11, 0x09, 0x07]);
    /// The fourth test network.
    pub const TESTNET4: Magic = Magic([0x1c, 0x16, 0x3f, 0x28]);
    /// The default signet; others derive a magic from their challenge.
    pub const SIGNET: Magic = Magic([0x0a, 0x03, 0xcf, 0x40]);
    /// Regression tests.
    pub const REGTEST: Magic = Magic([0xfa, 0xbf, 0xb5, 0xda]);

    /// The networks with a name.
    pub const NAMED: [(&'static str, Magic); 5] = [
        ("mainnet", Magic::MAINNET),
        ("testnet3", Magic::TESTNET3),
        ("testnet4", Magic::TESTNET4),
        ("signet", Magic::SIGNET),
        ("regtest", Magic::REGTEST),
    ];

    /// The name of the network, if it has one.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED
            .iter()
            .find(|(_, magic)| *magic == self)
            .map(|(name, _)| *name)
    }

    /// The first 16 bytes of a v1 connection: the magic and the type `version`.
    pub fn v1_prefix(self) -> [u8; V1_PREFIX_LEN] {
        let mut prefix = [0; V1_PREFIX_LEN];
        prefix[..4].copy_from_slice(&self.0);
        prefix[4..].copy_from_slice(&VERSION_TYPE);
        prefix
    }
}

/// The type of a v1 `version` message.
pub(crate) const VERSION_TYPE: [u8; 12] = *b"version\0\0\0\0\0";

impl fmt::Display for Magic {
    /// The name if there is one, else eight hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "{:08x}", u32::from_be_bytes(self.0)),
        }
    }
}

impl fmt::Debug for Magic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Magic({self})")
    }
}

/// Which end of a connection one is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    /// Opened the connection and speaks first.
    Initiator,
    /// Accepted the connection.
    Responder,
}

impl Role {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Role {
        match self {
            Role::Initiator => Role::Responder,
            Role::Responder => Role::Initiator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn names_and_digits_both_ways() {
        for (name, magic) in Magic::NAMED {
            assert_eq!(name.parse(), Ok(magic));
            assert_eq!(magic.to_string(), name);
        }
        assert_eq!("f9beb4d9".parse(), Ok(Magic::MAINNET));
        assert_eq!("0000aBcD".parse(), Ok(Magic([0, 0, 0xab, 0xcd])));
        assert_eq!(Magic([0, 0, 0xab, 0xcd]).to_string(), "0000abcd");
        for wrong in [
            "",
            "main",
            "Mainnet",
            "f9beb4d",
            "f9beb4d90",
            "+9beb4d9",
            "f9beb4dg",
            "ü9beb4d",
        ] {
            assert_eq!(wrong.parse::<Magic>(), Err(Error::MagicText), "{wrong}");
        }
    }

    #[test]
    fn the_prefix_is_the_start_of_a_v1_version_message() {
        assert_eq!(Magic::REGTEST.v1_prefix(), *b"\xfa\xbf\xb5\xdaversion\0\0\0\0\0");
    }
}
