//! Who is connected to.

use std::fmt;
use std::net::SocketAddr;

use sealway_bip324::Magic;
use tokio::net::lookup_host;

use crate::Error;

/// Most addresses of a name that are tried.
const ADDRESSES: usize = 4;

/// A host and its port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    host: String,
    port: u16,
}

impl Target {
    /// Reads `HOST:PORT`, or `HOST` alone for the port that nodes of the network have by default, if it has one. An IPv6
    /// address stands in brackets when a port follows.
    ///
    /// # Errors
    /// [`Error::Target`].
    pub fn parse(text: &str, network: Magic) -> Result<Self, Error> {
        let wrong = || Error::Target { text: text.to_owned() };
        let port = |digits: &str| {
            // The parser of numbers takes a sign too.
            let digits = digits.bytes().all(|b| b.is_ascii_digit()).then_some(digits)?;
            digits.parse().ok().filter(|port| *port != 0)
        };
        let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(None) => return Err(wrong()),
            Some(Some((host, ""))) => (host, default_port(network)),
            Some(Some((host, rest))) => (host, rest.strip_prefix(':').and_then(port)),
            None => match text.split_once(':') {
                Some((_, rest)) if rest.contains(':') => (text, default_port(network)),
                Some((host, digits)) => (host, port(digits)),
                None => (text, default_port(network)),
            },
        };
        let named = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
        match port {
            Some(port) if named => Ok(Target {
                host: host.to_owned(),
                port,
            }),
            _ => Err(wrong()),
        }
    }

    /// The addresses, at most four.
    pub(crate) async fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let name = self.host.clone();
        let found = match lookup_host((self.host.as_str(), self.port)).await {
            Ok(found) => found,
            Err(source) => {
                let source = Some(source);
                return Err(Error::Resolve { name, source });
            }
        };
        let found: Vec<_> = found.take(ADDRESSES).collect();
        if found.is_empty() {
            return Err(Error::Resolve { name, source: None });
        }
        Ok(found)
    }
}

/// The port that Bitcoin Core listens on.
fn default_port(network: Magic) -> Option<u16> {
    match network {
        Magic::MAINNET => Some(8333),
        Magic::TESTNET3 => Some(18333),
        Magic::TESTNET4 => Some(48333),
        Magic::SIGNET => Some(38333),
        Magic::REGTEST => Some(18444),
        _ => None,
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Target {
            host: address.ip().to_string(),
            port: address.port(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        for (text, shown) in [
            ("node.example:1234", "node.example:1234"),
            ("node.example", "node.example:8333"),
            ("127.0.0.1", "127.0.0.1:8333"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("::1", "[::1]:8333"),
            ("[::1]", "[::1]:8333"),
            ("[::1]:9", "[::1]:9"),
        ] {
            let target = Target::parse(text, Magic::MAINNET).unwrap();
            assert_eq!(target.to_string(), shown);
        }
        let regtest = Target::parse("::1", Magic::REGTEST).unwrap();
        assert_eq!(regtest.to_string(), "[::1]:18444");
        for wrong in [
            "",
            ":",
            ":1",
            "host:",
            "host:0",
            "host:+1",
            "host:65536",
            "host:x",
            "[::1",
            "[::1]x",
            "[::1]:",
            "[]:1",
            "a b:1",
        ] {
            assert!(Target::parse(wrong, Magic::MAINNET).is_err(), "{wrong:?}");
        }
        // A network of one's own has no port by default.
        assert!(Target::parse("host", Magic([1, 2, 3, 4])).is_err());
        assert!(Target::parse("host:1", Magic([1, 2, 3, 4])).is_ok());
    }
}
