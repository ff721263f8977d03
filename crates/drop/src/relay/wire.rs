//! The messages of the relay, version 1: one request, one or two answers, all of fixed length.
//!
//! `docs/reference/relay.md` has them in full.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use sealway_session::handshake::Role;

/// Length of a request, bytes.
pub const REQUEST_LEN: usize = 40;

/// Length of an answer, bytes.
pub const ANSWER_LEN: usize = 8;

/// Length of a token, bytes.
pub const TOKEN_LEN: usize = 32;

/// The version of the protocol.
pub const VERSION: u8 = 1;

const REQUEST_MAGIC: [u8; 4] = *b"SWRL";
const ANSWER_MAGIC: [u8; 2] = *b"SW";

/// What a client asks for.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Request {
    /// A new nameplate, to wait under.
    Open,
    /// Whoever waits under this nameplate.
    Claim(u32),
    /// Whoever comes with the same token and the other role.
    Pair {
        /// The token.
        token: [u8; TOKEN_LEN],
        /// This end's role.
        role: Role,
    },
    /// From which address the request comes, as the relay sees it.
    Seen,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Open => f.write_str("Open"),
            Request::Claim(nameplate) => write!(f, "Claim({nameplate})"),
            // Not the token: whoever has it can take the connection.
            Request::Pair { role, .. } => write!(f, "Pair({role:?})"),
            Request::Seen => f.write_str("Seen"),
        }
    }
}

/// Why bytes are not a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BadRequest {
    /// They are of another protocol. They get no answer.
    Foreign,
    /// They are a request for a relay, of another version or one that makes no sense.
    Unsupported,
}

impl Request {
    /// Its bytes.
    pub fn encode(&self) -> [u8; REQUEST_LEN] {
        let mut bytes = [0; REQUEST_LEN];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC);
        bytes[4] = VERSION;
        match self {
            Request::Open => bytes[5] = 1,
            Request::Claim(nameplate) => {
                bytes[5] = 2;
                bytes[8..12].copy_from_slice(&nameplate.to_be_bytes());
            }
            Request::Pair { token, role } => {
                bytes[5] = 3;
                bytes[6] = match role {
                    Role::Initiator => 1,
                    Role::Responder => 2,
                };
                bytes[8..].copy_from_slice(token);
            }
            Request::Seen => bytes[5] = 4,
        }
        bytes
    }

    /// The request of these bytes. There is one way of writing each: what is not used is zero.
    ///
    /// # Errors
    /// [`BadRequest`].
    pub fn parse(bytes: &[u8; REQUEST_LEN]) -> Result<Self, BadRequest> {
        if !may_begin_request(bytes) {
            return Err(BadRequest::Foreign);
        }
        let mut token = [0; TOKEN_LEN];
        token.copy_from_slice(&bytes[8..]);
        let request = match (bytes[5], bytes[6]) {
            (1, _) => Request::Open,
            (2, _) => Request::Claim(u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]])),
            (3, 1) => Request::Pair {
                token,
                role: Role::Initiator,
            },
            (3, 2) => Request::Pair {
                token,
                role: Role::Responder,
            },
            (4, _) => Request::Seen,
            _ => return Err(BadRequest::Unsupported),
        };
        match request.encode() == *bytes {
            true => Ok(request),
            false => Err(BadRequest::Unsupported),
        }
    }
}

/// Whether `bytes` can be the beginning of a request, of whatever version.
pub fn may_begin_request(bytes: &[u8]) -> bool {
    bytes.iter().zip(&REQUEST_MAGIC).all(|(a, b)| a == b)
}

/// What the relay says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Nobody is there yet. The nameplate if one was asked for, else 0.
    Waiting(u32),
    /// The other end is there: from the next byte on, everything is its.
    Ready,
    /// A limit of the relay is reached. Later it may work.
    Busy,
    /// Nobody waits under that nameplate.
    Unknown,
    /// The relay does not understand, or somebody else took this place.
    Refused,
    /// The port from which the request came. The [address](encode_seen) follows.
    Seen(u16),
}

impl Answer {
    /// Its bytes.
    pub fn encode(self) -> [u8; ANSWER_LEN] {
        let (status, number) = match self {
            Answer::Waiting(nameplate) => (1, nameplate),
            Answer::Ready => (2, 0),
            Answer::Busy => (3, 0),
            Answer::Unknown => (4, 0),
            Answer::Refused => (5, 0),
            Answer::Seen(port) => (6, port.into()),
        };
        let mut bytes = [0; ANSWER_LEN];
        bytes[..2].copy_from_slice(&ANSWER_MAGIC);
        bytes[2] = VERSION;
        bytes[3] = status;
        bytes[4..].copy_from_slice(&u32::to_be_bytes(number));
        bytes
    }

