//! Objects of `config.json` in the making: what is not set is left out.

use serde_json::{Map, Value};

use crate::proto;
use crate::proto::net::{Network, PortList};
use crate::proto::xray::common::net::{IpOrDomain, ip_or_domain::Address};
use crate::proto::xray::transport::internet::DomainStrategy;

use super::{Refused, unsupported};

/// An object.
#[derive(Default)]
pub(super) struct Keys(Map<String, Value>);

impl Keys {
    /// A key, whatever its value.
    pub(super) fn put(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// A text that is not empty.
    pub(super) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        if !value.is_empty() {
            self.put(key, value);
        }
        self
    }

    /// A switch that is on.
    pub(super) fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        if value {
            self.put(key, true);
        }
        self
    }

    /// A number other than 0.
    pub(super) fn number(&mut self, key: &str, value: impl Into<i128>) -> &mut Self {
        let value = value.into();
        if value != 0 {
            let number = i64::try_from(value).map(Value::from);
            self.put(key, number.unwrap_or_else(|_| Value::from(value as u64)));
        }
        self
    }

    /// A list that is not empty.
    pub(super) fn list<T: Into<Value> + Clone>(&mut self, key: &str, values: &[T]) -> &mut Self {
        if !values.is_empty() {
            self.put(key, values.iter().cloned().map(Into::into).collect::<Vec<Value>>());
        }
        self
    }

    /// Two numbers, of which one is not 0.
    pub(super) fn span(&mut self, key: &str, from: impl Into<i128>, to: impl Into<i128>) -> &mut Self {
        let (from, to) = (from.into(), to.into());
        if (from, to) != (0, 0) {
            self.put(key, format!("{from}-{to}"));
        }
        self
    }

    pub(super) fn done(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.0))
    }
}

/// Ports as `config.json` writes them.
pub(super) fn ports(list: &PortList) -> String {
    let ranges = list.range.iter().map(|range| format!("{}-{}", range.from, range.to));
    ranges.collect::<Vec<_>>().join(",")
}

/// Networks as `config.json` writes them. Unix sockets are none of them: streams cover them.
pub(super) fn networks(list: &[i32]) -> Result<Vec<&'static str>, Refused> {
    let words = list.iter().map(|network| match Network::try_from(*network) {
        Ok(Network::Tcp) => Ok(Some("tcp")),
        Ok(Network::Udp) => Ok(Some("udp")),
        Ok(_) => Ok(None),
        Err(_) => unsupported(format!("the network {network}")),
    });
    words.filter_map(Result::transpose).collect()
}

/// An address as `config.json` writes it. Empty: none.
pub(super) fn address(given: Option<&IpOrDomain>) -> Result<String, Refused> {
    match given.and_then(|given| given.address.as_ref()) {
        None => Ok(String::new()),
        Some(Address::Domain(name)) => Ok(name.clone()),
        Some(Address::Ip(bytes)) => ip(bytes),
    }
}

/// An IP address out of its 4 or 16 bytes.
pub(super) fn ip(bytes: &[u8]) -> Result<String, Refused> {
    let ip = proto::ip(bytes).map(|ip| ip.to_string());
    ip.ok_or_else(|| Refused::Broken(format!("an IP address of {} bytes", bytes.len())))
}

/// The word for which addresses of a name are used.
pub(super) fn strategy(number: i32) -> Result<&'static str, Refused> {
    Ok(match DomainStrategy::try_from(number) {
        Ok(DomainStrategy::AsIs) => "AsIs",
        Ok(DomainStrategy::UseIp) => "UseIP",
        Ok(DomainStrategy::UseIp4) => "UseIPv4",
        Ok(DomainStrategy::UseIp6) => "UseIPv6",
        Ok(DomainStrategy::UseIp46) => "UseIPv4v6",
        Ok(DomainStrategy::UseIp64) => "UseIPv6v4",
        Ok(DomainStrategy::ForceIp) => "ForceIP",
        Ok(DomainStrategy::ForceIp4) => "ForceIPv4",
        Ok(DomainStrategy::ForceIp6) => "ForceIPv6",
        Ok(DomainStrategy::ForceIp46) => "ForceIPv4v6",
        Ok(DomainStrategy::ForceIp64) => "ForceIPv6v4",
        Err(_) => return unsupported(format!("the domain strategy {number}")),
    })
}
