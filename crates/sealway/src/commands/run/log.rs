//! The error log of a running proxy.

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::sync::Mutex;

use sealway_v2ray::config::{Log, LogLevel, LogTarget, MaskAddress};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

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
        let now = jiff::Zoned::now();
        write!(out, "{} [{level}] ", now.strftime("%Y/%m/%d %H:%M:%S%.6f"))?;
        let mut message = String::new();
        context.format_fields(Writer::new(&mut message), event)?;
        writeln!(out, "{}", self.mask.hide(&message))
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
        LogTarget::Stdout => BoxMakeWriter::new(io::stdout),
        LogTarget::File(path) => {
            BoxMakeWriter::new(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?))
        }
    };
    install(level, out, log.mask_address);
    Ok(())
}

/// Sends what is at least so important to standard error.
pub(crate) fn to_stderr(level: LevelFilter) {
    install(level, BoxMakeWriter::new(io::stderr), MaskAddress::default());
}

fn install(level: LevelFilter, out: BoxMakeWriter, mask: MaskAddress) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(out)
        .with_ansi(false)
        .event_format(Lines { mask });
    // Refused only if there is one already, which then stays.
    let _ = tracing::subscriber::set_global_default(subscriber.finish());
}
