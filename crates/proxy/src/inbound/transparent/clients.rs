//! Clients that send datagrams through the firewall, by their addresses.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use sealway_net::sock::network;
use tokio::time::Instant;

use crate::inbound::local::Flow;

/// Client addresses that are served at once. A program may have many: each question to a DNS server comes from another port.
const MAX_CLIENTS: usize = 8192;
/// Of these, addresses of one host, or of one /64 of IPv6.
const MAX_OF_HOST: usize = 2048;
/// How many make room together, so that looking for them costs little for each.
const BATCH: usize = 64;

/// Clients that are served. Where there is no room, those go that were not heard for longest: of the host that comes with one
/// more if it has its share, else of all.
pub(super) struct Clients<F = Flow> {
    clients: HashMap<SocketAddr, (F, Instant)>,
    of_hosts: HashMap<IpAddr, usize>,
}

impl<F> Default for Clients<F> {
    fn default() -> Self {
        Clients {
            clients: HashMap::new(),
            of_hosts: HashMap::new(),
        }
    }
}

impl<F> Clients<F> {
    /// What a client has, who was heard now.
    pub(super) fn get(&mut self, client: SocketAddr, now: Instant) -> Option<&F> {
        let (flow, heard) = self.clients.get_mut(&client)?;
        *heard = now;
        Some(flow)
    }

    /// Gives a client another flow, in place of one that has ended if it had one.
    pub(super) fn put(&mut self, client: SocketAddr, flow: F, now: Instant) {
        self.remove(client);
        let own = network(client.ip());
        if self.of_hosts.get(&own).is_some_and(|&count| count >= MAX_OF_HOST) {
            self.make_room(|other| network(other.ip()) == own);
        } else if self.clients.len() >= MAX_CLIENTS {
            self.make_room(|_| true);
        }
        *self.of_hosts.entry(own).or_default() += 1;
        self.clients.insert(client, (flow, now));
    }

    fn make_room(&mut self, of: impl Fn(SocketAddr) -> bool) {
        let all = self.clients.iter().filter(|(client, _)| of(**client));
        let mut oldest: Vec<(Instant, SocketAddr)> = all.map(|(client, (_, heard))| (*heard, *client)).collect();
        oldest.sort_unstable();
        for (_, client) in oldest.into_iter().take(BATCH) {
            self.remove(client);
        }
    }

    fn remove(&mut self, client: SocketAddr) {
        if self.clients.remove(&client).is_none() {
            return;
        }
        if let Some(count) = self.of_hosts.get_mut(&network(client.ip())) {
            *count -= 1;
            if *count == 0 {
                self.of_hosts.remove(&network(client.ip()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn client(host: &str, port: usize) -> SocketAddr {
        SocketAddr::new(host.parse().unwrap(), u16::try_from(port).unwrap())
    }

    #[test]
    fn a_host_that_has_its_share_takes_nothing_from_others() {
        let mut clients: Clients<usize> = Clients::default();
        let began = Instant::now();
        clients.put(client("192.0.2.1", 1), 1, began);
        // One /64 is one host.
        for n in 0..3 * MAX_OF_HOST {
            let host = format!("2001:db8::{:x}", n % 5);
            clients.put(client(&host, n), n, began + Duration::from_millis(n as u64));
            assert!(clients.clients.len() <= MAX_OF_HOST + 1);
        }
        assert!(clients.get(client("192.0.2.1", 1), began).is_some());
        let last = 3 * MAX_OF_HOST - 1;
        let newest = client(&format!("2001:db8::{:x}", last % 5), last);
        assert!(clients.get(newest, began).is_some());
        assert!(clients.get(client("2001:db8::", 0), began).is_none());
    }

    #[test]
    fn all_hosts_together_are_bounded_and_the_oldest_goes() {
        let mut clients: Clients<usize> = Clients::default();
        let began = Instant::now();
        let name = |n: usize| client(&format!("192.0.{}.{}", n / 250, n % 250), 7);
        let at = |n: usize| began + Duration::from_millis(n as u64);
        for n in 0..MAX_CLIENTS {
            clients.put(name(n), n, at(n));
        }
        assert!(clients.get(name(0), at(MAX_CLIENTS)).is_some(), "heard again");
        clients.put(name(MAX_CLIENTS), 0, at(MAX_CLIENTS));
        assert_eq!(clients.clients.len(), MAX_CLIENTS + 1 - BATCH);
        assert!(clients.get(name(0), at(MAX_CLIENTS)).is_some());
        assert!(clients.get(name(1), at(MAX_CLIENTS)).is_none());
        let counted: usize = clients.of_hosts.values().sum();
        assert_eq!(counted, clients.clients.len());
        // The same client again is one client.
        clients.put(name(MAX_CLIENTS), 1, at(MAX_CLIENTS));
        assert_eq!(clients.clients.len(), MAX_CLIENTS + 1 - BATCH);
    }
}
