//! What happens, told to people on standard error or to programs as lines of JSON on standard output.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use sealway_drop::fuse::CopiesBy;
use sealway_drop::progress::{Progress, Snapshot};
use sealway_drop::send::Summary;
use sealway_drop::sharing::Ready;
use serde_json::{Value, json};

use super::place::Check;
use crate::args::DropLink;
use crate::problem::{Problem, note};

/// Redraws a second.
const DRAWS_PER_SECOND: u8 = 10;

/// Time between two progress lines for programs.
const JSON_EVERY: Duration = Duration::from_millis(500);

/// To whom things are told.
#[derive(Clone, Copy)]
pub(super) struct Events {
    pub(super) quiet: bool,
    pub(super) json: bool,
}

impl Events {
    fn tell(self, text: impl std::fmt::Display, value: impl FnOnce() -> Value) {
        if self.json {
            let mut stdout = std::io::stdout().lock();
            // A reader that has gone away does not stop a transfer.
            let _ = writeln!(stdout, "{}", value());
            let _ = stdout.flush();
        } else if !self.quiet {
            note(text);
        }
    }

    pub(super) fn listening(self, address: SocketAddr) {
        self.tell(
            format_args!("waiting at {address}"),
            || json!({"event": "listening", "address": address.to_string()}),
        );
    }

    /// What the other end runs to use a code.
    pub(super) fn of_code(self, link: &DropLink) -> String {
        match (&link.connect, &link.relay) {
            (Some(_), _) => "sealway receive --listen HOST:PORT (the one given here)".into(),
            (None, Some(relay)) => format!("sealway receive --relay {relay}"),
            (None, None) if link.listen.is_none() && std::env::var_os("SEALWAY_RELAY").is_some() => {
                "sealway receive".into()
            }
            (None, None) => "sealway receive --connect HOST:PORT (an address of this machine)".into(),
        }
    }

    /// A code is for people: it goes to standard error even where little is said, or nobody could use it.
    pub(super) fn code(self, code: &str, link: &DropLink) {
        self.code_with(code, &self.of_code(link));
    }

    /// The same with what the other end runs.
    pub(super) fn code_with(self, code: &str, command: &str) {
        match self.json {
            true => self.tell("", || json!({"event": "code", "code": code})),
            false => note(format_args!(
                "code: {code}\nat the other end: {command}, and type the code"
            )),
        }
    }

    pub(super) fn connected(self, suite: &str, words: &str, check: Check) {
        let proved = check == Check::Proved;
        let value = || json!({"event": "connected", "suite": suite, "check": words, "proved": proved});
        match check {
            Check::Shown | Check::Asked => self.tell(
                format_args!(
                    "connected, {suite}; check words: {words} (the other end shows the same, or somebody sits between)"
                ),
                value,
            ),
            Check::Proved | Check::Local => self.tell(format_args!("connected, {suite}"), value),
        }
    }

    /// The command ends with this. Told once, by whoever knows first.
    pub(super) fn failed(self, mut problem: Problem) -> Problem {
        if self.json && !problem.tell() {
            let (exit, text, hint) = (problem.exit().code(), problem.message(), problem.advice());
            self.tell(
                "",
                || json!({"event": "error", "exit": exit, "text": text, "hint": hint}),
            );
        }
        problem
    }

    /// What is shared and mounted stands.
    pub(super) fn ready(self, sharing: &sealway_drop::sharing::Options, ready: Ready) {
        let shown = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let (share, mount) = (shown(&sharing.share), shown(&sharing.mount));
        let (copies, read_by) = match ready.copies {
            Some(CopiesBy::Kernel) => (Some("kernel"), Some("local copies are read by the kernel")),
            Some(CopiesBy::Program) => (Some("program"), Some("local copies are read by this program")),
            None => (None, None),
        };
        let parts = [
            share.as_ref().map(|path| format!("{path} is shared")),
            mount.as_ref().map(|path| format!("mounted at {path}")),
            read_by.map(str::to_owned),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        self.tell(
            format_args!("{text}; Ctrl-C ends it"),
            || json!({"event": "ready", "share": share, "mount": mount, "copies": copies}),
        );
    }

    pub(super) fn warn(self, text: &str) {
        if !self.json {
            note(format_args!("warning: {text}"));
        } else {
            self.tell("", || json!({"event": "warning", "text": text}));
        }
    }

    /// What is offered; said in any case where it is asked about.
    pub(super) fn offered(self, text: &str, files: u64, bytes: u64, asks: bool) {
        if asks && (self.quiet || self.json) {
            note(text);
        }
        self.tell(
            text,
            || json!({"event": "offer", "files": files, "bytes": bytes, "text": text}),
        );
    }

    /// The end of a transfer that worked, as far as it did.
    pub(super) fn done(self, verb: &str, summary: &Summary, moved: Snapshot, time: Duration) {
        for line in &summary.notes {
            match self.json {
                true => self.tell("", || json!({"event": "left-out", "text": line})),
                false => note(format_args!("left out: {line}")),
            }
        }
        let kept = match moved.kept {
            0 => String::new(),
            kept => format!(", {} were there already", HumanBytes(kept)),
        };
        let verified = match summary.failed {
            0 => "every byte verified".to_owned(),
            failed => format!("{failed} left out, all others verified"),
        };
        let rate = moved.bytes as f64 / time.as_secs_f64().max(1e-3);
        self.tell(
            format_args!(
                "{verb} {} in {} files in {} ({}/s){kept}; {verified}",
                HumanBytes(moved.bytes),
                summary.placed,
                HumanDuration(time),
                HumanBytes(rate as u64),
            ),
            || {
                json!({"event": "done", "files": summary.placed, "failed": summary.failed, "bytes": moved.bytes, "kept": moved.kept,
                    "seconds": time.as_secs_f64(), "keys": summary.epochs})
            },
        );
    }

    /// Draws progress until it is stopped.
    pub(super) fn follow(self, progress: &Arc<Progress>) -> Follower {
        let stop = Arc::new(AtomicBool::new(false));
        let shown = self.json || (!self.quiet && std::io::stderr().is_terminal());
        let thread = shown.then(|| {
            let (stop, progress) = (stop.clone(), progress.clone());
            std::thread::spawn(move || match self.json {
                true => lines(self, &progress, &stop),
                false => bar(&progress, &stop),
            })
        });
        Follower { stop, thread }
    }
}

/// Stops drawing when it is dropped.
pub(super) struct Follower {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn lines(events: Events, progress: &Progress, stop: &AtomicBool) {
    let mut last = Snapshot::default();
    while !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(JSON_EVERY);
        let now = progress.snapshot();
        if now != last {
            events.tell("", || {
                json!({"event": "progress", "bytes": now.bytes, "kept": now.kept, "files": now.files, "failed": now.failed,
                    "total_bytes": now.total_bytes, "total_files": now.total_files})
            });
            last = now;
        }
    }
}

fn bar(progress: &Progress, stop: &AtomicBool) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
    // A template that does not parse is a fault of this file; the plain bar still works then.
    if let Ok(style) =
        ProgressStyle::with_template("{bar:24} {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta} left  {wide_msg}")
    {
        bar.set_style(style);
    }
    let begun = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let now = progress.snapshot();
        // Nothing to see of a transfer that is over at once.
        if now.total_files > 0 && begun.elapsed() > Duration::from_millis(300) {
            bar.set_length(now.total_bytes);
            bar.set_position((now.bytes + now.kept).min(now.total_bytes));
            bar.set_message(format!("{}/{} files", now.files, now.total_files));
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    bar.finish_and_clear();
}
