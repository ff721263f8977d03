//! Which lists hold a name or an address.

use std::net::IpAddr;

use super::{GeoError, GeoFile, Item, Kind};
use sealway_route::geo::Error;

impl GeoFile {
    /// Opens a file of either kind, which its first items tell. One without items is taken for a file of names.
    ///
    /// # Errors
    /// [`GeoError`] for what cannot be read or is no such file.
    pub fn open_any(path: &std::path::Path) -> Result<GeoFile, GeoError> {
        let mut file = GeoFile::open(path, Kind::Names)?;
        let first = file.lists.iter().find(|list| list.len > 0).cloned();
        let Some(first) = first else { return Ok(file) };
        match file.read(&first, |_| ()) {
            Err(GeoError::Wrong {
                source: Error::Malformed(_),
                ..
            }) => GeoFile::open(path, Kind::Networks),
            Err(error) => Err(error),
            Ok(()) => Ok(file),
        }
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
        self.lists_with(|item| match item {
            Item::Name(one) => one.matches(name).then(|| one.to_string()),
            _ => None,
        })
    }

    /// The codes of all lists that hold an address, each with the first network that does.
    ///
    /// # Errors
    /// [`GeoError`] for what cannot be read or is no such file.
    pub fn lists_with_ip(&mut self, ip: IpAddr) -> Result<Vec<(String, String)>, GeoError> {
        let ip = ip.to_canonical();
        self.lists_with(|item| match item {
            Item::Network(net) => net.contains(&ip).then(|| net.to_string()),
            _ => None,
        })
    }

    fn lists_with(
        &mut self,
        mut holds: impl FnMut(Item<'_>) -> Option<String>,
    ) -> Result<Vec<(String, String)>, GeoError> {
        let mut found = Vec::new();
        for list in self.lists.clone() {
            let mut first = None;
            self.read(&list, |item| {
                if first.is_none() {
                    first = holds(item);
                }
            })?;
            found.extend(first.map(|first| (list.code, first)));
        }
        Ok(found)
    }
}
