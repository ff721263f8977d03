//! The error log of a running server, and what it tells whoever started it. Both go out by a thread of their own: nothing
//! that serves waits for a terminal or a pipe.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use sealway_proxy::log::{Kept, Limit, Rotation, Sink, connection, dropped, stamp};
use sealway_v2ray::config::{Log, LogLevel, LogTarget, MaskAddress};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Registry, reload};

use crate::voice::Voice;

/// How long the end waits for a log that is not taken.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Lines of one place of the program that are written a second. The rest is counted.
const LINES: u32 = 200;

/// Lines as log watchers of V2Ray know them: `2026/01/02 03:04:05.123456 [Warning] message`.
///
/// In Xray's place the number of the connection and the part of the program that says it stand before the message, as its lines have
/// them: `2026/01/02 03:04:05.123456 [Warning] [1234567890] proxy/dns: message`, without a number where it is of no connection.
struct Lines {
    target: Arc<RwLock<Target>>,
    voice: Voice,
}

/// Where lines go now, and what of addresses they show.
struct Target {
    /// `None`: nowhere.
    sink: Option<Sink>,
    mask: MaskAddress,
}

fn read(target: &RwLock<Target>) -> RwLockReadGuard<'_, Target> {
    target.read().unwrap_or_else(PoisonError::into_inner)
}

/// The part of the program that a line comes from: `sealway_proxy::dispatch::access` is `proxy/dispatch/access`.
fn part(target: &str) -> String {
    let target = target.strip_prefix("sealway_").unwrap_or(target);
    target.replace("::", "/")
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
        if self.voice == Voice::Xray {
            if let Some(number) = connection() {
                write!(out, "[{number}] ")?;
            }
            write!(out, "{}: ", part(event.metadata().target()))?;
        }
        write!(out, "{}", read(&self.target).mask.hide(&message))
    }
}

/// One event, which comes in one piece; `None` for one that is left out.
struct Line(Option<(Sink, Kept)>);

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some((sink, kept)) = &self.0 {
            let line = String::from_utf8_lossy(bytes);
            match kept {
                Kept(0) => sink.line(&line),
                kept => sink.line(&format!("{line}{kept}")),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log, and how often each place of the program may write to it: others may decide how often there is something to say.
struct Out {
    target: Arc<RwLock<Target>>,
    /// As many as there are places.
    places: Mutex<HashMap<Identifier, Arc<Limit>>>,
}

impl Out {
    fn new(target: Arc<RwLock<Target>>) -> Out {
        Out {
            target,
            places: Mutex::default(),
        }
    }

    fn limit(&self, place: Identifier) -> Arc<Limit> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry(place).or_insert_with(|| Arc::new(Limit::new(LINES))))
    }
}

impl MakeWriter<'_> for Out {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line(read(&self.target).sink.clone().map(|sink| (sink, Kept::default())))
    }

    fn make_writer_for(&self, metadata: &Metadata<'_>) -> Line {
        let passed = self.limit(metadata.callsite()).pass();
        Line(read(&self.target).sink.clone().zip(passed))
    }
}

/// The error log of a running server, which may go elsewhere later.
pub(crate) struct ErrorLog {
    target: Arc<RwLock<Target>>,
    level: reload::Handle<LevelFilter, Registry>,
    /// What it was asked to be.
    asked: Mutex<Log>,
}

/// What an error log is to become, with everything open that it needs.
pub(crate) struct Next {
    asked: Log,
    /// `None`: what there is goes on.
    sink: Option<Option<Sink>>,
}

/// Sends what the proxy says from now on where the configuration wants it.
///
/// # Errors
/// The file cannot be opened for appending.
pub(crate) fn start(log: &Log, voice: Voice) -> io::Result<ErrorLog> {
    let target = Target {
        sink: open(log)?,
        mask: log.mask_address,
    };
    let (target, level) = install(level(log), target, voice);
    Ok(ErrorLog {
        target,
        level,
        asked: Mutex::new(log.clone()),
    })
}

impl Next {
    /// Whether warnings will be seen there.
    pub(crate) fn hears_warnings(&self) -> bool {
        level(&self.asked) >= LevelFilter::WARN && self.asked.error != LogTarget::Off
    }
}