    /// The answer of these bytes; `None` if they are none of this version.
    pub fn parse(bytes: &[u8; ANSWER_LEN]) -> Option<Self> {
        let number = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let answer = match bytes[3] {
            1 => Answer::Waiting(number),
            2 => Answer::Ready,
            3 => Answer::Busy,
            4 => Answer::Unknown,
            5 => Answer::Refused,
            6 => Answer::Seen(u16::try_from(number).ok()?),
            _ => return None,
        };
        (answer.encode() == *bytes).then_some(answer)
    }
}

/// Length of the address that follows [`Answer::Seen`], bytes.
pub const SEEN_LEN: usize = 16;

/// The address behind [`Answer::Seen`]: of IPv6, IPv4 as mapped into it. Every bit is inverted, since some NATs rewrite addresses of
/// theirs in what they carry (as RFC 8489, section 5, says of STUN).
pub fn encode_seen(ip: IpAddr) -> [u8; SEEN_LEN] {
    let mapped = match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    mapped.octets().map(|byte| !byte)
}

/// The address of these bytes.
pub fn parse_seen(bytes: [u8; SEEN_LEN]) -> IpAddr {
    Ipv6Addr::from(bytes.map(|byte| !byte)).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request() -> impl Strategy<Value = Request> {
        let role = prop_oneof![Just(Role::Initiator), Just(Role::Responder)];
        prop_oneof![
            Just(Request::Open),
            any::<u32>().prop_map(Request::Claim),
            (any::<[u8; 32]>(), role).prop_map(|(token, role)| Request::Pair { token, role }),
            Just(Request::Seen),
        ]
    }

    #[test]
    fn requests_are_the_bytes_of_the_reference() {
        let mut open = [0; REQUEST_LEN];
        open[..8].copy_from_slice(b"SWRL\x01\x01\0\0");
        assert_eq!(Request::Open.encode(), open);
        let mut claim = [0; REQUEST_LEN];
        claim[..12].copy_from_slice(b"SWRL\x01\x02\0\0\x01\x02\x03\x04");
        assert_eq!(Request::Claim(0x0102_0304).encode(), claim);
        let mut pair = [7; REQUEST_LEN];
        pair[..8].copy_from_slice(b"SWRL\x01\x03\x02\0");
        assert_eq!(
            Request::Pair {
                token: [7; 32],
                role: Role::Responder
            }
            .encode(),
            pair
        );
        assert_eq!(Answer::Waiting(258).encode(), *b"SW\x01\x01\0\0\x01\x02");
        assert_eq!(Answer::Refused.encode(), *b"SW\x01\x05\0\0\0\0");
        let mut seen = [0; REQUEST_LEN];
        seen[..8].copy_from_slice(b"SWRL\x01\x04\0\0");
        assert_eq!(Request::Seen.encode(), seen);
        assert_eq!(Answer::Seen(258).encode(), *b"SW\x01\x06\0\0\x01\x02");
        let address = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(encode_seen(address)[10..], [0, 0, !192, 255, !2, !1]);
        assert_eq!(parse_seen(encode_seen(address)), address);
    }

    #[test]
    fn another_protocol_is_told_from_another_version() {
        let mut http = [b' '; REQUEST_LEN];
        http[..4].copy_from_slice(b"GET ");
        assert!(Request::parse(&http) == Err(BadRequest::Foreign));
        for (at, value) in [(4, 2), (5, 0), (5, 5), (6, 1), (7, 1), (8, 1), (39, 1)] {
            let mut bytes = Request::Open.encode();
            bytes[at] = value;
            assert!(
                Request::parse(&bytes) == Err(BadRequest::Unsupported),
                "byte {at} is {value}"
            );
        }
        assert!(may_begin_request(b""));
        assert!(may_begin_request(b"SWR"));
        assert!(!may_begin_request(b"SWX"));
    }

    proptest! {
        #[test]
        fn requests_come_back(request in request()) {
            prop_assert!(Request::parse(&request.encode()) == Ok(request));
        }

        #[test]
        fn whatever_parses_is_written_alike(mut bytes in any::<[u8; REQUEST_LEN]>(), valid in 0..8usize) {
            // Most random bytes fail at the first one; let some get further.
            bytes[..valid].copy_from_slice(&b"SWRL\x01\x02\0\0"[..valid]);
            if let Ok(request) = Request::parse(&bytes) {
                prop_assert_eq!(request.encode(), bytes);
            }
        }

        #[test]
        fn answers_that_parse_are_written_alike(tail in any::<[u8; 5]>()) {
            let mut bytes = [0; ANSWER_LEN];
            bytes[..3].copy_from_slice(b"SW\x01");
            bytes[3..].copy_from_slice(&tail);
            if let Some(answer) = Answer::parse(&bytes) {
                prop_assert_eq!(answer.encode(), bytes);
            }
        }
    }
}
