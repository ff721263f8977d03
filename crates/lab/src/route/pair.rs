//! Two programs as one subject.

use std::fmt;
use std::str::FromStr;

use super::engine::{Engine, PLUS};
use crate::lens::OURS;

/// A program as the client of another one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pair {
    client: String,
    server: String,
}

impl Pair {
    /// Our program as the client of another one, and as its server.
    pub(crate) fn both_ways(other: &str) -> [Pair; 2] {
        [(OURS, other), (other, OURS)].map(|(client, server)| Pair {
            client: client.to_owned(),
            server: server.to_owned(),
        })
    }

    /// The two programs, of those that take part already, or the peers of their names.
    ///
    /// # Errors
    /// Which of them cannot take part and why, for the reader.
    pub(crate) fn engine(&self, known: &[Engine]) -> Result<Engine, String> {
        let find = |name: &str| match known.iter().find(|engine| engine.name() == name) {
            Some(engine) => Ok(engine.clone()),
            None => Engine::peer(name).map_err(|why| format!("{name}: {why}")),
        };
        Ok(find(&self.client)?.to(&find(&self.server)?))
    }
}

impl FromStr for Pair {
    type Err = String;

    /// Reads `CLIENT+SERVER`. Whether there are such programs is not looked at.
    fn from_str(text: &str) -> Result<Pair, String> {
        match text.split_once(PLUS) {
            Some((client, server)) if client == server => {
                Err(format!("{client} with itself is no pair: --peers takes it"))
            }
            Some((client, server)) if !client.is_empty() && !server.is_empty() && !server.contains(PLUS) => Ok(Pair {
                client: client.to_owned(),
                server: server.to_owned(),
            }),
            _ => Err("write CLIENT+SERVER, such as sealway+xray".to_owned()),
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{PLUS}{}", self.client, self.server)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;
    use crate::peer::tests::script;
    use crate::result::Subject;
    use crate::route::{Guest, Stack};
    use crate::workload::routes::Found;

    #[test]
    fn a_pair_is_read() {
        let pair: Pair = "sealway+xray".parse().unwrap();
        assert_eq!(pair.to_string(), "sealway+xray");
        for (text, words) in [
            ("xray", "CLIENT+SERVER"),
            ("+xray", "CLIENT+SERVER"),
            ("xray+", "CLIENT+SERVER"),
            ("a+b+c", "CLIENT+SERVER"),
            ("+", "no pair"),
            ("xray+xray", "no pair"),
        ] {
            assert!(text.parse::<Pair>().unwrap_err().contains(words), "{text}");
        }
    }

    #[test]
    fn client_and_server_have_what_each_of_them_reads() {
        let folder = tempfile::tempdir().unwrap();
        let shoes = script(folder.path(), "shoes", "[ $1 = --version ] && echo shoes 0.3.2");
        let guest = Guest::parse(&format!("boots={}", shoes.display()), &[])
            .unwrap()
            .engine()
            .unwrap();
        let known = [Engine::sealway(Path::new("sealway")), guest];
        let pair: Pair = "sealway+boots".parse().unwrap();
        let engine = pair.engine(&known).unwrap();
        assert_eq!(engine.name(), "sealway+boots");
        let subject = engine.subject(&[Stack::VLESS_TCP, Stack::VLESS_XHTTP_ONE_TLS]);
        assert_eq!(subject.version, format!("{}; shoes 0.3.2", crate::run::version()));
        assert_eq!(subject.role_argv["client"], ["sealway", "run", "-c", "client.json"]);
        assert_eq!(subject.role_argv["server"], ["boots", "--no-reload", "server.json"]);
        // Each in its own form, and only what both have.
        assert!(subject.config["vless-tcp client"]["outbounds"].is_array());
        assert!(subject.config["vless-tcp server"].is_array());
        assert_eq!(subject.config.len(), 2);
        assert_eq!(engine.lacks(&Stack::VLESS_XHTTP_ONE_TLS).unwrap(), "boots has no XHTTP");
        assert_eq!(engine.lacks(&Stack::VLESS_TCP), None);
        let mut found = Found {
            subjects: vec![Subject::default()],
            engines: known.to_vec(),
        };
        found.pair(&[pair.clone(), pair], &[Stack::VLESS_TCP]).unwrap();
        assert_eq!((found.subjects.len(), found.engines.len()), (2, 3), "each pair once");
        let absent: Pair = "boots+nobody".parse().unwrap();
        assert!(absent.engine(&known).unwrap_err().contains("nobody"));
    }
}
