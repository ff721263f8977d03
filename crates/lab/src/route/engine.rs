//! The programs a route can be made of.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::form;
use super::kind::Kind;
use super::stack::Stack;
use crate::lens::OURS;
use crate::peer::program;
use crate::result::Subject;

/// Peers that speak the same protocols.
pub const PEERS: [&str; 4] = ["xray", "v2ray", "sing-box", "shoes"];

/// Between the names of client and server where they are two programs.
pub(super) const PLUS: char = '+';

/// How long two programs take to start.
const START: Duration = Duration::from_millis(100);

/// Our server waits until the second is over in which headers may have been used before it started: half of one on the average.
const NEXT_SECOND: Duration = Duration::from_millis(500);

/// A program that can be client and server of a route.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Engine {
    name: String,
    program: PathBuf,
    version: String,
    kind: Kind,
    /// What serves in its place.
    server: Option<Box<Engine>>,
}

impl Engine {
    /// This project's engine: the program `sealway`.
    pub fn sealway(program: &Path) -> Engine {
        Engine {
            name: OURS.to_owned(),
            program: program.to_owned(),
            version: crate::run::version(),
            kind: Kind::Sealway,
            server: None,
        }
    }

    /// Looks for the peer called `name`, one of [`PEERS`], on PATH, and asks for its version.
    ///
    /// # Errors
    /// Why it cannot take part, for the reader.
    pub fn peer(name: &str) -> Result<Engine, String> {
        if !PEERS.contains(&name) {
            return Err(format!("{name} is no peer here"));
        }
        Engine::named(name, program::on_path(name)?)
    }

    /// The program found under the name of a peer, which has to be that peer.
    fn named(name: &str, program: PathBuf) -> Result<Engine, String> {
        let engine = Engine::ask(name, program)?;
        if engine.kind.is_called(name) {
            return Ok(engine);
        }
        let (program, version) = (engine.program.display(), &engine.version);
        Err(format!(
            "\"{program}\" does not call itself {name}: it says {version:?}; --peer NAME=PATH takes a fork under another name"
        ))
    }

    /// Asks a program for its version, which says what it is.
    ///
    /// # Errors
    /// Why it cannot take part, for the reader.
    pub(super) fn ask(name: &str, program: PathBuf) -> Result<Engine, String> {
        let says = |word: &str| program::first_line(Command::new(&program).arg(word));
        // The older V2Ray knows no `version`, and would start with whatever configuration it finds.
        let old = says("-version")
            .ok()
            .filter(|version| Kind::of(version) == Kind::OldV2Ray);
        let version = match old {
            Some(version) => version,
            // shoes takes a word for the name of a configuration.
            None => says("version").or_else(|why| says("--version").map_err(|_| why))?,
        };
        Ok(Engine {
            name: name.to_owned(),
            kind: Kind::of(&version),
            program,
            version,
            server: None,
        })
    }

    /// This program as the client of another one, under both names.
    pub(crate) fn to(&self, server: &Engine) -> Engine {
        Engine {
            name: format!("{}{PLUS}{}", self.name, server.name),
            version: format!("{}; {}", self.version, server.version),
            server: Some(Box::new(server.clone())),
            ..self.clone()
        }
    }

    /// Who serves: most often the program itself.
    pub(super) fn server(&self) -> &Engine {
        self.server.as_deref().unwrap_or(self)
    }

    /// What client or server has not and a stack needs, with the name of the program.
    pub(super) fn lacks(&self, stack: &Stack) -> Option<String> {
        let lack = |engine: &Engine| {
            Some(format!(
                "{} has no {}",
                engine.program_name(),
                stack.lacking(engine.kind)?
            ))
        };
        lack(self).or_else(|| lack(self.server()))
    }

    /// The name of the client's program.
    fn program_name(&self) -> &str {
        self.name.split_once(PLUS).map_or(&self.name, |(client, _)| client)
    }

    /// The subject's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if it is a program of the user's, which has a name that no other has.
    pub(crate) fn is_guest(&self) -> bool {
        self.name != OURS && !PEERS.contains(&self.name.as_str())
    }

    /// How long client and server of a stack take until both listen, on two CPUs.
    pub(crate) fn start(&self, stack: &Stack) -> Duration {
        if self.server().kind == Kind::Sealway && stack.is_timed() {
            START + NEXT_SECOND
        } else {
            START
        }
    }

    /// What it is.
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The program's file.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The program as the result file describes it, with its configurations for those of `stacks` that it has.
    pub fn subject(&self, stacks: &[Stack]) -> Subject {
        let server = self.server();
        let argv = |(role, engine): (&str, &Engine)| {
            let arguments = engine.kind.arguments(Path::new(&format!("{role}.json")));
            let words = arguments.iter().map(|word| word.to_string_lossy().into_owned());
            let name = engine.program_name().to_owned();
            (role.to_owned(), std::iter::once(name).chain(words).collect())
        };
        let mut differs = self.kind.differs();
        if self.server.is_some() {
            let of_server = server
                .kind
                .differs()
                .into_iter()
                .filter(|line| !self.kind.differs().contains(line));
            differs.extend(of_server.collect::<Vec<_>>());
        }
        let can: Vec<Stack> = stacks
            .iter()
            .copied()
            .filter(|stack| self.lacks(stack).is_none())
            .collect();
        Subject {
            name: self.name.clone(),
            version: self.version.clone(),
            kind: "program".to_owned(),
            sha256: program::sha256_of(&self.program).unwrap_or_default(),
            role_argv: [("client", self), ("server", server)].into_iter().map(argv).collect(),
            config: form::samples([self.kind, server.kind], &can),
            setup: "matched".to_owned(),
            differs,
            error: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::peer::tests::script;

    #[test]
    fn what_bears_the_name_of_a_peer_has_to_be_that_peer() {
        let folder = tempfile::tempdir().unwrap();
        let found = |name: &str, version: &str| {
            let body = format!("[ $1 = version ] && echo '{version}'");
            Engine::named(name, script(folder.path(), name, &body))
        };
        for (name, version) in [
            ("xray", "Xray 26.3.27"),
            ("v2ray", "V2Ray 5.52.0"),
            ("v2ray", "V2Ray 4.34.0"),
            ("sing-box", "sing-box version 1.14.1"),
        ] {
            assert_eq!(found(name, version).unwrap().version, version);
        }
        // It takes no `version`.
        let shoes = script(folder.path(), "shoes", "[ $1 = --version ] && echo shoes 0.3.2");
        assert_eq!(Engine::named("shoes", shoes).unwrap().version, "shoes 0.3.2");
        for (name, version) in [
            ("xray", "V2Ray 5.52.0"),
            ("v2ray", "Xray 26.3.27"),
            ("sing-box", "fork 1.0"),
            ("shoes", "fork 1.0"),
        ] {
            let error = found(name, version).unwrap_err();
            assert!(
                error.contains(&format!("does not call itself {name}: it says \"{version}\"")),
                "{error}"
            );
        }
        assert!(found("xray", "").unwrap_err().contains("does not say its version"));
    }
}
