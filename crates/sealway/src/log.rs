//! The error log of a running server, and what it tells whoever started it. Both go out by a thread of their own: nothing
//! that serves waits for a terminal or a pipe.

use std::fmt::{self, Display};
use std::io;
use std::path::Path;
use std::time::Duration;

use sealway_proxy::log::{Sink, dropped, stamp};
use sealway_v2ray::config::{Log, LogLevel, LogTarget, MaskAddress};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// How long the end waits for a log that is not taken.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Lines as log watchers of V2Ray know them: `2026/01/02 03:04:05.123456 [Warning] message`.
struct Lines {
    mask: MaskAddress,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "Error",
            Level::WARN => "Warning",
            Level::INFO => "Info",
            Level::DEBUG | Level::TRACE => "Debug",
        };
        write!(out, "{} [{level}] ", stamp())?;
        let mut message = String::new();
        context.format_fields(Writer::new(&mut message), event)?;
        write!(out, "{}", self.mask.hide(&message))
    }
}

/// One event, which comes in one piece.
struct Line<'a>(&'a Sink);

impl io::Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.line(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Out(Sink);

impl<'a> MakeWriter<'a> for Out {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(&self.0)
    }
}

/// Sends what the proxy says from now on where the configuration wants it.
///
/// # Errors
/// The file cannot be opened for appending.
pub(crate) fn start(log: &Log) -> io::Result<()> {
    let level = match log.level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::None => return Ok(()),
        // `Warning`, which is also the default.
        _ => LevelFilter::WARN,
    };
    let out = match &log.error {
        LogTarget::Off => return Ok(()),
        LogTarget::Stdout => Sink::stdout()?,
        LogTarget::File(path) => Sink::file(Path::new(path), Box::new(|lines| Some(dropped(lines))))?,
    };
    install(level, out, log.mask_address);
    Ok(())
}

/// Sends what is at least so important to standard error. Without one, nobody would read it.
pub(crate) fn to_stderr(level: LevelFilter) {
    if let Ok(stderr) = Sink::stderr() {
        install(level, stderr, MaskAddress::default());
    }
}

/// Tells whoever started a server something on standard error, without waiting for them.
pub(crate) fn tell(text: impl Display) {
    if let Ok(stderr) = Sink::stderr() {
        stderr.line(&text.to_string());
    }
}

/// Waits until everything has been written, for a second at most.
pub(crate) fn flush() {
    sealway_proxy::log::flush(LAST_LINES);
}

fn install(level: LevelFilter, out: Sink, mask: MaskAddress) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(Out(out))
        .with_ansi(false)
        .event_format(Lines { mask });
    // Refused only if there is one already, which then stays.
    let _ = tracing::subscriber::set_global_default(subscriber.finish());
}
