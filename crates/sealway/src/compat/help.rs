//! What `xray help` says here.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::exit::Exit;

/// The commands, what follows them, and what they do.
const COMMANDS: [(&str, &str, &str); 14] = [
    (
        "run",
        "[-c FILE]... [-confdir DIR] [-format json] [-test] [-dump] [-strict]",
        "Serve a configuration; also without the word. -c may be repeated, and takes a path, stdin:, http(s)://…, \
         /run/x.sock:/path or @abstract:/path. -test only checks, -dump prints what several files come to, -strict makes \
         errors of warnings",
    ),
    ("version", "", "Print the version"),
    (
        "uuid",
        "[-i TEXT]",
        "Print a random id, or the one that a text stands for",
    ),
    (
        "x25519",
        "[-i KEY] [--std-encoding]",
        "Print a pair of keys for REALITY",
    ),
    ("wg", "[-i KEY]", "Print a pair of keys for WireGuard"),
    ("mldsa65", "[-i SEED]", "Print a pair of keys of ML-DSA-65 for REALITY"),
    ("mlkem768", "[-i SEED]", "Print a pair of keys of ML-KEM-768"),
    ("vlessenc", "", "Print pairs of words for VLESS encryption"),
    (
        "tls cert",
        "[--ca] [--domain NAME]... [--name NAME] [--org NAME] [--expire 240h] [--json=false] [--file PATH]",
        "Print a certificate signed by itself, and its key",
    ),
    (
        "tls ping",
        "[-ip IP] DOMAIN[:PORT]",
        "Print what TLS a server speaks, without a name and with it, and which certificates it shows",
    ),
    ("tls hash", "[--cert FILE]", "Print the SHA-256 of certificates"),
    (
        "tls ech",
        "[--serverName NAME] [--pem] [-i KEYS]",
        "Print keys for an encrypted client hello",
    ),
    (
        "api",
        "COMMAND [--server=127.0.0.1:8080] [ARGUMENTS]",
        "Call the management API of a running server",
    ),
    ("help", "[COMMAND]", "Print this, or what a command takes"),
];

/// All commands.
pub(super) fn overview() -> String {
    let mut text =
        "Sealway in Xray's place.\n\nUsage:\n\n\txray <command> [arguments]\n\nThe commands are:\n\n".to_owned();
    for (name, _, about) in COMMANDS {
        let short = about.split([';', '.']).next().unwrap_or_default();
        text += &format!("\t{name:<10} {short}\n");
    }
    text + "\nNot supported: convert, buildMphCache.\n\nUse \"xray help <command>\" for more about a command.\n"
}

/// The line of usage of a command.
pub(super) fn usage(command: &str) -> String {
    let found = COMMANDS.iter().find(|(name, ..)| *name == command);
    let takes = found.map_or("", |(_, takes, _)| *takes);
    format!("usage: xray {command} {takes}").trim_end().to_owned()
}

/// `xray help …`.
pub(super) fn answer(words: &[OsString]) -> ExitCode {
    let topic: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let topic = topic.join(" ");
    let found = COMMANDS.iter().find(|(name, ..)| *name == topic);
    match found {
        _ if matches!(topic.as_str(), "" | "tls") => super::print(&overview()),
        Some((name, _, about)) => super::print(&format!("{}\n\n{about}.\n", usage(name))),
        None => {
            let topic = topic.escape_debug();
            let why = format!("xray help {topic}: unknown help topic. Run 'xray help'.");
            super::refused(Exit::Usage, why)
        }
    }
}