impl ErrorLog {
    /// Opens what another configuration asks for. Nothing goes there yet. May take as long as the disk does.
    ///
    /// # Errors
    /// The file cannot be opened for appending.
    pub(crate) fn prepare(&self, log: &Log) -> io::Result<Next> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |log: &Log| (log.level != LogLevel::None).then(|| (log.error.clone(), Rotation::of(log)));
        let sink = match place(&asked) == place(log) {
            true => None,
            false => Some(open(log)?),
        };
        Ok(Next {
            asked: log.clone(),
            sink,
        })
    }

    /// Sends what the proxy says from now on there. The older log is told where it goes on.
    pub(crate) fn take_up(&self, next: Next) {
        if next.sink.is_some() {
            let to = match (&next.asked.error, &next.asked.level) {
                (_, LogLevel::None) | (LogTarget::Off, _) => "nowhere".to_owned(),
                (LogTarget::Stdout, _) => "on standard output".to_owned(),
                (LogTarget::File(path), _) => format!("in {}", path.display()),
            };
            tracing::warn!("the error log goes on {to}");
        }
        let mut target = self.target.write().unwrap_or_else(PoisonError::into_inner);
        target.mask = next.asked.mask_address;
        if let Some(sink) = next.sink {
            target.sink = sink;
        }
        drop(target);
        // Refused only once there is no log any more.
        let _ = self.level.reload(level(&next.asked));
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = next.asked;
    }
}

fn level(log: &Log) -> LevelFilter {
    match log.level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::None => LevelFilter::OFF,
        // `Warning`, which is also the default.
        _ => LevelFilter::WARN,
    }
}

/// Opens where a configuration wants its error log. `None`: it wants none.
fn open(log: &Log) -> io::Result<Option<Sink>> {
    match &log.error {
        _ if log.level == LogLevel::None => Ok(None),
        LogTarget::Off => Ok(None),
        LogTarget::Stdout => Sink::stdout().map(Some),
        LogTarget::File(path) => {
            let said = Box::new(|lines| Some(dropped(lines)));
            Sink::rotated(path, Rotation::of(log), said).map(Some)
        }
    }
}

/// Sends what is at least so important to standard error. Without one, nobody would read it.
pub(crate) fn to_stderr(level: LevelFilter) {
    if let Ok(stderr) = Sink::stderr() {
        let target = Target {
            sink: Some(stderr),
            mask: MaskAddress::default(),
        };
        install(level, target, Voice::Own);
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

fn install(
    level: LevelFilter,
    target: Target,
    voice: Voice,
) -> (Arc<RwLock<Target>>, reload::Handle<LevelFilter, Registry>) {
    let target = Arc::new(RwLock::new(target));
    let (level, handle) = reload::Layer::new(level);
    // Refused only if there is one already, which then stays.
    let _ = tracing::subscriber::set_global_default(subscriber(level, &target, voice));
    (target, handle)
}

fn subscriber(
    level: reload::Layer<LevelFilter, Registry>,
    target: &Arc<RwLock<Target>>,
    voice: Voice,
) -> impl Subscriber + Send + Sync + use<> {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(Out::new(Arc::clone(target)))
        .with_ansi(false)
        .event_format(Lines {
            target: Arc::clone(target),
            voice,
        });
    tracing_subscriber::registry().with(level).with(lines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Writes to a file what `say` says, and gives the lines.
    fn said(voice: Voice, say: impl FnOnce()) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let sink = Sink::file(&path, Box::new(|_| None)).unwrap();
        let target = Arc::new(RwLock::new(Target {
            sink: Some(sink.clone()),
            mask: MaskAddress::default(),
        }));
        let (level, _handle) = reload::Layer::new(LevelFilter::DEBUG);
        tracing::subscriber::with_default(subscriber(level, &target, voice), say);
        assert!(sink.flush(Duration::from_secs(20)));
        std::fs::read_to_string(&path)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn one_place_cannot_fill_a_log() {
        let lines = said(Voice::Own, || {
            for n in 0..10_000 {
                tracing::debug!("a stranger came {n}");
            }
            tracing::debug!("somebody else");
        });
        // Two seconds, if one has just begun.
        let strangers = lines.iter().filter(|line| line.contains("stranger")).count();
        assert!((200..=1000).contains(&strangers), "{strangers}");
        assert!(lines.last().unwrap().ends_with("[Debug] somebody else"));
    }

    #[test]
    fn in_xrays_place_a_line_says_which_part_it_is_of() {
        let say = || {
            tracing::warn!(target: "core", "Xray 1.2.3 started");
            tracing::info!(target: "sealway_proxy::dispatch::access", "so");
        };
        let ends: Vec<String> = said(Voice::Xray, say)
            .iter()
            .map(|line| line[26..].to_owned())
            .collect();
        assert_eq!(
            ends,
            [
                " [Warning] core: Xray 1.2.3 started",
                " [Info] proxy/dispatch/access: so"
            ]
        );
        let ends: Vec<String> = said(Voice::Own, say).iter().map(|line| line[26..].to_owned()).collect();
        assert_eq!(ends, [" [Warning] Xray 1.2.3 started", " [Info] so"]);
    }
}
