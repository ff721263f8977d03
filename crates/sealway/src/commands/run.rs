//! `sealway run`.

mod api;
pub(crate) mod files;
mod reload;
mod remote;
pub(crate) mod speech;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sealway_api::Api;
use sealway_proxy::settings::{Listen, Pem, Settings, UnixName};
use sealway_proxy::{Error, ListSize, Parts, Server, can_append, geo, readers};
use sealway_v2ray::config::{self, Config, Loaded, LogTarget, Options, Severity};
use tokio::sync::Notify;
use tracing_subscriber::filter::LevelFilter;

use crate::args::Run;
use crate::exit::Exit;
use crate::log;
use crate::output;
use crate::problem::Problem;
use crate::signals::{Stops, runtime, stay_on_hangup, take_every_descriptor};
use crate::systemd::{self, Sockets};
use crate::voice::{Voice, XRAY};

use files::{environment, texts};
use reload::Again;

/// A problem, the exit code it has for this command, and what to mend first if it is one of several.
struct Failed(u8, Problem, Option<String>);

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Failed {
        Failed(problem.exit().code(), problem, None)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        match error {
            Error::Config { .. } => wrong(error),
            _ => Problem::new(Exit::Internal, error).into(),
        }
    }
}

fn wrong(message: impl std::fmt::Display) -> Failed {
    Failed(files::WRONG_CONFIG, Problem::usage(message), None)
}

pub(crate) fn run(options: &Run) -> ExitCode {
    if !options.dump {
        options.voice.begin();
    }
    let served = serve(options);
    log::flush();
    match served {
        Ok(()) => Exit::Done.into(),
        Err(Failed(code, problem, first)) => options.voice.failed(code, &problem, first.as_deref()),
    }
}

fn serve(options: &Run) -> Result<(), Failed> {
    let runtime = runtime()?;
    let within = runtime.enter();
    // A manager may send it right after the start; it must not end what is still reading its configuration.
    stay_on_hangup()?;
    let voice = options.voice;
    if options.dump {
        return dump(&sources(options)?, voice);
    }
    if options.test && voice == Voice::Own {
        log::to_stderr(LevelFilter::WARN);
    }
    let mut read = read(options)?;
    let api = api::of(&read.config);
    let configured = read.settings.inbounds.len();
    if let Some(api) = &api {
        api.wire(&mut read.settings);
    }
    let asked = Asked {
        read,
        configured,
        voice,
    };
    if options.test {
        let (found, lists) = asked.checked();
        if !found.is_empty() {
            return Err(refuse(&asked.read.sources, voice, found));
        }
        output::print(&format!("{}Configuration OK.\n", sizes(&lists)))?;
        return Ok(());
    }
    let sockets = Sockets::take()?;
    let Read {
        sources,
        config,
        settings,
    } = &asked.read;
    let error_log = log::start(&config.log, voice).map_err(|e| asked.refused(unopened(&config.log, &e)))?;
    take_every_descriptor();
    let mut served = settings.clone();
    sockets.give_to(&mut served);
    let again = Again::new(options, sources, (config, settings), (sockets, error_log), api.clone());
    let patience = (options.delay, options.grace);
    let done = runtime.block_on(until_told(served, api, again, patience, asked));
    // A name that the system still looks up is not waited for.
    drop(within);
    runtime.shutdown_background();
    done
}

/// A configuration, and where it is written.
struct Read {
    sources: Vec<files::Source>,
    config: Config,
    settings: Settings,
}

/// What the server is asked to be: what keeps it from starting has a place there.
struct Asked {
    read: Read,
    /// How many inbounds the configuration itself has.
    configured: usize,
    voice: Voice,
}

impl Asked {
    /// All that is wrong, and what lists of geo files take.
    fn checked(&self) -> (Vec<Error>, Vec<ListSize>) {
        let mut found: Vec<Error> = error_log(&self.read.config.log).into_iter().collect();
        let lists = Server::check(&self.read.settings).unwrap_or_else(|errors| {
            found.extend(errors);
            Vec::new()
        });
        let found = found.into_iter().map(|error| api::place(error, self.configured));
        (found.collect(), lists)
    }

    /// Prints why the server does not start. Where something is wrong, everything is said at once.
    fn refused(&self, error: Error) -> Failed {
        let error = api::place(error, self.configured);
        let found = match &error {
            Error::Config { .. } => self.checked().0,
            _ => Vec::new(),
        };
        let found = if found.is_empty() { vec![error] } else { found };
        refuse(&self.read.sources, self.voice, found)
    }
}

/// Reads a configuration, and prints what is wrong with it.
fn read(options: &Run) -> Result<Read, Failed> {
    let sources = sources(options)?;
    let config = load(&sources, options)?;
    let mut settings = Settings::from_config(&config).map_err(|error| refuse(&sources, options.voice, vec![error]))?;
    if let Some(folder) = files::location("cert", &environment) {
        certificates_from(&folder, settings.pem_sources());
    }
    settings.geo_folders = geo::folders(files::location("asset", &environment));
    Ok(Read {
        sources,
        config,
        settings,
    })
}

