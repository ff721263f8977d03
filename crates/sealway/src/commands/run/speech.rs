//! What `sealway run` says besides its logs: who begins, what is wrong with a configuration, and why nothing was started.

use std::fmt::Display;
use std::process::ExitCode;

use sealway_proxy::log::stamp;
use sealway_v2ray::config::{Problem as Place, Severity};

use super::files;
use crate::args;
use crate::output;
use crate::problem::Problem;
use crate::voice::{Voice, XRAY};

/// What a service manager sees where a server did not start although its configuration is right.
const NOT_STARTED: u8 = 255;

/// The two lines that Xray begins with, which panels read the version from.
pub(crate) fn version_lines() -> String {
    format!(
        "Xray {XRAY} (Sealway {}) {}-{}\nSealway serves in Xray's place: sealway --help has commands of its own.\n",
        args::version(),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

impl Voice {
    /// Says who begins.
    pub(crate) fn begin(self) {
        if self == Voice::Xray {
            say(&version_lines());
        }
    }

    /// Says which configuration is read.
    pub(crate) fn reads(self, name: &str) {
        if self == Voice::Xray {
            let name = name.escape_debug();
            say(&format!(
                "{} [Info] infra/conf/serial: Reading config: {name}\n",
                stamp()
            ));
        }
    }

    /// Says what is wrong with a configuration.
    pub(crate) fn problems(self, found: &[Place]) {
        match self {
            Voice::Xray if !files::are_for_the_log() => say(&found.iter().map(log_line).collect::<String>()),
            _ => files::problems(found),
        }
    }

    /// Says why nothing was started, and gives the exit code. `first` is what to mend first.
    pub(crate) fn failed(self, code: u8, problem: &Problem, first: Option<&str>) -> ExitCode {
        if self == Voice::Own {
            problem.print();
            return ExitCode::from(code);
        }
        let text = first.unwrap_or(problem.message());
        say(&format!("Failed to start: {}\n", one_line(text)));
        ExitCode::from(if code == files::WRONG_CONFIG { code } else { NOT_STARTED })
    }
}

/// Whoever reads it may have gone away, which is no reason not to serve.
fn say(text: &str) {
    let _ = output::print(text);
}

fn one_line(text: impl Display) -> String {
    sealway_v2ray::text::escape(&text.to_string()).into_owned()
}

fn log_line(problem: &Place) -> String {
    let level = match problem.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    };
    let text = one_line(where_and_what(problem));
    let hint = match problem.hint.as_str() {
        "" => String::new(),
        hint => format!(" ({})", one_line(hint)),
    };
    format!("{} [{level}] infra/conf: {text}{hint}\n", stamp())
}

/// A problem and its place in one line.
pub(crate) fn where_and_what(problem: &Place) -> String {
    let Place {
        file,
        line,
        column,
        path,
        text,
        ..
    } = problem;
    match path.as_str() {
        "" => format!("{file}:{line}:{column}: {text}"),
        path => format!("{file}:{line}:{column}: {path}: {text}"),
    }
}
