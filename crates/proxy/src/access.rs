//! The access log, in the format that log watchers parse:
//! `2026/01/02 03:04:05.123456 from 1.2.3.4:5678 accepted tcp:example.com:443 [in -> out] email: a@b`.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sealway_v2ray::Destination;

use crate::Error;
use crate::settings::{self, MaskAddress};

/// Lines that may wait for a slow disk. More are dropped and counted.
const QUEUE: usize = 8192;
/// How long the end waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How an outbound came to be chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Chosen {
    /// By a rule.
    Rule,
    /// As the default.
    Default,
}

/// The access log of a server.
pub(crate) struct Access {
    lines: Option<SyncSender<String>>,
    dropped: Arc<AtomicU64>,
    mask: MaskAddress,
    /// Ends when everything has been written.
    written: Option<Mutex<Receiver<()>>>,
}

impl Drop for Access {
    fn drop(&mut self) {
        // Without it the writer ends after the last line.
        self.lines = None;
        if let Some(written) = self.written.take() {
            let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
            // Nobody ever sends: the wait ends with the writer, or with our patience for a reader that is stuck.
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

impl Access {
    /// Opens the log.
    pub(crate) fn open(settings: &settings::AccessLog, mask: MaskAddress) -> Result<Self, Error> {
        let out: Box<dyn Write + Send> = match settings {
            settings::AccessLog::Off => {
                return Ok(Access {
                    lines: None,
                    dropped: Arc::default(),
                    mask,
                    written: None,
                });
            }
            settings::AccessLog::Stdout => Box::new(std::io::stdout()),
            settings::AccessLog::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let file = file.map_err(|error| {
                    Error::config("log.access", format!("{} cannot be opened: {error}", path.display()))
                })?;
                Box::new(file)
            }
        };
        let (lines, queue) = sync_channel(QUEUE);
        let (writing, written) = sync_channel(0);
        let dropped = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&dropped);
        std::thread::Builder::new().name("access-log".into()).spawn(move || {
            let _until_written = writing;
            write_all(&queue, BufWriter::new(out), &seen);
        })?;
        Ok(Access {
            lines: Some(lines),
            dropped,
            mask,
            written: Some(Mutex::new(written)),
        })
    }

    fn push(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines
            && let Err(TrySendError::Full(_)) = lines.try_send(self.mask.hide(&line()).into_owned())
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A connection was let through.
    pub(crate) fn accepted(
        &self,
        source: Option<SocketAddr>,
        target: &Destination,
        tags: (&str, &str),
        chosen: Chosen,
        email: &str,
    ) {
        self.push(|| accepted_line(&now(), source, target, tags, chosen, email));
    }

    /// A connection was refused.
    pub(crate) fn rejected(&self, source: Option<SocketAddr>, reason: &Error) {
        self.push(|| format!("{} from {} rejected  {reason}\n", now(), from(source)));
    }
}

fn write_all(queue: &Receiver<String>, mut out: impl Write, dropped: &AtomicU64) {
    while let Ok(line) = queue.recv() {
        let mut result = out.write_all(line.as_bytes());
        while let Ok(line) = queue.try_recv() {
            result = result.and(out.write_all(line.as_bytes()));
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!("access log: {lost} lines dropped because they could not be written fast enough");
        }
        if let Err(error) = result.and(out.flush()) {
            tracing::warn!("access log: {error}");
        }
    }
}

fn now() -> String {
    jiff::Zoned::now().strftime("%Y/%m/%d %H:%M:%S%.6f").to_string()
}

fn from(source: Option<SocketAddr>) -> String {
    source.map_or_else(|| "unix".into(), |source| source.to_string())
}

fn accepted_line(
    time: &str,
    source: Option<SocketAddr>,
    target: &Destination,
    (inbound, outbound): (&str, &str),
    chosen: Chosen,
    email: &str,
) -> String {
    let mut line = format!("{time} from {} accepted {target}", from(source));
    let arrow = match chosen {
        Chosen::Rule => "->",
        Chosen::Default => ">>",
    };
    // Writing to a string cannot fail.
    let _ = match (inbound, outbound) {
        (_, "") => Ok(()),
        ("", outbound) => write!(line, " [{outbound}]"),
        (inbound, outbound) => write!(line, " [{inbound} {arrow} {outbound}]"),
    };
    if !email.is_empty() {
        let _ = write!(line, " email: {email}");
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::Address;

    use super::*;

    #[test]
    fn the_line_is_the_one_that_is_parsed() {
        let source = Some("1.2.3.4:5678".parse().unwrap());
        let target = Destination::tcp(Address::parse("example.com").unwrap(), 443);
        let line =
            |tags, chosen, email| accepted_line("2026/01/02 03:04:05.123456", source, &target, tags, chosen, email);
        assert_eq!(
            line(("inTag", "outTag"), Chosen::Rule, "a@b"),
            "2026/01/02 03:04:05.123456 from 1.2.3.4:5678 accepted tcp:example.com:443 [inTag -> outTag] email: a@b\n"
        );
        assert!(line(("inTag", "outTag"), Chosen::Default, "").ends_with("443 [inTag >> outTag]\n"));
        assert!(line(("", "outTag"), Chosen::Default, "").ends_with("443 [outTag]\n"));
        assert!(line(("in", ""), Chosen::Default, "").ends_with("443\n"));
    }

    #[test]
    fn the_time_has_the_form() {
        let now = now();
        assert_eq!(now.len(), "2026/01/02 03:04:05.123456".len(), "{now}");
        let form: String = now.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000/00/00 00:00:00.000000");
    }
}
