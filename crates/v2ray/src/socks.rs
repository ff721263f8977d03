//! SOCKS 5 (RFC 1928, RFC 1929), and SOCKS 4 and 4a as a server.

mod client;
mod server;
pub mod udp;

pub use client::{Client, ClientEvent};
pub use server::{Event, Server};

use std::net::SocketAddr;

use crate::address::write_type_first;
use crate::{Address, Destination};

/// The version of the protocol a client speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// SOCKS 4 or 4a.
    V4,
    /// SOCKS 5.
    V5,
}

/// What a client asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// A stream.
    Connect(Destination),
    /// To relay datagrams for as long as the connection lives. The address is the one the client means to send from, as
    /// far as it knows it; often zero.
    UdpAssociate(Destination),
}

/// What a server answers to a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reply {
    /// Granted.
    Succeeded,
    /// Something failed.
    Failure,
    /// The rules forbid it.
    NotAllowed,
    /// The network cannot be reached.
    NetworkUnreachable,
    /// The host cannot be reached.
    HostUnreachable,
    /// The host refused the connection.
    ConnectionRefused,
    /// The command is not supported.
    CommandNotSupported,
    /// The type of address is not supported.
    AddressNotSupported,
}

impl Reply {
    const fn code(self) -> u8 {
        match self {
            Reply::Succeeded => 0,
            Reply::Failure => 1,
            Reply::NotAllowed => 2,
            Reply::NetworkUnreachable => 3,
            Reply::HostUnreachable => 4,
            Reply::ConnectionRefused => 5,
            Reply::CommandNotSupported => 7,
            Reply::AddressNotSupported => 8,
        }
    }

    /// The bytes to send. `bound` is our own address: where datagrams must go, or merely informative.
    pub fn encode(self, version: Version, bound: SocketAddr) -> Vec<u8> {
        let mut out = Vec::with_capacity(22);
        match version {
            Version::V5 => {
                out.extend_from_slice(&[5, self.code(), 0]);
                write_type_first(&Address::from(bound.ip()), bound.port(), &mut out);
            }
            Version::V4 => {
                let granted = if self == Reply::Succeeded { 0x5a } else { 0x5b };
                out.extend_from_slice(&[0, granted]);
                out.extend_from_slice(&bound.port().to_be_bytes());
                match bound {
                    SocketAddr::V4(bound) => out.extend_from_slice(&bound.ip().octets()),
                    SocketAddr::V6(_) => out.extend_from_slice(&[0; 4]),
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests;
