//! `sealway run`.

pub(crate) mod files;
pub(crate) mod log;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use sealway_lab::exit::Exit;
use sealway_proxy::settings::{Listen, PemSource, Settings, UnixName};
use sealway_proxy::{Error, Server};
use sealway_v2ray::config::{self, Config, File, Options, Severity};
use tracing_subscriber::filter::LevelFilter;

use crate::args::Run;
use crate::output;
use crate::problem::Problem;
use crate::signals::{Stops, take_every_descriptor};

/// What service managers are told not to start again after.
const WRONG_CONFIG: u8 = 23;
/// How long connections may go on after the first signal.
const GRACE: Duration = Duration::from_secs(10);

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
    let sources = sources(options)?;
    let config = load(&sources, options)?;
    // What shows only now has its place in the files as well.
    let placed = |error: Error| match error {
        Error::Config { place, what } => misfit(&sources, &place, what, ""),
        Error::Listen { ref place, .. } => {
            let hint = "is another program there already? ports below 1024 need rights of their own";
            misfit(&sources, place, error.to_string(), hint);
            Problem::new(Exit::Internal, "nothing was started").into()
        }
        other => other.into(),
    };
    if options.test {
        log::to_stderr(LevelFilter::WARN);
    } else {
        let opened = log::start(&config.log);
        opened.map_err(|e| misfit(&sources, "log.error", format!("cannot be opened: {e}"), ""))?;
    }
    let mut settings = Settings::from_config(&config).map_err(placed)?;
    if let Some(folder) = files::location("cert", &environment) {
        certificates_from(&folder, &mut settings);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Problem::new(Exit::Internal, format!("cannot start: {e}")))?;
    if options.test {
        let _within = runtime.enter();
        Server::check(&settings).map_err(placed)?;
        output::print("Configuration OK.\n")?;
        return Ok(());
    }
    take_every_descriptor();
    let done = runtime.block_on(until_told(settings, placed));
    // A name that the system still looks up is not waited for.
    runtime.shutdown_background();
    done
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
    loaded.config.ok_or_else(|| {
        let errors = loaded.problems.iter().filter(|p| p.severity == Severity::Error).count();
        useless(errors)
    })
}

fn useless(errors: usize) -> Failed {
    let plural = if errors == 1 { "" } else { "s" };
    wrong(format_args!(
        "the configuration has {errors} error{plural}; nothing was started"
    ))
}

/// Prints what is wrong with a key that could be read, but not put to use.
fn misfit(sources: &[files::Source], path: &str, text: String, hint: &str) -> Failed {
    let problem = config::problem_at(&texts(sources), Severity::Error, path, text, hint.into());
    files::problems(&[problem]);
    useless(1)
}

/// Lets relative paths of certificates start from `folder`.
fn certificates_from(folder: &Path, settings: &mut Settings) {
    let move_there = |source: &mut PemSource| {
        if let PemSource::File(path) = source {
            // An absolute path stays what it is.
            *path = folder.join(&*path);
        }
    };
    for tls in settings.inbounds.iter_mut().filter_map(|i| i.transport.tls.as_mut()) {
        for one in &mut tls.certificates {
            move_there(&mut one.certificate);
            move_there(&mut one.key);
        }
        tls.client_authorities.iter_mut().for_each(move_there);
    }
    for tls in settings.outbounds.iter_mut().filter_map(|o| o.transport.tls.as_mut()) {
        tls.authorities.iter_mut().for_each(move_there);
        for one in &mut tls.certificates {
            move_there(&mut one.certificate);
            move_there(&mut one.key);
        }
    }
}

/// Serves until a signal comes, then lets connections finish until the time or another signal ends them.
async fn until_told(settings: Settings, placed: impl Fn(Error) -> Failed) -> Result<(), Failed> {
    let mut stops = Stops::new().map_err(|e| Problem::new(Exit::Internal, format!("cannot wait for signals: {e}")))?;
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
    stops.next().await;
    log::tell("stopping: open connections may go on for ten seconds; a second signal ends them at once");
    tokio::select! {
        _ = server.shutdown(GRACE) => {}
        () = stops.next() => {}
    }
    Ok(())
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