/// Prints what keeps a configuration from running, each with its place in the files.
fn refuse(sources: &[files::Source], voice: Voice, found: Vec<Error>) -> Failed {
    let wrong = found
        .iter()
        .filter(|error| matches!(error, Error::Config { .. }))
        .count();
    let told = tell(sources, voice, Severity::Error, &found);
    let first = told.first().map(speech::where_and_what);
    match found.into_iter().next() {
        _ if wrong > 0 => useless(wrong, first),
        // It may pass by itself.
        Some(Error::Listen { .. }) => Failed(
            Exit::Internal.code(),
            Problem::new(Exit::Internal, "nothing was started"),
            first,
        ),
        Some(error) => Problem::new(Exit::Internal, error).into(),
        None => useless(0, first),
    }
}

/// Prints what has a place in the files, and gives it back.
fn tell(sources: &[files::Source], voice: Voice, severity: Severity, found: &[Error]) -> Vec<config::Problem> {
    let mut problems = Vec::new();
    for error in found {
        let (place, text) = match error {
            Error::Config { place, what } => (place, what.clone()),
            Error::Listen { place, .. } => (place, error.to_string()),
            _ => continue,
        };
        let hint = error.hint().to_owned();
        problems.push(config::problem_at(&texts(sources), severity, place, text, hint));
    }
    voice.problems(&problems);
    problems
}

fn unopened(log: &config::Log, error: &std::io::Error) -> Error {
    let name = match &log.error {
        LogTarget::File(path) => path.display().to_string(),
        _ => "it".to_owned(),
    };
    Error::Config {
        place: "log.error".to_owned(),
        what: format!("{name} cannot be opened: {error}"),
    }
}

/// Why the error log cannot be written, if so.
fn error_log(log: &config::Log) -> Option<Error> {
    let LogTarget::File(path) = &log.error else { return None };
    can_append(path).err().map(|error| unopened(log, &error))
}

/// Reads the files of the configuration.
fn sources(options: &Run) -> Result<Vec<files::Source>, Failed> {
    let missing = |missing: files::Missing| {
        let Failed(code, problem, first) = wrong(&missing);
        Failed(code, problem.hint(missing.hint()), first)
    };
    let names = match options.voice {
        Voice::Own => files::names,
        Voice::Xray => files::names_as_xray,
    };
    let names = names(&options.config, options.confdir.as_deref(), &environment).map_err(missing)?;
    let read = |name: &PathBuf| {
        let source = files::read(name)?;
        if !options.dump {
            options.voice.reads(&source.name);
        }
        Ok(source)
    };
    let sources: Result<Vec<_>, _> = names.iter().map(read).collect();
    sources.map_err(missing)
}

/// Prints the one configuration that several files come to, secrets included.
fn dump(sources: &[files::Source], voice: Voice) -> Result<(), Failed> {
    match config::merged(&texts(sources)) {
        Ok(text) => Ok(output::print(&text)?),
        Err(problems) => {
            voice.problems(&problems);
            Err(useless(problems.len(), problems.first().map(speech::where_and_what)))
        }
    }
}

/// Prints what is wrong with a configuration, and gives it if nothing is.
fn load(sources: &[files::Source], options: &Run) -> Result<Config, Failed> {
    let how = Options {
        strict: options.strict,
        env: &environment,
    };
    let loaded = config::load(&texts(sources), &how);
    let voice = options.voice;
    voice.problems(&loaded.problems);
    let mut errors = loaded.errors().count();
    let mut parts = match &loaded.config {
        Some(config) => Settings::from_config(config)
            .map(|settings| Parts::from(&settings))
            .unwrap_or_default(),
        None => Parts::from_draft(&loaded.draft),
    };
    if let Some(folder) = files::location("cert", &environment) {
        certificates_from(&folder, parts.pem_sources());
    }
    let exposed = exposed(sources, &loaded, &parts, options);
    errors += if options.strict { exposed } else { 0 };
    if errors == 0 {
        return loaded.config.ok_or_else(|| useless(0, None));
    }
    // What is right in itself is looked at all the same, so that nothing is found only after something else was mended.
    let mut found: Vec<Error> = loaded.draft.log.iter().filter_map(error_log).collect();
    found.extend(parts.problems());
    // What the files are wrong about is not said in other words.
    let is_said = |place: &str| place.contains('.') && loaded.errors().any(|told| told.path.starts_with(place));
    found.retain(|error| !matches!(error, Error::Config { place, .. } if is_said(place)));
    let told = tell(sources, voice, Severity::Error, &found);
    errors += told.len();
    let first = loaded.errors().next().or(told.first());
    Err(useless(errors, first.map(speech::where_and_what)))
}

