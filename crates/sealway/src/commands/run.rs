//! `sealway run`.

pub(crate) mod files;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use sealway_proxy::settings::{Listen, PemSource, Settings, UnixName};
use sealway_proxy::{Error, GeoLists, ListSize, Parts, Server, can_append, geo, readers};
use sealway_v2ray::config::{self, Config, File, Loaded, LogTarget, Options, Severity};
use tokio::sync::Notify;
use tracing_subscriber::filter::LevelFilter;

use crate::args::Run;
use crate::exit::Exit;
use crate::log;
use crate::output;
use crate::problem::Problem;
use crate::signals::{Stops, runtime, stay_on_hangup, take_every_descriptor};

/// What service managers are told not to start again after.
const WRONG_CONFIG: u8 = 23;

/// A problem, and the exit code it has for this command.
struct Failed(u8, Problem);

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Failed {
        Failed(problem.exit().code(), problem)
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
    Failed(WRONG_CONFIG, Problem::new(Exit::Usage, message))
}

pub(crate) fn run(options: &Run) -> ExitCode {
    let served = serve(options);
    log::flush();
    match served {
        Ok(()) => ExitCode::from(Exit::Done.code()),
        Err(Failed(code, problem)) => {
            problem.print();
            ExitCode::from(code)
        }
    }
}

fn serve(options: &Run) -> Result<(), Failed> {
    let runtime = runtime()?;
    let within = runtime.enter();
    // A manager may send it right after the start; it must not end what is still reading its configuration.
    stay_on_hangup()?;
    let sources = sources(options)?;
    if options.test {
        log::to_stderr(LevelFilter::WARN);
    }
    let config = load(&sources, options)?;
    let mut settings = Settings::from_config(&config).map_err(|error| refuse(&sources, vec![error]))?;
    if let Some(folder) = files::location("cert", &environment) {
        certificates_from(&folder, settings.pem_sources());
    }
    settings.geo_folders = geo::folders(files::location("asset", &environment));
    let checked = || {
        let mut found: Vec<Error> = error_log(&config.log).into_iter().collect();
        let lists = Server::check(&settings).unwrap_or_else(|errors| {
            found.extend(errors);
            Vec::new()
        });
        (found, lists)
    };
    if options.test {
        let (found, lists) = checked();
        if !found.is_empty() {
            return Err(refuse(&sources, found));
        }
        output::print(&format!("{}Configuration OK.\n", sizes(&lists)))?;
        return Ok(());
    }
    let unusable = || checked().0;
    // Where something is wrong, everything is said at once.
    let all = |error: Error| match (error, unusable()) {
        (error @ Error::Config { .. }, found) if found.is_empty() => refuse(&sources, vec![error]),
        (Error::Config { .. }, found) => refuse(&sources, found),
        (error, _) => refuse(&sources, vec![error]),
    };
    log::start(&config.log).map_err(|e| all(unopened(&config.log, &e)))?;
    take_every_descriptor();
    let done = runtime.block_on(until_told(settings.clone(), all));
    // A name that the system still looks up is not waited for.
    drop(within);
    runtime.shutdown_background();
    done
}

/// Prints what keeps a configuration from running, each with its place in the files.
fn refuse(sources: &[files::Source], found: Vec<Error>) -> Failed {
    let wrong = found
        .iter()
        .filter(|error| matches!(error, Error::Config { .. }))
        .count();
    tell(sources, Severity::Error, &found);
    match found.into_iter().next() {
        _ if wrong > 0 => useless(wrong),
        // It may pass by itself.
        Some(Error::Listen { .. }) => Problem::new(Exit::Internal, "nothing was started").into(),
        Some(error) => Problem::new(Exit::Internal, error).into(),
        None => useless(0),
    }
}

/// Prints what has a place in the files, and gives the number of lines.
fn tell(sources: &[files::Source], severity: Severity, found: &[Error]) -> usize {
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
    files::problems(&problems);
    problems.len()
}

fn unopened(log: &config::Log, error: &std::io::Error) -> Error {
    let name = match &log.error {
        LogTarget::File(path) => path,
        _ => "it",
    };
    Error::Config {
        place: "log.error".to_owned(),
        what: format!("{name} cannot be opened: {error}"),
    }
}

