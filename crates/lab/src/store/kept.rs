//! What tells one kept run from another.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::format::clean;
use crate::result::RunResult;
use crate::run::rfc3339;

/// Characters of a run's name.
const MOST_NAME: usize = 64;

/// Characters of any other text that is kept beside a result.
const MOST_TEXT: usize = 200;

/// What is known of a run that its result does not say.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Label {
    /// What somebody called the run.
    #[serde(default)]
    pub name: Option<String>,
    /// Branch of the checkout that the lab ran in.
    #[serde(default)]
    pub branch: Option<String>,
    /// Commit of that checkout, in hexadecimal.
    #[serde(default)]
    pub commit: Option<String>,
}

/// A name that a run may have: it shows, it is not long, and it means nothing else.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(text: &str) -> Result<String, String> {
    let shows = !text.trim().is_empty() && clean(text) == text;
    if !shows || text.chars().count() > MOST_NAME {
        return Err(format!("a name has 1 to {MOST_NAME} characters, all of which show"));
    }
    if text == "last" || text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a number and `last` mean other runs".to_owned());
    }
    Ok(text.to_owned())
}

/// The columns of a kept run, as [`kept_from`] reads them.
pub(super) const COLUMNS: &str =
    "id, run, started, workloads, profile, complete, sealway, cpu, machine, name, branch, revision";

/// A kept run from a row with [`COLUMNS`], by the method with which its database reads one.
macro_rules! kept_from {
    ($row:ident.$get:ident) => {
        $crate::store::Kept {
            id: $row.$get(0)?,
            run: $row.$get(1)?,
            started: $row.$get(2)?,
            workloads: $row.$get(3)?,
            profile: $row.$get(4)?,
            complete: $row.$get(5)?,
            sealway: $row.$get(6)?,
            cpu: $row.$get(7)?,
            machine: $row.$get(8)?,
            label: $crate::store::Label {
                name: $row.$get(9)?,
                branch: $row.$get(10)?,
                commit: $row.$get(11)?,
            },
        }
    };
}
pub(super) use kept_from;

/// A kept run, without its figures.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Kept {
    /// By which number it is kept; 0 as long as it is not.
    pub id: i64,
    /// Identifier of the run, as its result says.
    pub run: String,
    /// Start, RFC 3339, UTC, whole seconds.
    pub started: String,
    /// Workloads with figures, separated by blanks.
    pub workloads: String,
    /// `quick`, `standard` or `full`.
    pub profile: String,
    /// False if it was cut short.
    pub complete: bool,
    /// Version and commit of the lab.
    pub sealway: String,
    /// Model of the processor.
    pub cpu: String,
    /// Key of the machine.
    pub machine: String,
    /// What else is known of it.
    #[serde(flatten)]
    pub label: Label,
}

impl Kept {
    /// The facts of a result, which may come from anywhere.
    ///
    /// # Errors
    /// What keeps it from being kept: no figures, an identifier that is none, a start that is no time.
    pub fn of(run: &RunResult, label: &Label) -> Result<Kept, String> {
        if run.results.is_empty() {
            return Err("it has no figures".to_owned());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if run.run.is_empty() || run.run.len() > 64 || !run.run.chars().all(plain) {
            return Err("its `run` is no identifier".to_owned());
        }
        let started: Timestamp = run.started.parse().map_err(|_| "its `started` is no time".to_owned())?;
        let mut workloads: Vec<&str> = run.results.iter().map(|row| row.workload.as_str()).collect();
        workloads.sort_unstable();
        workloads.dedup();
        Ok(Kept {
            id: 0,
            run: run.run.clone(),
            started: rfc3339(started.into()),
            workloads: short(&workloads.join(" ")),
            profile: short(&run.profile),
            complete: run.complete,
            sealway: short(&run.sealway),
            cpu: short(&run.machine.cpu),
            machine: short(&run.machine.key),
            label: label.harmless(),
        })
    }

    /// Whether it has figures of a workload.
    pub fn measured(&self, workload: &str) -> bool {
        self.workloads.split(' ').any(|name| name == workload)
    }
}

impl Label {
    /// Without what could harm who lists runs, and without empty texts.
    fn harmless(&self) -> Label {
        let text = |text: &Option<String>| text.as_deref().map(short).filter(|text| !text.is_empty());
        Label {
            name: text(&self.name),
            branch: text(&self.branch),
            commit: text(&self.commit),
        }
    }
}

/// Foreign text that may be kept: no control characters, no zero bytes, and not long.
fn short(text: &str) -> String {
    clean(text).chars().take(MOST_TEXT).collect()
}