/// Tells of secrets in files that others can read and of configurations that came in the clear, and gives their number.
fn exposed(sources: &[files::Source], loaded: &Loaded, parts: &Parts, options: &Run) -> usize {
    let voice = options.voice;
    let severity = if options.strict {
        Severity::Error
    } else {
        Severity::Warning
    };
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let credentials = credentials.as_deref();
    let of_file = |source: &files::Source, text, hint| config::Problem {
        severity,
        file: source.name.clone(),
        line: 1,
        column: 1,
        path: String::new(),
        text,
        hint,
    };
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| files::came_in_the_clear(source)) {
        let text = "it came over plain HTTP: who stands on the way can read and change it".to_owned();
        problems.push(of_file(
            source,
            text,
            "give it out by https, or at a socket of this machine".to_owned(),
        ));
    }
    for at in loaded.files_with_secrets() {
        let Some(source) = sources.get(usize::from(at)) else {
            continue;
        };
        if let Some(who) = readers(Path::new(&source.name), credentials) {
            let text = format!("{who} can read this file, which holds ids, passwords or keys");
            problems.push(of_file(source, text, format!("chmod 600 {}", source.name)));
        }
    }
    voice.problems(&problems);
    problems.len() + tell(sources, voice, severity, &parts.exposed_keys(credentials)).len()
}

fn useless(errors: usize, first: Option<String>) -> Failed {
    let plural = if errors == 1 { "" } else { "s" };
    let text = format!("the configuration has {errors} error{plural}; nothing was started");
    Failed(files::WRONG_CONFIG, Problem::usage(text), first)
}

/// Lets relative paths of certificates start from `folder`.
fn certificates_from<'t>(folder: &Path, paths: impl Iterator<Item = &'t mut Pem>) {
    for source in paths {
        if let Pem::File(path) = source {
            // An absolute path stays what it is.
            *path = folder.join(&*path);
        }
    }
}

/// Serves until a signal comes, then lets connections finish until the time or another signal ends them.
async fn until_told(
    settings: Settings,
    api: Option<Api>,
    again: Again,
    patience: (Duration, Duration),
    asked: Asked,
) -> Result<(), Failed> {
    let stops = Stops::new()?;
    let listeners: Vec<_> = settings
        .inbounds
        .iter()
        .map(|i| (i.tag.clone(), i.listen.clone()))
        .collect();
    let server = Server::start(settings).await.map_err(|error| asked.refused(error))?;
    let voice = asked.voice;
    // Where there are many users, it is as large as all that the server has made of it.
    drop(asked);
    if let Some(api) = api {
        api.manage(server.control());
    }
    files::are_logged();
    match voice {
        Voice::Own => log::tell(format_args!(
            "sealway {} listens: {}",
            crate::args::version(),
            places(&server, &listeners)
        )),
        // By this line panels see that it has started.
        Voice::Xray => tracing::warn!(target: "core", "Xray {} started", XRAY),
    }
    systemd::ready(&format!("serving, {} inbounds", listeners.len()));
    systemd::feed_watchdog();
    // Those that come while files are read are one more time to read them.
    let told = Arc::new(Notify::new());
    let reloads = tokio::spawn({
        let (told, control) = (Arc::clone(&told), server.control());
        async move {
            loop {
                told.notified().await;
                systemd::reloading();
                again.take_up(&control).await;
                systemd::ready("serving");
            }
        }
    });
    let hangup = || told.notify_one();
    let stopping = || {
        // Nothing is ready any more.
        reloads.abort();
        systemd::stopping();
    };
    stops.drain(hangup, server, patience, stopping).await;
    Ok(())
}

/// What lists of geo files take, a line each.
fn sizes(lists: &[ListSize]) -> String {
    let line = |list: &ListSize| {
        let kib = list.memory.div_ceil(1024);
        format!("{}: {} entries, {kib} KiB\n", list.name, list.entries)
    };
    lists.iter().map(line).collect()
}

/// Where the server listens, in words.
fn places(server: &Server, listeners: &[(String, Vec<Listen>)]) -> String {
    let words: Vec<_> = listeners
        .iter()
        .map(|(tag, listen)| {
            // Only the server knows the ports that the system chose, and it knows them by tag.
            let chosen = server.addresses(tag).into_iter().map(|address| address.to_string());
            let all: Vec<_> = match listen.first() {
                Some(Listen::Port(_) | Listen::EveryAddress(_)) if !tag.is_empty() => chosen.collect(),
                _ => listen.iter().map(place).collect(),
            };
            let tag = if tag.is_empty() { "(no tag)" } else { tag };
            match all.as_slice() {
                [first, .., last] if all.len() > 4 => format!("{tag} on {first} … {last}"),
                all => format!("{tag} on {}", all.join(" ")),
            }
        })
        .collect();
    if words.is_empty() {
        "nowhere".to_owned()
    } else {
        words.join(", ")
    }
}

fn place(listen: &Listen) -> String {
    match listen {
        Listen::Port(address) => address.to_string(),
        Listen::EveryAddress(port) => format!("[::]:{port}"),
        Listen::Unix(UnixName::Path(path), _) => path.display().to_string(),
        Listen::Unix(UnixName::Abstract(name), _) => {
            format!(
                "@{}",
                String::from_utf8_lossy(name).trim_end_matches('\0').escape_debug()
            )
        }
    }
}
