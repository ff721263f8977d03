//! From what a user says to the device that is meant.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sealway_drop::address;
use sealway_drop::names::Escaped;

use crate::devices::Device;
use crate::error::{Error, blocking};
use crate::favourites::Favourite;
use crate::fingerprint::Fingerprint;
use crate::message::{Info, PORT, Protocol};
use crate::node::Node;
use crate::stream::Place;

/// How long a device is listened for.
const PATIENCE: Duration = Duration::from_secs(6);
/// How long others of its name are listened for once one was heard.
const OTHERS: Duration = Duration::from_millis(700);

/// A device that was reached.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is, with the certificate that it showed: every later connection must show the same.
    pub place: Place,
    /// What it says of itself.
    pub info: Info,
    /// The name under which it is remembered.
    pub remembered: Option<String>,
}

impl Found {
    /// What it is called, escaped.
    pub fn name(&self) -> String {
        match &self.remembered {
            Some(name) => Escaped(name.as_bytes()).to_string(),
            None => self.info.shown(),
        }
    }
}

/// Whether this names an address, and not a device that has to be heard first.
pub fn is_address(text: &str) -> bool {
    let host = text.split('%').next().unwrap_or(text);
    let is_port = |(_, port): (&str, &str)| port.parse::<u16>().is_ok();
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() || text.rsplit_once(':').is_some_and(is_port)
}

/// Finds a device by the name under which it is remembered, by its address, or by what it calls itself.
///
/// # Errors
/// If there is none, or several, or it has another certificate than is remembered.
pub async fn find(node: &Arc<Node>, text: &str, known: &[Favourite]) -> Result<Found, Error> {
    let shown = Escaped(text.as_bytes()).to_string();
    let named = |one: &&Favourite| one.name == text || one.name.to_lowercase() == text.to_lowercase();
    if let Some(favourite) = known.iter().find(named) {
        return remembered(node, favourite, &shown).await;
    }
    if is_address(text) {
        return at(node, text, &shown, known).await;
    }
    let matching = |device: &Device| device.info.alias.to_lowercase() == text.to_lowercase();
    match heard(node, &matching).await.as_slice() {
        [] if text.contains('.') => at(node, text, &shown, known).await,
        [] => Err(Error::NotFound { name: shown }),
        [device] => reach(node, &device.addresses, device.protocol(), device.fingerprint, &shown).await,
        several => Err(Error::Several {
            name: shown,
            places: several
                .iter()
                .filter_map(|one| one.addresses.first())
                .map(ToString::to_string)
                .collect(),
        }),
    }
}

/// The devices that are heard and fit.
async fn heard(node: &Arc<Node>, matching: &dyn Fn(&Device) -> bool) -> Vec<Device> {
    let mut until = tokio::time::Instant::now() + PATIENCE;
    let mut late = false;
    loop {
        let changed = node.changed.notified();
        let found: Vec<_> = node.devices().into_iter().filter(|device| matching(device)).collect();
        if !found.is_empty() && !late {
            late = true;
            until = until.min(tokio::time::Instant::now() + OTHERS);
        }
        if tokio::time::timeout_at(until, changed).await.is_err() {
            return found;
        }
    }
}

/// Goes through the addresses that a device may have.
async fn reach(
    node: &Arc<Node>,
    addresses: &[SocketAddr],
    protocol: Protocol,
    pin: Option<Fingerprint>,
    name: &str,
) -> Result<Found, Error> {
    let mut failure = Error::NotFound { name: name.into() };
    for &address in addresses {
        let mut place = Place { address, protocol, pin };
        match node.register(&place, name).await {
            Ok((info, certificate)) => {
                place.pin = certificate;
                return Ok(Found {
                    place,
                    info,
                    remembered: None,
                });
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Where it was last, and else where it is heard. Another device in its place is never taken for it.
async fn remembered(node: &Arc<Node>, favourite: &Favourite, name: &str) -> Result<Found, Error> {
    let (pin, protocol) = (Some(favourite.fingerprint), favourite.protocol);
    let known = |found: Found| Found {
        remembered: Some(favourite.name.clone()),
        ..found
    };
    let last = resolve(&favourite.host, favourite.port).await.unwrap_or_default();
    let failure = match reach(node, &last, protocol, pin, name).await {
        Ok(found) => return Ok(known(found)),
        Err(error) => error,
    };
    node.announce.notify_one();
    // What is said in clear proves nothing.
    let matching = |device: &Device| device.fingerprint == pin && device.protocol() == protocol;
    if let Some(device) = heard(node, &matching).await.first() {
        return reach(node, &device.addresses, protocol, pin, name).await.map(known);
    }
    let impostor = node
        .devices()
        .into_iter()
        .find(|device| device.info.alias.to_lowercase() == favourite.name.to_lowercase());
    Err(match impostor {
        Some(device) => Error::OtherCertificate {
            name: name.into(),
            expected: favourite.fingerprint,
            found: device.fingerprint,
        },
        None => failure,
    })
}

/// At an address that was said. Its certificate is taken down, and pinned from here on.
async fn at(node: &Arc<Node>, text: &str, shown: &str, known: &[Favourite]) -> Result<Found, Error> {
    let addresses = resolve(text, PORT).await?;
    let mut found = reach(node, &addresses, node.protocol(), None, shown).await?;
    let known = known.iter().find(|one| Some(one.fingerprint) == found.place.pin);
    found.remembered = known.map(|one| one.name.clone());
    Ok(found)
}

async fn resolve(text: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let bare = text.trim_matches(['[', ']']);
    let is_v6 = bare
        .split('%')
        .next()
        .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
    let place = match (is_v6 && !text.contains("]:"), text.contains(':')) {
        (true, _) => format!("[{bare}]:{port}"),
        (false, true) => text.to_owned(),
        (false, false) => format!("{text}:{port}"),
    };
    let resolved = blocking(move || address::resolve(&place)).await?;
    resolved.map_err(|error| Error::Usage(format!("{}: {error}", Escaped(text.as_bytes()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_told_apart() {
        for text in [
            "10.0.0.1",
            "10.0.0.1:4000",
            "::1",
            "[::1]:4000",
            "[::1]",
            "fe80::1%eth0",
            "[fe80::1%eth0]:1",
            "host:53317",
        ] {
            assert!(is_address(text), "{text}");
        }
        for text in ["Nice Orange", "phone", "phone.lan", "a:b", ""] {
            assert!(!is_address(text), "{text}");
        }
    }

    #[tokio::test]
    async fn a_port_is_added_where_there_is_none() {
        let at = async |text: &str| resolve(text, 53317).await.unwrap()[0].to_string();
        assert_eq!(at("127.0.0.1").await, "127.0.0.1:53317");
        assert_eq!(at("127.0.0.1:5").await, "127.0.0.1:5");
        assert_eq!(at("::1").await, "[::1]:53317");
        assert_eq!(at("[::1]:5").await, "[::1]:5");
    }
}
