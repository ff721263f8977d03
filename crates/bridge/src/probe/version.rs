//! The `version` message (protocol documentation of Bitcoin, "version").

use crate::Error;

/// The protocol version that we say: the newest of which Bitcoin Core knows at the time of writing.
const PROTOCOL: i32 = 70_016;

/// Longest user agent, bytes; Bitcoin Core refuses longer ones too.
const USER_AGENT_MAX: usize = 256;

/// Names of the services of a node, by their bits.
pub const SERVICES: [(u8, &str); 8] = [
    (0, "NETWORK"),
    (1, "GETUTXO"),
    (2, "BLOOM"),
    (3, "WITNESS"),
    (4, "XTHIN"),
    (6, "COMPACT_FILTERS"),
    (10, "NETWORK_LIMITED"),
    (11, "P2P_V2"),
];

/// What a node says of itself. All of it is a claim.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Version {
    /// Its protocol version.
    pub protocol: i32,
    /// What it offers, a bit each; see [`SERVICES`].
    pub services: u64,
    /// Its clock, seconds since 1970.
    pub time: i64,
    /// A random number, by which a program knows its own message.
    pub nonce: u64,
    /// The program, printable ASCII: every other byte is shown as `?`.
    pub user_agent: String,
    /// Blocks that it has.
    pub height: i32,
}

impl Version {
    /// Reads a payload.
    ///
    /// # Errors
    /// [`Error::Message`] if it is too short or its user agent too long.
    pub fn decode(payload: &[u8]) -> Result<Self, Error> {
        Self::read(payload).ok_or(Error::Message {
            what: "the node's version message cannot be read",
        })
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (protocol, rest) = payload.split_first_chunk::<4>()?;
        let (services, rest) = rest.split_first_chunk::<8>()?;
        let (time, rest) = rest.split_first_chunk::<8>()?;
        // Two addresses.
        let rest = rest.get(26 + 26..)?;
        let (nonce, rest) = rest.split_first_chunk::<8>()?;
        // A length below 253 is one byte; with 253 before it, two.
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=252 => (usize::from(first), rest),
            253 => {
                let (len, rest) = rest.split_first_chunk::<2>()?;
                (usize::from(u16::from_le_bytes(*len)), rest)
            }
            _ => return None,
        };
        if len > USER_AGENT_MAX {
            return None;
        }
        let (agent, rest) = rest.split_at_checked(len)?;
        let height = rest.first_chunk::<4>()?;
        let shown = |byte: &u8| match byte {
            0x20..=0x7e => char::from(*byte),
            _ => '?',
        };
        Some(Version {
            protocol: i32::from_le_bytes(*protocol),
            services: u64::from_le_bytes(*services),
            time: i64::from_le_bytes(*time),
            nonce: u64::from_le_bytes(*nonce),
            user_agent: agent.iter().map(shown).collect(),
            height: i32::from_le_bytes(*height),
        })
    }

    /// The services by name; one without a name by its bit, such as `bit 24`.
    pub fn service_names(&self) -> Vec<String> {
        let set = (0..64u8).filter(|bit| self.services >> bit & 1 == 1);
        set.map(|bit| match SERVICES.iter().find(|(known, _)| *known == bit) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("bit {bit}"),
        })
        .collect()
    }
}

/// Our version message: no services, no addresses, no transactions wanted.
pub(super) fn encode(user_agent: &str, time: i64, nonce: u64) -> Vec<u8> {
    let agent = user_agent.as_bytes();
    let agent = &agent[..agent.len().min(USER_AGENT_MAX)];
    let mut out = Vec::with_capacity(112 + agent.len());
    out.extend_from_slice(&PROTOCOL.to_le_bytes());
    out.extend_from_slice(&0u64.to_le_bytes());
    out.extend_from_slice(&time.to_le_bytes());
    for _ in 0..2 {
        // Services, an IPv4 address in IPv6 form, port: nobody's.
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]);
        out.extend_from_slice(&[0; 2]);
    }
    out.extend_from_slice(&nonce.to_le_bytes());
    match u8::try_from(agent.len()) {
        Ok(len @ 0..=252) => out.push(len),
        _ => {
            out.push(253);
            // At most 256.
            out.extend_from_slice(&(agent.len() as u16).to_le_bytes());
        }
    }
    out.extend_from_slice(agent);
    out.extend_from_slice(&0i32.to_le_bytes());
    out.push(0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for agent in [
            "",
            "/sealway:0.1.0/",
            &"x".repeat(252),
            &"y".repeat(253),
            &"z".repeat(256),
        ] {
            let payload = encode(agent, 1_700_000_000, 7);
            let version = Version::decode(&payload).unwrap();
            assert_eq!((version.protocol, version.services, version.height), (PROTOCOL, 0, 0));
            assert_eq!((version.time, version.user_agent.as_str()), (1_700_000_000, agent));
            assert_eq!(version.nonce, 7);
            // The last byte says whether transactions are wanted, and old nodes do not send it.
            assert!(Version::decode(&payload[..payload.len() - 1]).is_ok());
            for cut in 0..payload.len() - 1 {
                assert!(Version::decode(&payload[..cut]).is_err(), "{cut}");
            }
        }
        assert_eq!(encode(&"w".repeat(300), 0, 0), encode(&"w".repeat(256), 0, 0));
    }

    #[test]
    fn what_a_node_says_is_made_printable() {
        let mut payload = encode("/a\x1b[31m/é", 0, 0);
        payload[4..12].copy_from_slice(&0x0100_0c09_u64.to_le_bytes());
        let version = Version::decode(&payload).unwrap();
        assert_eq!(version.user_agent, "/a?[31m/??");
        assert_eq!(
            version.service_names(),
            ["NETWORK", "WITNESS", "NETWORK_LIMITED", "P2P_V2", "bit 24"]
        );
        // A user agent that is longer than may be, and one that says it is longer than the message.
        let mut long = encode(&"x".repeat(256), 0, 0);
        long[81..83].copy_from_slice(&257u16.to_le_bytes());
        assert!(Version::decode(&long).is_err());
        let mut beyond = encode("abc", 0, 0);
        beyond[80] = 255;
        assert!(Version::decode(&beyond).is_err());
    }
}
