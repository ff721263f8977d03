//! What happens, told to people on standard error or to programs as lines of JSON on standard output.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget};
use sealway_drop::invite::Invite;
use sealway_drop::policy::{Check, End};
use sealway_drop_mount::fuse::CopiesBy;
use sealway_drop_mount::sharing::Ready;
use sealway_drop_transfer::progress::{Progress, Snapshot};
use sealway_drop_transfer::receive::Offered;
use sealway_drop_transfer::send::Summary;
use sealway_drop_transfer::source::TopLink;
use serde_json::{Value, json};

use super::drawing::{Rates, draw};
use super::{notify, screen};
use crate::args::DropLink;
use crate::exit::Exit;
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
    /// Whether the desktop is told of the end of a transfer.
    pub(super) notify: bool,
}

impl Events {
    pub(super) fn of(link: &DropLink) -> Events {
        Events {
            quiet: link.quiet,
            json: link.json,
            notify: !link.no_notify && !link.quiet,
        }
    }

    pub(super) fn tell(self, text: impl std::fmt::Display, value: impl FnOnce() -> Value) {
        screen::suspend(|| self.tell_now(text, value));
    }

    fn tell_now(self, text: impl std::fmt::Display, value: impl FnOnce() -> Value) {
        if self.json {
            let mut stdout = std::io::stdout().lock();
            // A reader that has gone away does not stop a transfer.
            let _ = writeln!(stdout, "{}", value());
            let _ = stdout.flush();
        } else if !self.quiet {
            note(text);
        }
    }

    /// The other end answers on this network.
    pub(super) fn found(self, addresses: &[SocketAddr]) {
        let Some(address) = addresses.first() else { return };
        self.tell(
            format_args!("found on this network, at {address}"),
            || json!({"event": "found", "address": address.to_string()}),
        );
    }

    pub(super) fn listening(self, address: SocketAddr) {
        self.tell(
            format_args!("waiting at {address}"),
            || json!({"event": "listening", "address": address.to_string()}),
        );
    }

    /// A code is for people: it goes to standard error even where little is said, or nobody could use it.
    pub(super) fn code(self, code: &str, invite: &Invite) {
        match self.json {
            true => self.tell(
                "",
                || json!({"event": "code", "code": code, "command": invite.to_string(), "near": invite.near()}),
            ),
            false => note(format_args!(
                "code: {code}\nat the other end, type this, and then the code:\n  {invite}{}",
                others(invite)
            )),
        }
    }

    /// What the other end types where it takes no code.
    pub(super) fn invite(self, invite: &Invite) {
        if !self.json {
            self.tell(
                format_args!("at the other end, type this:\n  {invite}{}", others(invite)),
                || Value::Null,
            );
        }
    }

    /// The other end knows what there is to send, and a person may be asked there.
    pub(super) fn waiting_for_yes(self) {
        self.tell(
            "waiting for the other end to accept",
            || json!({"event": "waiting", "for": "accept"}),
        );
    }

    /// What becomes of a symbolic link that was named.
    pub(super) fn top_link(self, link: &TopLink) {
        let TopLink { path, target, followed } = link;
        let text = match followed {
            true => format!("{path} is a symbolic link; what it points to is sent: {target}"),
            false => {
                format!("{path} is a symbolic link and is sent as one, to {target}; --follow sends what it points to")
            }
        };
        self.tell(
            &text,
            || json!({"event": "link", "path": path, "target": target, "followed": followed}),
        );
    }

    pub(super) fn connected(self, suite: &str, words: &str, check: Check) {
        let mut text = format!("connected, {suite}");
        if check.is_shown() {
            text.push_str(&format!(
                "; check words: {words} (the other end shows the same, or somebody sits between)"
            ));
        }
        self.tell(
            text,
            || json!({"event": "connected", "suite": suite, "check": words, "proved": check.is_proved()}),
        );
    }

    /// Content goes another way from now on.
    pub(super) fn path(self, direct: Option<SocketAddr>) {
        match direct {
            Some(address) => self.tell(
                format_args!("direct to {address}, no more through the relay"),
                || json!({"event": "path", "path": "direct", "address": address.to_string()}),
            ),
            None => self.tell(
                "the direct path is lost; through the relay again",
                || json!({"event": "path", "path": "relay"}),
            ),
        }
    }

    /// The command ends with this.
    pub(super) fn failed(self, problem: &Problem) {
        if self.json {
            let (exit, text, hint) = (problem.exit().code(), problem.message(), problem.advice());
            self.tell(
                "",
                || json!({"event": "error", "exit": exit, "text": text, "hint": hint}),
            );
        }
    }

