//! Help, version, completions and man pages: what the program says of itself.

use std::fs;
use std::process::Command;

use crate::common::{Ran, golden, ran, run, sealway, words, workspace};

/// Every command.
const COMMANDS: [&[&str]; 54] = [
    &[],
    &["bip324"],
    &["bip324", "bench"],
    &["bip324", "bridge"],
    &["bip324", "probe"],
    &["completions"],
    &["cpu"],
    &["drain"],
    &["gateway"],
    &["identity"],
    &["identity", "forget"],
    &["identity", "list"],
    &["identity", "remember"],
    &["lab"],
    &["lab", "compare"],
    &["lab", "doctor"],
    &["lab", "export"],
    &["lab", "import"],
    &["lab", "prune"],
    &["lab", "reproduce"],
    &["lab", "respond"],
    &["lab", "runs"],
    &["lab", "show"],
    &["lab", "trend"],
    &["geo"],
    &["geo", "list"],
    &["geo", "lookup"],
    &["geo", "show"],
    &["link"],
    &["link", "from-config"],
    &["link", "to-config"],
    &["localsend"],
    &["localsend", "devices"],
    &["localsend", "forget"],
    &["localsend", "remember"],
    &["man"],
    &["mldsa65"],
    &["mount"],
    &["pair"],
    &["proxy-api"],
    &["receive"],
    &["relay"],
    &["route"],
    &["route", "test"],
    &["run"],
    &["send"],
    &["share"],
    &["tls"],
    &["tls", "cert"],
    &["tls", "hash"],
    &["tls", "ping"],
    &["uuid"],
    &["version"],
    &["x25519"],
];

/// The name of a page about a command.
fn page(words: &[&str]) -> String {
    [&["sealway"], words].concat().join("-")
}

#[test]
fn help_is_what_was_reviewed() {
    for words in COMMANDS {
        for (flag, suffix) in [("-h", "short"), ("--help", "long")] {
            let help = run(&[words, &[flag]].concat()).answer();
            golden(&format!("{}.{suffix}.txt", page(words)), &help);
        }
    }
}

#[test]
fn help_fits_its_width() {
    for words in COMMANDS {
        let text = run(&[words, &["--help"]].concat()).stdout;
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn no_command_shows_help_and_fails() {
    run(&[]).refuses(2, &["Usage: sealway"]);
}

/// Standard output of git in the workspace; nothing outside a checkout of it.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(workspace())
        .args(arguments)
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap().trim_end().to_string())
}

#[test]
fn version_names_the_commit() {
    let version = run(&["--version"]).answer();
    let own = concat!("sealway ", env!("CARGO_PKG_VERSION"));
    let rest = version.trim_end().strip_prefix(own).unwrap();
    let here = git(&["rev-parse", "--show-toplevel"]).and_then(|top| fs::canonicalize(top).ok());
    if here.is_none_or(|top| top != workspace()) {
        assert_eq!(rest, "");
        return;
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap();
    assert!(
        rest == format!("+{commit}") || rest == format!("+{commit}-dirty"),
        "{rest}"
    );
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).answer();
        for word in [
            "sealway", "lab", "compare", "doctor", "cpu", "budget", "run", "confdir", "link", "uuid", "bip324",
            "outgoing",
        ] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    // Shells that are here must take their script.
    for shell in ["bash", "zsh", "fish"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        fs::write(&file, run(&["completions", shell]).stdout).unwrap();
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(output) => Ran::from(output).says(0, &[]),
            Err(_) => println!("skipped: no {shell} here to check its script"),
        }
    }
}

#[test]
fn man_pages_are_written_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    run(&["man", folder.path().to_str().unwrap()]).answer();
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected = COMMANDS.map(|words| format!("{}.1", page(words)));
    expected.sort();
    assert_eq!(names, expected);
    for name in ["sealway.1", "sealway-lab.1"] {
        let page = fs::read_to_string(folder.path().join(name)).unwrap();
        for words in ["Exit codes:", "too noisy or undecidable", "SEALWAY_CPU_DISABLE"] {
            assert!(page.contains(words), "{name}: {words}");
        }
    }
}

#[test]
fn man_needs_a_folder() {
    run(&["man", "/no/such/folder"]).refuses(2, &["/no/such/folder", "hint: "]);
}

#[test]
fn colours_never_reach_a_file() {
    for line in ["--help", "cpu", "lab nonsense"] {
        let ran = ran(sealway(&words(line)).env("TERM", "xterm-256color"));
        assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'), "{ran:?}");
    }
}
