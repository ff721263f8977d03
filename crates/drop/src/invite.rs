//! What the other end is to type, so that somebody can paste it.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;

/// A command for the other end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Invite {
    /// Its name, such as `receive`.
    pub command: &'static str,
    /// Where it finds this end.
    pub place: Meet,
    /// The other end finds this one by itself if it is on the same network.
    pub near: bool,
    /// The key of this end, where ends meet by keys.
    pub key: Option<String>,
    /// Options that both ends must give alike.
    pub options: Vec<&'static str>,
}

/// Where two ends meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Meet {
    /// This end waits at these addresses, the likely ones first.
    Here(Vec<SocketAddr>),
    /// This end comes to these addresses, at which the other one waits.
    There(Vec<SocketAddr>),
    /// Both come to the relay at `HOST:PORT`; `None` if both know it already.
    Relay(Option<String>),
}

impl Invite {
    /// Further addresses at which the other end may find this one, if the first is not the right one.
    pub fn others(&self) -> &[SocketAddr] {
        match &self.place {
            Meet::Here(addresses) => addresses.get(1..).unwrap_or_default(),
            Meet::There(_) | Meet::Relay(_) => &[],
        }
    }

    /// The line that is enough on the same network, if it is.
    pub fn near(&self) -> Option<String> {
        let near = Invite {
            place: Meet::Relay(None),
            ..self.clone()
        };
        self.near.then(|| near.to_string())
    }
}

/// The line, for a shell.
impl fmt::Display for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sealway {}", self.command)?;
        match &self.place {
            Meet::Here(addresses) => match addresses.first() {
                Some(address) => write!(f, " --connect {}", quoted(&of_there(*address)))?,
                None => f.write_str(" --connect HOST:PORT")?,
            },
            Meet::There(addresses) => match addresses.first() {
                Some(address) if address.ip().is_loopback() => {
                    write!(f, " --listen {}", quoted(&address.to_string()))?;
                }
                Some(address) if address.is_ipv4() => write!(f, " --listen 0.0.0.0:{}", address.port())?,
                Some(address) => write!(f, " --listen '[::]:{}'", address.port())?,
                None => f.write_str(" --listen HOST:PORT")?,
            },
            Meet::Relay(Some(relay)) => write!(f, " --relay {}", quoted(relay))?,
            Meet::Relay(None) => {}
        }
        if let Some(key) = &self.key {
            write!(f, " --peer {key}")?;
        }
        self.options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

/// An address of one link means something only with an interface, and the other end has its own.
fn of_there(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => format!("[{}%INTERFACE]:{}", v6.ip(), v6.port()),
        address => address.to_string(),
    }
}

/// For a shell, which takes brackets for a pattern.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_');
    match word.chars().all(plain) && !word.is_empty() {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(place: Meet) -> String {
        let invite = Invite {
            command: "receive",
            place,
            near: false,
            key: None,
            options: vec![],
        };
        invite.to_string()
    }

    fn at(addresses: &[&str]) -> Vec<SocketAddr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn lines_can_be_pasted() {
        let here = |addresses: &[&str]| line(Meet::Here(at(addresses)));
        assert_eq!(
            here(&["192.168.1.20:4000", "10.0.0.1:4000"]),
            "sealway receive --connect 192.168.1.20:4000"
        );
        assert_eq!(
            here(&["[2001:db8::7]:4000"]),
            "sealway receive --connect '[2001:db8::7]:4000'"
        );
        assert_eq!(
            here(&["[fe80::1%3]:4000"]),
            "sealway receive --connect '[fe80::1%INTERFACE]:4000'"
        );
        assert_eq!(here(&[]), "sealway receive --connect HOST:PORT");
        let there = |addresses: &[&str]| line(Meet::There(at(addresses)));
        assert_eq!(there(&["203.0.113.9:4000"]), "sealway receive --listen 0.0.0.0:4000");
        assert_eq!(there(&["[2001:db8::7]:4000"]), "sealway receive --listen '[::]:4000'");
        assert_eq!(there(&["127.0.0.1:4000"]), "sealway receive --listen 127.0.0.1:4000");
        let relay = |name: &str| line(Meet::Relay(Some(name.into())));
        assert_eq!(
            relay("relay.example:26600"),
            "sealway receive --relay relay.example:26600"
        );
        assert_eq!(relay("$(x)'y:1"), "sealway receive --relay '$(x)'\\''y:1'");
        assert_eq!(line(Meet::Relay(None)), "sealway receive");
    }

    #[test]
    fn both_ends_say_the_same() {
        let invite = Invite {
            command: "mount",
            place: Meet::Here(at(&["10.0.0.1:1", "10.0.0.2:1"])),
            near: false,
            key: Some("abc".into()),
            options: vec!["--strong"],
        };
        assert_eq!(
            invite.to_string(),
            "sealway mount --connect 10.0.0.1:1 --peer abc --strong"
        );
        assert_eq!(invite.others(), at(&["10.0.0.2:1"]));
        assert_eq!(invite.near(), None);
        let near = Invite { near: true, ..invite };
        assert_eq!(near.near().unwrap(), "sealway mount --peer abc --strong");
    }
}