    /// What is shared and mounted stands.
    pub(super) fn ready(self, sharing: &sealway_drop_mount::sharing::Options, ready: Ready) {
        let shown = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let (share, mount) = (shown(&sharing.share), shown(&sharing.mount));
        let (copies, read_by) = match ready.copies {
            Some(CopiesBy::Kernel) => (Some("kernel"), Some("local copies are read by the kernel")),
            Some(CopiesBy::Program) => (Some("program"), Some("local copies are read by this program")),
            None => (None, None),
        };
        let (by_them, by_us) = (sharing.writable.is_some(), sharing.mounting.writable);
        let writable = match (by_them, by_us) {
            (true, true) => Some("both"),
            (true, false) => Some("share"),
            (false, true) => Some("mount"),
            (false, false) => None,
        };
        let parts = [
            share.as_ref().map(|path| match by_them {
                true => format!("{path} is shared, and the other end may change it"),
                false => format!("{path} is shared"),
            }),
            mount.as_ref().map(|path| match by_us {
                true => format!("mounted at {path}, to read and to write"),
                false => format!("mounted at {path}"),
            }),
            read_by.map(str::to_owned),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        self.tell(
            format_args!("{text}; Ctrl-C ends it"),
            || json!({"event": "ready", "share": share, "mount": mount, "copies": copies, "writable": writable}),
        );
    }

    /// An end that does not fit came, and the waiting goes on.
    pub(super) fn turned_away(self, why: &sealway_drop::Error) {
        self.warn(&format!(
            "somebody came and was turned away, and this end waits on: {why}"
        ));
    }

    /// The other end of a share was lost; it is looked for, for so long.
    pub(super) fn lost(self, why: &sealway_drop::Error, time: Duration) {
        self.tell(
            format_args!("lost the other end ({why}); trying again for {}", HumanDuration(time)),
            || json!({"event": "lost", "why": why.to_string(), "seconds": time.as_secs()}),
        );
    }

    /// It is there again.
    pub(super) fn again(self) {
        self.tell("connected again", || json!({"event": "again"}));
    }

    /// It was not found again.
    pub(super) fn gave_up(self, time: Duration) {
        self.tell(
            format_args!("gave up after {}", HumanDuration(time)),
            || json!({"event": "gave-up", "seconds": time.as_secs()}),
        );
    }

    /// One of several ends that may mount is done.
    pub(super) fn left(self, why: Option<&sealway_drop::Error>) {
        let text = why.map_or_else(
            || "the other end has unmounted".to_owned(),
            |why| format!("an end that came is gone: {why}"),
        );
        let why = why.map(ToString::to_string);
        self.tell(
            format_args!("{text}; waiting for others (Ctrl-C ends it)"),
            || json!({"event": "left", "why": why}),
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
    pub(super) fn offered(self, text: &str, offer: &Offered, asks: bool) {
        if asks && (self.quiet || self.json) {
            note(text);
        }
        self.tell(text, || {
            let names: Vec<_> = offer.top.iter().map(ToString::to_string).collect();
            json!({"event": "offer", "files": offer.files, "others": offer.others, "links": offer.links, "bytes": offer.bytes,
                "free": offer.free, "names": names, "name_count": offer.top_count, "text": text})
        });
    }

    /// The end of a transfer that worked, as far as it did.
    ///
    /// `sealed`: every record of it was authenticated.
    pub(super) fn done(self, verb: &str, sealed: bool, summary: &Summary, progress: &Progress) {
        let (moved, time) = (progress.snapshot(), progress.elapsed());
        for line in &summary.notes {
            match self.json {
                true => self.tell("", || json!({"event": "left-out", "text": line})),
                false => note(format_args!("left out: {line}")),
            }
        }
        for (path, name) in &summary.renamed.first {
            self.tell(
                format_args!("renamed: {path} is {name} here, since its name was taken"),
                || json!({"event": "renamed", "path": path.to_string(), "name": name.to_string()}),
            );
        }
        let unsaid = summary.renamed.count.saturating_sub(summary.renamed.first.len() as u64);
        if unsaid > 0 && !self.json {
            self.tell(format_args!("renamed: {unsaid} more"), || Value::Null);
        }
        let text = done_text(verb, sealed, summary, moved, time);
        self.tell(&text, || {
            json!({"event": "done", "files": summary.placed, "failed": summary.failed, "bytes": moved.bytes, "kept": moved.kept,
                "same": moved.same_files, "renamed": summary.renamed.count, "seconds": time.as_secs_f64(), "keys": summary.epochs})
        });
        self.notify(verb, &text, progress);
    }

    /// The end of a transfer that broke off: `doing` is sending or receiving.
    pub(super) fn broke_off(self, doing: &str, problem: &Problem, progress: &Progress) {
        if problem.exit() != Exit::Interrupted {
            self.notify(&format!("{doing} failed"), problem.message(), progress);
        }
    }

    /// Tells the desktop what became of a transfer.
    fn notify(self, what: &str, text: &str, progress: &Progress) {
        if self.notify {
            let name = progress.last_name().filter(|_| progress.snapshot().total_files == 1);
            let title = format!(
                "sealway: {}",
                name.map_or_else(|| what.to_owned(), |name| format!("{name}: {what}"))
            );
            notify::tell(&title, text, progress.elapsed());
        }
    }

    /// Draws progress until it is stopped.
    pub(super) fn follow(self, progress: &Arc<Progress>) -> Follower {
        let stop = Arc::new(AtomicBool::new(false));
        let shown = self.json || (!self.quiet && std::io::stderr().is_terminal());
        let thread = shown.then(|| {
            let (stop, progress) = (stop.clone(), progress.clone());
            if self.json {
                return std::thread::spawn(move || lines(self, &progress, &stop));
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
            // At once: the first question may be there before anything is drawn.
            screen::draw(Some(bar.clone()));
            std::thread::spawn(move || draw(&bar, &progress, &stop))
        });
        Follower { stop, thread }
    }
}

/// Where else the other end may find this one.
fn others(invite: &Invite) -> String {
    let mut text = String::new();
    let others: Vec<_> = invite.others().iter().map(ToString::to_string).collect();
    if !others.is_empty() {
        text.push_str(&format!("\n  (this machine is also {})", others.join(", ")));
    }
    if let Some(near) = invite.near() {
        text.push_str(&format!("\non this network, this is enough:\n  {near}"));
        // Nobody has said where the ends meet: there are other ways.
        text.push_str("\nif it cannot come here: --relay HOST:PORT at both ends");
        if invite.command == End::Sender.other() {
            text.push_str("; to a phone: --localsend; to a browser: sealway share --http");
        }
    }
    text
}

/// What was verified is what came over a session, where every record is authenticated. Of a file that was there already only size and time are known.
fn done_text(verb: &str, sealed: bool, summary: &Summary, moved: Snapshot, time: Duration) -> String {
    let came = summary.placed.saturating_sub(moved.same_files);
    let files = |count: u64| format!("{count} file{}", if count == 1 { "" } else { "s" });
    let rate = moved.bytes as f64 / time.as_secs_f64().max(1e-3);
    let mut text = format!(
        "{verb} {} in {} in {} ({}/s)",
        HumanBytes(moved.bytes),
        files(came),
        HumanDuration(time),
        HumanBytes(rate as u64)
    );
    let kept = moved.kept.saturating_sub(moved.same_bytes);
    if kept > 0 {
        text.push_str(&format!(", {} did not have to be sent", HumanBytes(kept)));
    }
    if came > 0 && sealed {
        text.push_str("; every byte of that verified");
    }
    if moved.same_files > 0 {
        text.push_str(&format!(
            "; {} ({}) had the same size and time already, and no content was compared",
            files(moved.same_files),
            HumanBytes(moved.same_bytes)
        ));
    }
    if summary.failed > 0 {
        text.push_str(&format!("; {} left out", summary.failed));
    }
    text
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
    let (mut last, mut rates) = (Snapshot::default(), Rates::default());
    while !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(JSON_EVERY);
        let (now, file) = (progress.snapshot(), progress.under_way());
        rates.look(Instant::now(), &now, file.as_ref());
        if now != last {
            events.tell("", || {
                let file = file.map(|file| json!({"name": file.name, "done": file.done, "bytes": file.size}));
                json!({"event": "progress", "bytes": now.bytes, "kept": now.kept, "files": now.files, "failed": now.failed,
                    "total_bytes": now.total_bytes, "total_files": now.total_files, "rate": rates.rate() as u64,
                    "left": rates.left(&now).map(|left| left.as_secs_f64().ceil() as u64), "file": file})
            });
            last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use sealway_drop::invite::Meet;

    use super::*;

    #[test]
    fn whoever_has_chosen_nothing_is_told_of_every_way() {
        let invite = |end: End, near| Invite {
            command: end.other(),
            place: Meet::Here(vec![]),
            near,
            key: None,
            options: vec![],
        };
        let send = others(&invite(End::Sender, true));
        for way in ["sealway receive", "--relay HOST:PORT", "--localsend", "share --http"] {
            assert!(send.contains(way), "{way}: {send}");
        }
        let share = others(&invite(End::Sharer, true));
        assert!(
            share.contains("--relay HOST:PORT") && !share.contains("phone"),
            "{share}"
        );
        assert_eq!(others(&invite(End::Sender, false)), "");
    }
}
