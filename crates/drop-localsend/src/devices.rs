//! The devices that were heard of, as many as fit.

use std::net::SocketAddr;
use std::time::Instant;

use crate::fingerprint::Fingerprint;
use crate::message::{Info, PORT, Protocol};

/// Devices that are kept.
pub const MAX: usize = 200;
/// Addresses of one device that are kept.
const ADDRESSES: usize = 4;

/// A device.
#[derive(Clone, Debug)]
pub struct Device {
    /// What it says of itself.
    pub info: Info,
    /// The certificate that it has to show, or showed; none for a device without TLS.
    pub fingerprint: Option<Fingerprint>,
    /// Whether it showed that certificate, on a connection in either direction.
    pub proved: bool,
    /// Where it was, last heard first.
    pub addresses: Vec<SocketAddr>,
    heard: Instant,
}

impl Device {
    /// Whether it is spoken to over TLS.
    pub fn protocol(&self) -> Protocol {
        self.info.protocol.unwrap_or_default()
    }
}

/// What is known of the devices around.
#[derive(Debug, Default)]
pub struct Devices {
    devices: Vec<Device>,
}

impl Devices {
    /// Takes down a device that was heard at an address. `proved` is the certificate that it showed, which counts whatever it says
    /// (CVE-2025-54792); where it says another one, it is not taken down. A claim alone takes nothing away from who proved theirs.
    pub fn hear(&mut self, info: Info, from: SocketAddr, proved: Option<Fingerprint>, now: Instant) -> bool {
        let claimed = info.claimed();
        if proved.is_some() && proved != claimed {
            return false;
        }
        let port = info.port.unwrap_or(PORT);
        // A browser, which cannot be reached.
        if port == 0 {
            return false;
        }
        let mut address = from;
        address.set_port(port);
        let same = |device: &&mut Device| match claimed {
            Some(_) => device.fingerprint == claimed,
            None => device.fingerprint.is_none() && device.info.fingerprint == info.fingerprint,
        };
        if let Some(device) = self.devices.iter_mut().find(same) {
            device.heard = now;
            if device.proved && proved.is_none() {
                return false;
            }
            device.info = info;
            device.proved |= proved.is_some();
            device.addresses.retain(|known| *known != address);
            device.addresses.insert(0, address);
            device.addresses.truncate(ADDRESSES);
            return true;
        }
        if self.devices.len() >= MAX {
            // Claims go first, and of those the oldest.
            let oldest =
                (0..self.devices.len()).min_by_key(|at| self.devices.get(*at).map(|one| (one.proved, one.heard)));
            let Some(oldest) = oldest else { return false };
            if proved.is_none() && self.devices.get(oldest).is_some_and(|one| one.proved) {
                return false;
            }
            self.devices.swap_remove(oldest);
        }
        self.devices.push(Device {
            info,
            fingerprint: claimed,
            proved: proved.is_some(),
            addresses: vec![address],
            heard: now,
        });
        true
    }

    /// All of them, in the order of their names.
    pub fn list(&self) -> Vec<Device> {
        let mut list = self.devices.clone();
        list.sort_by(|a, b| (&a.info.alias, &a.info.fingerprint).cmp(&(&b.info.alias, &b.info.fingerprint)));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(alias: &str, fingerprint: &str) -> Info {
        Info {
            alias: alias.into(),
            fingerprint: fingerprint.into(),
            port: Some(53317),
            ..Info::default()
        }
    }

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 4000))
    }

    #[test]
    fn cve_2025_54792_a_claimed_fingerprint_takes_no_place() {
        let (mut devices, now) = (Devices::default(), Instant::now());
        let (ann, eve) = (Fingerprint::of(b"ann"), Fingerprint::of(b"eve"));
        assert!(devices.hear(info("Ann", &ann.to_string()), at(1), Some(ann), now));
        assert!(
            !devices.hear(info("Ann", &ann.to_string()), at(2), None, now),
            "a claim"
        );
        assert!(
            !devices.hear(info("Ann", &ann.to_string()), at(2), Some(eve), now),
            "another certificate"
        );
        let list = devices.list();
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].addresses, [SocketAddr::from(([10, 0, 0, 1], 53317))]);
        assert!(devices.hear(info("Ann 2", &ann.to_string().to_lowercase()), at(3), Some(ann), now));
        assert_eq!(devices.list()[0].addresses[0].ip(), at(3).ip());
        assert!(!devices.hear(
            Info {
                port: Some(0),
                ..info("web", "web-1")
            },
            at(4),
            None,
            now
        ));
    }

    #[test]
    fn a_flood_of_names_fills_a_table_of_its_own_size() {
        let (mut devices, now) = (Devices::default(), Instant::now());
        let ann = Fingerprint::of(b"ann");
        devices.hear(info("Ann", &ann.to_string()), at(1), Some(ann), now);
        for number in 0..1000_u32 {
            let one = Fingerprint::of(&number.to_le_bytes()).to_string();
            devices.hear(info("x", &one), at(2), None, now + std::time::Duration::from_secs(1));
        }
        let list = devices.list();
        assert_eq!(list.len(), MAX);
        assert!(list.iter().any(|device| device.info.alias == "Ann"));
        for number in 0..1000_u16 {
            let mut moved = at(3);
            moved.set_port(number);
            let mut said = info("Ann", &ann.to_string());
            said.port = Some(number + 1);
            devices.hear(said, moved, Some(ann), now);
        }
        let list = devices.list();
        assert_eq!(
            list.iter().find(|device| device.proved).unwrap().addresses.len(),
            ADDRESSES
        );
    }
}
