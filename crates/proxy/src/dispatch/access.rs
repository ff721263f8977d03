//! The access log, in the format that log watchers parse:
//! `2026/01/02 03:04:05.123456 from 1.2.3.4:5678 accepted tcp:example.com:443 [in -> out] email: a@b`, or as objects of JSON.

mod json;

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use sealway_v2ray::Destination;

use crate::Error;
use crate::log::{Kept, Limit, Limits, Sink, stamp};
use crate::settings::{self, AccessFormat, MaskAddress, Settings};

/// How long the end waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Refusals of one source that are written a second. The rest is counted.
const REFUSALS: u32 = 20;
/// Refusals of all sources together that are written a second.
const ALL_REFUSALS: u32 = 1000;

/// How an outbound came to be chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Chosen {
    /// By a rule.
    Rule,
    /// As the default.
    Default,
}

/// The access log of a server, and what the error log says of the same refusals.
pub(crate) struct Access {
    lines: Option<Sink>,
    format: AccessFormat,
    mask: MaskAddress,
    refusals: Refusals,
}

impl Drop for Access {
    fn drop(&mut self) {
        let kept = self.refusals.take();
        if kept.0 > 0 {
            tracing::info!("{} refusals were left out of the logs, because too many came", kept.0);
        }
        if let Some(lines) = &self.lines {
            lines.flush(LAST_LINES);
        }
    }
}

impl Access {
    /// Whether two settings ask for one and the same log.
    pub(crate) fn is_same(one: &Settings, other: &Settings) -> bool {
        let asked = |of: &Settings| {
            (
                of.access_log.clone(),
                of.access_format,
                of.access_rotation,
                of.mask_address,
            )
        };
        asked(one) == asked(other)
    }

    /// Opens the log.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let lines = match &settings.access_log {
            settings::LogTarget::Off => None,
            settings::LogTarget::Stdout => Some(Sink::stdout()?),
            settings::LogTarget::File(path) => {
                let said_elsewhere = |lost| {
                    tracing::warn!("access log: {lost} lines dropped because they could not be written fast enough");
                    None
                };
                let sink =
                    Sink::rotated(path, settings.access_rotation, Box::new(said_elsewhere)).map_err(|error| {
                        Error::config("log.access", format!("{} cannot be opened: {error}", path.display()))
                    })?;
                Some(sink)
            }
        };
        Ok(Access {
            lines,
            format: settings.access_format,
            mask: settings.mask_address,
            refusals: Refusals::new(),
        })
    }

    fn push(&self, line: &Line<'_>) {
        if let Some(lines) = &self.lines {
            match self.format {
                AccessFormat::Json => lines.line(&line.json(&jiff::Zoned::now(), &self.mask)),
                _ => lines.line(&self.mask.hide(&line.text(&stamp()))),
            }
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
        let what = What::Accepted {
            target,
            tags,
            chosen,
            email,
        };
        self.push(&Line { source, what });
    }

    /// A client was refused.
    pub(super) fn rejected(&self, inbound: &str, source: Option<SocketAddr>, reason: &Error) {
        if let Some(kept) = self.refusals.pass(source) {
            let what = What::Rejected { inbound, reason, kept };
            self.push(&Line { source, what });
            tracing::info!("[{inbound}] {} refused: {reason}{kept}", Client(source));
        }
    }

    /// What was accepted did not come about: that is no fault of the client, and nothing for who bans by the access log.
    pub(super) fn failed(&self, inbound: &str, source: Option<SocketAddr>, reason: &Error) {
        if let Some(kept) = self.refusals.pass(source) {
            tracing::info!("[{inbound}] {} failed: {reason}{kept}", Client(source));
        }
    }
}

/// How many refusals are written: so many of a source, and so many of all.
struct Refusals {
    of_source: Limits,
    of_all: Limit,
}

impl Refusals {
    fn new() -> Self {
        Refusals {
            of_source: Limits::new(REFUSALS),
            of_all: Limit::new(ALL_REFUSALS),
        }
    }

    /// Whether a refusal is written now, and how many were left out before it.
    fn pass(&self, source: Option<SocketAddr>) -> Option<Kept> {
        let own = self.of_source.of(source.map(|source| source.ip()));
        let kept = own.pass()?;
        match self.of_all.pass() {
            Some(all) => Some(Kept(kept.0 + all.0)),
            None => {
                own.put_back(kept);
                None
            }
        }
    }

    /// How many were left out and never said.
    fn take(&self) -> Kept {
        Kept(self.of_source.take().0 + self.of_all.take().0)
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

/// What a line says.
struct Line<'a> {
    source: Option<SocketAddr>,
    what: What<'a>,
}

enum What<'a> {
    Accepted {
        target: &'a Destination,
        /// Of the inbound and of the outbound.
        tags: (&'a str, &'a str),
        chosen: Chosen,
        email: &'a str,
    },
    Rejected {
        inbound: &'a str,
        reason: &'a Error,
        kept: Kept,
    },
}

impl Line<'_> {
    /// The line that is parsed.
    fn text(&self, time: &str) -> String {
        let source = Client(self.source);
        let (target, (inbound, outbound), chosen, email) = match &self.what {
            What::Rejected { reason, kept, .. } => return format!("{time} from {source} rejected  {reason}{kept}"),
            What::Accepted {
                target,
                tags,
                chosen,
                email,
            } => (target, *tags, chosen, email),
        };
        let mut line = format!("{time} from {source} accepted {target}");
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
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::Address;

    use super::*;

    #[test]
    fn the_line_is_the_one_that_is_parsed() {
        let source = Some("1.2.3.4:5678".parse().unwrap());
        let target = Destination::tcp(Address::parse("example.com").unwrap(), 443);
        let line = |tags, chosen, email| {
            let what = What::Accepted {
                target: &target,
                tags,
                chosen,
                email,
            };
            Line { source, what }.text("2026/01/02 03:04:05.123456")
        };
        assert_eq!(
            line(("inTag", "outTag"), Chosen::Rule, "a@b"),
            "2026/01/02 03:04:05.123456 from 1.2.3.4:5678 accepted tcp:example.com:443 [inTag -> outTag] email: a@b"
        );
        assert!(line(("inTag", "outTag"), Chosen::Default, "").ends_with("443 [inTag >> outTag]"));
        assert!(line(("", "outTag"), Chosen::Default, "").ends_with("443 [outTag]"));
        assert!(line(("in", ""), Chosen::Default, "").ends_with("443"));
    }

    #[test]
    fn many_sources_together_write_no_more_than_all_may() {
        let refusals = Refusals::new();
        let began = std::time::Instant::now();
        let (total, mut written, mut kept) = (20_000u32, 0, 0);
        for n in 0..total {
            if let Some(before) = refusals.pass(Some((n.to_be_bytes(), 1).into())) {
                written += 1;
                kept += before.0;
            }
        }
        // A second may end meanwhile.
        let seconds = u32::try_from(began.elapsed().as_secs()).unwrap_or(u32::MAX) + 1;
        assert!((ALL_REFUSALS..=ALL_REFUSALS * seconds).contains(&written), "{written}");
        assert_eq!(u64::from(written) + kept + refusals.take().0, u64::from(total));
    }

    #[test]
    fn the_time_has_the_form() {
        let now = stamp();
        assert_eq!(now.len(), "2026/01/02 03:04:05.123456".len(), "{now}");
        let form: String = now.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000/00/00 00:00:00.000000");
    }
}
