//! Who takes part.

use sealway_aead::cpu::DISABLE_VARIABLE;

use super::engine::{Engine, RustCrypto, Sealway};
use super::{LabError, Peers};
use crate::result::Subject;

/// The peers that are compiled in.
pub(crate) const IN_PROCESS: [&str; 3] = ["aws-lc-rs", "ring", "rustcrypto"];

/// The peer of BIP324 that is compiled in.
pub(crate) const BIP324: &str = "bip324";

/// The subjects of a run.
pub(crate) struct Found {
    /// Everyone for the result file, also those who could not take part.
    pub(crate) subjects: Vec<Subject>,
}

impl Found {
    /// True if the in-process peer called `name` takes part.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.subjects
            .iter()
            .any(|subject| subject.name == name && subject.error.is_empty())
    }
}

/// Looks for the peers that were asked for, of those that a workload knows; `program` looks for one that is not compiled
/// in and gives its version or why it cannot take part.
pub(crate) fn find(
    peers: &Peers,
    known: &'static [&'static str],
    mut program: impl FnMut(&str) -> Result<Subject, String>,
) -> Result<Found, LabError> {
    if let Peers::Named(names) = peers
        && let Some(name) = names.iter().find(|name| !known.contains(&name.as_str()))
    {
        return Err(LabError::UnknownPeer {
            name: name.clone(),
            known,
        });
    }
    let mut found = Found { subjects: vec![ours()] };
    for &name in known {
        let required = match peers {
            Peers::None => continue,
            Peers::Auto => false,
            Peers::Named(names) if names.iter().any(|named| named == name) => true,
            Peers::Named(_) => continue,
        };
        let subject = if IN_PROCESS.contains(&name) || name == BIP324 {
            in_process(name)
        } else {
            program(name).unwrap_or_else(|why| absent(name, "program", why))
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

/// Our engine, and what was hidden from it.
pub(crate) fn ours() -> Subject {
    let disabled = std::env::var(DISABLE_VARIABLE).unwrap_or_default();
    let mut differs = vec!["keys and nonces without the counting of a Sealer, as the peers have none".to_owned()];
    if !disabled.is_empty() {
        differs.push(format!(
            "{DISABLE_VARIABLE}={disabled} (kernels of our own and the choice of suite; not the libraries underneath)"
        ));
    }
    Subject {
        name: Sealway::NAME.to_owned(),
        version: crate::run::version(),
        kind: "in-process".to_owned(),
        setup: "default".to_owned(),
        differs,
        ..Subject::default()
    }
}

/// Our engine under the name of one of its ways to work, which differs in this.
pub(crate) fn ours_as(name: &str, differs: impl IntoIterator<Item = String>) -> Subject {
    let mut subject = ours();
    name.clone_into(&mut subject.name);
    subject.differs.extend(differs);
    subject
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
        BIP324 => env!("SEALWAY_BUILD_BIP324_VERSION").to_owned(),
        _ => env!("SEALWAY_BUILD_AWS_LC_RS_VERSION").to_owned(),
    };
    Subject {
        name: name.to_owned(),
        version,
        kind: "in-process".to_owned(),
        setup: "matched".to_owned(),
        differs: if name == RustCrypto::NAME {
            vec!["built for the baseline CPU with detection at run time, as cargo builds it".to_owned()]
        } else {
            Vec::new()
        },
        ..Subject::default()
    }
}
