//! What a rule may say about what a connection carries, and about the machine.

use std::collections::BTreeMap;

use super::context::{Cx, quoted};
use super::net::Pattern;
use super::scalar::Texts;
use super::schema::Kind;
use super::table::Decode;
use crate::json::{Data, Value};

/// Names of sniffed protocols, or how they begin: `http` stands for `http1` too. Lower-case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Protocols(pub Vec<String>);

impl Protocols {
    /// Whether one of them stands for a protocol that was found.
    pub fn matches(&self, found: &str) -> bool {
        self.0.iter().any(|wanted| found.starts_with(wanted.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Decode for Protocols {
    fn kind() -> Kind {
        Kind::text("list of `http`, `tls`, `quic`, `bittorrent`")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        const FOUND: [&str; 6] = ["http", "http1", "http2", "tls", "quic", "bittorrent"];
        let mut protocols = Vec::new();
        for (i, text) in Texts::decode(value, cx)?.0.iter().enumerate() {
            let lower = text.trim().to_lowercase();
            if lower.is_empty() || !FOUND.iter().any(|found| found.starts_with(&lower)) {
                let hint = match cx.nearest(&lower, &FOUND) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "what is found is http, tls, quic and bittorrent".to_owned(),
                };
                let what = format!("no protocol that is found is called {}", quoted(text));
                cx.at_index(i, |cx| cx.warn(text.at, what, hint));
            }
            protocols.push(lower);
        }
        Some(Protocols(protocols))
    }
}

/// Attributes of an HTTP request, `:method`, `:path` or the lower-case name of a header, and for each an expression that
/// must be found in its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(pub BTreeMap<String, Pattern>);

impl Attributes {
    /// Whether all of them hold, of what `find` knows by a lower-case name.
    pub fn matches<'a>(&self, find: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0
            .iter()
            .all(|(name, pattern)| find(name).is_some_and(|value| pattern.is_match(value)))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Decode for Attributes {
    fn kind() -> Kind {
        Kind::text("object: `:method`, `:path` or the name of a header, and for each a regular expression")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        if matches!(value.data, Data::String(_)) {
            let text = "`attrs` as an expression is V2Ray's alone, and is not supported";
            cx.error(
                value.at,
                text,
                "write an object: {\":method\": \"^GET$\", \"accept\": \"html\"}",
            );
            return None;
        }
        let Data::Object(members) = value.data else {
            cx.wrong_type(&value, "an object");
            return None;
        };
        let wanted = members.len();
        let read = members.into_iter().filter_map(|member| {
            let pattern = cx.within(&member.key, |cx| {
                let at = member.value.at;
                Pattern::read(&String::decode(member.value, cx)?, false, at, cx)
            });
            Some((member.key.to_lowercase(), pattern?))
        });
        let read: Vec<(String, Pattern)> = read.collect();
        (read.len() == wanted).then(|| Attributes(read.into_iter().collect()))
    }
}

/// Systems by the names that Go has for them: `linux`, `windows`, `darwin`, `android`. Lower-case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Systems(pub Vec<String>);

impl Systems {
    /// Whether one of them is this system, by the name that Rust has for it.
    pub fn has(&self, system: &str) -> bool {
        let name = if system == "macos" { "darwin" } else { system };
        self.0.iter().any(|wanted| wanted == name)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Decode for Systems {
    fn kind() -> Kind {
        Kind::text("list of `linux`, `windows`, `darwin`, `android`, `freebsd`, …")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let names = Texts::decode(value, cx)?;
        Some(Systems(names.iter().map(|name| name.trim().to_lowercase()).collect()))
    }
}

/// Programs on this machine, of which one must be the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processes(pub Vec<ProcessMatch>);

/// A program on this machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProcessMatch {
    /// The name of its file.
    Name(String),
    /// The whole path of its file.
    Path(String),
    /// A folder that its file is in, at any depth; ends with a slash.
    Folder(String),
    /// This process.
    OwnProcess,
    /// The file of this program, whichever process runs it.
    OwnProgram,
}

impl Processes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ProcessMatch {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "" | "/" => return None,
            "self/" => ProcessMatch::OwnProcess,
            "xray/" => ProcessMatch::OwnProgram,
            _ if text.ends_with('/') => ProcessMatch::Folder(text.to_owned()),
            _ if text.contains('/') => ProcessMatch::Path(text.to_owned()),
            name => ProcessMatch::Name(name.strip_suffix(".exe").unwrap_or(name).to_owned()),
        })
    }
}

impl Decode for Processes {
    fn kind() -> Kind {
        Kind::text("list of file names, absolute paths, folders with a slash at the end, `self/`, `xray/`")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let texts = Texts::decode(value, cx)?.0;
        let wanted = texts.len();
        let mut programs = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            cx.at_index(i, |cx| match ProcessMatch::read(text.trim()) {
                Some(ProcessMatch::Path(path) | ProcessMatch::Folder(path)) if !path.starts_with('/') => {
                    let what = format!("{} is no absolute path", quoted(&path));
                    cx.error(text.at, what, "write curl, /usr/bin/curl or /usr/bin/");
                }
                Some(program) => programs.push(program),
                None => cx.error(text.at, format!("{} names no program", quoted(text)), ""),
            });
        }
        (programs.len() == wanted).then_some(Processes(programs))
    }
}
