//! The programs a route can be made of.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::config;
use super::stack::Stack;
use crate::peer::program;
use crate::result::Subject;

/// Peers that speak the same protocols and read the same configurations.
pub const PEERS: [&str; 2] = ["xray", "v2ray"];

/// A program that can be client and server of a route.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Engine {
    name: &'static str,
    program: PathBuf,
    version: String,
    words: Words,
}

/// How a program is told to run a configuration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Words {
    /// `run -c FILE`
    Run,
    /// `-config FILE`, as before version 5 of V2Ray.
    Flag,
}

impl Engine {
    /// This project's engine: the program `sealway`.
    pub fn sealway(program: &Path) -> Engine {
        Engine {
            name: "sealway",
            program: program.to_owned(),
            version: crate::run::version(),
            words: Words::Run,
        }
    }

    /// Looks for the peer called `name`, one of [`PEERS`], on PATH, and asks for its version.
    ///
    /// # Errors
    /// Why it cannot take part, for the reader.
    pub fn peer(name: &str) -> Result<Engine, String> {
        let name = PEERS
            .into_iter()
            .find(|known| *known == name)
            .ok_or_else(|| format!("{name} is no peer here"))?;
        let program = program::on_path(name)
            .ok_or_else(|| format!("not found on PATH; install the program {name} to compare with it"))?;
        // The older V2Ray knows no `version`, and would start with whatever configuration it finds.
        let version = |word: &str| program::first_line(Command::new(&program).arg(word));
        let (version, words) = match (name, version("-version")) {
            ("v2ray", Ok(version)) => (version, Words::Flag),
            _ => (version("version")?, Words::Run),
        };
        Ok(Engine {
            name,
            program,
            version,
            words,
        })
    }

    /// The subject's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The arguments that run a configuration.
    pub(super) fn arguments(&self, config: &Path) -> Vec<OsString> {
        let file = config.as_os_str().to_owned();
        match self.words {
            Words::Run => vec!["run".into(), "-c".into(), file],
            Words::Flag => vec!["-config".into(), file],
        }
    }

    /// The program's file.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The program as the result file describes it, with its configurations for `stacks`.
    pub fn subject(&self, stacks: &[Stack]) -> Subject {
        let argv = |role: &str| {
            let arguments = self.arguments(Path::new(&format!("{role}.json")));
            let words = arguments.iter().map(|word| word.to_string_lossy().into_owned());
            (
                role.to_owned(),
                std::iter::once(self.name.to_owned()).chain(words).collect(),
            )
        };
        Subject {
            name: self.name.to_owned(),
            version: self.version.clone(),
            kind: "program".to_owned(),
            sha256: program::sha256_of(&self.program).unwrap_or_default(),
            role_argv: ["client", "server"].into_iter().map(argv).collect(),
            config: config::samples(stacks),
            setup: "matched".to_owned(),
            differs: self.differs(),
            error: String::new(),
        }
    }

    /// What the common configuration leaves different.
    fn differs(&self) -> Vec<String> {
        let words: &[&str] = match self.name {
            "xray" => &[
                "reads and seals at most 8 KiB at once",
                "its TLS library cannot be held to one suite of TLS 1.3: it takes AES-128-GCM where the CPU has AES, as \
                 the hello of a browser that it imitates lists it first",
                "that hello brings a share for ML-KEM, which its server is told not to take: all agree on X25519",
                "its garbage collector has its defaults",
            ],
            "v2ray" => &[
                "reads and seals at most 2 KiB at once",
                "its TLS library cannot be held to one suite of TLS 1.3: it takes AES-128-GCM where the CPU has AES",
                "its garbage collector has its defaults",
            ],
            _ => &[],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }
}