/// Why the error log cannot be written, if so.
fn error_log(log: &config::Log) -> Option<Error> {
    let LogTarget::File(path) = &log.error else { return None };
    can_append(Path::new(path)).err().map(|error| unopened(log, &error))
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads the files of the configuration.
fn sources(options: &Run) -> Result<Vec<files::Source>, Failed> {
    let missing = |missing: files::Missing| {
        let Failed(code, problem) = wrong(&missing);
        Failed(code, problem.hint(missing.hint()))
    };
    let names = files::names(&options.config, options.confdir.as_deref(), &environment).map_err(missing)?;
    let sources: Result<Vec<_>, _> = names.iter().map(|name| files::read(name)).collect();
    sources.map_err(missing)
}

fn texts(sources: &[files::Source]) -> Vec<File<'_>> {
    let files = sources.iter().map(|source| File {
        name: &source.name,
        text: &source.text,
    });
    files.collect()
}

/// Prints what is wrong with a configuration, and gives it if nothing is.
fn load(sources: &[files::Source], options: &Run) -> Result<Config, Failed> {
    let how = Options {
        strict: options.strict,
        env: &environment,
    };
    let loaded = config::load(&texts(sources), &how);
    files::problems(&loaded.problems);
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
    let exposed = exposed(sources, &loaded, &parts, options.strict);
    errors += if options.strict { exposed } else { 0 };
    if errors == 0 {
        return loaded.config.ok_or_else(|| useless(0));
    }
    // What is right in itself is looked at all the same, so that nothing is found only after something else was mended.
    let mut found: Vec<Error> = loaded.draft.log.iter().filter_map(error_log).collect();
    found.extend(parts.problems());
    errors += tell(sources, Severity::Error, &found);
    Err(useless(errors))
}

/// Tells of secrets in files that others can read, and gives their number.
fn exposed(sources: &[files::Source], loaded: &Loaded, parts: &Parts, strict: bool) -> usize {
    let severity = if strict { Severity::Error } else { Severity::Warning };
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let credentials = credentials.as_deref();
    let mut problems = Vec::new();
    for at in loaded.files_with_secrets() {
        let Some(source) = sources.get(usize::from(at)) else {
            continue;
        };
        if let Some(who) = readers(Path::new(&source.name), credentials) {
            problems.push(config::Problem {
                severity,
                file: source.name.clone(),
                line: 1,
                column: 1,
                path: String::new(),
                text: format!("{who} can read this file, which holds ids, passwords or keys"),
                hint: format!("chmod 600 {}", source.name),
            });
        }
    }
    files::problems(&problems);
    problems.len() + tell(sources, severity, &parts.exposed_keys(credentials))
}

fn useless(errors: usize) -> Failed {
    let plural = if errors == 1 { "" } else { "s" };
    wrong(format_args!(
        "the configuration has {errors} error{plural}; nothing was started"
    ))
}

/// Lets relative paths of certificates start from `folder`.
fn certificates_from<'t>(folder: &Path, paths: impl Iterator<Item = &'t mut PemSource>) {
    for source in paths {
        if let PemSource::File(path) = source {
            // An absolute path stays what it is.
            *path = folder.join(&*path);
        }
    }
}

/// Serves until a signal comes, then lets connections finish until the time or another signal ends them.
async fn until_told(settings: Settings, placed: impl Fn(Error) -> Failed) -> Result<(), Failed> {
    let stops = Stops::new()?;
    let listeners: Vec<_> = settings
        .inbounds
        .iter()
        .map(|i| (i.tag.clone(), i.listen.clone()))
        .collect();
    let server = Server::start(settings).await.map_err(placed)?;
    log::tell(format_args!(
        "sealway {} listens: {}",
        crate::args::version(),
        places(&server, &listeners)
    ));
    let lists = server.lists();
    // Those that come while files are read are one more time to read them.
    let told = Arc::new(Notify::new());
    tokio::spawn({
        let told = Arc::clone(&told);
        async move {
            loop {
                told.notified().await;
                load_again(&lists).await;
            }
        }
    });
    let hangup = || told.notify_one();
    stops.until_told(hangup, |grace| server.shutdown(grace)).await;
    Ok(())
}

/// Reads geo files again, and says what came of it.
async fn load_again(lists: &GeoLists) {
    const REST: &str = "not supported yet: loading the configuration again; restart to take up changes";
    match lists.reload().await {
        Ok(0) => tracing::warn!("SIGHUP: the rules name no geo file; {REST}"),
        Ok(count) => tracing::info!("SIGHUP: {count} lists of geo files were read again; {REST}"),
        Err(error) => tracing::error!("SIGHUP: geo files are not taken up, the older lists stay: {error}"),
    }
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
            let chosen = server.addresses(tag).iter().map(ToString::to_string);
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
        Listen::Unix(UnixName::Path(path, _)) => path.display().to_string(),
        Listen::Unix(UnixName::Abstract(name)) => {
            format!(
                "@{}",
                String::from_utf8_lossy(name).trim_end_matches('\0').escape_debug()
            )
        }
    }
}
