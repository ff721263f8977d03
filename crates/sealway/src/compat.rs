//! `sealway` in Xray's place: started under its name, it takes its arguments and prints what scripts and panels read. This
//! translates words; what they ask for is done by the commands of the program.

mod ech;
mod flags;
mod help;
mod keys;
mod ping;
mod tls;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;
use std::time::Duration;

use flags::{Flags, Takes, Wrong};

use crate::args::Run;
use crate::commands;
use crate::commands::run::speech::version_lines;
use crate::exit::Exit;
use crate::output;
use crate::problem::note;
use crate::voice::Voice;

/// Does what Xray does when it is given these words.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    let first = words.first().map(|word| word.to_string_lossy().into_owned());
    let rest = words.get(1..).unwrap_or_default();
    match first.as_deref() {
        None => serve(words),
        Some("-h" | "--h" | "-help" | "--help") => print(&help::overview()),
        Some("-version" | "--version") => print(&version_lines()),
        Some(word) if word.starts_with('-') => serve(words),
        Some("run") => serve(rest),
        Some("version") => with("version", &[], rest, |_| print(&version_lines())),
        Some("help") => help::answer(rest),
        Some("uuid") => with("uuid", &[("i", Takes::Value)], rest, keys::uuid),
        Some("x25519") => with("x25519", &keys::X25519_FLAGS, rest, keys::x25519),
        Some("wg") => with("wg", &[("i", Takes::Value)], rest, keys::wg),
        Some("mldsa65") => with("mldsa65", &[("i", Takes::Value)], rest, keys::mldsa65),
        Some("mlkem768") => with("mlkem768", &[("i", Takes::Value)], rest, keys::mlkem768),
        Some("vlessenc") => with("vlessenc", &[], rest, |_| keys::vlessenc()),
        Some("tls") => tls::run(rest),
        Some("api") => api(rest),
        Some("convert") => lacking("convert", "write configurations as JSON, which is read as it is"),
        Some("buildMphCache") => lacking(
            "buildMphCache",
            "leave it out: lists are read from geo files without a cache",
        ),
        Some(word) => {
            note(format_args!("xray {}: unknown command", word.escape_debug()));
            refused(Exit::Usage, "Run 'xray help' for usage.")
        }
    }
}

/// Calls the management API of a running server.
fn api(words: &[OsString]) -> ExitCode {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match commands::proxy_api::call(&words) {
        Ok(()) => Exit::Done.into(),
        Err(failed) => refused(Exit::Internal, failed),
    }
}

/// Says why nothing came of it.
fn refused(exit: Exit, why: impl Display) -> ExitCode {
    note(why);
    exit.into()
}

/// Reads the flags of a command and does it; what is wrong with them is said as Go programs do.
fn with(
    command: &str,
    known: &[(&'static str, Takes)],
    words: &[OsString],
    act: impl FnOnce(&Flags) -> ExitCode,
) -> ExitCode {
    match flags::parse(known, words) {
        Ok(flags) => act(&flags),
        Err(wrong) => {
            if let Wrong::Said(text) = wrong {
                note(text);
            }
            note(help::usage(command));
            refused(Exit::Usage, format_args!("Run 'xray help {command}' for details."))
        }
    }
}

fn serve(words: &[OsString]) -> ExitCode {
    const KNOWN: [(&str, Takes); 7] = [
        ("c", Takes::Value),
        ("config", Takes::Value),
        ("confdir", Takes::Value),
        ("format", Takes::Value),
        ("test", Takes::Nothing),
        ("dump", Takes::Nothing),
        ("strict", Takes::Nothing),
    ];
    with("run", &KNOWN, words, |flags| {
        let format = flags.text("format").unwrap_or_else(|| "auto".to_owned());
        if !["auto", "json", "jsonc"].contains(&format.to_lowercase().as_str()) {
            print(&format!(
                "{}Failed to start: the format {format:?} is not supported: write JSON\n",
                version_lines()
            ));
            return ExitCode::from(commands::run::files::WRONG_CONFIG);
        }
        commands::run::run(&Run {
            // Panels wait for the end, and kill what takes long.
            delay: Duration::ZERO,
            grace: Duration::ZERO,
            config: flags.all(&["c", "config"]).map(Into::into).collect(),
            confdir: flags.last("confdir").map(Into::into),
            test: flags.is("test"),
            dump: flags.is("dump"),
            strict: flags.is("strict"),
            format,
            voice: Voice::Xray,
        })
    })
}

/// Says that this program has no such command, and what to do.
fn lacking(command: &str, instead: &str) -> ExitCode {
    let why = format!("xray {command}: not supported by Sealway, which serves in Xray's place here; {instead}");
    refused(Exit::Internal, why)
}

fn print(text: &str) -> ExitCode {
    match output::print(text) {
        Ok(()) => Exit::Done.into(),
        Err(problem) => {
            problem.print();
            Exit::Internal.into()
        }
    }
}
