//! Devices that are remembered, by the certificates they have: the file `localsend_devices` beside the key of this machine.

use std::path::Path;

use sealway_drop::identity::{Error, Kept};
use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::message::Protocol;

const FILE: &str = "localsend_devices";
const VERSION: u32 = 1;

/// A device that is remembered.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Favourite {
    /// What it is called: its alias then, or what the user said.
    pub name: String,
    #[serde(with = "as_text")]
    /// The certificate that it has.
    pub fingerprint: Fingerprint,
    /// Where it was.
    pub host: String,
    /// At which port.
    pub port: u16,
    /// How it was spoken to.
    pub protocol: Protocol,
    /// When it was remembered: `YYYY-MM-DD`.
    pub since: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    devices: Vec<Favourite>,
}

/// The file.
#[derive(Clone, Debug)]
pub struct Favourites(Kept);

impl Favourites {
    /// The file in this folder, see [`config_dir`](sealway_drop::identity::config_dir).
    pub fn at(dir: &Path) -> Favourites {
        Favourites(Kept::at(dir, FILE))
    }

    /// All of them.
    ///
    /// # Errors
    /// If the file cannot be read, or is not as it should be.
    pub fn list(&self) -> Result<Vec<Favourite>, Error> {
        let text = self.0.read()?;
        self.parse(text.as_ref().map(|text| text.as_str()))
    }

    /// Remembers a device. One that has the certificate already gets the new name and place.
    ///
    /// # Errors
    /// If the name is that of another device, and as [`Favourites::list`].
    pub fn remember(&self, new: Favourite) -> Result<(), Error> {
        self.0.change(|old| {
            let mut devices = self.parse(old)?;
            devices.retain(|device| device.fingerprint != new.fingerprint);
            if devices.iter().any(|device| device.name == new.name) {
                return Err(Error::Unfit(
                    "a device of this name is remembered with another certificate; forget it first, or give another name with --as",
                ));
            }
            devices.push(new);
            Ok((text_of(devices)?, ()))
        })
    }

    /// Forgets a device by its name; false if there is none.
    ///
    /// # Errors
    /// As [`Favourites::list`].
    pub fn forget(&self, name: &str) -> Result<bool, Error> {
        if !self.list()?.iter().any(|device| device.name == name) {
            return Ok(false);
        }
        self.0.change(|old| {
            let mut devices = self.parse(old)?;
            let before = devices.len();
            devices.retain(|device| device.name != name);
            let found = devices.len() < before;
            Ok((text_of(devices)?, found))
        })
    }

    fn parse(&self, text: Option<&str>) -> Result<Vec<Favourite>, Error> {
        let Some(text) = text else { return Ok(vec![]) };
        let list: List = serde_json::from_str(text).map_err(|error| self.0.malformed(error.to_string()))?;
        match list.version {
            VERSION => Ok(list.devices),
            _ => Err(self.0.malformed("it is of another version of this program")),
        }
    }
}

fn text_of(devices: Vec<Favourite>) -> Result<String, Error> {
    let list = List {
        version: VERSION,
        devices,
    };
    let text = serde_json::to_string_pretty(&list).map_err(|error| Error::Unable(error.to_string()))?;
    Ok(text + "\n")
}

mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Fingerprint;

    pub(super) fn serialize<S: Serializer>(fingerprint: &Fingerprint, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(fingerprint)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Fingerprint, D::Error> {
        let text = String::deserialize(from)?;
        Fingerprint::parse(&text).ok_or_else(|| D::Error::custom("a fingerprint has 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_remembered_by_their_certificates() {
        let dir = tempfile::tempdir().unwrap();
        let favourites = Favourites::at(&dir.path().join("own"));
        let device = |name: &str, key: &[u8]| Favourite {
            name: name.into(),
            fingerprint: Fingerprint::of(key),
            host: "10.0.0.1".into(),
            port: 53317,
            protocol: Protocol::Https,
            since: "2026-11-23".into(),
        };
        assert_eq!(favourites.list().unwrap(), []);
        favourites.remember(device("Nice Orange", b"a")).unwrap();
        assert!(favourites.remember(device("Nice Orange", b"b")).is_err());
        favourites.remember(device("phone", b"a")).unwrap();
        assert_eq!(favourites.list().unwrap(), [device("phone", b"a")]);
        assert!(!favourites.forget("Nice Orange").unwrap());
        assert!(favourites.forget("phone").unwrap());
        assert_eq!(favourites.list().unwrap(), []);
        std::fs::write(dir.path().join("own/localsend_devices"), "{}").unwrap();
        assert!(favourites.list().unwrap_err().to_string().contains("version"));
    }
}
