//! What both directions of a body have in common.
//!
//! A chunk is `size | sealed payload | padding`. Chunks are numbered from 0 in each direction; the nonce is the number, 16
//! bits, and ten bytes of the IV.

use sealway_aead::Suite;
use zeroize::Zeroizing;

use super::lengths::Draws;
use super::session::suite_key;
use super::{Options, Security, Session, kdf};
use crate::address::Network;

/// The two directions of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    Request,
    Response,
}

/// How a direction is framed.
pub(super) struct Framing {
    /// Suite and key of the payload, unless it is not sealed.
    pub(super) payload: Option<(Suite, Zeroizing<Vec<u8>>)>,
    pub(super) iv: [u8; 16],
    /// Suite, key and IV of the sizes, if they are sealed.
    pub(super) sizes: Option<(Suite, Zeroizing<Vec<u8>>, [u8; 16])>,
    pub(super) draws: Draws,
    /// Bytes that sealing adds to the payload.
    pub(super) overhead: usize,
}

impl Framing {
    /// The framing of a direction, or `None` if the body is raw.
    pub(super) fn new(session: &Session, direction: Direction) -> Option<Self> {
        if session.is_raw() {
            return None;
        }
        let (key, iv) = match direction {
            Direction::Request => (Zeroizing::new(session.key), session.iv),
            Direction::Response => session.response_keys(),
        };
        let options = session.options;
        let suite = session.security.suite();
        let sealed_sizes = options.has(Options::AUTHENTICATED_LENGTH);
        // A plain stream knows neither sealed sizes nor padding; plain datagrams are framed like sealed ones.
        let padded = options.has(Options::GLOBAL_PADDING)
            && (session.security != Security::None || session.network == Network::Udp);
        Some(Framing {
            payload: suite.map(|suite| (suite, suite_key(suite, &key))),
            iv,
            sizes: suite.filter(|_| sealed_sizes).map(|suite| {
                // Both directions use the request's key and IV here.
                let key = Zeroizing::new(kdf::CHUNK_LENGTH.derive::<16>(&session.key));
                (suite, suite_key(suite, &key), session.iv)
            }),
            draws: Draws::new(
                &iv,
                padded,
                options.has(Options::CHUNK_MASKING) && !(sealed_sizes && suite.is_some()),
            ),
            overhead: if suite.is_some() { Suite::TAG_LEN } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests;
