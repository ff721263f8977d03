//! Which lists hold a name or an address.

use std::net::IpAddr;

use super::{GeoError, GeoFile, Item, Kind};
use sealway_route::geo::Error;
use sealway_route::ips::canonical;

impl GeoFile {
    /// Opens a file of either kind, which its first items tell. One without items is taken for a file of names.
    ///
    /// # Errors
    /// [`GeoError`] for what cannot be read or is no such file.
    pub fn open_any(path: &std::path::Path) -> Result<GeoFile, GeoError> {
        let mut file = GeoFile::open(path, Kind::Names)?;
        for list in file.lists.clone() {
            let mut items = false;
            match file.read(&list, |_| items = true) {
                Err(GeoError::Wrong {
                    source: Error::Malformed(_),
                    ..
                }) => return GeoFile::open(path, Kind::Networks),
                Err(error) => return Err(error),
                Ok(()) if items => break,
                // What both kinds of lists may have says nothing.
                Ok(()) => {}
            }
        }
        Ok(file)
    }

    /// What the file lists.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The codes of all lists that hold a name, which must be in lower case, each with the first condition that holds for it.
    ///
    /// # Errors
    /// [`GeoError`] for what cannot be read or is no such file.
    pub fn lists_with_name(&mut self, name: &str) -> Result<Vec<(String, String)>, GeoError> {
        let mut found = Vec::new();
        for list in self.lists.clone() {
            let mut first = None;
            self.read(&list, |item| match item {
                Item::Name(one) if first.is_none() => first = one.matches(name).then(|| one.to_string()),
                _ => {}
            })?;
            found.extend(first.map(|first| (list.code, first)));
        }
        Ok(found)
    }

    /// The codes of all lists that hold an address, each with the first network that does. A list of all addresses outside of
    /// its networks holds nothing of a family that it has no network of.
    ///
    /// # Errors
    /// [`GeoError`] for what cannot be read or is no such file.
    pub fn lists_with_ip(&mut self, ip: IpAddr) -> Result<Vec<(String, String)>, GeoError> {
        let ip = ip.to_canonical();
        let mut found = Vec::new();
        for list in self.lists.clone() {
            let (mut first, mut inverse, mut of_family) = (None, false, false);
            self.read(&list, |item| match item {
                Item::Network(net) => {
                    let net = canonical(net);
                    of_family |= net.addr().is_ipv4() == ip.is_ipv4();
                    if first.is_none() && net.contains(&ip) {
                        first = Some(net.to_string());
                    }
                }
                Item::Inverse => inverse = true,
                _ => {}
            })?;
            let entry = match inverse {
                false => first,
                true => (of_family && first.is_none()).then(|| "outside of all its networks".to_owned()),
            };
            found.extend(entry.map(|entry| (list.code, entry)));
        }
        Ok(found)
    }
}
