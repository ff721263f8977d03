//! Who takes part.

use sealway_aead::cpu::DISABLE_VARIABLE;

use super::engine::{Engine, RustCrypto, Sealway};
use super::openssl::{self, Program};
use super::{LabError, Peers};
use crate::result::Subject;

/// Names of all peers this workload knows.
pub const PEERS: [&str; 4] = ["aws-lc-rs", "ring", "rustcrypto", "openssl"];

/// The subjects of a run.
pub(super) struct Found {
    /// Everyone for the result file, also those who could not take part.
    pub(super) subjects: Vec<Subject>,
    pub(super) openssl: Option<Program>,
}

impl Found {
    /// True if the in-process peer called `name` takes part.
    pub(super) fn has(&self, name: &str) -> bool {
        self.subjects
            .iter()
            .any(|subject| subject.name == name && subject.error.is_empty())
    }
}

/// Looks for the peers that were asked for.
pub(super) fn find(peers: &Peers) -> Result<Found, LabError> {
    if let Peers::Named(names) = peers
        && let Some(name) = names.iter().find(|name| !PEERS.contains(&name.as_str()))
    {
        return Err(LabError::UnknownPeer { name: name.clone() });
    }
    let mut found = Found {
        subjects: vec![ours()],
        openssl: None,
    };
    for name in PEERS {
        let required = match peers {
            Peers::None => continue,
            Peers::Auto => false,
            Peers::Named(names) if names.iter().any(|named| named == name) => true,
            Peers::Named(_) => continue,
        };
        let subject = match name {
            openssl::NAME => match Program::find() {
                Ok(program) => {
                    let subject = program.subject();
                    found.openssl = Some(program);
                    subject
                }
                Err(why) => absent(name, "program", why),
            },
            _ => in_process(name),
        };
        if required && !subject.error.is_empty() {
            return Err(LabError::PeerMissing {
                name: subject.name,
                why: subject.error,
            });
        }
        found.subjects.push(subject);
    }
    Ok(found)
}

fn ours() -> Subject {
    let disabled = std::env::var(DISABLE_VARIABLE).unwrap_or_default();
    let differs = if disabled.is_empty() {
        vec![]
    } else {
        vec![format!("{DISABLE_VARIABLE}={disabled}")]
    };
    Subject {
        name: Sealway::NAME.to_owned(),
        version: crate::run::version(),
        kind: "in-process".to_owned(),
        setup: "default".to_owned(),
        differs,
        ..Subject::default()
    }
}

fn absent(name: &str, kind: &str, error: String) -> Subject {
    Subject {
        name: name.to_owned(),
        kind: kind.to_owned(),
        error,
        ..Subject::default()
    }
}

/// A library that is compiled in, if the feature `peers` is on.
fn in_process(name: &str) -> Subject {
    if !cfg!(feature = "peers") {
        return absent(
            name,
            "in-process",
            "not built in; build with the feature `peers`".to_owned(),
        );
    }
    let version = match name {
        RustCrypto::NAME => format!(
            "aes-gcm {}, chacha20poly1305 {}",
            env!("SEALWAY_BUILD_AES_GCM_VERSION"),
            env!("SEALWAY_BUILD_CHACHA20POLY1305_VERSION")
        ),
        "ring" => env!("SEALWAY_BUILD_RING_VERSION").to_owned(),
        _ => env!("SEALWAY_BUILD_AWS_LC_RS_VERSION").to_owned(),
    };
    Subject {
        name: name.to_owned(),
        version,
        kind: "in-process".to_owned(),
        setup: "matched".to_owned(),
        ..Subject::default()
    }
}
