//! The addresses that somebody is connected from.

use std::collections::HashMap;
use std::net::IpAddr;

/// Addresses of one person that are listed at once. What comes from others beyond them is not.
pub(super) const MAX_ADDRESSES: usize = 1024;

/// An address that somebody is connected from.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Connections from it.
    count: u32,
    /// When the last of them began, Unix time in seconds.
    last: i64,
}

/// The addresses that somebody is connected from, each with its connections.
#[derive(Debug, Default)]
pub(super) struct Online(HashMap<IpAddr, Seen>);

impl Online {
    /// A connection from an address. False: there are too many addresses to list it.
    pub(super) fn add(&mut self, address: IpAddr, now: i64) -> bool {
        if let Some(seen) = self.0.get_mut(&address) {
            seen.count += 1;
            seen.last = now;
            return true;
        }
        if self.0.len() >= MAX_ADDRESSES {
            return false;
        }
        self.0.insert(address, Seen { count: 1, last: now });
        true
    }

    /// A connection from an address that was listed has ended.
    pub(super) fn remove(&mut self, address: IpAddr) {
        if let Some(seen) = self.0.get_mut(&address) {
            seen.count -= 1;
            if seen.count == 0 {
                self.0.remove(&address);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn list(&self) -> Vec<(IpAddr, i64)> {
        self.0.iter().map(|(address, seen)| (*address, seen.last)).collect()
    }
}

/// The address as it is listed. Programs on the same machine are not: they stand at the two addresses that loopback has by
/// default.
pub(super) fn listed(from: Option<IpAddr>) -> Option<IpAddr> {
    let address = from?.to_canonical();
    let loopback = [
        IpAddr::from(std::net::Ipv4Addr::LOCALHOST),
        IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
    ];
    (!loopback.contains(&address)).then_some(address)
}
