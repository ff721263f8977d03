//! The access log, in the format that log watchers parse:
//! `2026/01/02 03:04:05.123456 from 1.2.3.4:5678 accepted tcp:example.com:443 [in -> out] email: a@b`.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use sealway_v2ray::Destination;

use crate::Error;
use crate::log::{Limits, Sink, stamp};
use crate::settings::{self, MaskAddress};

/// How long the end waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Refusals of one source that are written a second. The rest is counted.
const REFUSALS: u32 = 20;

/// How an outbound came to be chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Chosen {
    /// By a rule.
    Rule,
    /// As the default.
    Default,
}

/// The access log of a server, and what the error log says of the same refusals.
pub(super) struct Access {
    lines: Option<Sink>,
    mask: MaskAddress,
    refusals: Limits,
}

impl Drop for Access {
    fn drop(&mut self) {
        let kept = self.refusals.take();
        if kept.0 > 0 {
            tracing::info!(
                "{} refusals were left out of the logs, of sources that came too often",
                kept.0
            );
        }
        if let Some(lines) = &self.lines {
            lines.flush(LAST_LINES);
        }
    }
}

impl Access {
    /// Opens the log.
    pub(super) fn open(settings: &settings::AccessLog, mask: MaskAddress) -> Result<Self, Error> {
        let lines = match settings {
            settings::AccessLog::Off => None,
            settings::AccessLog::Stdout => Some(Sink::stdout()?),
            settings::AccessLog::File(path) => {
                let said_elsewhere = |lost| {
                    tracing::warn!("access log: {lost} lines dropped because they could not be written fast enough");
                    None
                };
                let sink = Sink::file(path, Box::new(said_elsewhere)).map_err(|error| {
                    Error::config("log.access", format!("{} cannot be opened: {error}", path.display()))
                })?;
                Some(sink)
            }
        };
        Ok(Access {
            lines,
            mask,
            refusals: Limits::new(REFUSALS),
        })
    }

    fn push(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            lines.line(&self.mask.hide(&line()));
        }
    }

    /// A connection or a flow of datagrams was let through.
    pub(super) fn accepted(
        &self,
        source: Option<SocketAddr>,
        target: &Destination,
        tags: (&str, &str),
        chosen: Chosen,
        email: &str,
    ) {
        self.push(|| accepted_line(&stamp(), source, target, tags, chosen, email));
    }

    /// A client was refused.
    pub(super) fn rejected(&self, inbound: &str, source: Option<SocketAddr>, reason: &Error) {
        if let Some(kept) = self.refusals.of(source.map(|source| source.ip())).pass() {
            self.push(|| format!("{} from {} rejected  {reason}{kept}", stamp(), Client(source)));
            tracing::info!("[{inbound}] {} refused: {reason}{kept}", Client(source));
        }
    }

    /// What was accepted did not come about: that is no fault of the client, and nothing for who bans by the access log.
    pub(super) fn failed(&self, inbound: &str, source: Option<SocketAddr>, reason: &Error) {
        if let Some(kept) = self.refusals.of(source.map(|source| source.ip())).pass() {
            tracing::info!("[{inbound}] {} failed: {reason}{kept}", Client(source));
        }
    }
}

/// A client's address in messages; one of a unix socket has none.
pub(super) struct Client(pub(super) Option<SocketAddr>);

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("unix"),
        }
    }
}

fn accepted_line(
    time: &str,
    source: Option<SocketAddr>,
    target: &Destination,
    (inbound, outbound): (&str, &str),
    chosen: Chosen,
    email: &str,
) -> String {
    let mut line = format!("{time} from {} accepted {target}", Client(source));
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
            "2026/01/02 03:04:05.123456 from 1.2.3.4:5678 accepted tcp:example.com:443 [inTag -> outTag] email: a@b"
        );
        assert!(line(("inTag", "outTag"), Chosen::Default, "").ends_with("443 [inTag >> outTag]"));
        assert!(line(("", "outTag"), Chosen::Default, "").ends_with("443 [outTag]"));
        assert!(line(("in", ""), Chosen::Default, "").ends_with("443"));
    }

    #[test]
    fn the_time_has_the_form() {
        let now = stamp();
        assert_eq!(now.len(), "2026/01/02 03:04:05.123456".len(), "{now}");
        let form: String = now.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000/00/00 00:00:00.000000");
    }
}
