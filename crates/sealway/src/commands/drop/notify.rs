//! A notification of the desktop when a transfer that took a while has ended, by `notify-send` where that is installed.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nobody has turned to something else before that.
const LONG: Duration = Duration::from_secs(10);

/// How long `notify-send` may take, which waits for a desktop that may not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Characters of a text, which may have names of any length.
const TEXT: usize = 300;

/// Threads that wait for a `notify-send`.
static TELLING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Tells whoever sits at the desktop, if somebody does, that a transfer that `took` so long has ended. What goes wrong with that is
/// nobody's trouble. It waits for nothing: whoever calls may run others.
pub(super) fn tell(title: &str, text: &str, took: Duration) {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if is_wanted(took, std::io::stdout().is_terminal(), &variable)
        && let Some(program) = variable("PATH").as_deref().and_then(program)
    {
        start(program, title.to_owned(), text.to_owned(), PATIENCE);
    }
}

fn start(program: PathBuf, title: String, text: String, patience: Duration) {
    let telling = move || run(&program, &title, &text, patience);
    if let Ok(thread) = std::thread::Builder::new().spawn(telling) {
        TELLING.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }
}

/// Waits until all of it is told, a short while at most. For the end of the program.
pub(crate) fn finish() {
    let threads = std::mem::take(&mut *TELLING.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in threads {
        let _ = thread.join();
    }
}

/// Whether there is a desktop, and somebody who has waited at it.
fn is_wanted(took: Duration, terminal: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let there = |name| variable(name).is_some();
    let desktop = there("DBUS_SESSION_BUS_ADDRESS") && (there("DISPLAY") || there("WAYLAND_DISPLAY"));
    let choice = variable("SEALWAY_NOTIFY");
    let long = match choice.as_deref().and_then(OsStr::to_str) {
        Some("never") => false,
        Some("always") => true,
        _ => took >= LONG,
    };
    terminal && desktop && long
}

/// Where the program is. Folders that depend on where this one was started are not looked at.
fn program(path: &OsStr) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders
        .map(|folder| folder.join("notify-send"))
        .find(|program| program.is_file())
}

fn run(program: &Path, title: &str, text: &str, patience: Duration) {
    let mut command = Command::new(program);
    command.arg("--").arg(title).arg(marked_up(text));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    let until = Instant::now() + patience;
    while let Ok(None) = child.try_wait() {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// As desktops read a text: what would be markup stands for itself.
fn marked_up(text: &str) -> String {
    let mut marked = String::new();
    for character in text.chars().take(TEXT) {
        match character {
            '&' => marked.push_str("&amp;"),
            '<' => marked.push_str("&lt;"),
            '>' => marked.push_str("&gt;"),
            other => marked.push(other),
        }
    }
    marked
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_who_waited_at_a_desktop_is_told() {
        let desktop = [
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus"),
            ("WAYLAND_DISPLAY", "wayland-0"),
        ];
        let x = [("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus"), ("DISPLAY", ":0")];
        let wanted = |took, terminal, set: &[(&str, &str)], choice: Option<&str>| {
            let variable = |name: &str| {
                let set = set
                    .iter()
                    .copied()
                    .chain(choice.map(|choice| ("SEALWAY_NOTIFY", choice)));
                set.into_iter()
                    .find(|(set, _)| *set == name)
                    .map(|(_, value)| value.into())
            };
            is_wanted(Duration::from_secs(took), terminal, &variable)
        };
        assert!(wanted(10, true, &desktop, None) && wanted(10, true, &x, None));
        assert!(!wanted(9, true, &desktop, None), "it was over at once");
        assert!(!wanted(10, false, &desktop, None), "nobody sees a terminal");
        for missing in [&desktop[..1], &desktop[1..], &[]] {
            assert!(!wanted(10, true, missing, None) && !wanted(10, true, missing, Some("always")));
        }
        assert!(!wanted(99, true, &desktop, Some("never")) && wanted(1, true, &desktop, Some("always")));
    }

    /// A `notify-send` that does this, in a folder of its own, and that folder.
    fn fake(script: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        // Written by another program: a child of another test would keep it open for writing, and nobody could run it.
        let write = "printf '#!/bin/sh\n%s\n' \"$2\" > \"$1/notify-send\" && chmod 755 \"$1/notify-send\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", write, "sh"]).arg(folder.path()).arg(script);
        assert!(shell.status().unwrap().success());
        let found = program(folder.path().as_os_str()).unwrap();
        (folder, found)
    }

    #[test]
    fn a_text_is_one_argument_and_no_markup() {
        let (folder, program) = fake("printf '%s\\n' \"$#\" \"$@\" > \"${0%/*}/told\"");
        run(&program, "-x", "<b>a & b</b>; $(rm)", Duration::from_secs(60));
        let told = fs::read_to_string(folder.path().join("told")).unwrap();
        assert_eq!(told, "3\n--\n-x\n&lt;b&gt;a &amp; b&lt;/b&gt;; $(rm)\n");
    }

    #[test]
    fn nobody_waits_for_it_before_the_end() {
        // It goes on once the test has got on.
        let (folder, program) = fake("d=${0%/*}; until [ -e \"$d/go\" ]; do sleep 0.01; done; echo > \"$d/told\"");
        start(program, "title".into(), "text".into(), Duration::from_secs(60));
        assert!(!folder.path().join("told").exists());
        fs::write(folder.path().join("go"), "").unwrap();
        finish();
        assert!(folder.path().join("told").exists());
    }

    #[test]
    fn one_that_never_ends_is_not_waited_for() {
        let (_folder, program) = fake("exec sleep 1000");
        let begun = Instant::now();
        run(&program, "title", "text", Duration::from_millis(100));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn folders_that_depend_on_the_own_one_are_passed_over() {
        assert_eq!(program(OsStr::new("::.:bin")), None);
        assert_eq!(marked_up(&"x".repeat(1000)).len(), TEXT);
    }
}
